"""Pipelines, platforms, capabilities: what is shipped is there by name, what is stored by what it is."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import pytest

from tilesmith import platforms
from tilesmith.app.service.schedules.answers import Answer, Decided, Question
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.app.service.schedules.work import answer, generate
from tilesmith.scheduler import pipelines as shipped
from tilesmith.scheduler.frontends.document.limits import Limits


def every(service, url, limit=3):
    found, cursor = [], None
    while True:
        params = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        page = service.client.get(url, params=params).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


@pytest.mark.parametrize("name", shipped.names())
def test_shipped_pipelines_are_read_by_name(service, name):
    answer = service.client.get(f"/v1/pipelines/{name}")
    assert answer.status_code == 200
    assert answer.json()["source"] == "shipped"
    assert answer.json()["document"]["name"] == name
    assert service.client.get(f"/v1/pipelines/{answer.json()['id']}").json() == answer.json()


def test_a_stored_pipeline_is_read_by_id(service, pipeline):
    added = service.client.post("/v1/pipelines", json=pipeline("mine"))
    assert added.status_code == 201
    assert added.json()["source"] == "stored"
    assert service.client.get(added.headers["location"]).json() == added.json()
    assert service.client.post("/v1/pipelines", json=pipeline("mine")).status_code == 200
    assert service.client.get("/v1/pipelines/mine").json()["code"] == "pipeline_not_found"


@pytest.mark.parametrize("limit", [1, 2, 5, 200])
def test_pipelines_shipped_and_stored_are_one_list(service, pipeline, limit):
    stored = ["aaa", "harris", "zzz"]
    for name in stored:
        service.client.post("/v1/pipelines", json=pipeline(name))
    found = every(service, "/v1/pipelines", limit)
    assert [i["name"] for i in found] == sorted([*shipped.names(), *stored])
    assert len({i["id"] for i in found}) == len(found)
    for item in found:
        assert service.client.get(item["href"]).json()["id"] == item["id"]
    named = service.client.get("/v1/pipelines", params={"name": "harris"}).json()["items"]
    assert sorted(i["source"] for i in named) == ["shipped", "stored"]


def test_platforms_of_the_catalog_and_the_host_are_read_by_name(service):
    for name in (*platforms.catalog_names(), "host"):
        answer = service.client.get(f"/v1/platforms/{name}")
        assert answer.status_code == 200
        assert answer.json()["document"]["kind"] in ("cpu", "opencl")


def test_an_opencl_device_is_a_platform(service):
    device = service.client.get("/v1/platforms/nvidia-a100").json()["document"] | {"name": "my-gpu"}
    added = service.client.post("/v1/platforms", json=device)
    assert (added.status_code, added.json()["document"]) == (201, device)
    listed = {i["name"]: i["kind"] for i in every(service, "/v1/platforms", 200)}
    assert (listed["my-gpu"], listed["host"]) == ("opencl", "cpu")
    wrong = service.client.post("/v1/platforms", json=device | {"name": "other", "compute_units": 0})
    assert [e["pointer"] for e in wrong.json()["errors"]] == ["/compute_units"]
    answered = answer(Question(BLUR, device, "default", False, None))
    assert isinstance(answered, Answer)
    documents = (answered.forms[f"{name}.json"] for name in ("pipeline", "platform", "schedule"))
    assert "kernel void " in generate(Decided(*documents), Limits()).source.code
    assert answered.body["misfits"] == []
    small = answer(Question(BLUR, device | {"compute_units": 4096}, "default", False, None))
    assert isinstance(small, Answer)
    assert {m["rule"] for m in small.body["misfits"]} == {"work-groups"}


def test_bodies_of_platforms_are_described_by_kind(service):
    schemas = service.client.get("/openapi.json").json()["components"]["schemas"]
    mapping = schemas["PlatformDocument"]["discriminator"]["mapping"]
    assert {k: schemas[ref.rsplit("/", 1)[1]]["type"] for k, ref in mapping.items()} == {
        "cpu": "object",
        "opencl": "object",
    }


@pytest.mark.parametrize("limit", [1, 4, 200])
def test_platforms_are_one_list(service, limit):
    machine = service.client.get("/v1/platforms/i7-6700").json()["document"]
    service.client.post("/v1/platforms", json=machine | {"name": "my-machine"})
    names = [i["name"] for i in every(service, "/v1/platforms", limit)]
    assert names == sorted([*platforms.catalog_names(), "host", "my-machine"])


def test_a_platform_is_stored_once_under_its_name(service):
    machine = service.client.get("/v1/platforms/i7-6700").json()["document"] | {"name": "my-machine"}
    assert service.client.post("/v1/platforms", json=machine).status_code == 201
    assert service.client.post("/v1/platforms", json=machine).status_code == 200
    other = service.client.post("/v1/platforms", json=machine | {"threads": 2})
    assert (other.status_code, other.json()["code"]) == (409, "platform_name_taken")
    assert service.client.get("/v1/platforms/my-machine").json()["document"]["threads"] == machine["threads"]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '"x"', "[[]]"])
def test_numbers_that_are_none_are_refused(service, value):
    text = json.dumps(service.client.get("/v1/platforms/i7-6700").json()["document"] | {"clock_ghz": "HERE"})
    text = text.replace('"HERE"', value)
    headers = {"Content-Type": "application/json"}
    answer = service.client.post("/v1/platforms", content=text, headers=headers)
    assert answer.json()["code"] in ("bad_json", "bad_document")
    body = f'{{"pipeline_id": "blur", "platform": {text}}}'
    assert service.client.post("/v1/schedules", content=body, headers=headers).json()["code"] == "bad_document"


def test_a_platform_has_a_limit(service):
    machine = service.client.get("/v1/platforms/i7-6700").json()["document"] | {"caches": [{}] * 100_000}
    assert service.client.post("/v1/platforms", json=machine).json()["code"] == "limit_exceeded"


def test_names_of_the_catalog_cannot_be_taken(service):
    machine = service.client.get("/v1/platforms/i7-6700").json()["document"]
    assert service.client.post("/v1/platforms", json=machine).status_code == 200
    for name in ("i7-6700", "host"):
        taken = service.client.post("/v1/platforms", json=machine | {"name": name, "threads": 3})
        assert taken.json()["code"] == "platform_name_taken"


def test_a_wrong_platform_names_every_problem(service):
    machine = service.client.get("/v1/platforms/i7-6700").json()["document"]
    machine |= {"threads": 0, "colour": "red"}
    answer = service.client.post("/v1/platforms", json=machine)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_document")
    assert {"/threads", "/colour"} <= {e["pointer"] for e in answer.json()["errors"]}


def test_capabilities_name_what_there_is(service):
    found = service.client.get("/v1/capabilities").json()
    assert "float32" in found["types"]
    assert {"min", "clamp", "sum", "argmin", "sat_uint8"} <= set(found["functions"])
    assert found["methods"] == ["default", "taco2019"]
    assert "code.c" in found["emitters"]
    assert found["limits"]["body_bytes"] == service.context.settings.body_bytes
    assert found["limits"]["document.stages"] == service.context.settings.limits.stages


def test_the_openapi_document_is_complete(service):
    document = service.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    references = set(_references(document))
    assert references <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    request = document["components"]["schemas"]["ScheduleRequest"]
    assert request["examples"]
    assert request["additionalProperties"] is False
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            assert "application/problem+json" in operation["responses"]["default"]["content"], path


def _references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_the_examples_of_the_openapi_document_work(service):
    document = service.client.get("/openapi.json").json()
    for example in document["components"]["schemas"]["ScheduleRequest"]["examples"]:
        assert service.client.post("/v1/schedules", json=example).status_code == 201


def test_health_readiness_and_metrics(service):
    assert service.client.get("/healthz").json()["status"] == "ok"
    ready = service.client.get("/readyz").json()
    assert ready["checks"] == {"store": "ok", "tables": "ok", "disk": "ok", "jobs": "ok", "confinement": "bubblewrap"}
    service.schedule()
    service.schedule()
    text = service.client.get("/metrics").text
    assert 'tilesmith_schedules_total{outcome="new"} 1.0' in text
    assert 'tilesmith_schedules_total{outcome="stored"} 1.0' in text
    assert 'route="/v1/schedules"' in text
    assert "tilesmith_jobs_queued 0.0" in text


def test_readiness_sees_a_full_disk_and_a_lost_store(start, monkeypatch, tmp_path):
    service = start()
    assert service.client.get("/readyz").status_code == 200
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10 << 20))
        answer = service.client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
        assert answer.json()["checks"]["disk"] == "10 MiB are free of 256 that are wanted"
    (tmp_path / "tilesmith.db").rename(tmp_path / "elsewhere.db")
    answer = service.client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["store"]) == (
        503,
        "its file is gone: restore it, and start the service again",
    )
    assert "tables" not in answer.json()["checks"]
