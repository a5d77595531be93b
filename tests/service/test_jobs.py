"""Jobs over HTTP: submitted, followed, cancelled, put back by a service that stops, taken up by the next one."""

from __future__ import annotations

import io
import json
import sqlite3
import threading
import time

import httpx
import numpy as np
import pytest

from tilesmith.app.service.db import now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import housekeeping, repository
from tilesmith.app.service.tables import jobs


class Job:
    """A job's work under the test's control."""

    def __init__(self, result=None, error=None):
        self.started, self.proceed = threading.Event(), threading.Event()
        self.result, self.error = result or {"done": True}, error
        self.tasks = []

    def __call__(self, task, claim, watch):
        self.tasks.append(task)
        self.started.set()
        watch.run("working", self.wait)
        if self.error is not None:
            raise self.error
        return self.result

    def wait(self):
        from tilesmith.app.runtime.sandbox import cancel_event

        cancelled = cancel_event.get()
        while not self.proceed.wait(0.01):
            if cancelled is not None and cancelled.is_set():
                return


def submit(service, kind="builds", **body):
    answer = service.client.post(f"/v1/schedules/{service.schedule()}/{kind}", json=body)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    return answer.json()["id"]


def events(service, job_id, **headers):
    """The events of a job as (id, type, data), read until the stream ends."""
    found = []
    with service.client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields = {}
        for line in answer.iter_lines():
            if line.startswith(":"):
                continue
            if not line:
                if fields:
                    found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
                fields = {}
                continue
            name, _, value = line.partition(": ")
            fields[name] = value
    return found


def test_a_job_goes_its_way(start):
    job = Job({"answer": 42})
    service = start(job, job_workers=1)
    job_id = submit(service)
    assert job.started.wait(20)
    assert service.client.get(f"/v1/jobs/{job_id}").json()["state"] == "running"
    job.proceed.set()
    found = service.ended(job_id)
    assert found["state"] == "succeeded"
    assert found["result"] == {"answer": 42}
    assert found["error"] is None
    assert found["attempts"] == 1
    assert found["finished_at"] >= found["started_at"] >= found["created_at"]


def test_a_failed_job_has_a_problem_document(start):
    job = Job(error=ApiError("run_failure", "it crashed"))
    job.proceed.set()
    service = start(job, job_workers=1)
    found = service.ended(submit(service, "runs", estimates=True))
    assert found["state"] == "failed"
    assert found["result"] is None
    assert found["error"]["code"] == "run_failure"
    assert found["error"]["status"] == 422
    assert found["error"]["instance"] == f"/v1/jobs/{found['id']}"


def test_a_fault_costs_one_job(start):
    job = Job(error=ZeroDivisionError("secret"))
    job.proceed.set()
    service = start(job, job_workers=1)
    first = service.ended(submit(service))
    assert first["error"]["code"] == "internal"
    assert "secret" not in json.dumps(first)
    job.error = None
    assert service.ended(submit(service))["state"] == "succeeded"


def test_events_are_streamed_from_the_first_and_after_the_last_one_seen(start):
    job = Job()
    job.proceed.set()
    service = start(job, job_workers=1)
    job_id = submit(service)
    service.ended(job_id)
    found = events(service, job_id)
    assert [number for number, _, _ in found] == [1, 2, 3, 4]
    assert [(kind, data["state"]) for _, kind, data in found] == [
        ("state", "queued"),
        ("state", "running"),
        ("progress", "running"),
        ("state", "succeeded"),
    ]
    assert found[2][2]["phase"] == "working"
    assert events(service, job_id, **{"Last-Event-ID": "3"}) == found[3:]
    assert events(service, job_id, **{"Last-Event-ID": "4"}) == []
    assert events(service, job_id, **{"Last-Event-ID": "nonsense"}) == found


def test_events_come_while_the_job_runs(start):
    job = Job()
    service = start(job, job_workers=1, event_heartbeat_s=0.05)
    job_id = submit(service)
    seen = []
    with service.client.stream("GET", f"/v1/jobs/{job_id}/events") as answer:
        for line in answer.iter_lines():
            seen.append(line)
            if line.startswith(": ping"):
                job.proceed.set()
    assert any(line.startswith(": ping") for line in seen)
    assert any('"succeeded"' in line for line in seen)


def test_a_queued_job_is_cancelled_at_once(service):
    job_id = submit(service)
    answer = service.client.delete(f"/v1/jobs/{job_id}")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    assert service.client.delete(f"/v1/jobs/{job_id}").status_code == 200


def test_a_job_is_cancelled_by_its_own_token_or_an_admin(service):
    tokens = {name: service.context.tokens.create(name, (scope,)).token
              for name, scope in (("own", "submit"), ("other", "submit"), ("admin", "admin"))}  # fmt: skip
    headers = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
    asked = {"pipeline_id": "blur", "platform_name": "i7-6700"}
    schedule = service.client.post("/v1/schedules", json=asked, headers=headers["own"]).json()["id"]
    for by in ("own", "admin"):
        job = service.client.post(f"/v1/schedules/{schedule}/builds", headers=headers["own"]).json()["id"]
        refused = service.client.delete(f"/v1/jobs/{job}", headers=headers["other"])
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        basic = ("", tokens["other"])
        assert service.client.post(f"/jobs/{job}/cancel", auth=basic, follow_redirects=False).status_code == 403
        assert service.client.get(f"/v1/jobs/{job}", headers=headers["other"]).json()["state"] == "queued"
        assert service.client.delete(f"/v1/jobs/{job}", headers=headers[by]).json()["state"] == "cancelled"


def test_a_running_job_is_cancelled_soon(start):
    job = Job()
    service = start(job, job_workers=1)
    job_id = submit(service)
    assert job.started.wait(20)
    answer = service.client.delete(f"/v1/jobs/{job_id}")
    assert answer.status_code in (200, 202)
    assert service.ended(job_id)["state"] == "cancelled"
    job.proceed.set()
    assert service.ended(submit(service))["state"] == "succeeded", "the worker takes the next one"


def test_a_job_of_another_service_is_cancelled_through_the_store(start):
    job = Job()
    owner, other = start(job, job_workers=1, job_lease_s=0.2), start()
    job_id = submit(owner)
    assert job.started.wait(20)
    assert other.client.delete(f"/v1/jobs/{job_id}").status_code in (200, 202)
    assert other.ended(job_id)["state"] == "cancelled"


def test_a_finished_job_cannot_be_cancelled(start):
    job = Job()
    job.proceed.set()
    service = start(job, job_workers=1)
    job_id = submit(service)
    service.ended(job_id)
    answer = service.client.delete(f"/v1/jobs/{job_id}")
    assert (answer.status_code, answer.json()["code"]) == (409, "job_finished")


def test_a_service_that_stops_puts_its_job_back_and_the_next_one_does_it(start):
    job = Job()
    first = start(job, job_workers=1)
    job_id = submit(first)
    assert job.started.wait(20)
    first.context.runner.stop()
    row = repository.find(first.context.db, job_id)
    assert (row.state, row.attempts, row.worker) == ("queued", 0, None)
    job.proceed.set()
    second = start(job, job_workers=1)
    found = second.ended(job_id)
    assert (found["state"], found["attempts"]) == ("succeeded", 1)


def lost(service, job_id, attempts, cancel=False):
    """A running job whose service has died."""
    with service.context.db.write() as connection:
        values = {"state": "running", "worker": "dead", "lease_us": now_us() - 1, "attempts": attempts}
        query = jobs.update().where(jobs.c.id == job_id)
        connection.execute(query.values(**values, cancel_requested=cancel, started_us=now_us()))


def test_a_job_of_a_service_that_died_is_done_by_the_next_one(start):
    first = start()
    job_id = submit(first)
    lost(first, job_id, attempts=1)
    job = Job()
    job.proceed.set()
    second = start(job, job_workers=1)
    found = second.ended(job_id)
    assert (found["state"], found["attempts"]) == ("succeeded", 2)


def test_a_job_that_kills_every_service_is_given_up(service):
    job_id = submit(service)
    lost(service, job_id, attempts=3)
    service.context.runner.maintain(now_us())
    found = service.client.get(f"/v1/jobs/{job_id}").json()
    assert (found["state"], found["error"]["code"]) == ("failed", "worker_lost")


def test_a_lost_job_that_was_to_be_cancelled_is(service):
    job_id = submit(service)
    lost(service, job_id, attempts=1, cancel=True)
    service.context.runner.maintain(now_us())
    assert service.client.get(f"/v1/jobs/{job_id}").json()["state"] == "cancelled"


def test_a_job_with_a_lease_is_left_alone(service):
    job_id = submit(service)
    lost(service, job_id, attempts=1)
    service.context.runner.maintain(now_us() - 10**6)
    assert service.client.get(f"/v1/jobs/{job_id}").json()["state"] == "running"


def test_a_job_of_its_own_is_late_and_not_lost(start):
    job = Job()
    service = start(job, job_workers=1)
    job_id = submit(service)
    assert job.started.wait(20)
    service.context.runner.maintain(now_us() + 3600 * 10**6)
    job.proceed.set()
    found = service.ended(job_id)
    assert (found["state"], found["attempts"]) == ("succeeded", 1)


def test_a_job_that_nobody_starts_expires(start):
    service = start(job_queue_ttl_s=60)
    job_id = submit(service)
    service.context.runner.maintain(now_us() + 59 * 10**6)
    assert service.client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"
    service.context.runner.maintain(now_us() + 61 * 10**6)
    assert service.client.get(f"/v1/jobs/{job_id}").json()["state"] == "expired"


def test_a_finished_job_is_forgotten_with_its_files(start):
    service = start(job_retention_s=60)
    job_id = submit(service)
    folder = service.context.jobs.files.make(job_id)
    service.client.delete(f"/v1/jobs/{job_id}")
    service.context.runner.maintain(now_us() + 59 * 10**6)
    assert folder.exists()
    service.context.runner.maintain(now_us() + 61 * 10**6)
    assert not folder.exists()
    assert service.client.get(f"/v1/jobs/{job_id}").json()["code"] == "job_not_found"


def test_jobs_are_listed_and_filtered(service):
    built = [submit(service) for _ in range(3)]
    ran = submit(service, "runs", estimates=True)
    service.client.delete(f"/v1/jobs/{built[0]}")

    def listed(**params):
        return [i["id"] for i in service.client.get("/v1/jobs", params=params).json()["items"]]

    assert listed() == [ran, *built[::-1]]
    assert listed(kind="run") == [ran]
    assert listed(state="cancelled") == [built[0]]
    assert listed(schedule=service.schedule()) == listed()
    assert listed(schedule="none") == []
    first = service.client.get("/v1/jobs", params={"limit": 3}).json()
    assert listed(limit=3, cursor=first["next_cursor"]) == [built[0]]


def npy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def upload(service, files, request=None, name="blur"):
    url = f"/v1/schedules/{service.schedule(name)}/runs"
    data = {"request": json.dumps(request)} if request is not None else {}
    return service.client.post(url, data=data, files=files)


def test_uploaded_images_wait_in_the_jobs_folder_and_go_with_it(start):
    job = Job()
    service = start(job, job_workers=1)
    content = npy(np.ones((4, 4), np.uint16))
    answer = upload(service, {"input": ("../../x.npy", content)}, {"repeat": 2})
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["id"]
    assert answer.json()["request"] == {"repeat": 2}
    assert job.started.wait(20)
    path = service.context.jobs.files.upload(job_id, 0)
    assert path.read_bytes() == content
    assert path.is_relative_to(service.context.settings.data_dir)
    job.proceed.set()
    service.ended(job_id)
    service.context.runner.stop()
    assert not path.exists()


@pytest.mark.parametrize(
    ("files", "request_", "code", "says"),
    [
        ({"image": b"x"}, {}, "bad_request", "'image'"),
        ({"input": b"x"}, {"estimates": True}, "bad_request", "either estimates or images"),
        ({"input": b"x"}, {"repeat": 10**6}, "bad_request", "repeat"),
        ({"input": b"x"}, {"threads": 10**6}, "bad_request", "threads"),
        ({"input": b"x"}, {"repeats": 1}, "bad_request", ""),
        ({"input": b"x"}, {"params": {"k": 1}}, "bad_request", "param 'k'"),
        ({"input": b"x"}, {"regions": {"out": [[0, 1]]}}, "bad_request", "output 'out'"),
        ({"input": b"x"}, {"regions": {"blur_y": [[0, 0]]}}, "bad_request", ""),
        ({"input": b"x"}, {"mins": {"nope": [0]}}, "bad_request", "input 'nope'"),
    ],
)
def test_a_run_that_does_not_fit_is_refused_and_leaves_nothing(service, files, request_, code, says):
    answer = upload(service, files, request_)
    assert answer.json()["code"] == code, answer.text
    assert says in answer.text
    assert list(service.context.jobs.files.root.glob("*")) == []
    assert service.client.get("/v1/jobs").json()["items"] == []


def test_a_run_without_images_says_which_are_missing(service):
    answer = service.client.post(f"/v1/schedules/{service.schedule()}/runs", json={})
    assert answer.json()["code"] == "bad_request"
    assert "'input'" in answer.json()["detail"]


def test_a_form_that_is_none_is_refused(service):
    url = f"/v1/schedules/{service.schedule()}/runs"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = service.client.post(url, content=b"--x\r\nnonsense", headers=headers)
    assert (answer.status_code, answer.json()["code"]) in ((400, "bad_form"), (422, "bad_request"))
    answer = service.client.post(url, content=b"x", headers={"Content-Type": "multipart/form-data"})
    assert answer.json()["code"] == "bad_form"
    twice = [("input", b"a"), ("input", b"b")]
    assert service.client.post(url, files=twice).json()["code"] == "bad_form"


def finished_run(start, arrays, dims=("x", "y")):
    """A service and a job that has left these arrays."""
    outputs = [
        {"name": "blur_y", "component": n, "type": str(a.dtype), "dims": list(dims), "region": [], "links": {}}
        for n, a in enumerate(arrays)
    ]
    job = Job({"outputs": outputs})
    job.proceed.set()
    service = start(job, job_workers=1)
    job_id = submit(service, "runs", estimates=True)
    service.ended(job_id)
    service.context.jobs.files.make(job_id)
    for n, array in enumerate(arrays):
        np.save(service.context.jobs.files.output(job_id, 0, n), array)
    return service, f"/v1/jobs/{job_id}/outputs/blur_y"


def test_results_are_fetched_as_arrays_and_pictures(start):
    arrays = [np.arange(12, dtype=np.uint8).reshape(3, 4), np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)]
    service, base = finished_run(start, arrays)
    for url, array in ((f"{base}.npy", arrays[0]), (f"{base}/1.npy", arrays[1])):
        answer = service.client.get(url)
        assert answer.status_code == 200
        np.testing.assert_array_equal(np.load(io.BytesIO(answer.content)), array)
    for url in (f"{base}.png", f"{base}/1.png", f"{base}/1.png?stretch=true"):
        answer = service.client.get(url)
        assert answer.headers["content-type"] == "image/png"
        assert answer.content.startswith(b"\x89PNG")
    for url in (f"{base}/2.npy", f"{base.replace('blur_y', 'blur_x')}.npy"):
        assert service.client.get(url).json()["code"] == "artefact_not_found"


def test_a_result_that_is_no_picture_says_so(start):
    service, base = finished_run(start, [np.zeros((2, 3, 4, 5), np.float32)], dims=("x", "y", "z", "w"))
    answer = service.client.get(f"{base}.png")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_image")
    assert str(service.context.settings.data_dir) not in answer.text
    assert "/tmp" not in answer.text


def test_a_client_that_goes_away_does_not_lose_the_job(start):
    job = Job()
    service = start(job, job_workers=1)
    with httpx.Client(base_url=service.url) as client:
        job_id = client.post(f"/v1/schedules/{service.schedule()}/builds", json={}).json()["id"]
        with client.stream("GET", f"/v1/jobs/{job_id}/events"):
            pass
    job.proceed.set()
    assert service.ended(job_id)["state"] == "succeeded"


def test_a_key_starts_one_job_however_often_it_is_sent(start):
    service = start(admin_token="sesame-open-sesame")
    service.client.headers["Authorization"] = "Bearer sesame-open-sesame"
    runs, key = f"/v1/schedules/{service.schedule()}/runs", {"Idempotency-Key": "k"}
    first = service.client.post(runs, json={"estimates": True, "repeat": 2}, headers=key)
    again = service.client.post(runs, json={"estimates": True, "repeat": 2}, headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    other = service.client.post(runs, json={"estimates": True, "repeat": 3}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "key_used")
    assert service.client.post(runs, json={"estimates": True, "repeat": 2}).json()["id"] != first.json()["id"]
    made = service.client.post("/v1/tokens", json={"name": "ci", "scopes": ["submit"]}).json()["token"]
    theirs = service.client.post(
        runs, json={"estimates": True, "repeat": 3}, headers=key | {"Authorization": f"Bearer {made}"}
    )
    assert theirs.status_code == 202


def test_jobs_of_one_token_have_a_limit(start):
    service = start(admin_token="sesame-open-sesame", job_queue_per_token=1)
    service.client.headers["Authorization"] = "Bearer sesame-open-sesame"
    builds = f"/v1/schedules/{service.schedule()}/builds"
    assert service.client.post(builds, json={}).status_code == 202
    refused = service.client.post(builds, json={})
    assert (refused.status_code, refused.json()["code"]) == (429, "token_limit")
    assert refused.json()["setting"] == "TILESMITH_JOB_QUEUE_PER_TOKEN"
    assert "retry-after" in refused.headers


def test_finished_work_outlasts_a_store_that_is_locked(start, tmp_path):
    released = threading.Event()

    def job(task, claim, watch):
        other = sqlite3.connect(tmp_path / "tilesmith.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")

        def release():
            other.close()
            released.set()

        threading.Timer(0.3, release).start()
        return {"done": True}

    service = start(job, job_workers=1, database_busy_ms=1)
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds", json={}).json()["id"]
    assert released.wait(60)
    while (found := service.client.get(f"/v1/jobs/{job_id}").json())["state"] == "running":
        time.sleep(0.01)
    assert (found["state"], found["attempts"], found["result"]) == ("succeeded", 1, {"done": True})


def test_leases_are_not_trusted_after_the_clock_was_set(service, monkeypatch):
    keeping = service.context.runner._housekeeping
    assert keeping._leases_hold()
    real = housekeeping.now_us
    monkeypatch.setattr(housekeeping, "now_us", lambda: real() + 3_600_000_000)
    assert not keeping._leases_hold()
    assert not keeping._leases_hold()
    keeping._set_at -= service.context.settings.job_lease_s
    assert keeping._leases_hold()
