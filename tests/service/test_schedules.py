"""/v1/schedules: the same question has one answer, lists page, forms are cached."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import func, select

from tilesmith.app.service.schedules.service import DOCUMENTS, FORMS
from tilesmith.app.service.tables import schedules

Start = Callable[..., "object"]


def ask(service, **body):
    return service.client.post("/v1/schedules", json=body)


def test_a_new_question_is_201_and_the_same_one_200(service, pipeline):
    first = ask(service, pipeline=pipeline())
    again = ask(service, pipeline=pipeline())
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert first.headers["location"] == f"/v1/schedules/{first.json()['id']}"
    assert len(service.scheduling.answered) == 1


def test_a_body_that_was_answered_before_is_answered_as_any_other_is(service, pipeline):
    """Known bodies are answered before routing: checks, headers and metrics are those of the endpoint."""
    tokens, body = service.context.tokens, json.dumps({"pipeline": pipeline()})
    submit, read = ({"Authorization": f"Bearer {tokens.create(s, (s,)).token}"} for s in ("submit", "read"))

    def asked(content, headers):
        headers = {"Content-Type": "application/json", **headers}
        return service.client.post("/v1/schedules", content=content, headers=headers)

    asked(body, submit)
    written_otherwise, known = asked(body + " ", submit), asked(body, submit)
    for answer in (written_otherwise, known):
        del answer.headers["x-request-id"], answer.headers["date"]
    assert known.status_code == written_otherwise.status_code == 200
    assert known.content == written_otherwise.content
    assert dict(known.headers) == dict(written_otherwise.headers)
    assert [asked(body, headers).status_code for headers in (read, {})] == [403, 401]
    wrong = service.client.post("/v1/schedules", content=body, headers=submit | {"Content-Type": "text/plain"})
    assert wrong.json()["code"] == "unsupported_media_type"
    metrics = service.client.get("/metrics", headers=submit).text
    assert 'tilesmith_http_requests_total{method="POST",route="/v1/schedules",status="200"} 2.0' in metrics
    assert 'tilesmith_schedules_total{outcome="stored"} 2.0' in metrics


def test_a_question_written_otherwise_is_the_same_question(service, pipeline):
    first = ask(service, pipeline=pipeline())
    text = json.dumps({"options": {}, "platform_name": "host", "pipeline": pipeline()}, indent=3)
    again = service.client.post("/v1/schedules", content=text, headers={"Content-Type": "application/json"})
    assert again.status_code == 200
    assert again.json()["id"] == first.json()["id"]
    assert len(service.scheduling.answered) == 1


def test_another_option_is_another_question(service, pipeline):
    ids = {
        ask(service, pipeline=pipeline(), options=options).json()["id"]
        for options in ({}, {"strict": True}, {"deadline_ms": 5})
    }
    assert len(ids) == 3


def test_the_answer_has_what_clients_rely_upon(service, pipeline):
    body = ask(service, pipeline=pipeline(), platform_name="i7-6700").json()
    assert {"id", "pipeline", "platform", "method", "degraded", "groups", "predicted", "timings_ms"} <= set(body)
    assert body["platform"] == "i7-6700"
    for href in body["links"].values():
        assert href.startswith("/")


def test_a_shipped_pipeline_is_asked_for_by_name_and_by_id(service):
    by_name = ask(service, pipeline_id="harris")
    listed = service.client.get("/v1/pipelines", params={"name": "harris"}).json()["items"][0]
    by_id = ask(service, pipeline_id=listed["id"])
    assert by_name.status_code == 201
    assert by_id.status_code == 200
    assert by_id.json()["id"] == by_name.json()["id"]


def test_a_stored_pipeline_and_platform_are_asked_for(service, pipeline):
    stored = service.client.post("/v1/pipelines", json=pipeline("mine")).json()
    machine = service.client.get("/v1/platforms/i7-6700").json()["document"] | {"name": "my-machine"}
    service.client.post("/v1/platforms", json=machine)
    answer = ask(service, pipeline_id=stored["id"], platform_name="my-machine")
    assert answer.status_code == 201
    assert (answer.json()["pipeline"], answer.json()["platform"]) == ("mine", "my-machine")


def test_one_of_many_equal_questions_at_once_is_scheduled(start, pipeline):
    service = start()
    all_have_asked = threading.Event()
    service.scheduling.meanwhile = lambda: all_have_asked.wait(20)
    count = 8

    def one(_: int) -> httpx.Response:
        with httpx.Client(base_url=service.url, timeout=30) as client:
            return client.post("/v1/schedules", json={"pipeline": pipeline()})

    with ThreadPoolExecutor(count) as pool:
        answers = [pool.submit(one, n) for n in range(count)]
        while len(service.scheduling.answered) < 1:
            pass
        all_have_asked.set()
        found = [a.result() for a in answers]
    assert sorted(r.status_code for r in found) == [200] * (count - 1) + [201]
    assert len({r.content for r in found}) == 1
    assert len(service.scheduling.answered) == 1
    with service.context.db.read() as connection:
        assert connection.execute(select(func.count()).select_from(schedules)).scalar_one() == 1


def test_two_services_on_one_store_make_one_row(start, pipeline):
    first, second = start(), start()
    both = threading.Barrier(2, timeout=60)
    first.scheduling.meanwhile = second.scheduling.meanwhile = lambda: both.wait() and None
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda s: ask(s, pipeline=pipeline()), (first, second)))
    assert sorted(a.status_code for a in answers) == [200, 201]
    assert answers[0].content == answers[1].content


def test_the_answer_outlives_the_service(start, pipeline):
    first = start()
    made = ask(first, pipeline=pipeline())
    second = start()
    again = ask(second, pipeline=pipeline())
    assert (again.status_code, again.content) == (200, made.content)
    assert second.scheduling.answered == []


def test_a_schedule_that_the_store_lost_is_made_again(service, pipeline):
    first = ask(service, pipeline=pipeline())
    with service.context.db.write() as connection:
        connection.execute(schedules.delete())
    again = ask(service, pipeline=pipeline())
    assert again.status_code == 201
    assert again.json()["id"] == first.json()["id"]


def test_few_bodies_are_remembered_and_others_still_answered(start, pipeline):
    service = start(schedule_cache=1)
    for name in ("a", "b", "a", "b"):
        assert ask(service, pipeline=pipeline(name)).status_code in (200, 201)
    assert len(service.scheduling.answered) == 2


@pytest.mark.parametrize("name", [*FORMS, *DOCUMENTS])
def test_forms_have_a_strong_etag_and_are_not_sent_twice(service, name):
    url = f"/v1/schedules/{service.schedule()}/{name}"
    first = service.client.get(url)
    assert first.status_code == 200
    etag = first.headers["etag"]
    assert etag.startswith('"')
    assert "immutable" in first.headers["cache-control"]
    for held in (etag, f'"other", {etag}', f"W/{etag}", "*"):
        again = service.client.get(url, headers={"If-None-Match": held})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    assert service.client.get(url, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_derived_form_is_made_once(service):
    url = f"/v1/schedules/{service.schedule()}/schedule.h"
    assert service.client.get(url).content == service.client.get(url).content
    assert service.scheduling.derived == ["schedule.h"]
    assert service.client.get("/v1/schedules/none/schedule.h").json()["code"] == "schedule_not_found"


def test_the_schedule_itself_is_immutable_too(service):
    url = f"/v1/schedules/{service.schedule()}"
    etag = service.client.get(url).headers["etag"]
    assert service.client.get(url, headers={"If-None-Match": etag}).status_code == 304


def test_head_has_the_headers_of_get_and_no_body(service):
    url = f"/v1/schedules/{service.schedule()}/code.c"
    got, head = service.client.get(url), service.client.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]
    assert head.headers["content-length"] == str(len(got.content))


def test_internal_forms_are_not_served(service):
    assert service.client.get(f"/v1/schedules/{service.schedule()}/source.json").json()["code"] == "not_found"


@pytest.mark.parametrize("order", ["newest", "oldest", "name"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_have_everything_once_in_order(service, order, limit):
    names = ["d", "a", "c", "a2", "b", "e", "f"]
    ids = {service.schedule(name): name for name in names}
    found, cursor = [], None
    while True:
        params = {"order": order, "limit": limit} | ({"cursor": cursor} if cursor else {})
        page = service.client.get("/v1/schedules", params=params).json()
        assert len(page["items"]) <= limit
        found += [item["pipeline"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    wanted = {"newest": names[::-1], "oldest": names, "name": sorted(names)}[order]
    assert found == wanted
    assert len(ids) == len(names)


def test_pages_do_not_shift_when_rows_are_added(service):
    old = [service.schedule(name) for name in ("a", "b", "c")]
    first = service.client.get("/v1/schedules", params={"limit": 2}).json()
    service.schedule("d")
    rest = service.client.get("/v1/schedules", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [i["id"] for i in first["items"] + rest["items"]] == old[::-1]


def test_lists_are_filtered(service):
    service.schedule("blur")
    service.schedule("sharp", platform_name="i7-6700")
    service.scheduling.degraded = "nothing fits"
    service.schedule("large_blur")

    def listed(**params):
        return sorted(i["pipeline"] for i in service.client.get("/v1/schedules", params=params).json()["items"])

    assert listed() == ["blur", "large_blur", "sharp"]
    assert listed(pipeline="blur") == ["blur"]
    assert listed(platform="i7-6700") == ["sharp"]
    assert listed(method="default") == ["blur", "large_blur", "sharp"]
    assert listed(method="none") == []
    assert listed(degraded=True) == ["large_blur"]
    assert listed(degraded=False) == ["blur", "sharp"]
    assert listed(q="BLUR") == ["blur", "large_blur"]
    assert listed(q="%") == []
    assert listed(q="6700") == ["sharp"]


def test_lists_have_no_code(service):
    service.schedule()
    item = service.client.get("/v1/schedules").json()["items"][0]
    assert set(item) == {
        "id", "pipeline", "pipeline_id", "platform", "method", "strict", "degraded", "groups", "predicted_ms",
        "measured_ms", "tags", "created_at", "href",
    }  # fmt: skip


@pytest.mark.parametrize("limit", [0, -1, 201, "many", 10**30])
def test_the_limit_is_enforced(shared, limit):
    answer = shared.client.get("/v1/schedules", params={"limit": limit})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert answer.json()["errors"][0]["pointer"] == "/query/limit"


@pytest.mark.parametrize("cursor", ["x", "%00", "bnVsbA==", "WyJzY2hlZHVsZXM6bmFtZSIsImEiXQ==", "é" * 10])
def test_a_made_up_cursor_is_refused(shared, cursor):
    answer = shared.client.get("/v1/schedules", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")


@pytest.mark.parametrize(
    "key", [[10**30, "x"], [-1, "x"], [True, "x"], [1.5, "x"], [1, "\0"], [1, None], [1], [1, "x", 2]]
)
def test_a_forged_cursor_is_refused(shared, key):
    cursor = base64.urlsafe_b64encode(json.dumps(["schedules:newest", *key]).encode()).decode()
    answer = shared.client.get("/v1/schedules", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")


def test_a_cursor_belongs_to_its_order(service):
    service.schedule("a")
    service.schedule("b")
    cursor = service.client.get("/v1/schedules", params={"limit": 1}).json()["next_cursor"]
    answer = service.client.get("/v1/schedules", params={"order": "name", "cursor": cursor})
    assert answer.json()["code"] == "bad_cursor"


def test_build_and_measure_start_jobs(service, pipeline):
    body = {"pipeline": pipeline(), "options": {"build": True, "measure": True}}
    answer = service.client.post("/v1/schedules", json=body)
    assert answer.status_code == 201
    jobs = answer.json()["jobs"]
    assert [job["kind"] for job in jobs] == ["build", "run"]
    for job in jobs:
        assert service.client.get(job["href"]).json()["state"] == "queued"
    again = service.client.post("/v1/schedules", json=body)
    assert again.status_code == 200
    assert "jobs" not in service.client.get(f"/v1/schedules/{answer.json()['id']}").json()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/pipeline"),
        ({"pipeline": {}, "pipeline_id": "x"}, "/pipeline_id"),
        ({"pipeline_id": "x", "platform": {}, "platform_name": "y"}, "/platform_name"),
        ({"pipeline": []}, "/pipeline"),
        ({"pipeline_id": "blur", "optoins": {}}, "/optoins"),
        ({"pipeline_id": "blur", "options": {"fast": True}}, "/options/fast"),
        ({"pipeline_id": "blur", "options": {"method": "magic"}}, "/options/method"),
        ({"pipeline_id": "blur", "options": {"deadline_ms": 0}}, "/options/deadline_ms"),
        ({"pipeline_id": "x" * 65}, "/pipeline_id"),
    ],
)
def test_a_request_of_the_wrong_form_names_the_place(shared, body, pointer):
    answer = shared.client.post("/v1/schedules", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_problems_of_documents_point_into_the_request(service):
    answer = ask(service, pipeline={"name": "x"})
    assert answer.json()["errors"][0]["pointer"] == "/pipeline/stages"
    answer = ask(service, pipeline_id="harris", platform={"kind": "cpu", "name": "x", "threads": -1})
    assert answer.json()["code"] == "bad_document"
    assert "/platform/threads" in [e["pointer"] for e in answer.json()["errors"]]
