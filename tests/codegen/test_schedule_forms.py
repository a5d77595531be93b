"""Forms of a schedule: document, loop nest, Halide code, explanation. Golden files are in `golden/`."""

import json
from collections.abc import Callable

import pytest
from support.machines import machine
from support.methods import PAPER
from support.random_schedules import random_schedule
from support.small_pipelines import F, blur, harris, pipeline, pyramid, stage, unsharp, x, y

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen import loopnest
from tilesmith.scheduler.codegen.halide import source
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import autoschedule, explain

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("name", ["blur", "harris", "unsharp"])
def test_forms_of_shipped_pipelines(name: str, golden: Golden) -> None:
    of = pipelines.load(name)
    result = autoschedule(of, machine(), PAPER)
    golden(f"{name}.loopnest.txt", loopnest.to_text(result.plan))
    golden(f"{name}.schedule.h", source.to_cpp(result.plan))
    golden(f"{name}.schedule.py.txt", source.to_python(result.plan))
    golden(f"{name}.explain.txt", explain.to_text(result.schedule, result.trace, result.predicted))
    golden(f"{name}.schedule.json", json.dumps(to_document(result.schedule), indent=2) + "\n")


def test_a_loop_nest_with_everything_in_it(golden: Golden) -> None:
    group = Group(
        "blur_y",
        ("x.inner", "y.inner", "x.outer", "y.outer"),
        (Tile("x", 256), Tile("y", None)),
        "y.outer",
        Vector("x", 16),
        (),
        (Placement("blur_x", "x.inner", "y.inner", storage="registers"),),
    )
    schedule = Schedule("blur", "hand", (group,), degraded="a reason\nof two lines")
    golden("registers.loopnest.txt", loopnest.to_text(rewrite(blur(), schedule)))
    golden("registers.schedule.h", source.to_cpp(rewrite(blur(), schedule)))


@pytest.mark.slow
@pytest.mark.parametrize("of", [blur, harris, unsharp, pyramid], ids=lambda f: f.__name__)
def test_any_schedule_has_all_forms(of) -> None:
    built = of()
    for seed in range(20):
        schedule = random_schedule(built, seed, registers=True)
        assert from_document(json.loads(json.dumps(to_document(schedule)))) == schedule
        plan = rewrite(built, schedule)
        nest, code = loopnest.to_text(plan), source.to_cpp(plan)
        scheduled = {name for g in schedule.groups for name in (g.output, *(p.stage for p in g.placements))}
        for s in built.stages:  # but for those that separations have put into their readers
            assert s.name in nest or s.name not in scheduled
            assert f'"{s.name}"' in code or s.name not in scheduled
        compile(source.to_python(plan), "schedule.py", "exec")


def test_halide_names_never_clash() -> None:
    odd = pipeline(
        "odd",
        [stage("int", "xy", F("input")(x, y)), stage("y_inner", "xy", F("int")(x, y - 1) + F("int")(x, y + 1))],
        {"y_inner": (64, 64)},
    )
    text = source.to_cpp(autoschedule(odd, machine(), PAPER).plan)
    assert 'funcs.at("int")' in text
    assert "Halide::Var v_x(" in text
