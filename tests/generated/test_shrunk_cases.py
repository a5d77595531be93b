"""Hypothesis draws pipelines of updates and tuples and their schedules, and makes the smallest of what goes wrong."""

from __future__ import annotations

import json
from random import Random

import numpy as np
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from support.random_cases import case_of, judge
from support.random_schedules import drawn_schedule
from support.random_updates import updates_document
from support.tools import require_tool

from scheduler.lang.document import load
from scheduler.schedule_document import to_document

FEW = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
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
    with np.errstate(all="ignore"):
        assert judge(case_of(pipeline, schedule, seed), ("-O0", "-march=native")) is None


def test_what_is_found_is_made_small() -> None:
    """Of all pipelines with an update that runs backwards, one with nothing else in it, or hardly: where Hypothesis
    ends depends on where it starts, and so on the modules that are loaded."""
    found: list[dict] = []

    @settings(FEW, max_examples=300, phases=(Phase.generate, Phase.shrink))
    @given(st.randoms(use_true_random=False))
    def search(random: Random) -> None:
        document = updates_document(random, "drawn")
        if any(" - r" in place for s in document["stages"] for u in s.get("updates", ()) for place in u["at"]):
            found.append(document)
            raise ValueError

    try:
        search()
    except ValueError:
        smallest = found[-1]
        assert len(smallest["inputs"]) == 1
        assert len(smallest["stages"]) <= 3
        assert len(json.dumps(smallest)) < 900
        assert len(json.dumps(smallest)) <= min(len(json.dumps(d)) for d in found) + 200
    else:
        raise AssertionError("none was found")
