"""Choice of rfactors: reductions along memory are cut into lanes where the points of a stage are not neighbours."""

from __future__ import annotations

import pytest
from support.machines import machine

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.search import autoschedule


@pytest.mark.parametrize(
    ("dims", "value", "cut"),
    [
        (["i"], "sum(exp(array(r + 4096 * g) - mean(g)) for r in range(4096))", True),  # rows of a flat array
        (["i"], "sum(exp(array(16 * r + g % 16) - mean(g)) for r in range(4096))", False),
        (["i"], "sum(exp(array(r) - mean(g)) * array(r + g) for r in range(4096))", False),  # lags of a signal
        (["i", "g"], "mean(g) + 0.5 * sum(array(r, g) * array(r, 0) for r in range(4096))", True),  # a bias
        (["g", "i"], "sum(exp(array(g, r) - mean(g)) for r in range(4096))", False),  # points are neighbours
    ],
)
def test_reductions_along_memory_are_cut_where_points_are_none(dims: list[str], value: str, cut: bool) -> None:
    document = {
        "format": 1,
        "name": "rows",
        "inputs": [
            {"name": "array", "type": "float32", "dims": dims},
            {"name": "mean", "type": "float32", "dims": ["g"]},
        ],
        "stages": [{"name": "out", "dims": ["g"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64]]},
    }
    factors = autoschedule(load(document), machine()).schedule.factors
    assert any(f.interleaved for f in factors) == cut


@pytest.mark.parametrize(("width", "height", "cut"), [(56, 28, True), (24, 64, False), (56, 2, False)])
def test_means_of_short_rows_are_cut_where_the_plane_is_long(width: int, height: int, cut: bool) -> None:
    """Rows of two vectors and more, each with a rest that is summed by itself."""
    document = {
        "format": 1,
        "name": "pool",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y", "c"]}],
        "stages": [
            {
                "name": "mean",
                "dims": ["c"],
                "value": f"sum(a(p, q, c) for p in range({width}) for q in range({height})) / {width * height}.0",
            }
        ],
        "outputs": ["mean"],
        "estimates": {"mean": [[0, 4096]]},
    }
    factors = autoschedule(load(document), machine()).schedule.factors
    assert any(f.interleaved for f in factors) == cut


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ("sum(int32(a(r, s)) for r in range(4096) for s in range(64))", 8),
        ("sum(int32(absd(a(r, s), a(r + 1, s))) for r in range(4096) for s in range(64))", 8),
        ("sum(int32(twice(r, s)) for r in range(4096) for s in range(64))", 8),
        ("sum(int32(a(2 * r, s)) for r in range(4096) for s in range(64))", 1),  # not neighbours
        ("sum(int32(a(s, r)) for r in range(64) for s in range(4096))", 8),
        ("sum(int32(turned(r, s)) for r in range(4096) for s in range(64))", 1),  # no neighbours where it is inline
        ("sum(float32(a(r, s)) for r in range(4096) for s in range(64))", 1),
        ("max(a(r, s) for r in range(4096) for s in range(64))", 1),
    ],
)
def test_parts_of_sums_of_bytes_take_neighbours_in_their_turn(value: str, row: int) -> None:
    document = {
        "format": 1,
        "name": "sums",
        "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [
            {"name": "twice", "dims": ["x", "y"], "value": "a(x, y) * 2"},
            {"name": "turned", "dims": ["x", "y"], "value": "a(y, x)"},
            {"name": "out", "dims": [], "value": value},
        ],
        "outputs": ["out"],
        "estimates": {"out": []},
    }
    schedule = autoschedule(load(document), machine()).schedule
    assert {f.neighbours for f in schedule.factors if f.interleaved} == {row}
    partial = [f.partial for f in schedule.factors if f.interleaved]
    assert all(g.vector is not None for g in schedule.groups if g.output in partial)


def test_parts_of_sums_of_rows_have_vectors() -> None:
    """Four of them are no channels of pixels."""
    document = {
        "format": 1,
        "name": "rows",
        "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["y"], "value": "sum(int32(a(r, y)) for r in range(4096))"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 1024]]},
    }
    schedule = autoschedule(load(document), machine()).schedule
    (factor,) = schedule.factors
    assert factor.neighbours == 8
    vectors = [p.vector for g in schedule.groups for p in g.placements if p.stage == factor.partial]
    vectors += [g.vector for g in schedule.groups if g.output == factor.partial]
    assert [v.dim for v in vectors if v is not None] == [factor.variable]
