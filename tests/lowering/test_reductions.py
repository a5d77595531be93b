"""Long reductions: several points share their loads, wherever the reduction is written."""

from __future__ import annotations

import re

import pytest
from support.machines import machine
from support.native import source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Vector


@pytest.mark.parametrize("inline", [False, True])
def test_points_are_computed_side_by_side(inline: bool) -> None:
    """Also where the reduction is inline in the stage that is computed: a convolution and what is done with it."""
    total = "sum(a(c, x + i, y + j) * w(k, c, i, j) for j in range(3) for i in range(3) for c in range(32))"
    value = "max(o(k, x, y), 0.0)" if inline else f"max({total}, 0.0)"
    stages = [{"name": "o", "dims": ["k", "x", "y"], "value": total}] if inline else []
    pipeline = load(
        {
            "format": 1,
            "name": "conv",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["c", "x", "y"]},
                {"name": "w", "type": "float32", "dims": ["k", "c", "i", "j"]},
            ],
            "stages": [*stages, {"name": "out", "dims": ["k", "x", "y"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 32], [0, 56], [0, 56]], "w": [[0, 32], [0, 32], [0, 3], [0, 3]]},
        }
    )
    placements = (Placement("o", INLINE, INLINE),) if inline else ()
    group = Group("out", ("k.inner", "x.inner", "y.inner"), (), None, Vector("k", 8), (), placements)
    code = source_of(pipeline, Schedule("conv", "by hand", (group,)), machine(vector_bytes=32)).code
    accumulators = re.findall(r"f32x8 sum_\d+ = ", code)
    assert len(accumulators) >= 8
