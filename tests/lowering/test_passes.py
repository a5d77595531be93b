"""Passes of lowering, each alone: a text after each of them, and from a text what the next one makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.lowered import group, pipeline
from support.machines import machine
from support.shipped import narrow_or_wide, planned

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.registry import backend_for
from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.printer import print_body, print_program
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.loop.verifier import verify
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule
from tilesmith.scheduler.lowering.bounds import with_bounds
from tilesmith.scheduler.lowering.loops import with_loops
from tilesmith.scheduler.lowering.passes import LOWERING, begun, lower
from tilesmith.scheduler.lowering.rows import with_rows
from tilesmith.scheduler.lowering.unit import LoweringUnit
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import autoschedule

Golden = Callable[[str, str], None]
INLINED = Placement("a", INLINE, INLINE)
SMALL = [name for name in pipelines.names() if name not in ("vdsr", "nl_means", "local_laplacian")]


def bounded(p: Pipeline, *groups: Group) -> LoweringUnit:
    """Unit of lowering after the pass `bounds`."""
    plan = rewrite(p, Schedule(p.name, "by hand", groups))
    return with_bounds(begun(plan, machine(vector_bytes=32)))


def shipped(name: str) -> LoweringUnit:
    """What the pass `loops` leaves of a pipeline that is shipped, by the default schedule."""
    return with_loops(with_bounds(begun(planned(name), narrow_or_wide(name))))


def blurred(*placements: Placement, **changes: object) -> LoweringUnit:
    """What `bounds` leaves of two stages over rows."""
    p = pipeline("a(x - 1, y) + a(x + 1, y)", ("a", "f(x, y) * 2.0"), dims=("x", "y"))
    return bounded(p, group("x.inner y.inner", placements, **changes))


def computations(program: Program) -> list[Compute | FusedRow]:
    return [s for s in walk(program.body) if isinstance(s, Compute | FusedRow)]


def test_every_pass_says_what_it_expects_and_leaves() -> None:
    assert all(p.before and p.after for p in LOWERING.passes)


def test_bounds_leave_regions_and_no_body(golden: Golden) -> None:
    found = blurred(INLINED)
    golden("bounds_leave_regions_and_no_body.txt", print_program(found.program))


def test_a_stage_computed_at_a_loop_is_one_statement_in_it(golden: Golden) -> None:
    found = with_loops(blurred(Placement("a", "y.inner", "y.inner", order=("x", "y")), parallel="y.inner"))
    golden("a_stage_computed_at_a_loop_is_one_statement_in_it.txt", print_body(found.program.body))


def test_a_row_with_a_stage_in_registers_is_one_statement(golden: Golden) -> None:
    in_registers = Placement("a", "x.inner", "y.inner", storage="registers", order=("x", "y"))
    found = with_loops(blurred(in_registers))
    golden("a_row_with_a_stage_in_registers_is_one_statement.txt", print_body(found.program.body))


def test_prefetching_and_streaming_are_said_of_the_computation() -> None:
    found = with_loops(blurred(INLINED, prefetch=512, stream=True))
    (one,) = computations(found.program)
    assert one.reads.prefetch == 512
    assert one.stream


@pytest.mark.parametrize("name", SMALL)
def test_computations_are_read_back_and_keep_the_rules(name: str) -> None:
    program = shipped(name).program
    assert computations(program)
    verify(program)
    assert parse_program(print_program(program)) == program


def test_rows_of_a_text_are_those_of_the_program() -> None:
    unit = shipped("camera_pipe")
    read = replace(unit, program=parse_program(print_program(unit.program)))
    expanded = with_rows(unit).program
    assert not computations(expanded)
    assert with_rows(read).program == expanded


def test_a_pass_changes_nothing_of_what_it_is_given() -> None:
    unit = shipped("blur")
    before = print_program(unit.program)
    assert with_rows(unit) == with_rows(unit)
    assert print_program(unit.program) == before


def test_an_observer_sees_the_program_that_each_pass_leaves() -> None:
    seen: list[tuple[str, object]] = []

    class Keep:
        def begun(self, name: str) -> None: ...
        def ended(self, name: str, unit: object) -> None:
            seen.append((name, unit))

    plan: Plan = autoschedule(pipelines.load("blur"), machine()).plan
    program = lower(plan, machine(), Keep())
    assert [name for name, _ in seen] == ["layout", "bounds", "loops", "functions", "rows"]
    assert all(isinstance(unit, Program) for _, unit in seen)
    assert seen[-1][1] == program


def test_a_backend_is_given_no_computation() -> None:
    program = shipped("blur").program
    first = type(computations(program)[0]).__name__
    with pytest.raises(InternalError, match=f"a computation is not expanded: {first}"):
        backend_for(machine(), None).emit(program, machine())
