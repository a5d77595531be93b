"""What services that were killed, or were slow, leave of jobs: nothing is lost, counted twice, or kept for nobody."""

from __future__ import annotations

import io
import threading
import uuid
from contextlib import closing

import numpy as np
import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import OperationalError

from tilesmith.app.service.db import Database, downgrade, now_us, upgrade
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.measurements import repository as measurement_rows
from tilesmith.app.service.schedules import repository as schedule_rows
from tilesmith.app.service.tables import jobs


def asked_to_run(service):
    """A job with an uploaded image."""
    content = io.BytesIO()
    np.save(content, np.zeros((8, 8), np.uint16))
    schedule = service.schedule()
    answer = service.client.post(f"/v1/schedules/{schedule}/runs", files={"input": content.getvalue()})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def become(service, job_id, state):
    """The job has come to that state, and whoever saw to it was killed before it removed files."""
    with service.context.db.write() as connection:
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(state=state, finished_us=now_us()))


def names(files, job_id):
    return sorted(path.name for path in files.folder(job_id).glob("*"))


def test_files_that_nobody_needs_are_swept(start):
    service = start()
    files = service.context.jobs.files
    waits, failed, done = (asked_to_run(service) for _ in range(3))
    for job_id in (failed, done):
        files.output(job_id, 0, 0).write_bytes(b"x")
    become(service, failed, "failed")
    become(service, done, "succeeded")
    nobody, filled = str(uuid.uuid4()), str(uuid.uuid4())
    files.make(nobody)
    files.upload(nobody, 0).write_bytes(b"x")
    with files.filling(filled):
        service.context.jobs.sweep()
        assert names(files, waits) == ["input-0"]
        assert names(files, failed) == []
        assert names(files, done) == ["output-0-0.npy"]
        assert not files.folder(nobody).exists()
        assert files.folder(filled).exists()


def test_uploads_of_a_job_that_may_have_been_queued_are_kept(start):
    files, asked = start().context.jobs.files, str(uuid.uuid4())
    for error, kept in ((OperationalError("COMMIT", None, Exception("the server is gone")), True), (KeyError(), False)):
        with pytest.raises(type(error)), files.filling(asked):
            raise error
        assert files.folder(asked).exists() is kept


def test_with_an_object_store_uploads_stay_nowhere_else(start, tmp_path):
    pytest.importorskip("fsspec")
    service = start(artifacts=str(tmp_path / "objects"))
    job_id = asked_to_run(service)
    assert not service.context.jobs.files.folder(job_id).exists()
    assert len([p for p in (tmp_path / "objects").rglob("*") if p.is_file()]) == 1


def test_a_lost_job_that_was_to_be_cancelled_leaves_no_uploads(start):
    service = start()
    job_id = asked_to_run(service)
    with service.context.db.write() as connection:
        values = {"state": "running", "worker": "dead", "lease_us": now_us() - 1, "cancel_requested": True}
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(**values))
    service.context.runner.maintain(now_us())
    assert service.client.get(f"/v1/jobs/{job_id}").json()["state"] == "cancelled"
    assert names(service.context.jobs.files, job_id) == []


def test_a_job_that_is_done_again_is_measured_once(start):
    service = start()
    schedule, db = service.schedule(), service.context.db
    for times in ([3.0, 4.0], [1.0, 2.0]):
        result = {"times_ms": times, "threads": 1, "measurement": {"machine": {"description": "a machine"}}}
        measurement_rows.add_run(db, schedule, "job", result, True, now_us())
    (kept,) = measurement_rows.of_schedule(db, schedule)
    assert kept.minimum_ms == 1.0


def test_a_thread_of_jobs_outlives_a_fault(start, monkeypatch):
    service = start(lambda task, claim, watch: {"done": True}, job_workers=1)
    runner, faults = service.context.runner, []
    room = runner._pool.room

    def fails_once(running):
        if not faults:
            faults.append(running)
            raise KeyError("workers")
        return room(running)

    monkeypatch.setattr(runner._pool, "room", fails_once)
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds").json()["id"]
    assert service.ended(job_id)["state"] == "succeeded"
    assert runner.alive
    assert len(faults) == 1


def test_a_job_for_a_schedule_that_is_being_deleted_is_refused(start, monkeypatch):
    service = start()
    known = repository.has_schedule
    answers = [True]
    monkeypatch.setattr(repository, "has_schedule", lambda *given: answers.pop() if answers else known(*given))
    answer = service.client.post("/v1/schedules/none/builds")
    assert (answer.status_code, answer.json()["code"]) == (404, "schedule_not_found")


def test_a_schedule_that_gets_a_job_while_it_is_deleted_is_kept_with_it(start, postgres):
    service = start(database_url=postgres)
    schedule = service.schedule()
    row = {"id": "job", "kind": "build", "schedule_id": schedule, "state": "queued", "request": b"{}"}
    refused = []

    def delete():
        try:
            schedule_rows.remove(service.context.db, schedule)
        except ApiError as error:
            refused.append(error.code)

    deleting = threading.Thread(target=delete)
    with closing(Database(postgres)) as db:
        upgrade(db)
        with db.write() as connection:
            connection.execute(insert(jobs).values(**row, attempts=0, cancel_requested=False, created_us=1))
            deleting.start()
            waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            while connection.execute(waits).scalar_one() == 0:
                assert deleting.is_alive()
        deleting.join(20)
        assert refused == ["schedule_in_use"]
        assert repository.find(db, "job") is not None
        downgrade(db, "base")


def test_a_stream_goes_on_when_the_store_answers_again(start, monkeypatch):
    service = start()
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds").json()["id"]
    service.client.delete(f"/v1/jobs/{job_id}")
    failures = [OperationalError("SELECT", None, Exception("the server is in recovery"))]
    events = repository.events

    def fails_once(*given):
        if failures:
            raise failures.pop()
        return events(*given)

    monkeypatch.setattr(repository, "events", fails_once)
    told = service.client.get(f"/v1/jobs/{job_id}/events").text
    assert [told.count(f'"state":"{state}"') for state in ("queued", "cancelled")] == [1, 1]
    assert failures == []


def test_a_job_that_was_taken_again_is_still_watched(start):
    def taken_again(task, claim, watch):
        service.context.runner._watches[claim.id] = again
        return {"done": True}

    again = object()
    service = start(taken_again, job_workers=1)
    job_id = service.client.post(f"/v1/schedules/{service.schedule()}/builds").json()["id"]
    assert service.ended(job_id)["state"] == "succeeded"
    service.context.runner.drain(20)  # the thread is through with it
    assert service.context.runner._watches == {job_id: again}
