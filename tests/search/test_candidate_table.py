"""Table of candidates: ranks, costs, and what tells each from the first."""

import pytest

from tilesmith.platforms import load
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.candidate_table import ranked, to_document
from tilesmith.scheduler.search.params import PARAMS


def test_candidates_are_told_apart() -> None:
    found = autoschedule(pipelines.load("harris"), load("i7-6700"), SearchOptions("default", top=4))
    documents = to_document(found.candidates)
    assert [d["rank"] for d in documents] == [1, 2, 3, 4]
    assert [d["predicted"] for d in documents] == sorted(d["predicted"] for d in documents)
    assert documents[0]["differs"] == ""
    assert all(d["differs"] for d in documents[1:])
    assert documents[0]["pareto"] is True
    assert ranked(()) == ()


@pytest.mark.parametrize("name", ["harris", "unsharp", "bilateral_grid"])
def test_candidates_are_in_the_order_of_prediction_whatever_is_chosen(name: str) -> None:
    found = autoschedule(
        pipelines.load(name), load("i7-6700"), SearchOptions("default", top=PARAMS.listed_candidates)
    ).candidates
    alone = autoschedule(pipelines.load(name), load("i7-6700"), SearchOptions("default")).candidates
    assert found[0].schedule == alone[0].schedule
    costs = [float(c.predicted.total) for c in found]
    assert costs[1:] == sorted(costs[1:])
