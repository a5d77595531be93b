"""Explanations of a search."""

import json

from support.machines import machine
from support.methods import PAPER
from support.small_pipelines import harris

from scheduler.search import Trace, autoschedule, explain


def test_explanations_are_plain_data_too() -> None:
    result = autoschedule(harris(), machine(), PAPER)
    document = explain.to_document(result.schedule, result.trace, result.predicted)
    assert json.loads(json.dumps(document)) == document
    assert Trace.from_document(result.trace.to_document()) == result.trace
    assert {d["kind"] for d in document["decisions"]} == {"group", "tiling", "level", "inline", "final"}
