"""300 random pipelines under random legal schedules, against the interpreter."""

from __future__ import annotations

import pytest
from support.random_cases import judged_in_children, random_case
from support.tools import require_tool

from scheduler.schedule import INLINE

CASES, CHUNK = 300, 25


@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_generated_code_computes_what_the_interpreter_does(start: int) -> None:
    require_tool("gcc")
    assert judged_in_children(range(start, start + CHUNK), ("-O1", "-march=native")) == {}


@pytest.mark.parametrize("flags", [("-O1",), ("-O3", "-march=native", "-mprefer-vector-width=512")], ids=" ".join)
def test_other_flags(flags: tuple[str, ...]) -> None:
    """Vectors wider than the machine's, and what the compiler does at its most daring."""
    require_tool("gcc")
    assert judged_in_children(range(1000, 1012), flags) == {}


def test_the_cases_are_broad() -> None:
    cases = [random_case(seed) for seed in range(CASES)]
    groups = [g for c in cases for g in c.schedule.groups]
    placements = [p for g in groups for p in g.placements if p.compute != INLINE]
    assert len({c.pipeline.name for c in cases}) == CASES
    assert sum(g.parallel is not None for g in groups) > 150
    assert sum(g.vector is not None for g in groups) > 250
    assert sum(any(p.compute != p.store for p in g.placements) for g in groups) > 100
    assert sum(p.storage == "registers" for p in placements) > 30
    assert sum(bool(g.unroll) for g in groups) > 100
    assert sum(any(s.updates for s in c.pipeline.stages) for c in cases) > 60
