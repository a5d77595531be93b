"""The table of error codes: each is provoked, each answer has the one shape."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tilesmith.app.runtime.errors import CompileError, RunError
from tilesmith.app.service.db import now_us
from tilesmith.app.service.errors import (
    CODES,
    RETRY_AFTER_S,
    ApiError,
    from_core,
    from_os,
    from_pydantic,
    problem_document,
)
from tilesmith.app.service.schedules.answers import PipelineIdentity
from tilesmith.app.service.tables import jobs, metadata
from tilesmith.scheduler.errors import DocumentError, IllegalSchedule, InternalError, Problem
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, RegionError

JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}


def get(url, **more):
    return lambda service: service.client.get(url, **more)


def post(url, **more):
    return lambda service: service.client.post(url, **more)


def run_form(service):
    return service.client.post(
        f"/v1/schedules/{service.schedule()}/runs", content=b"x", headers={"Content-Type": "multipart/form-data"}
    )


def taken(service):
    document = service.client.get("/v1/platforms/i7-6700").json()["document"]
    return service.client.post("/v1/platforms", json=document | {"threads": 1})


def not_built(service):
    return service.client.get(f"/v1/schedules/{service.schedule()}/library.so")


def queue_full(service):
    url = f"/v1/schedules/{service.schedule()}/builds"
    assert service.client.post(url, json={}).status_code == 202
    return service.client.post(url, json={})


def finished(service):
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds", json={}).json()["id"]
    with service.context.db.write() as connection:
        connection.execute(jobs.update().values(state="succeeded", finished_us=now_us()))
    return service.client.delete(f"/v1/jobs/{job_id}")


def no_output(service):
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds", json={}).json()["id"]
    return service.client.get(f"/v1/jobs/{job_id}/outputs/x.npy")


def locked(service):
    other = sqlite3.connect(service.context.db.url.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        return service.client.post("/v1/pipelines", json={"name": "x", "stages": []})
    finally:
        other.close()


def full(service):
    engine = service.context.db.engine
    with engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    engine.dispose()
    from sqlalchemy import event

    event.listen(engine, "connect", lambda c, _: c.execute(f"PRAGMA max_page_count={pages + 1}"))
    return service.client.post("/v1/pipelines", json={"name": "x", "stages": [], "doc": "d" * 100_000})


def gone(service):
    with service.context.db.engine.begin() as connection:
        metadata.drop_all(connection)
    return service.client.get("/v1/schedules")


def not_ready(service):
    service.context.runner.stop()
    return service.client.get("/readyz")


def fault(service):
    service.scheduling.answer = lambda *_: 1 // 0
    return service.client.post("/v1/schedules", json={"pipeline_id": "harris"})


def busy(service):
    service.context.engine._unfinished = service.context.settings.schedule_queue
    return service.client.post("/v1/schedules", json={"pipeline_id": "harris"})


def refusing(code):
    """A schedule request whose work ends with that code."""

    def provoke(service):
        service.scheduling.answer = lambda *_: ApiError(code, "a reason")
        return service.client.post("/v1/schedules", json={"pipeline_id": "harris"})

    return provoke


def picture(service):
    import numpy as np

    made = service.client.post(f"/v1/schedules/{service.schedule()}/builds", json={}).json()["id"]
    result = {"outputs": [{"name": "f", "component": 0, "dims": ["x"]}]}
    with service.context.db.write() as connection:
        connection.execute(jobs.update().values(state="succeeded", result=json.dumps(result).encode()))
    service.context.jobs.files.make(made)
    np.save(service.context.jobs.files.output(made, 0, 0), np.zeros(3))
    return service.client.get(f"/v1/jobs/{made}/outputs/f.png")


REQUESTS = {
    "bad_json": post("/v1/schedules", content=b"{", headers=JSON),
    "bad_form": run_form,
    "bad_cursor": get("/v1/schedules?cursor=x"),
    "bad_host": get("/v1/schedules", headers={"Host": "evil.example"}),
    "bad_request": post("/v1/schedules", json={}),
    "not_found": get("/nothing"),
    "method_not_allowed": lambda service: service.client.put("/v1/schedules"),
    "body_too_large": post("/v1/schedules", content=b" " * 5_000_000, headers=JSON),
    "unsupported_media_type": post("/v1/schedules", content=b"{}"),
    "cross_origin": post("/v1/schedules", json={}, headers={"Origin": "https://evil.example"}),
    "schedule_not_found": get("/v1/schedules/none"),
    "strategy_not_found": get("/v1/strategies/none"),
    "pipeline_not_found": get("/v1/pipelines/none"),
    "platform_not_found": get("/v1/platforms/none"),
    "job_not_found": get("/v1/jobs/none"),
    "artefact_not_found": no_output,
    "schema_not_found": get("/v1/schemas/none"),
    "token_not_found": lambda service: service.client.delete("/v1/tokens/none"),
    "candidate_not_found": lambda service: service.client.get(
        f"/v1/schedules/{service.schedule()}/candidates/7/schedule.json"
    ),
    "not_built": not_built,
    "platform_name_taken": taken,
    "job_finished": finished,
    "bad_document": post("/v1/pipelines", json={}),
    "no_schedule": post("/v1/schedules", json={"pipeline": {"name": "impossible", "stages": []}}),
    "bad_image": picture,
    "bad_source": post("/v1/imports/onnx", content=b"x", headers=BYTES),
    "project_not_found": get("/v1/projects/none/results"),
    "baseline_not_found": post("/v1/projects/none/baseline", json={"ref": "main"}),
    "webhook_not_found": lambda service: service.client.delete("/v1/webhooks/none"),
    "address_refused": post("/v1/webhooks", json={"url": "http://127.0.0.1/"}),
    "importer_not_found": post("/v1/imports/none", content=b"x", headers=BYTES),
    "queue_full": queue_full,
    "busy": busy,
    "store_busy": locked,
    "store_full": full,
    "store_unavailable": gone,
    "not_ready": not_ready,
    "internal": fault,
    **{
        c: refusing(c)
        for c in (
            "limit_exceeded",
            "no_backend",
            "strategy_refused",
            "illegal_schedule",
            "fixed_contradiction",
            "timeout",
            "out_of_memory",
            "worker_lost",
        )
    },
}

JOBS = {
    "compile_failure": CompileError("compile_failure", "no", "x.c:1: error"),
    "compile_timeout": CompileError("compile_timeout", "too long"),
    "run_failure": RunError("run_failure", "signal 11"),
    "run_timeout": RunError("run_timeout", "too long"),
    "out_of_memory": RunError("out_of_memory", "too much"),
    "store_full": RunError("store_full", "no space"),
    "not_confined": RunError("not_confined", "neither"),
    "region_outside_input": RegionError("input needs more"),
    "bad_argument": ArgumentError("input is uint8"),
    "internal": InternalError("ours"),
}
ELSEWHERE = {"unauthorized", "forbidden", "http_error"} | {  # test_bounds.py
    "head_too_large",
    "request_timeout",
    "too_many_connections",
    "too_many_failures",
    "token_limit",  # test_engine.py
    "token_full",  # test_holdings.py
    "key_used",  # test_jobs.py
    "schedule_in_use",  # test_lists.py
}


def test_every_code_is_provoked():
    assert set(REQUESTS) | set(JOBS) | ELSEWHERE == set(CODES)


@pytest.mark.parametrize("code", REQUESTS)
def test_codes_of_requests(start, code):
    service = start(job_queue_limit=1, database_busy_ms=1)
    answer = REQUESTS[code](service)
    assert answer.json()["code"] == code, answer.text
    assert answer.status_code == CODES[code][0]
    assert_shape(answer.json(), answer.status_code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert (code in RETRY_AFTER_S) is ("retry-after" in answer.headers)
    assert service.client.get("/healthz").status_code == 200


@pytest.mark.parametrize("code", JOBS)
def test_codes_of_jobs(start, code):
    def job(task, claim, watch):
        raise JOBS[code]

    service = start(job, job_workers=1)
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds", json={}).json()["id"]
    found = service.ended(job_id)
    assert (found["state"], found["error"]["code"]) == ("failed", code)
    assert_shape(found["error"], CODES[code][0])
    if code == "compile_failure":
        assert found["error"]["output"] == "x.c:1: error"


def assert_shape(document, status):
    assert {"type", "title", "status", "code", "detail", "instance"} <= set(document)
    assert document["type"] == f"/v1/errors#{document['code']}"
    assert document["title"] == CODES[document["code"]][1]
    assert document["status"] == status
    assert document["detail"]


def test_a_full_store_keeps_nothing_and_recovers(start):
    service = start()
    assert full(service).status_code == 503
    engine = service.context.db.engine
    engine.dispose()
    from sqlalchemy import event

    event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA max_page_count=1000000"))
    engine.dispose()
    found = service.client.get("/v1/pipelines", params={"name": "x"}).json()["items"]
    assert found == []
    assert service.client.post("/v1/pipelines", json={"name": "x", "stages": []}).status_code == 201


def test_reading_goes_on_while_the_store_is_locked(start):
    service = start(database_busy_ms=1)
    schedule_id = service.schedule()
    other = sqlite3.connect(service.context.db.url.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert service.client.get(f"/v1/schedules/{schedule_id}").status_code == 200
        assert service.schedule() == schedule_id
        for made in ("code.c", "loopnest.txt", "candidates"):
            assert service.client.get(f"/v1/schedules/{schedule_id}/{made}").status_code == 200
    finally:
        other.close()


def test_a_disk_without_space_is_no_fault_of_the_client(start, monkeypatch):
    service = start()

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilesmith.app.service.jobs.endpoints.shutil.copyfileobj", no_space)
    answer = service.client.post(f"/v1/schedules/{service.schedule()}/runs", files={"input": b"x"})
    assert (answer.status_code, answer.json()["code"]) == (503, "store_full")
    assert list(service.context.jobs.files.root.glob("*")) == []


def test_all_problems_of_a_document_are_listed_up_to_a_limit():
    problems = [Problem("bad_value", f"/stages/{n}", "m", "h", n) for n in range(120)]
    document = problem_document(from_core(DocumentError(tuple(problems)), "/pipeline"))
    assert len(document["errors"]) == 100
    assert document["errors_left_off"] == 20
    assert document["errors"][3] == {
        "code": "bad_value", "pointer": "/pipeline/stages/3", "message": "m", "hint": "h", "column": 3,
    }  # fmt: skip


@pytest.mark.parametrize("code", ["limit_exceeded", "document_too_large", "expression_too_deep"])
def test_limits_have_a_code_of_their_own(code):
    assert from_core(DocumentError((Problem(code, "", "m"),))).code == "limit_exceeded"


def test_errors_of_the_core():
    assert from_core(IllegalSchedule("why")).code == "illegal_schedule"
    hidden = from_core(InternalError("the innards"))
    assert hidden.code == "internal"
    assert "innards" not in hidden.detail
    assert from_os(OSError(13, "secret")).code == "internal"


def test_pointers_escape_what_has_a_meaning_in_them():
    found = from_pydantic([{"type": "x", "loc": ("body", "a/b", "c~d", 3), "msg": "m"}])
    assert found.problems[0].pointer == "/a~1b/c~0d/3"


@pytest.mark.parametrize(
    ("body", "pointer", "hint"),
    [
        ({"pipeline_nam": "harris"}, "/pipeline_nam", "did you mean 'pipeline"),
        ({"pipeline_id": "harris", "options": {"strcit": True}}, "/options/strcit", "did you mean 'strict'?"),
        ({"pipeline_id": "harris", "options": {"zzz": 1}}, "/options/zzz", "there are: method, strict, "),
    ],
)
def test_fields_that_there_are_are_offered_for_one_that_there_is_not(
    service, body: dict[str, object], pointer: str, hint: str
) -> None:
    errors = service.client.post("/v1/schedules", json=body).json()["errors"]
    found = next(e for e in errors if e["pointer"] == pointer)
    assert found["message"] == f"there is no field {pointer.rsplit('/', 1)[1]!r}"
    assert found["hint"].startswith(hint)


def test_a_name_where_a_document_is_wanted_is_sent_to_its_field(service) -> None:
    errors = service.client.post("/v1/schedules", json={"pipeline": "harris", "platform": "host"}).json()["errors"]
    hints = {e["pointer"]: e["hint"] for e in errors}
    assert hints["/platform"] == "one that is known by its name goes into platform_name"
    assert hints["/pipeline"] == "one that is known by its name goes into pipeline_id"


def test_api_errors_cross_processes():
    import pickle

    error = ApiError("bad_document", "d", [Problem("c", "/p", "m")], {"output": "o"})
    again = pickle.loads(pickle.dumps(error))
    assert problem_document(again) == problem_document(error)
    assert isinstance(PipelineIdentity("i", "n", 1, b""), PipelineIdentity)
