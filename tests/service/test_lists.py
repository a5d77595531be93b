"""Lists of schedules: search, filters, orders, pages in both directions; notes and tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event

from tilesmith.app.service.schedules import lists, repository
from tilesmith.app.service.schedules.lists import ORDERS, Filters
from tilesmith.app.service.schedules.repository import predicted_ms

PLATFORMS = ("host", "i7-6700")


@pytest.fixture(scope="module")
def stored(shared):
    """Schedules of five pipelines on two platforms, some measured; ids by pipeline and platform."""
    ids = {(n, p): shared.schedule(n, platform_name=p) for n in ("harris", "blur", "sobel") for p in PLATFORMS}
    ids |= {(n, "host"): shared.schedule(n) for n in ("harris_big", "unsharp")}
    for ms, key in ((2.5, ("blur", "host")), (0.5, ("harris", "host")), (2.5, ("sobel", "i7-6700"))):
        repository.set_measured(shared.context.db, ids[key], ms)
    return ids


def listed(service, **asked):
    answer = service.client.get("/v1/schedules", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def found(service, **asked):
    return [(item["pipeline"], item["platform"]) for item in listed(service, order="name", **asked)["items"]]


def test_every_word_of_a_search_is_found_somewhere(shared, stored) -> None:
    assert found(shared, q="harris host") == [("harris", "host"), ("harris_big", "host")]
    assert found(shared, q="  I7 SOB ") == [("sobel", "i7-6700")]
    assert len(found(shared, q="default")) == len(stored)
    assert found(shared, q="harris nothing") == []
    assert found(shared, q="harris%") == []


def test_a_search_finds_the_start_of_an_id(shared, stored) -> None:
    schedule_id = stored["sobel", "host"]
    assert found(shared, q=f"{schedule_id[:10]} host") == [("sobel", "host")]
    assert found(shared, q=schedule_id[5:15]) == []


def test_filters_are_exact(shared, stored) -> None:
    assert found(shared, pipeline="harris", platform="host") == [("harris", "host")]
    assert found(shared, method="no") == []
    assert len(found(shared, method="default")) == len(stored)


def test_schedules_are_filtered_by_time(shared, stored) -> None:
    now = datetime.now(UTC)
    earlier, later = (now - timedelta(hours=1)).isoformat(), (now + timedelta(hours=1)).isoformat()
    assert len(found(shared, since=earlier, until=later)) == len(stored)
    assert found(shared, since=later) == found(shared, until=earlier) == []
    assert len(found(shared, since=now.date().isoformat())) == len(stored)
    assert found(shared, since="9999-12-31T23:59:59Z") == []


@pytest.mark.parametrize("order", ORDERS)
def test_pages_lead_onwards_and_back_in_every_order(shared, stored, order: str) -> None:
    whole = [item["id"] for item in listed(shared, order=order)["items"]]
    assert sorted(whole) == sorted(stored.values())
    pages, cursor = [], None
    while True:
        page = listed(shared, order=order, limit=3, **({"cursor": cursor} if cursor else {}))
        pages.append([item["id"] for item in page["items"]])
        assert (page["previous_cursor"] is None) == (len(pages) == 1)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [i for p in pages for i in p] == whole
    while page["previous_cursor"]:
        page = listed(shared, order=order, limit=3, cursor=page["previous_cursor"])
        pages.pop()
        assert [item["id"] for item in page["items"]] == pages[-1]
        assert page["next_cursor"] is not None
    assert len(pages) == 1


@pytest.mark.parametrize(
    ("order", "first"), [("measured", [0.5, 2.5, 2.5, None]), ("-measured", [2.5, 2.5, 0.5, None])]
)
def test_schedules_without_a_time_come_last(shared, stored, order: str, first: list[float | None]) -> None:
    assert [item["measured_ms"] for item in listed(shared, order=order)["items"]][:4] == first


def test_orders_by_name_and_platform(shared, stored) -> None:
    names = [item["pipeline"] for item in listed(shared, order="-name")["items"]]
    assert names == sorted(names, reverse=True)
    machines = [item["platform"] for item in listed(shared, order="platform")["items"]]
    assert machines == sorted(machines)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["", "pipeline", "platform", "method", "version"])
def test_an_index_leads_to_what_a_list_shows(shared, stored, name: str, order: str) -> None:
    """Neither are all rows read nor any sorted, in whatever filter and order, on the first page and on later ones."""
    value = {"pipeline": "blur", "platform": "host", "method": "default"}.get(name)
    asked = {name: value} if value else {}
    if name == "version":
        asked = {"pipeline": listed(shared, pipeline="blur")["items"][0]["pipeline_id"]}
    db, statements = shared.context.db, []

    def keep(_connection, cursor, statement, parameters, _context, _many):
        if "schedules.tags" in statement:  # threads of the service ask, too
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            statements.append([row[-1] for row in cursor.fetchall()])

    event.listen(db.engine, "before_cursor_execute", keep)
    try:
        page = listed(shared, order=order, limit=1, **asked)
        listed(shared, order=order, limit=1, cursor=page["next_cursor"], **asked) if page["next_cursor"] else None
    finally:
        event.remove(db.engine, "before_cursor_execute", keep)
    assert statements
    for step in (step for steps in statements for step in steps):
        assert "INDEX" in step, step
        assert "TEMP B-TREE" not in step, step


def test_numbers_of_schedules_are_kept(shared, stored) -> None:
    db = shared.context.db
    assert lists.count(db, Filters()) == f"{len(stored)} schedules"
    assert lists.count(db, Filters(pipeline="blur", platform="host")) == "1 schedule"
    assert lists.count(db, Filters(search="blur sobel")) == "0 schedules"
    assert lists.count(db, Filters(search="blur")) == "2 schedules"
    assert lists.count(db, Filters(search="blur", platform="host")) == "1 schedule"
    assert lists.count(db, Filters(search="host", platform="host")) == lists.count(db, Filters(platform="host"))
    shared.schedule("blur")
    assert lists.count(db, Filters()) == f"{len(stored)} schedules"


def test_a_list_that_is_too_long_to_count_says_so(shared, stored, monkeypatch) -> None:
    monkeypatch.setattr(lists, "COUNTED", 2)
    assert lists.count(shared.context.db, Filters(degraded=False)) == "more than 2 schedules"


def test_a_word_that_stands_for_much_is_found_in_the_order_of_the_list(shared, stored, monkeypatch) -> None:
    expected = found(shared, q="s"), found(shared, q="s host")
    monkeypatch.setattr(lists, "SOURCES", 0)
    assert (found(shared, q="s"), found(shared, q="s host")) == expected
    assert len(expected[0]) > len(expected[1]) > 0


def test_lists_that_lead_onwards_only_refuse_a_cursor_that_leads_back(shared, stored) -> None:
    cursor = listed(shared, limit=1, cursor=listed(shared, limit=1)["next_cursor"])["previous_cursor"]
    assert shared.client.get("/v1/pipelines", params={"cursor": cursor}).json()["code"] == "bad_cursor"
    assert listed(shared, limit=1, cursor=cursor)["previous_cursor"] is None


def test_only_time_is_a_predicted_time() -> None:
    assert predicted_ms({"unit": "microseconds", "total": 1500}) == 1.5
    assert predicted_ms({"unit": "arithmetic operations", "total": 1500}) is None


@pytest.fixture
def noted(service):
    schedule_id = service.schedule("blur")
    service.schedule("sobel")
    return f"/v1/schedules/{schedule_id}/notes"


def test_notes_and_tags_are_kept_and_found(service, noted: str) -> None:
    assert service.client.get(noted).json() == {"note": "", "tags": []}
    put = service.client.put(noted, json={"note": " in use ", "tags": ["Release-2", "best", "best"]})
    assert (put.status_code, put.json()) == (200, {"note": "in use", "tags": ["best", "release-2"]})
    assert service.client.get(noted).json() == put.json()
    assert found(service, tag="best") == found(service, q="release") == [("blur", "host")]
    assert found(service, tag="release") == []
    assert listed(service, tag="best")["items"][0]["tags"] == ["best", "release-2"]
    service.client.put(noted, json={})
    assert found(service, q="release") == []
    assert len(found(service, q="host default")) == 2


@pytest.mark.parametrize(
    "body",
    [{"tags": ["two words"]}, {"tags": [""]}, {"tags": ["a"] * 17}, {"note": "x" * 2001}, {"note": "\0"}, {"x": 1}],
)
def test_notes_that_cannot_be_kept_are_refused(service, noted: str, body: dict[str, object]) -> None:
    answer = service.client.put(noted, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")


def test_notes_of_no_schedule(shared) -> None:
    for answer in (shared.client.get("/v1/schedules/no/notes"), shared.client.put("/v1/schedules/no/notes", json={})):
        assert (answer.status_code, answer.json()["code"]) == (404, "schedule_not_found")


def test_notes_ask_for_the_scope_that_they_need(start) -> None:
    service = start(admin_token="sesame-open-sesame")
    assert service.client.put("/v1/schedules/no/notes", json={}).status_code == 401


def test_a_schedule_is_deleted_with_all_that_it_has(service) -> None:
    kept, gone = service.schedule("blur"), service.schedule("blur", platform_name="i7-6700")
    address = f"/v1/schedules/{gone}"
    service.client.put(f"{address}/notes", json={"tags": ["best"]})
    job = service.client.post(f"{address}/builds", json={}).json()["links"]["self"]
    refused = service.client.delete(address)
    assert (refused.status_code, refused.json()["code"]) == (409, "schedule_in_use")
    service.client.delete(job)
    assert service.client.delete(address).status_code == 204
    for left in (address, f"{address}/code.c", job):
        assert service.client.get(left).status_code == 404
    assert [item["id"] for item in listed(service)["items"]] == [kept]
    assert listed(service, tag="best")["items"] == found(service, q="i7") == []
    assert lists.count(service.context.db, Filters()) == "1 schedule"
    assert service.client.delete(address).status_code == 404
    assert service.schedule("blur", platform_name="i7-6700") == gone


def test_a_stored_pipeline_is_deleted(service, pipeline) -> None:
    made = service.client.post("/v1/pipelines", json=pipeline("mine")).json()["href"]
    assert service.client.delete(made).status_code == 204
    assert service.client.get(made).status_code == service.client.delete(made).status_code == 404
    shipped = service.client.delete("/v1/pipelines/harris")
    assert shipped.status_code == 404
    assert "ships with tilesmith" in shipped.json()["detail"]
    by_name = service.client.delete("/v1/pipelines/mine")
    assert by_name.status_code == 404
    assert "GET /v1/pipelines?name=" in by_name.json()["detail"]
