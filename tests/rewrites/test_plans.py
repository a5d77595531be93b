"""Plans: pipelines rewritten once, by named passes, with what was done."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.random_schedules import random_schedule
from support.random_stencils import random_stencils

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pass_manager import PassPipeline, PassTimes
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Factor, Joining, Packing, Schedule, Separation
from tilesmith.scheduler.rewrites.passes import (
    NORMALIZATION,
    REWRITES,
    normalise,
    rewrite,
    with_factors,
    with_joinings,
    with_packings,
    with_separations,
)


def undecided(of: Pipeline, strict: bool = False) -> Schedule:
    return Schedule(of.name, "none", (), strict)


def test_every_pass_says_what_it_expects_and_leaves() -> None:
    assert all(p.before and p.after for p in REWRITES.passes)


def test_an_observer_sees_every_pass() -> None:
    of, times = pipelines.load("harris"), PassTimes(lambda: 0.0)
    rewrite(of, undecided(of), times)
    assert list(times.ms) == [
        "hoist-reductions",
        "rfactor",
        "fold-constants",
        "divide-places",
        "join-correlated-terms",
        "gather-neighbours",
        "promise-bounds",
        "interleave-updates",
        "lower-boundaries",
        "fold-updates",
        "order-reductions",
        "specialize-scans",
        "join-scans",
        "forward-initial-values",
        "order-recurrences",
        "eliminate-symmetric-pairs",
        "drop-single-iterations",
        "hoist-parameters",
        "propagate-boundaries",
        "factor-exponentials",
        "distribute-scatters",
        "tabulate-weights",
        "narrow-integers",
        "pair-terms",
        "widen-factors",
        "interleave-channels",
        "split-separable",
        "fuse-outputs",
        "pack-operands",
    ]


def test_the_plan_has_the_rewrites_that_changed_something() -> None:
    of = pipelines.load("max_filter")
    plan = rewrite(of, undecided(of))
    assert plan.written is of
    assert [r.rule for r in plan.rewrites] == ["promise-bounds", "lower-boundaries", "specialize-scans"]
    _, boundaries, scans = plan.rewrites
    assert (boundaries.made, boundaries.removed) == ((), ())
    assert boundaries.changed
    assert set(scans.removed) == {"vert_log", "vert"}
    assert {f"vert_log_{n}" for n in range(6)} <= set(scans.made)
    assert all(r.reason for r in plan.rewrites)


def test_the_plan_has_what_the_schedule_says() -> None:
    sums = {"name": "sums", "dims": ["x", "y"], "value": "sum(image(x + i, y + j) for i in range(5) for j in range(5))"}
    rows = {"name": "rows", "dims": ["x", "y"], "value": "sum(image(r, y) * sums(x, y) for r in range(64))"}
    twin = {"name": "twin", "dims": ["x", "y"], "value": "sums(x, y) * 2.0"}
    of = load(
        {
            "format": 1,
            "name": "said",
            "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"]}],
            "stages": [sums, rows, twin],
            "outputs": ["rows", "twin"],
            "estimates": {"rows": [[0, 60], [0, 60]], "twin": [[0, 60], [0, 60]]},
        }
    )
    factor, separation = Factor("rows", 0, "r", 8, "parts"), Separation("sums", 0, "y", "down")
    joining, packing = Joining(("rows", "twin"), "both"), Packing("down", "image", "x", "image_for_down")
    schedule = replace(
        undecided(of), factors=(factor,), separations=(separation,), joinings=(joining,), packings=(packing,)
    )
    plan = rewrite(of, schedule)
    assert [(r.rule, r.changed, r.made, r.removed) for r in plan.rewrites if r.reason == "the schedule says so"] == [
        ("rfactor", ("rows",), ("parts",), ()),
        ("split-separable", ("sums",), ("down",), ()),
        ("fuse-outputs", (), ("both",), ("rows", "twin")),
        ("pack-operands", ("down",), ("image_for_down",), ()),
    ]
    steps = with_factors(rewrite(of, undecided(of)), (factor,))
    joined = with_joinings(with_separations(steps, (separation,)), (joining,))
    assert with_packings(joined, (packing,)) == plan


def test_params_are_among_what_was_made() -> None:
    of = pipelines.load("lens_blur")
    hoisted = next(r for r in rewrite(of, undecided(of)).rewrites if r.rule == "hoist-parameters")
    assert hoisted.made
    assert set(hoisted.made) == {p.name for p in normalise(of).params} - {p.name for p in of.params}


def again(plan: Plan) -> Plan:
    """The plan after the passes to the normal form, once more."""
    return PassPipeline(NORMALIZATION)(plan)


@pytest.mark.parametrize("name", pipelines.names())
def test_shipped_pipelines_are_normal_once_they_are(name: str) -> None:
    plan = rewrite(pipelines.load(name), undecided(pipelines.load(name)))
    assert again(plan) is plan


@pytest.mark.parametrize("chunk", range(4))
@pytest.mark.slow
def test_what_a_schedule_says_leaves_the_normal_form(chunk: int) -> None:
    """Separations, joinings and packings; normalising again changes nothing."""
    said = 0
    for seed in range(chunk, 60, 4):
        of = load(random_stencils(seed))
        plan = rewrite(of, random_schedule(of, seed))
        said += bool(plan.schedule.separations or plan.schedule.joinings or plan.schedule.packings)
        assert again(plan) is plan
    assert said
