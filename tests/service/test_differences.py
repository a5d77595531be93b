"""/compare and its twin: what differs is told, what is equal is said to be, costs of different models are not mixed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from service.conftest import Service, service_with, settings_for
from service.test_dashboard import page

from tilesmith.app.service.differences.service import side_by_side
from tilesmith.app.service.schedules import work


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with real scheduling, in threads."""
    with service_with(settings_for(tmp_path_factory.mktemp("real")), scheduling=work) as service:
        yield service


@pytest.fixture(scope="module")
def ids(real: Service) -> dict[str, str]:
    asked = {
        "harris": {"pipeline_id": "harris"},
        "at root": {"pipeline_id": "harris", "options": {"fixed": {"gray": {"compute": "root"}}}},
        "paper": {"pipeline_id": "harris", "options": {"method": "taco2019"}},
        "blur": {"pipeline_id": "blur"},
    }
    body = {"platform_name": "i7-6700"}
    return {name: real.client.post("/v1/schedules", json=body | of).json()["id"] for name, of in asked.items()}


def compared(real: Service, a: str, b: str) -> dict:
    return real.client.get("/v1/compare", params={"a": a, "b": b}).json()


def test_decisions_costs_and_texts_that_differ(real: Service, ids: dict[str, str]) -> None:
    found = compared(real, ids["harris"], ids["at root"])
    assert "gray root" in found["decided_by_b"]
    assert not set(found["decided_by_a"]) & set(found["decided_by_b"])
    costs = {s["stage"]: (s["a"], s["b"]) for s in found["stages"]}
    for side, key in ((0, "a"), (1, "b")):
        total = sum(cost[side] or 0 for cost in costs.values())
        assert total == pytest.approx(found[f"predicted_{key}"]["total"], rel=1e-5)  # of six digits
    assert found["loopnest"].startswith("--- a/loopnest.txt\n+++ b/loopnest.txt\n@@")
    assert re.search(r"^\+group gray\b", found["loopnest"], re.M)
    assert found["code"].startswith("--- a/code.c")


def test_a_schedule_does_not_differ_from_itself(real: Service, ids: dict[str, str]) -> None:
    found = compared(real, ids["blur"], ids["blur"])
    assert (found["decided_by_a"], found["decided_by_b"], found["loopnest"], found["code"]) == ([], [], "", "")
    text = page(real, f"/compare?a={ids['blur']}&b={ids['blur']}").text
    assert "both decide the same" in text
    assert "They are equal." in text


def test_costs_of_different_models_are_priced_by_one(real: Service, ids: dict[str, str]) -> None:
    found = compared(real, ids["harris"], ids["paper"])
    assert found["predicted_a"]["model"] == found["predicted_b"]["model"] == "ecm"
    own = real.client.get(f"/v1/schedules/{ids['harris']}").json()["predicted"]["total"]
    assert found["predicted_a"]["total"] == pytest.approx(own, rel=1e-5)


def test_costs_that_cannot_be_priced_are_not_compared(start) -> None:
    service = start()
    service.scheduling.underivable = True
    first = service.schedule()
    service.scheduling.predicted = {"model": "other", "unit": "steps", "total": 3.0, "stages": []}
    second = service.schedule("blur", options={"strict": True})
    found = compared(service, first, second)
    assert (found["predicted_a"], found["predicted_b"]["model"]) == (None, "other")
    assert "cannot be compared" in page(service, f"/compare?a={first}&b={second}").text
    assert service.client.get(f"/compare/cost.svg?a={first}&b={second}").json()["code"] == "not_found"


@pytest.mark.parametrize("other", ["at root", "paper", "blur"])
def test_links_and_pictures_of_the_page(real: Service, ids: dict[str, str], other: str) -> None:
    found = page(real, f"/compare?a={ids['harris']}&b={ids[other]}")
    images = [a["src"] for tag, a in found.tags if tag == "img"]
    assert len(images) == 1
    for link in {link for link in found.links if link.startswith("/")} | set(images):
        assert real.client.get(link).status_code == 200, link
    assert "A has" in found.text
    assert any(tag == "ins" for tag, _ in found.tags)
    assert any(tag == "del" for tag, _ in found.tags)


def test_what_cannot_be_compared_is_a_problem_and_a_page(real: Service, ids: dict[str, str]) -> None:
    assert real.client.get("/v1/compare", params={"a": ids["blur"], "b": "none"}).json()["code"] == "schedule_not_found"
    answer = real.client.get("/v1/compare", params={"a": ids["blur"]})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert "No such schedule" in page(real, f"/compare?a={ids['blur']}&b=none", 404).text
    assert "not valid" in page(real, "/compare?a=x", 422).text


def test_lines_stand_side_by_side() -> None:
    found = side_by_side("a\nb\nc\n", "a\nx\nc\nd\n")
    assert [(p.kind, p.a and p.a[1], p.b and p.b[1]) for p in found] == [
        ("same", "a", "a"),
        ("changed", "b", "x"),
        ("same", "c", "c"),
        ("only b", None, "d"),
    ]
    assert found[-1].b == (4, "d")
    assert [p.kind for p in side_by_side("a\nb\n", "b\n")] == ["only a", "same"]


def test_texts_that_are_too_long_are_not_compared_line_by_line(
    real: Service, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilesmith.app.service.differences.service.MOST_LINES", 10)
    assert "differs, in texts of" in compared(real, ids["harris"], ids["at root"])["code"]
