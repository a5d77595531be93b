"""Hypothesis draws pipelines of updates and tuples and their schedules, and makes the smallest of what goes wrong."""

from __future__ import annotations

import json
from random import Random
from statistics import median

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, reject, seed, settings
from hypothesis import strategies as st
from support.random_cases import TooLong, case_of, judge
from support.random_schedules import drawn_schedule
from support.random_updates import updates_document
from support.tools import require_tool

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.document import to_document

FEW = settings(
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)  # fmt: skip


@FEW
@given(st.randoms(use_true_random=False), st.integers(0, 7))
def test_drawn_cases_compute_what_the_interpreter_does(random: Random, seed: int) -> None:
    require_tool("gcc")
    document = updates_document(random, "drawn")
    pipeline = load(document)
    schedule = drawn_schedule(pipeline, random)
    note(json.dumps(document, indent=1))
    note(json.dumps(to_document(schedule), indent=1))
    try:
        with np.errstate(all="ignore"):
            assert judge(case_of(pipeline, schedule, seed), ("-O0",)) is None
    except TooLong:
        reject()


def _smallest(start: int) -> dict:
    """The smallest pipeline with an update that runs backwards, as Hypothesis finds it."""
    found: list[dict] = []

    @seed(start)
    @settings(FEW, max_examples=300, derandomize=False, phases=(Phase.generate, Phase.shrink))
    @given(st.randoms(use_true_random=False))
    def search(random: Random) -> None:
        document = updates_document(random, "drawn")
        if any(" - r" in place for s in document["stages"] for u in s.get("updates", ()) for place in u["at"]):
            found.append(document)
            raise ValueError("one that runs backwards")

    with pytest.raises(ValueError, match="backwards"):
        search()
    return found[-1]


def test_what_is_found_is_made_small() -> None:
    """Nothing else is left, or hardly. Where Hypothesis ends depends on where it starts, and on the modules that are
    loaded: most of several starts end there, not each."""
    smallest = [_smallest(start) for start in range(3)]
    assert median(len(d["inputs"]) for d in smallest) == 1
    assert median(len(d["stages"]) for d in smallest) <= 3
    assert median(len(json.dumps(d)) for d in smallest) < 600
