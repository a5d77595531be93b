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
