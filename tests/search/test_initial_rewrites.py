"""Rewrites are told before the decisions of the search, by the names of the document."""

from __future__ import annotations

import pytest
from support.machines import machine

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.search import SearchOptions, autoschedule, explain, methods


def told(name: str, **options: object) -> list[str]:
    result = autoschedule(pipelines.load(name), machine(), SearchOptions(**options))  # type: ignore[arg-type]
    decisions = result.trace.decisions
    found = [d for d in decisions if d.kind == "rewriting"]
    assert list(decisions[: len(found)]) == found
    text = explain.to_text(result.schedule, result.trace)
    assert all(f"Rewriting of {d.subject}: {d.chosen}" in text for d in found)
    return [f"{d.subject}: {d.chosen}" for d in found]


@pytest.mark.parametrize("method", methods())
def test_stages_that_others_take_the_place_of_are_told_with_these(method: str) -> None:
    scan, readers = told("max_filter", method=method)
    assert scan == "vert_log: a stage a level: " + ", ".join(f"vert_log_{n}" for n in range(6))
    assert readers.startswith("vert: a stage a level: vert_4, vert_9, ")
    assert readers.endswith(" and 4 more")


def test_what_is_rewritten_in_a_like_way_is_told_once() -> None:
    folded, halved = told("nl_means")
    assert folded.startswith("nl_means: updates that an expression can say")
    assert halved.startswith("nl_means: half of what is the same from either end")
    (edges,) = told("lens_blur")
    assert edges.endswith("its last place is read: rendered")


def test_floats_that_stay_in_order_are_not_halved() -> None:
    assert not any("half of" in each for each in told("nl_means", strict=True))


def test_what_is_as_it_was_written_is_not_told() -> None:
    assert told("blur") == told("harris") == []
