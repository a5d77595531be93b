"""The OpenAPI document is valid, names and types everything, and says what is answered; JSON Schemas; /docs."""

from __future__ import annotations

import copy
import json
import re
import time

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tilesmith import platforms
from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.examples import BLUR, ROWS
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import to_document

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def described(real):
    return real.client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def operations(described):
    return {
        operation["operationId"]: operation
        for path in described["paths"].values()
        for method, operation in path.items()
        if method in METHODS
    }


def closed(schema):
    """The schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("additionalProperties") in (None, True):
        made["additionalProperties"] = False
    return made


def check(described, operation, answer):
    """The answer is what the operation says, and nothing else."""
    said = operation["responses"].get(str(answer.status_code), operation["responses"]["default"])
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = closed(copy.deepcopy(said["content"][media_type]["schema"]))
    components = closed(copy.deepcopy(described["components"]))
    Draft202012Validator(schema | {"components": components}).validate(answer.json())


def test_the_document_is_valid(described):
    assert list(OpenAPIV31SpecValidator(described).iter_errors()) == []


def test_every_operation_has_a_name_a_summary_and_a_tag_that_is_described(described, operations):
    count = sum(method in METHODS for path in described["paths"].values() for method in path)
    assert len(operations) == count
    tags = {tag["name"] for tag in described["tags"]}
    for name, operation in operations.items():
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name), name
        assert operation["summary"]
        assert set(operation["tags"]) <= tags, name


def test_every_body_and_every_result_is_typed(operations):
    for name, operation in operations.items():
        contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
        contents += [answer.get("content", {}) for answer in operation["responses"].values()]
        for content in contents:
            for said in content.values():
                assert said.get("schema"), name


def test_bodies_and_results_have_examples(described):
    schemas = described["components"]["schemas"]
    for name in ("ScheduleRequest", "Schedule", "RunRequest", "RunJob", "Pipeline", "Problem", "TokenRequest"):
        assert schemas[name]["examples"], name


def test_the_examples_of_requests_are_requests(real, described):
    for example in described["components"]["schemas"]["ScheduleRequest"]["examples"]:
        body = example | {"options": example.get("options", {}) | {"build": False}}
        assert real.client.post("/v1/schedules", json=body).status_code in (200, 201)


@pytest.mark.parametrize(
    "body",
    [
        {"pipeline_id": "harris", "platform_name": "i7-6700"},
        {"pipeline_id": "harris", "platform_name": "nvidia-a100"},
        {"pipeline": BLUR, "platform_name": "i7-6700", "strategy": ROWS},
        {"pipeline": BLUR, "platform_name": "i7-6700", "options": {"method": "taco2019"}},
        {"pipeline_id": "local_laplacian", "platform_name": "i7-6700", "options": {"build": True, "measure": True}},
    ],
)
def test_schedules_are_as_described(real, described, operations, body):
    made = real.client.post("/v1/schedules", json=body)
    check(described, operations["createSchedule"], made)
    links = made.json()["links"]
    check(described, operations["getSchedule"], real.client.get(links["self"]))
    for form, name in (
        ("schedule.json", "getDecisions"),
        ("candidates", "listCandidates"),
        ("explain", "explainSchedule"),
        ("pipeline.json", "getPipelineOfSchedule"),
        ("platform.json", "getPlatformOfSchedule"),
        ("measurements", "listMeasurementsOfSchedule"),
    ):
        check(described, operations[name], real.client.get(links[form]))
    for job in made.json().get("jobs", ()):
        check(described, operations["getJob"], real.client.get(job["href"]))
        check(described, operations["cancelJob"], real.client.delete(job["href"]))


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("listSchedules", "/v1/schedules"),
        ("listJobs", "/v1/jobs"),
        ("listPipelines", "/v1/pipelines"),
        ("getPipeline", "/v1/pipelines/harris"),
        ("listPlatforms", "/v1/platforms"),
        ("getPlatform", "/v1/platforms/host"),
        ("listStrategies", "/v1/strategies"),
        ("getStrategy", "/v1/strategies/cbuf"),
        ("listTokens", "/v1/tokens"),
        ("getCapabilities", "/v1/capabilities"),
        ("listErrorCodes", "/v1/errors"),
        ("getHealth", "/healthz"),
        ("getReadiness", "/readyz"),
        ("listSchemas", "/v1/schemas"),
        ("getPipeline", "/v1/pipelines/nothing"),
    ],
)
def test_answers_are_as_described(real, described, operations, name, url):
    check(described, operations[name], real.client.get(url))


def test_problems_of_documents_are_as_described(real, described, operations):
    answer = real.client.post("/v1/schedules", json={"pipeline": BLUR | {"outputs": ["blur_z"]}})
    assert answer.status_code == 422
    check(described, operations["createSchedule"], answer)
    check(described, operations["validateDocuments"], real.client.post("/v1/validate", json={"pipeline": "a: ["}))


@pytest.mark.slow
def test_finished_jobs_are_as_described(start):
    service = start(scheduling=work, job_workers=1)
    described = service.client.get("/openapi.json").json()
    get = described["paths"]["/v1/jobs/{job_id}"]["get"]
    bodies = ({"build": True, "measure": True}, {"tune": 2})
    for options in bodies:
        body = {"pipeline_id": "blur", "options": options}
        for job in service.client.post("/v1/schedules", json=body).json()["jobs"]:
            deadline = time.monotonic() + 100
            while (answer := service.client.get(job["href"])).json()["state"] in ("queued", "running"):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert answer.json()["state"] == "succeeded", answer.text
            check(described, get, answer)
    tuned = service.client.post("/v1/schedules", json=body)
    assert tuned.status_code == 200
    check(described, described["paths"]["/v1/schedules"]["post"], tuned)
    for form in ("candidates", "explain", "measurements"):
        operation = described["paths"][f"/v1/schedules/{{schedule_id}}/{form}"]["get"]
        check(described, operation, service.client.get(tuned.json()["links"][form]))


def test_the_schemas_of_documents_are_published_with_ids(shared):
    links = shared.client.get("/v1/schemas").json()["items"]
    found = {link["name"]: shared.client.get(link["href"]).json() for link in links}
    assert set(found) == {"pipeline", "platform", "schedule"}
    for link in links:
        schema = found[link["name"]]
        assert schema["$id"] == link["href"]
        Draft202012Validator.check_schema(schema)
    for name in pipelines.names():
        Draft202012Validator(found["pipeline"]).validate(json.loads(json.dumps(to_document(pipelines.load(name)))))
    for name in platforms.catalog_names():
        Draft202012Validator(found["platform"]).validate(platforms.to_document(platforms.load(name)))
    assert not Draft202012Validator(found["pipeline"]).is_valid(BLUR | {"colour": "red"})
    assert shared.client.get("/v1/schemas/nothing").json()["code"] == "schema_not_found"


def test_schedules_fit_their_schema(real):
    schema = real.client.get("/v1/schemas/schedule").json()
    made = real.client.post("/v1/schedules", json={"pipeline_id": "harris", "platform_name": "i7-6700"}).json()
    Draft202012Validator(schema).validate(real.client.get(made["links"]["schedule.json"]).json())


@pytest.mark.parametrize(
    ("method", "url", "allowed"),
    [
        ("PUT", "/v1/schedules", "GET, HEAD, POST"),
        ("DELETE", "/v1/pipelines", "GET, HEAD, POST"),
        ("POST", "/v1/jobs/x", "DELETE, GET, HEAD"),
        ("GET", "/v1/validate", "POST"),
        ("OPTIONS", "/v1/tokens", "GET, HEAD, POST"),
        ("POST", "/docs", "GET, HEAD"),
    ],
)
def test_an_address_names_all_methods_that_it_takes(shared, method, url, allowed):
    answer = shared.client.request(method, url)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/pipeline"),
        ({"pipeline": BLUR, "pipeline_id": "blur"}, "/pipeline_id"),
        ({"pipeline_id": "blur", "platform": {}, "platform_name": "host"}, "/platform_name"),
        ({"pipeline_id": "blur", "strategy": ROWS, "strategy_id": "cbuf"}, "/strategy_id"),
        ({"pipeline_id": "blur", "strategy_id": "cbuf", "options": {"tune": 2}}, "/options/tune"),
        ({"pipeline_id": "blur", "options": {"method": "taco2019", "fixed": {"blur_x": {}}}}, "/options/fixed"),
    ],
)
def test_what_does_not_go_together_is_pointed_at(shared, body, pointer):
    answer = shared.client.post("/v1/schedules", json=body)
    assert answer.status_code == 422
    assert [e["pointer"] for e in answer.json()["errors"]] == [pointer]


def test_the_page_of_the_api_is_all_from_here(shared):
    page = shared.client.get("/docs")
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(links) == 4
    for link in links:
        answer = shared.client.get(link)
        assert answer.status_code == 200
        assert len(answer.content) > 50
    assert shared.client.get("/docs/main.py").status_code == 422
