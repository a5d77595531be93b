"""Plans of groups: levels outermost first, what is in registers, what joins the row."""

from __future__ import annotations

from support.lowered import group, pipeline

from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.schedule.schedule import Placement, Tile
from tilesmith.scheduler.lowering.group_plan import GroupPlan, Level

P = pipeline("g(x, y) + g(x + 1, y)", ("g", "f(x, y) * 2"), dims=("x", "y"))
ROOT = {name: ((const(0), const(63)), (const(0), const(63))) for name in ("g", "out")}


def plan(loops: str, stage: Placement, **changes: object) -> GroupPlan:
    return GroupPlan(group(loops, [stage], **changes), P.stages[1], P.stages[:1], ROOT, lambda *_: (0, 64))


def test_levels_are_loops_outermost_first_with_their_steps() -> None:
    found = plan("x.inner y.inner y.outer", Placement("g", "y.inner", "y.inner"), tiles=(Tile("y", 16),))
    assert found.levels == (Level("y.outer", "y", 16), Level("y.inner", "y", 1), Level("x.inner", "x", 8))
    assert found.goes_on(1)
    assert not found.goes_on(2)


def test_stages_in_registers_share_the_loop_over_vectors() -> None:
    found = plan("x.inner y.inner", Placement("g", "x.inner", "y.inner", storage="registers"))
    assert (found.registers, found.lanes) == (frozenset({"g"}), 8)
    assert [level.name for level in found.levels if found.is_fused(level)] == ["x.inner"]


def test_in_memory_they_do_not() -> None:
    found = plan("x.inner y.inner", Placement("g", "y.inner", "y.inner"))
    assert found.registers == frozenset()
    assert not any(map(found.is_fused, found.levels))
