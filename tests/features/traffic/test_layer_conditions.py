"""Layer conditions: what a stage loads of the arrays that it goes through."""

from __future__ import annotations

from support.group_work import works
from support.small_pipelines import F, k, pipeline, stage, summed, x, y

SIZE = {"out": (64, 48)}
LOOPS = ("y.inner", "x.inner", "y.outer", "x.outer")
TILES = {"x": 16, "y": 8}
INPUT = 100 * 64 * 4.0
"""Bytes of an input of 100 rows."""


def _loaded(other: str) -> tuple[float, ...]:
    values = summed(F("input")(x, k) * F(other)(y, k), k=(0, 100))
    of = pipeline("product", [stage("out", "xy", values)], SIZE, {"input": "xy", "other": "xy"})
    return tuple(map(float, works(of, LOOPS, {}, TILES, 8)["out"].loaded))


def test_what_goes_through_an_array_along_two_dims_touches_what_each_way_does_and_no_more_than_all_of_it() -> None:
    """A matrix times itself, transposed, loads as much as it does times another one, and at most all of it for each of
    four columns of tiles, if what these touch is near, and once if all is."""
    one, two = _loaded("input"), _loaded("other")
    assert one == (two[0], 4 * INPUT, INPUT)
    assert two[0] > two[1] > 4 * INPUT
