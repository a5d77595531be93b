"""Explanations of a search."""

import json

import pytest
from support.machines import machine
from support.methods import PAPER
from support.small_pipelines import harris

from tilesmith import platforms
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.search import Trace, autoschedule, explain


def test_explanations_are_plain_data_too() -> None:
    result = autoschedule(harris(), machine(), PAPER)
    document = explain.to_document(result.schedule, result.trace, result.predicted)
    assert json.loads(json.dumps(document)) == document
    assert Trace.from_document(result.trace.to_document()) == result.trace
    assert {d["kind"] for d in document["decisions"]} == {"group", "tiling", "level", "inline", "final"}


@pytest.mark.parametrize("platform", ["i7-6700", "cortex-a73"])
@pytest.mark.parametrize("name", ["harris", "unsharp", "blur", "sobel", "gaussian3x3", "max_filter"])
def test_what_is_said_of_windows_and_outputs_is_what_the_schedule_has(name: str, platform: str) -> None:
    found = autoschedule(pipelines.load(name), platforms.load(platform))
    for kind, has, ways in (
        ("separation", found.schedule.separations, "windows in two steps"),
        ("joining", found.schedule.joinings, " together, as "),
    ):
        of_all = [d for d in found.trace.decisions if d.kind == kind and d.subject == name]
        for d in of_all:
            assert (ways in d.chosen) == bool(has), d
            (other,) = d.rejected
            assert d.cost is not None
            assert other.cost is not None
            assert (d.cost <= other.cost) == (d.reason == "it costs less"), d
        assert len(of_all) <= 1
