"""Our schedules on live Funcs of Halide: applied or printed and run, they change no value."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.machines import machine
from support.modules import require_module
from support.random_schedules import random_schedule
from support.turns import in_turn

from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.schedule.schedule import (
    Factor,
    Group,
    Placement,
    Schedule,
    Tile,
    UpdateLoops,
    Vector,
    inner,
    outer,
)
from tilesmith.scheduler.search import autoschedule

require_module("halide")

import halide as hl  # noqa: E402
from support.halide_users import CASES, Case, alike  # noqa: E402

from tilesmith.scheduler.codegen.halide import Applied, apply  # noqa: E402
from tilesmith.scheduler.codegen.halide.source import to_cpp, to_python  # noqa: E402
from tilesmith.scheduler.frontends.halide import Imported, from_halide  # noqa: E402
from tilesmith.scheduler.frontends.halide.live import as_pipeline, funcs_of  # noqa: E402
from tilesmith.scheduler.rewrites.passes import rewrite  # noqa: E402

pytestmark = [pytest.mark.halide, pytest.mark.slow]


@cache
def unscheduled(name: str) -> list[tuple[np.ndarray, ...]]:
    """Results of Halide without a schedule, compiled once for all tests: of Funcs of their own, as Halide does not
    compile again what it has run when only an inner Func has another schedule."""
    return CASES[name]().realised()


def applied(name: str, case: Case, imported: Imported, schedule: Schedule) -> Applied:
    # random numbers are of the very Func: another one has others
    expected = case.realised() if name == "noise" else unscheduled(name)
    done = apply(schedule, case.outputs, imported)
    assert done.calls > 0
    assert done.refused == ()
    alike(expected, case.realised())
    return done


@pytest.mark.parametrize("name", CASES)
def test_the_schedule_that_the_search_finds(name: str) -> None:
    case = CASES[name]()
    imported = from_halide(case.outputs)
    applied(name, case, imported, autoschedule(imported.pipeline, machine()).schedule)


@pytest.mark.parametrize(
    ("name", "seed"), in_turn(("unsharp", "equalise", "bilateral_grid", "recursive_filter", "best_match"), (0, 1))
)
def test_random_schedules(name: str, seed: int) -> None:
    case = CASES[name]()
    imported = from_halide(case.outputs)
    applied(name, case, imported, random_schedule(imported.pipeline, seed))


@pytest.mark.parametrize("name", ["blur", "equalise", "recursive_filter"])
def test_printed_schedules_run(name: str) -> None:
    case = CASES[name]()
    imported = from_halide(case.outputs)
    for seed in range(2):
        schedule = random_schedule(imported.pipeline, seed)
        case = CASES[name]()
        live = funcs_of(as_pipeline(case.outputs))
        names = from_halide(case.outputs).funcs
        module: dict[str, Any] = {}
        exec(compile(to_python(rewrite(imported.pipeline, schedule)), "schedule.py", "exec"), module)
        module["schedule"]({stage: live[func] for stage, func in names.items()})
        alike(unscheduled(name), case.realised())


def all_at_root(imported: Imported, *factors: Factor) -> Schedule:
    schedule = Schedule(imported.pipeline.name, "hand", (), factors=factors)
    stages = rewrite(imported.pipeline, schedule).pipeline.stages
    groups = tuple(Group(s.name, tuple(inner(d) for d in s.dims), (), None, None, (), ()) for s in stages)
    return Schedule(imported.pipeline.name, "hand", groups, factors=factors)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("equalise", Factor("hist", 0, "ry", 4, "parts")),
        ("equalise", Factor("hist", 0, "rx", 8, "parts", interleaved=True)),
        ("matmul", Factor("prod", 0, "kx", 3, "parts")),
        ("matmul", Factor("prod", 0, "kx", 8, "parts", interleaved=True)),
        ("inline_reductions", Factor("out", 0, "rx", 2, "parts")),
    ],
    ids=lambda v: v if isinstance(v, str) else f"{v.variable}{v.parts}",
)
def test_factored_reductions(name: str, factor: Factor) -> None:
    """rfactor of an update that scatters, of one of every point, and of a reduction inside of an expression."""
    case = CASES[name]()
    imported = from_halide(case.outputs)
    schedule = all_at_root(imported, factor)
    assert applied(name, case, imported, schedule).unsaid == ()
    printed = to_cpp(rewrite(imported.pipeline, schedule))
    assert ("rfactor" in printed) == (name != "inline_reductions")
    assert ("// Not said: the factor 'parts' of 'out'" in printed) == (name == "inline_reductions")


def test_updates_in_tiles_vectors_and_threads() -> None:
    """A product of matrices by tiles, its update in another order and in vectors; a member inside of the tile."""
    name = "fading_matmul"
    case = CASES[name]()
    imported = from_halide(case.outputs)
    tiles = (Tile("x", 8), Tile("y", 4))
    loops = (inner("x"), inner("y"), outer("x"), outer("y"))
    product = Placement("prod", outer("x"), outer("x"), order=("x", "y"), vector=Vector("x", 8),
                        updates=(UpdateLoops(("x", "y", "kx"), Vector("x", 8)),))  # fmt: skip
    group = Group("out", loops, tiles, outer("y"), Vector("x", 8), (), (product,))
    applied(name, case, imported, Schedule(imported.pipeline.name, "hand", (group,)))
    case = CASES[name]()
    imported = from_halide(case.outputs)
    first = Group("prod", loops, tiles, outer("y"), Vector("x", 8), (), (),
                  (UpdateLoops(("x", "kx", "y"), Vector("x", 8)),))  # fmt: skip
    second = Group("out", (inner("x"), inner("y")), (), None, None, (), ())
    applied(name, case, imported, Schedule(imported.pipeline.name, "hand", (first, second)))


def test_funcs_that_have_schedules_and_schedules_that_are_not_legal() -> None:
    case = CASES["blur"]()
    imported = from_halide(case.outputs)
    with pytest.raises(IllegalSchedule):
        apply(Schedule(imported.pipeline.name, "hand", ()), case.outputs, imported)
    legal = all_at_root(imported)
    case.outputs[0].vectorize(hl.Var("x"), 8)
    with pytest.raises(ValueError, match=r"blur_y.* has a schedule already"):
        apply(legal, case.outputs)
