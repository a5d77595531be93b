"""Layer conditions: what a stage loads of the arrays that it goes through."""

from __future__ import annotations

import pytest
from support.group_work import works
from support.small_pipelines import E, F, c, k, pipeline, stage, summed, x, y

from tilesmith.cost_models.work import Work

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


def _sums(flat: bool, inline: bool) -> Work:
    """64 sums of 100 neighbours, of rows of an image or of an image that has one row behind the other."""

    def at(i: E, j: E) -> E:
        return F("input")(i + j * 100) if flat else F("input")(i, j)

    element = [stage("element", "cx", at(c, x))] if inline else []
    values = summed(F("element")(k, x) if inline else at(k, x), k=(0, 100))
    of = pipeline("sums", [*element, stage("out", "x", values)], {"out": (64,)}, {"input": "x" if flat else "xy"})
    return works(of, ("x.inner", "x.outer"), {}, {"x": 16}, 8)["out"]


@pytest.mark.parametrize("inline", [False, True])
def test_rows_of_an_image_of_one_row_are_loaded_as_others(inline: bool) -> None:
    """Each element is loaded once, and a vector across the rows is of elements far apart."""
    for flat in (False, True):
        work = _sums(flat, inline)
        assert min(work.loaded) >= 64 * 100 * 4
        assert {t.way for t in work.loads} == {"gathered"}
