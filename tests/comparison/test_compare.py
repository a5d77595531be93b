"""Comparison with a baseline: what is told of each series, and what fails."""

from __future__ import annotations

from typing import Any

import pytest

from tilesmith.app.comparison.compare import compare, regressed, with_evidence
from tilesmith.app.comparison.noise import evidence
from tilesmith.app.comparison.results import Measured, Result, Series, from_document, from_schedule, variant


def result(name: str = "harris", predicted: float = 100.0, schedule: str = "s", **more: Any) -> Result:
    fields = {"pipeline_id": "p", "unit": "microseconds"} | more
    return Result(Series(name, "i7-6700", "default"), schedule, predicted=predicted, **fields)


def one(now: Result, before: Result, limit: float = 0.05) -> Any:
    (found,) = compare([now], [before], limit)
    return found


@pytest.mark.parametrize(
    ("predicted", "status"),
    [
        (105.0, "regressed"),
        (104.9, "slower"),
        (100.05, "same"),
        (100.0, "same"),
        (99.0, "faster"),
        (300.0, "regressed"),
    ],
)
def test_predicted_time_is_held_to_the_limit(predicted: float, status: str) -> None:
    found = one(result(predicted=predicted), result())
    assert found.status == status
    assert found.moved == (status != "same")
    assert (found in regressed([found])) == (status == "regressed")


@pytest.mark.parametrize("base", [0.1, 1 / 3, 728.3198012770454, 1e7])
def test_five_percent_are_always_caught(base: float) -> None:
    for share in (0.05, 0.01, 0.1):
        assert one(result(predicted=base * (1 + share)), result(predicted=base), share).status == "regressed"
        assert one(result(predicted=base), result(predicted=base), share).status == "same"


def test_a_limit_of_nothing_fails_on_any_growth_but_not_on_none() -> None:
    assert one(result(), result(), 0.0).status == "same"
    assert one(result(predicted=100.001), result(), 0.0).status == "regressed"


def test_new_and_removed_are_told_and_do_not_fail() -> None:
    found = compare([result("sobel"), result()], [result("blur"), result()], 0.05)
    assert [c.status for c in found] == ["removed", "same", "new"]
    assert not regressed(found)
    assert "no document has it any more" in found[0].in_words()
    assert "sobel on i7-6700 is new" in found[2].in_words()


def test_the_cause_is_told() -> None:
    assert "the pipeline was changed" in one(result(schedule="t", pipeline_id="q"), result()).in_words()
    assert "the same pipeline has another schedule" in one(result(schedule="t"), result()).in_words()
    assert one(result(), result()).in_words() == "harris on i7-6700: same, +0.0 % predicted; the same schedule"
    assert "what was accepted: needed" in one(result(), result(reason="needed")).in_words()


def test_other_units_are_not_compared() -> None:
    found = one(result(unit="points"), result())
    assert (found.status, found.change) == ("new", None)
    assert "points, the baseline in microseconds" in found.in_words()


def test_measured_time_advises_unless_it_gates() -> None:
    slow = evidence([1.0] * 60, [1.2] * 60)
    advised = with_evidence(one(result(), result()), slow, gates=False)
    assert (advised.status, advised.moved) == ("same", True)
    gated = with_evidence(advised, slow, gates=True)
    assert gated.status == "regressed"
    assert gated.to_document()["measured"]["ratio"] == pytest.approx(1.2)
    noisy = with_evidence(advised, evidence([1.0] * 60, [0.8, 1.2] * 30), gates=True)
    assert (noisy.status, noisy.measured_in_words) == ("same", "-2.0 % measured (-20.0 to +20.0 %), too noisy to tell")
    assert one(result(), result()).measured_in_words == ""
    assert with_evidence(advised, evidence([1.0] * 60, [1.04] * 60), gates=True).status == "same"


def test_results_go_through_json() -> None:
    found = result(measured=Measured(1.0, 0.9, 1.1, 60, "a machine"), reason="why")
    assert from_document(found.to_document()) == found
    with pytest.raises(KeyError):
        from_document({})


def test_a_result_is_read_from_the_document_of_a_schedule() -> None:
    document = {
        "id": "s",
        "pipeline": "harris",
        "pipeline_id": "p",
        "platform": "i7-6700",
        "options": {"method": "default", "strict": False, "deadline_ms": None},
        "predicted": {"total": 100.0, "unit": "microseconds"},
    }
    assert from_schedule(document) == result()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "default"}, "default"),
        ({"method": "taco2019", "strict": True}, "taco2019 strict"),
        ({"method": "default", "cost_model": "mine", "fixed": {"a": {}}}, "default cost_model=mine fixed"),
        ({"method": "default", "strategy": {"strategy": "cbuf"}}, "strategy cbuf"),
    ],
)
def test_ways_of_scheduling_have_names(options: dict[str, Any], words: str) -> None:
    assert variant(options) == words
    named = Series("a", "b", words).in_words()
    assert named == "a on b" if words == "default" else named == f"a on b ({words})"
