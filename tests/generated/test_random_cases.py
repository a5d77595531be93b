"""60 random pipelines, 5 of each family and way of scheduling, against the interpreter: random legal schedules and
the methods' own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.builds import BUILDS, WIDTHS
from support.random_cases import METHODS, judge, judged_in_a_child, random_case
from support.tools import require_compiler

from tilesmith.scheduler.ir.schedule.schedule import INLINE
from tilesmith.scheduler.rewrites.passes import rewrite

# most as the compiler gets them done soonest; the others as it makes the most of them
CASES = (
    (range(24), "gcc-O0"),
    (range(192, 204), "gcc-O1"), (range(216, 228), "clang-O1"), (range(1000, 1012), "gcc-O3"),
)  # fmt: skip


@pytest.mark.parametrize(("seeds", "build"), CASES)
def test_generated_code_computes_what_the_interpreter_does(seeds: range, build: str) -> None:
    require_compiler(BUILDS[build].compiler)
    assert judged_in_a_child(seeds, build) == {}


@pytest.mark.parametrize("vector_bytes", WIDTHS)
@pytest.mark.parametrize("seed", [557, 662])
def test_cases_that_were_wrong_on_some_machine(seed: int, vector_bytes: int) -> None:
    """What GCC 12 makes of a mask of two registers; what is gathered of the only lane there is."""
    case = replace(random_case(seed), vector_bytes=vector_bytes)
    with np.errstate(all="ignore"):
        assert judge(case, ("-O1",)) is None


def test_the_cases_are_broad() -> None:
    """Cases of the test above, made once for both."""
    count: Counter[str] = Counter()
    seeds = [seed for several, _ in CASES for seed in several]
    for case in map(random_case, seeds):
        stages = {s.name: s for s in rewrite(case.pipeline, case.schedule).pipeline.stages}
        count["updates"] += any(s.updates for s in stages.values())
        count["tuples"] += any(len(s.values) > 1 for s in stages.values())
        count["outputs"] += len(case.pipeline.outputs) > 1
        count["strict"] += case.schedule.strict
        count["planned"] += case.schedule.method == "planned"
        count[f"vectors of {case.vector_bytes} bytes"] += 1
        count["factors"] += bool(case.schedule.factors) and case.schedule.method == "random"
        count["separations"] += bool(case.schedule.separations)
        for g in case.schedule.groups:
            count["past the caches"] += g.stream
            count["asked ahead"] += g.prefetch > 0
            count["threads"] += g.parallel is not None
            count["vectors"] += g.vector is not None
            count["tiles"] += any(t.size is not None for t in g.tiles)
            count["unrolled"] += bool(g.unroll)
            updated = bool(stages[g.output].updates)
            count["groups of updates in tiles"] += updated and bool(g.tiles)
            members = [p for p in g.placements if p.compute != INLINE]
            count["groups of updates with members"] += updated and bool(members)
            count["sliding"] += any(p.compute != p.store for p in members)
            count["registers"] += sum(p.storage == "registers" for p in members)
            count["updates inside"] += sum(bool(stages[p.stage].updates) for p in members)
            count["tuples inside"] += sum(len(stages[p.stage].values) > 1 for p in members)
            loops = [u for p in (g, *members) for u in p.updates]
            count["updates in vectors"] += sum(u.vector is not None for u in loops)
            count["updates by threads"] += sum(u.parallel is not None for u in loops)
    assert count["planned"] == len(seeds) // len(METHODS)
    least = {
        "updates": 20, "tuples": 14, "outputs": 14, "strict": 8, "threads": 20, "vectors": 35, "tiles": 35,
        "unrolled": 5, "groups of updates in tiles": 8, "groups of updates with members": 1, "sliding": 10,
        "registers": 1, "updates inside": 4, "tuples inside": 2, "updates in vectors": 16, "updates by threads": 5,
        "past the caches": 2,
        **{f"vectors of {n} bytes": 2 for n in WIDTHS}, "asked ahead": 14, "factors": 3, "separations": 1,
    }  # fmt: skip
    assert {what: (count[what], n) for what, n in least.items() if count[what] < n} == {}
