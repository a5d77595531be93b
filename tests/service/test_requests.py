"""Requests for schedules that say more than a pipeline and a platform: sizes, limits of time, a schedule of
one's own, many at once."""

from __future__ import annotations

import json
import threading

import pytest
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.client import Client
from tilesmith.app.service.schedules import repository, work
from tilesmith.app.service.schedules.answers import SOURCE_FORM
from tilesmith.app.service.schedules.examples import BLUR

I7 = {"platform_name": "i7-6700"}


def made(service, **body):
    answer = service.client.post("/v1/schedules", json=I7 | body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def refused(service, **body):
    answer = service.client.post("/v1/schedules", json=I7 | body)
    assert answer.status_code == 422, answer.text
    return answer.json()


def test_code_is_made_when_it_is_asked_for_and_declares_the_buffers_of_the_schedule(real):
    for name in ("sobel", "local_laplacian"):
        schedule = made(real, pipeline_id=name)
        assert repository.find_form(real.context.db, schedule["id"], SOURCE_FORM) is None
        assert f"{schedule['entry']}(" in real.client.get(schedule["links"]["code.c"]).text
        source = json.loads(repository.find_form(real.context.db, schedule["id"], SOURCE_FORM).content)
        assert [[b["name"], b["bytes"]] for b in schedule["buffers"]] == source["buffers"]
    assert real.client.get("/v1/schedules/none/code.c").json()["code"] == "schedule_not_found"


def test_code_made_later_is_of_the_backend_that_was_asked_for(real):
    schedule = made(real, pipeline_id="blur", options={"backend": "c-halide"})
    assert "halide_buffer_t" in real.client.get(schedule["links"]["code.h"]).text


@pytest.mark.slow
def test_a_job_makes_the_code_that_it_needs(start):
    service = start(scheduling=work, job_workers=1)
    schedule = made(service, pipeline_id="blur", options={"build": True})
    with Client(service.url) as client:
        assert client.wait(client.job(schedule["jobs"][0]["id"]))["state"] == "succeeded"


def test_estimates_replace_those_of_the_document(real):
    small = made(real, pipeline_id="blur", estimates={"blur_y": [[0, 64], [0, 48]]})
    large = made(real, pipeline_id="blur")
    assert small["id"] != large["id"]
    assert small["predicted"]["total"] < large["predicted"]["total"]
    document = real.client.get(small["links"]["pipeline.json"]).json()
    assert document["estimates"]["blur_y"] == [[0, 64], [0, 48]]
    wrong = refused(real, pipeline_id="blur", estimates={"nothing": [[0, 64], [0, 48]]})
    assert [e["pointer"] for e in wrong["errors"]] == ["/pipeline/estimates/nothing"]


def test_a_request_waits_no_longer_than_it_says_and_the_work_is_kept(service, pipeline):
    going, over = threading.Event(), threading.Event()

    def meanwhile():
        going.set()
        over.wait(20)

    service.scheduling.meanwhile = meanwhile
    body = {"pipeline": pipeline(), "options": {"timeout_ms": 200}}
    answer = service.client.post("/v1/schedules", json=body)
    assert (answer.status_code, answer.json()["code"]) == (504, "timeout")
    assert going.is_set()
    over.set()
    again = service.client.post("/v1/schedules", json={"pipeline": pipeline(), "options": {"timeout_ms": 20_000}})
    assert again.status_code == 200
    assert len(service.scheduling.answered) == 1


def test_a_deadline_counts_from_the_reading_on(real):
    answer = made(real, pipeline_id="local_laplacian", options={"deadline_ms": 1})
    assert "deadline" in answer["degraded"]


@pytest.mark.parametrize("name", ["blur", "harris", "local_laplacian"])
def test_a_schedule_of_ones_own_is_priced_and_compiled_as_a_search_would(real, name):
    searched = made(real, pipeline_id=name)
    own = real.client.get(searched["links"]["schedule.json"]).json()
    answer = made(real, pipeline_id=name, schedule=own)
    assert answer["method"] == "written"
    assert answer["predicted"] == searched["predicted"]
    assert answer["groups"] == searched["groups"]
    codes = [real.client.get(s["links"]["code.c"]).text for s in (answer, searched)]
    assert codes[0].split("#include", 1)[1] == codes[1].split("#include", 1)[1]
    assert real.client.post("/v1/schedules", json=I7 | {"pipeline_id": name, "schedule": own}).status_code == 200


def test_a_schedule_that_is_wrong_says_why(real):
    own = real.client.get(made(real, pipeline_id="blur")["links"]["schedule.json"]).json()
    broken = own | {"groups": [own["groups"][0] | {"tiles": [{"dim": "x", "size": 0}]}]}
    assert refused(real, pipeline_id="blur", schedule=broken)["errors"][0]["pointer"].startswith("/schedule/groups/0")
    illegal = own | {"groups": [own["groups"][0] | {"output": "blur_z"}]}
    assert refused(real, pipeline_id="blur", schedule=illegal)["code"] == "illegal_schedule"
    both = refused(real, pipeline_id="blur", schedule=own, strategy_id="cbuf")
    assert [e["pointer"] for e in both["errors"]] == ["/strategy_id"]
    decided = refused(real, pipeline_id="blur", schedule=own, options={"strict": True})
    assert [e["pointer"] for e in decided["errors"]] == ["/options/strict"]


def test_a_changed_machine_does_not_keep_the_name_of_the_catalogs(real):
    machine = real.client.get("/v1/platforms/i7-6700").json()["document"]
    same = real.client.post("/v1/schedules", json={"pipeline_id": "blur", "platform": machine}).json()
    assert same["id"] == made(real, pipeline_id="blur")["id"]
    changed = {"pipeline_id": "blur", "platform": machine | {"threads": 1}}
    answer = real.client.post("/v1/schedules", json=changed).json()
    assert answer["platform"].startswith("i7-6700-")
    assert real.client.get(answer["links"]["platform.json"]).json()["name"] == answer["platform"]
    assert real.client.post("/v1/schedules", json=changed).status_code == 200


def test_what_a_document_says_of_itself_is_no_part_of_its_id(real):
    told = made(real, pipeline=BLUR | {"doc": "smooths"})
    assert told["id"] == made(real, pipeline=BLUR)["id"]
    ids = [
        real.client.post("/v1/pipelines", json=BLUR | {"doc": doc, "name": "own"}).json()["id"]
        for doc in ("", "a", "b")
    ]
    assert len(set(ids)) == 1


def test_a_batch_answers_each_request_as_it_would_alone(real):
    sizes = [{"blur_y": [[0, n], [0, n]]} for n in (64, 640, 1280)]
    requests = [
        *({"pipeline_id": "blur", "estimates": size} for size in sizes),
        {"pipeline_id": "blur", "platform_name": "nvidia-a100"},
        {"pipeline": BLUR | {"outputs": ["blur_z"]}},
        {"pipeline_id": "nothing"},
        {"pipeline_id": "blur", "colour": "red"},
        {},
    ]
    answer = real.client.post("/v1/schedules/batch", json={"requests": requests})
    assert answer.status_code == 200
    items = answer.json()["items"]
    assert [i["status"] for i in items] == [201, 201, 201, 201, 422, 404, 422, 422]
    costs = [i["schedule"]["predicted"]["total"] for i in items[:3]]
    assert costs == sorted(costs)
    codes = [i["problem"]["code"] for i in items[4:]]
    assert codes == ["bad_document", "pipeline_not_found", "bad_request", "bad_request"]
    pointers = [i["problem"]["errors"][0]["pointer"] for i in items if i.get("problem", {}).get("errors")]
    assert pointers == ["/requests/4/pipeline/outputs/0", "/requests/6/colour", "/requests/7/pipeline"]
    for item, asked in zip(items, requests, strict=True):
        alone = real.client.post("/v1/schedules", json=asked)
        assert alone.status_code == (200 if item["status"] == 201 else item["status"])
        if item["status"] == 201:
            assert alone.json() == item["schedule"]


def test_a_batch_has_a_limit(start, pipeline):
    service = start(batch_limit=2)
    body = {"requests": [{"pipeline": pipeline()}] * 3}
    answer = service.client.post("/v1/schedules/batch", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/requests")
    two = service.client.post("/v1/schedules/batch", json={"requests": body["requests"][:2]})
    assert {i["status"] for i in two.json()["items"]} <= {200, 201}
    assert len(service.scheduling.answered) == 1
    assert service.client.post("/v1/schedules/batch", json={"requests": []}).status_code == 422


def test_a_batch_starts_the_jobs_that_its_requests_ask_for(service, pipeline):
    body = {"requests": [{"pipeline": pipeline(), "options": {"build": True}}]}
    (item,) = service.client.post("/v1/schedules/batch", json=body).json()["items"]
    assert [job["kind"] for job in item["schedule"]["jobs"]] == ["build"]


def test_candidates_are_in_the_order_of_prediction_and_ranked_as_by_the_command(real):
    links = made(real, pipeline_id="harris")["links"]
    items = real.client.get(links["candidates"]).json()["items"]
    costs = [item["predicted"] for item in items]
    assert costs == sorted(costs)
    said = CliRunner().invoke(app, ["schedule", "harris", "--platform", "i7-6700", "--top", "4", "--json"])
    told = json.loads(said.stdout)["candidates"]
    assert [(c["rank"], c["predicted"], c["differs"]) for c in told] == [
        (c["rank"], c["predicted"], c["differs"]) for c in items[:4]
    ]
