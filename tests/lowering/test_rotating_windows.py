"""Rotating register windows: vectors of a row move on by one at each step."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, pipeline

from tilesmith.scheduler.ir.schedule.schedule import Placement, Vector

Golden = Callable[[str, str], None]


def test_a_stage_in_registers_is_computed_a_vector_ahead(golden: Golden) -> None:
    p = pipeline("g(x, y) + g(x + 1, y)", ("g", "f(x, y) * 2"), dims=("x", "y"))
    stage = Placement("g", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8))
    golden("a_stage_in_registers_is_computed_a_vector_ahead.txt", body(p, [group("x.inner y.inner", [stage])]))
