"""The pass `rows`: computations are expanded where they stand, and what they share is hoisted past what is there."""

from __future__ import annotations

import pytest
from support.lowered import group, loaded, pipeline
from support.lowered_values import assert_lowered_right
from support.machines import machine

from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
from tilesmith.scheduler.ir.loop.program import If, MutableIndex, Program, Stores
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile
from tilesmith.scheduler.lowering.bounds import with_bounds
from tilesmith.scheduler.lowering.loops import with_loops
from tilesmith.scheduler.lowering.passes import begun
from tilesmith.scheduler.lowering.rows import with_rows
from tilesmith.scheduler.rewrites.passes import rewrite

P = pipeline("g(x, y) + g(x, y + 2)", ("g", "f(x, y) * 2"), dims=("x", "y"))
SLIDING = group(
    "x.inner y.inner y.outer", [Placement("g", "y.inner", "y.outer", order=("x", "y"))], tiles=(Tile("y", None),)
)


def stages(p: Pipeline, g: Group) -> tuple[Program, Program]:
    """The program before the pass and after it."""
    unit = with_loops(with_bounds(begun(rewrite(p, Schedule(p.name, "by hand", (g,))), machine(vector_bytes=32))))
    return unit.program, with_rows(unit).program


def test_what_a_loop_moves_begins_right_before_the_loop() -> None:
    before, after = stages(P, SLIDING)
    assert any(isinstance(s, Compute | FusedRow) for s in walk(before.body))
    assert not any(isinstance(s, Compute | FusedRow) for s in walk(after.body))
    moved = [s for s in walk(before.body) if isinstance(s, MutableIndex)]
    assert [s for s in walk(after.body) if isinstance(s, MutableIndex)] == moved != []


def test_bounds_and_arguments_stay_as_they_were() -> None:
    before, after = stages(P, SLIDING)
    assert (after.bounds, after.required, after.arguments) == (before.bounds, before.required, before.arguments)


@pytest.mark.parametrize("extent", [3, 2, 4])
def test_dims_written_out_are_asked_for_where_any_extent_may_come(extent: int) -> None:
    """Three are expected."""
    p = loaded({"name": "out", "dims": ["x", "c"], "value": "f(x, c) * f(x, 0)"}, extents=(64, 3))
    unrolled = group("c.inner x.inner", unroll=("c",))
    program = assert_lowered_right(p, [unrolled], ((-3, 21), (0, extent)), ((0, 3), (1, extent)))
    assert any(isinstance(s, If) for s in walk(program.body))


@pytest.mark.parametrize(("width", "bodies"), [(64, 3), (1024, 2)])
def test_edges_are_wide_or_narrow_by_what_is_expected_of_a_tile(width: int, bodies: int) -> None:
    """Wide ones are vectors of their own, and shorter rows points. Of tiles that in the middle counts."""
    p = loaded({"name": "out", "dims": ["x"], "value": "f(clamp(x - 40, 0, 2000)) + 1.0"}, extents=(width,))
    _, after = stages(p, group("x.inner x.outer", tiles=(Tile("x", 64),)))
    assert sum(isinstance(s, Stores) for s in walk(after.body)) == bodies
