"""The service with nothing replaced: documents to schedules, to C, to a library, to results."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from support.opencl import device, require_device
from support.tools import require_tool

from tilesmith import platforms
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.answers import Question
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

pytestmark = pytest.mark.slow


@pytest.fixture
def gcc():
    """Tests that compile ask for it."""
    return require_tool("gcc")


needs_gcc = pytest.mark.usefixtures("gcc")


@pytest.fixture
def whole(start):
    """A service with real scheduling (in threads) and one worker."""
    return start(scheduling=work, job_workers=1)


def small(name):
    """A shipped pipeline that is planned for small images."""
    document = pipelines.document(name)
    sizes = (40, 30, 3)
    document["estimates"] = {
        owner: [[low, min(extent, size)] for (low, extent), size in zip(region, sizes, strict=False)]
        for owner, region in document["estimates"].items()
        if owner in document["outputs"]
    }
    return document


@pytest.mark.parametrize("name", ["bilateral_grid", "blur", "harris", "local_laplacian"])
def test_shipped_pipelines_in_all_forms(whole, name):
    answer = whole.client.post("/v1/schedules", json={"pipeline_id": name})
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["pipeline"] == name
    assert {"parse", "analysis", "search", "buffers", "total"} == set(body["timings_ms"])
    for form in (
        "code.c",
        "code.h",
        "loopnest.txt",
        "schedule.json",
        "schedule.h",
        "schedule.py",
        "figures.json",
        "tiles.json",
        "explain",
    ):
        form_answer = whole.client.get(body["links"][form])
        assert form_answer.status_code == 200, form
        assert form_answer.content, form
    assert body["entry"] in whole.client.get(body["links"]["code.h"]).text
    assert whole.client.get(body["links"]["pipeline.json"]).json()["name"] == name
    page = whole.client.get(body["links"]["page"])
    assert page.status_code == 200
    assert body["entry"] in page.text
    again = whole.client.post("/v1/schedules", content=json.dumps({"pipeline_id": name}) + " ", headers=JSON)
    assert again.status_code == 200


JSON = {"Content-Type": "application/json"}


@needs_gcc
def test_a_library_is_built_and_fetched(whole):
    schedule = whole.client.post("/v1/schedules", json={"pipeline_id": "blur", "options": {"build": True}}).json()
    job = whole.ended(schedule["jobs"][0]["id"])
    assert job["state"] == "succeeded", job
    assert job["result"]["entry"] == schedule["entry"]
    assert str(whole.context.settings.data_dir) not in json.dumps(job)
    library = whole.client.get(schedule["links"]["library.so"])
    assert library.content.startswith(b"\x7fELF")
    etag = library.headers["etag"]
    assert whole.client.get(schedule["links"]["library.so"], headers={"If-None-Match": etag}).status_code == 304
    again = whole.client.post(f"/v1/schedules/{schedule['id']}/builds", json={}).json()
    assert whole.ended(again["id"])["result"]["cached"] is True


@needs_gcc
def test_a_run_computes_what_the_interpreter_does(whole):
    document = small("blur")
    schedule_id = whole.client.post("/v1/schedules", json={"pipeline": document}).json()["id"]
    image = np.random.default_rng(1).integers(0, 60000, (19, 23), dtype=np.uint16)
    content = io.BytesIO()
    np.save(content, image)
    request = {"repeat": 3, "threads": 2, "mins": {"input": [5, -4]}}
    job = whole.client.post(
        f"/v1/schedules/{schedule_id}/runs",
        data={"request": json.dumps(request)},
        files={"input": ("image.npy", content.getvalue())},
    )
    assert job.status_code == 202, job.text
    found = whole.ended(job.json()["id"])
    assert found["state"] == "succeeded", found
    result = found["result"]
    assert len(result["times_ms"]) == 3
    assert result["threads"] == 2
    measurement = result["measurement"]
    assert {"machine", "compiler", "flags", "sizes", "clock", "load_before", "load_after"} <= set(measurement)
    assert measurement["sizes"]["inputs"] == {"input": [[5, 23], [-4, 19]]}
    output = result["outputs"][0]
    array = np.load(io.BytesIO(whole.client.get(output["links"]["npy"]).content))
    pipeline = load(document)
    regions = {output["name"]: tuple(tuple(r) for r in output["region"])}
    wanted = interpret(pipeline, {"input": Image(image, (5, -4))}, {}, regions)
    np.testing.assert_array_equal(array, wanted[output["name"]][0])
    assert whole.client.get(output["links"]["png"]).content.startswith(b"\x89PNG")


@needs_gcc
def test_an_opencl_device_computes_and_is_measured_and_tuned(whole):
    require_device()
    document, on = small("blur"), json.loads(device("gpu").model_dump_json())
    body = {"pipeline": document, "platform": on}
    schedule = whole.client.post("/v1/schedules", json=body).json()
    image = np.random.default_rng(1).integers(0, 1000, (19, 23)).astype(np.uint16)
    content = io.BytesIO()
    np.save(content, image)
    answer = whole.client.post(
        f"/v1/schedules/{schedule['id']}/runs",
        data={"request": json.dumps({"repeat": 2})},
        files={"input": ("image.npy", content.getvalue())},
    )
    assert answer.status_code == 202, answer.text
    found = whole.ended(answer.json()["id"])
    assert found["state"] == "succeeded", found
    output = found["result"]["outputs"][0]
    array = np.load(io.BytesIO(whole.client.get(output["links"]["npy"]).content))
    regions = {output["name"]: tuple(tuple(r) for r in output["region"])}
    wanted = interpret(load(document), {"input": Image(image, (0, 0))}, {}, regions)
    np.testing.assert_array_equal(array, wanted[output["name"]][0])
    for options in ({"measure": True}, {"tune": 2}):
        asked = whole.client.post("/v1/schedules", json=body | {"options": options})
        job = whole.ended(asked.json()["jobs"][0]["id"])
        assert job["state"] == "succeeded", job
    assert [s["error"] for s in job["result"]["samples"]] == [None] * 2


@needs_gcc
def test_a_measurement_keeps_no_results(whole):
    body = {"pipeline": small("harris"), "options": {"measure": True}}
    schedule = whole.client.post("/v1/schedules", json=body).json()
    job = whole.ended(schedule["jobs"][0]["id"])
    assert job["state"] == "succeeded", job
    assert job["result"]["outputs"] == []
    assert job["result"]["minimum_ms"] > 0
    assert len(job["result"]["times_ms"]) == 10
    (listed,) = whole.client.get("/v1/schedules").json()["items"]
    assert listed["measured_ms"] == job["result"]["median_ms"]
    assert listed["predicted_ms"] == schedule["predicted"]["total"] / 1000
    repository.forget(whole.context.db, job["id"])  # as it happens in a week
    (kept,) = whole.client.get(f"/v1/schedules/{job['schedule_id']}/measurements").json()["items"]
    assert (kept["kind"], kept["estimated"], kept["rank"]) == ("run", True, None)
    assert kept["times_ms"] == job["result"]["times_ms"]
    assert kept["interval_ms"][0] <= kept["median_ms"] == job["result"]["median_ms"] <= kept["interval_ms"][1]
    assert kept["conditions"] == job["result"]["measurement"]
    assert kept["threads"] == job["result"]["threads"]


@needs_gcc
def test_images_that_do_not_fit_fail_the_job_only(whole):
    schedule_id = whole.client.post("/v1/schedules", json={"pipeline_id": "blur"}).json()["id"]
    url = f"/v1/schedules/{schedule_id}/runs"
    content = io.BytesIO()
    np.save(content, np.zeros((1, 1), np.uint16))
    cases = {
        "bad_image": b"not an image",
        "region_outside_input": content.getvalue(),
    }
    for code, data in cases.items():
        job = whole.ended(whole.client.post(url, files={"input": data}).json()["id"])
        assert (job["state"], job["error"]["code"]) == ("failed", code), job
        assert str(whole.context.settings.data_dir) not in json.dumps(job)


@needs_gcc
def test_an_image_of_another_depth_is_told_of_the_option_of_requests(whole):
    schedule_id = whole.client.post("/v1/schedules", json={"pipeline_id": "blur"}).json()["id"]
    content = io.BytesIO()
    PIL.Image.fromarray(np.zeros((8, 8), np.uint8)).save(content, "png")
    files = {"input": content.getvalue()}
    job = whole.ended(whole.client.post(f"/v1/schedules/{schedule_id}/runs", files=files).json()["id"])
    assert job["error"]["code"] == "bad_image"
    assert "`convert: true`" in job["error"]["detail"]
    assert "--convert" not in job["error"]["detail"]


@needs_gcc
def test_images_beyond_the_memory_fail_before_they_are_made(start):
    whole = start(scheduling=work, job_workers=1, run_memory_bytes=1 << 20)
    schedule_id = whole.client.post("/v1/schedules", json={"pipeline_id": "blur"}).json()["id"]
    job = whole.client.post(f"/v1/schedules/{schedule_id}/runs", json={"estimates": True}).json()
    assert whole.ended(job["id"])["error"]["code"] == "out_of_memory"


def test_hostile_documents_through_processes(start):
    service = start(scheduling=work, schedule_workers=1)
    blur = pipelines.document("blur")
    stages = [{"name": f"s{n}", "dims": ["x"], "value": "1"} for n in range(20_000)]
    deep = "(" * 10_000 + "1" + ")" * 10_000
    cases = [
        ({**blur, "stages": stages}, "limit_exceeded"),
        ({**blur, "stages": [{"name": "blur_y", "dims": ["x", "y"], "value": deep}]}, "limit_exceeded"),
        ({**blur, "name": 'system("rm -rf /")'}, "bad_document"),
        ({**blur, "colour": "red"}, "bad_document"),
        ({**blur, "estimates": {}}, "bad_document"),
    ]
    for document, code in cases:
        answer = service.client.post("/v1/schedules", json={"pipeline": document})
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text[:500]
        assert all(e["pointer"].startswith("/pipeline") for e in answer.json()["errors"])
        assert service.client.get("/healthz").status_code == 200
    assert service.client.post("/v1/schedules", json={"pipeline": blur}).status_code == 201


def chain(count):
    """blur's document with a chain of stages, each reading its neighbour twice."""
    stages = [{"name": "s0", "dims": ["x", "y"], "value": "input(x, y)"}]
    for n in range(1, count):
        stages.append({"name": f"s{n}", "dims": ["x", "y"], "value": f"s{n - 1}(x, y) + s{n - 1}(x + 1, y)"})
    last = stages[-1]["name"]
    return {**pipelines.document("blur"), "stages": stages, "outputs": [last], "estimates": {last: [[0, 64], [0, 64]]}}


def test_a_long_chain_of_stages_is_followed(start):
    service = start(scheduling=work, schedule_workers=1)
    answer = service.client.post("/v1/schedules", json={"pipeline": chain(400)})
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(("error", "code"), [(RecursionError, "limit_exceeded"), (MemoryError, "out_of_memory")])
def test_what_the_machine_cannot_hold_is_refused(monkeypatch, error, code):
    def fails(*_):
        raise error

    monkeypatch.setattr("tilesmith.app.service.schedules.work.decide", fails)
    machine = platforms.to_document(platforms.get("i7-6700"))
    found = work.answer(Question(pipelines.document("blur"), machine, "taco2019", False, None))
    assert isinstance(found, ApiError)
    assert found.code == code


def test_the_candidates_of_a_schedule(whole):
    body = {"pipeline_id": "harris", "options": {"method": "default"}}
    schedule = whole.client.post("/v1/schedules", json=body).json()
    found = whole.client.get(schedule["links"]["candidates"]).json()
    assert found["unit"] == schedule["predicted"]["unit"]
    assert [c["rank"] for c in found["items"]] == list(range(1, len(found["items"]) + 1))
    assert len(found["items"]) > 1
    for c in found["items"]:
        document = whole.client.get(c["links"]["schedule.json"]).json()
        assert (document["groups"] == schedule["groups"]) == (c["rank"] == 1)
        assert "group output" in whole.client.get(c["links"]["loopnest.txt"]).text
    page = whole.client.get(schedule["links"]["page"]).text
    assert "<svg" in page
    body["options"] = {"method": "taco2019"}  # has one
    other = whole.client.post("/v1/schedules", json=body).json()
    beyond = whole.client.get(f"/v1/schedules/{other['id']}/candidates/2/loopnest.txt")
    assert beyond.json()["code"] == "candidate_not_found"
    assert whole.client.get("/v1/schedules/none/candidates/1/loopnest.txt").json()["code"] == "schedule_not_found"
    assert whole.client.get("/v1/schedules/none/candidates/17/loopnest.txt").status_code == 422


@pytest.mark.parametrize(
    ("method", "fixed", "code", "pointer"),
    [
        ("taco2019", {"blur_x": {"compute": "inline"}}, "bad_request", "/options/fixed"),
        ("default", {"blurx": {"compute": "inline"}}, "bad_document", "/options/fixed/blurx"),
        ("default", {"blur_x": {"vector": 3}}, "bad_document", "/options/fixed/blur_x/vector"),
        ("default", {"blur_y": {"compute": "inline"}}, "fixed_contradiction", "/options/fixed/blur_y/compute"),
    ],
)
def test_decisions_that_cannot_be(whole, method, fixed, code, pointer):
    body = {"pipeline_id": "blur", "options": {"method": method, "fixed": fixed}}
    answer = whole.client.post("/v1/schedules", json=body)
    assert answer.status_code == 422
    document = answer.json()
    assert (document["code"], [e["pointer"] for e in document["errors"]]) == (code, [pointer])


def test_decisions_are_part_of_the_question(whole):
    ids = set()
    for compute in ("inline", "root"):
        options = {"method": "default", "fixed": {"blur_x": {"compute": compute}}}
        answer = whole.client.post("/v1/schedules", json={"pipeline_id": "blur", "options": options})
        assert answer.status_code == 201, answer.text
        assert answer.json()["options"]["fixed"] == options["fixed"]
        assert len(answer.json()["groups"]) == (1 if compute == "inline" else 2)
        ids.add(answer.json()["id"])
    assert len(ids) == 2


@needs_gcc
def test_a_schedule_is_tuned(whole):
    body = {"pipeline": small("harris"), "options": {"method": "default", "tune": 3}}
    answer = whole.client.post("/v1/schedules", json=body)
    assert answer.status_code == 202, answer.text
    untuned = answer.json()
    job_id = untuned["jobs"][0]["id"]
    assert answer.headers["location"] == f"/v1/jobs/{job_id}"
    assert "tune" not in untuned["options"]
    job = whole.ended(job_id)
    assert job["state"] == "succeeded", job
    assert [s["error"] for s in job["result"]["samples"]] == [None] * 3
    again = whole.client.post("/v1/schedules", json=body)
    assert again.status_code == 200
    tuned = again.json()
    assert tuned["id"] == job["result"]["schedule_id"] != untuned["id"]
    assert (tuned["options"]["tune"], tuned["tuning"]["chosen"]) == (3, job["result"]["chosen"])
    samples = whole.client.get(tuned["links"]["measurements"]).json()["items"]
    assert [s["rank"] for s in samples] == [1, 2, 3]
    assert all(min(s["times_ms"]) == s["minimum_ms"] for s in samples)
    assert whole.client.get(untuned["links"]["measurements"]).json()["items"] == []
    times = {item["id"]: item["measured_ms"] for item in whole.client.get("/v1/schedules").json()["items"]}
    median = next(s["median_ms"] for s in samples if s["rank"] == tuned["tuning"]["chosen"])
    assert times == {tuned["id"]: median, untuned["id"]: None}
    assert all(s["conditions"]["compiler"] and s["threads"] >= 1 and s["estimated"] for s in samples)
    assert {s["kind"] for s in samples} == {"tune"}
    assert whole.client.get(untuned["links"]["measurements"]).json()["items"] == []
    candidates = whole.client.get(tuned["links"]["candidates"]).json()["items"]
    chosen = next(c for c in candidates if c["chosen"])
    assert whole.client.get(chosen["links"]["schedule.json"]).json()["groups"] == tuned["groups"]
    assert whole.client.get(tuned["links"]["schedule.json"]).json()["groups"] == tuned["groups"]
    assert whole.client.get(tuned["links"]["explain.txt"]).text.startswith("Tuned: candidate")
    for form in ("code.c", "code.h", "loopnest.txt", "schedule.h", "explain", "pipeline.json"):
        assert whole.client.get(tuned["links"][form]).status_code == 200, form
    page = whole.client.get(tuned["links"]["page"]).text
    assert "Measured (ms)" in page
    assert all(f"/charts/{name}.svg" in page for name in ("candidates", "measured"))


def test_tuning_is_asked_for_once(start):
    service = start(scheduling=work)
    body = {"pipeline": small("harris"), "options": {"method": "default", "tune": 2}}
    first, second = (service.client.post("/v1/schedules", json=body) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["jobs"] == second.json()["jobs"]
    other = body | {"options": body["options"] | {"tune": 3}}
    assert service.client.post("/v1/schedules", json=other).json()["jobs"] != first.json()["jobs"]


@needs_gcc
def test_tuning_that_nobody_survives_fails_the_job(start):
    service = start(scheduling=work, job_workers=1)
    platform = service.client.get("/v1/platforms/i7-6700").json()["document"]
    platform["compiler"] |= {"flags": ["-march=no-such-machine"]}
    platform["name"] = "broken"
    options = {"method": "default", "tune": 2}
    body = {"pipeline": small("harris"), "platform": platform, "options": options}
    job = service.ended(service.client.post("/v1/schedules", json=body).json()["jobs"][0]["id"])
    assert (job["state"], job["error"]["code"]) == ("failed", "run_failure")
    assert "candidate 2: compile_failure" in job["error"]["output"]


def test_a_backend_is_named_in_a_request(whole):
    assert {"c", "c-halide", "opencl"} <= set(whole.client.get("/v1/capabilities").json()["backends"])
    plain = whole.client.post("/v1/schedules", json={"pipeline_id": "blur"}).json()
    body = {"pipeline_id": "blur", "options": {"backend": "c-halide"}}
    schedule = whole.client.post("/v1/schedules", json=body).json()
    assert schedule["options"]["backend"] == "c-halide"
    assert schedule["id"] != plain["id"]
    assert "tilesmith_blur_halide" in whole.client.get(f"/v1/schedules/{schedule['id']}/code.h").text
    refused = whole.client.post("/v1/schedules", json={**body, "options": {"backend": "d"}})
    assert refused.status_code == 422


def test_a_cost_model_is_named_in_a_request(whole):
    assert whole.client.get("/v1/capabilities").json()["cost_models"][:2] == ["ecm", "taco2019"]
    body = {"pipeline_id": "blur", "options": {"cost_model": "taco2019"}}
    schedule = whole.client.post("/v1/schedules", json=body).json()
    assert schedule["predicted"]["model"] == schedule["options"]["cost_model"] == "taco2019"
    for options in ({"cost_model": "emc"}, {"cost_model": "ecm", "method": "taco2019"}):
        refused = whole.client.post("/v1/schedules", json={**body, "options": options})
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_request"), refused.text


def test_the_clients_of_the_page_work(whole, capsys):
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    exec(compile(code.replace("http://127.0.0.1:8000", whole.url), "api.md", "exec"), {})
    told = capsys.readouterr().out
    assert "strategy" in told
    assert len(re.findall(r"'[0-9a-f]{32}'", told)) == 2
