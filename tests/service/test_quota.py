"""Quotas: what can be made again leaves where there is too much of it, the least recently used first."""

from __future__ import annotations

import os
import time

import pytest
from sqlalchemy import select, update

from tilesmith.app.runtime import build
from tilesmith.app.service.schedules import repository
from tilesmith.app.service.tables import jobs, made_forms

DAY_S = 86_400


def quota(service):
    return service.context.retention._quota


def forms(service):
    with service.context.db.read() as connection:
        return set(connection.execute(select(made_forms.c.name)).scalars())


def make(service, schedule_id, *names):
    for name in names:
        assert service.client.get(f"/v1/schedules/{schedule_id}/{name}").status_code == 200


def test_forms_that_were_made_leave_and_are_made_again(start):
    service = start(made_forms_bytes=1)
    schedule_id = service.schedule()
    make(service, schedule_id, "schedule.h", "schedule.py", "code.c")
    assert forms(service) == {"schedule.h", "schedule.py", "source.json"}
    quota(service).sweep()
    assert forms(service) == set()
    make(service, schedule_id, "schedule.h", "schedule.json", "explain")
    assert service.scheduling.derived == ["schedule.h", "schedule.py", "schedule.h"]
    assert service.context.metrics.removed.labels("form")._value.get() == 3


def test_of_forms_the_least_recently_used_leave(service):
    db, schedule_id = service.context.db, service.schedule()
    make(service, schedule_id, "schedule.h", "schedule.py", "tiles.json")
    with db.write() as connection:
        connection.execute(update(made_forms).values(used_us=0))
    make(service, schedule_id, "schedule.h", "tiles.json")  # used now
    assert repository.remove_made(db, 1, 10)[0] == 1
    assert forms(service) == {"schedule.h", "tiles.json"}
    assert repository.made_bytes(db) == sum(
        len(repository.pack_one(repository.find_form(db, schedule_id, name).content)) for name in forms(service)
    )
    assert repository.remove_made(db, 10**9, 1)[0] == 1


def job_with_files(service, schedule_id, age_s, size=1000):
    """A job with a file of `size` bytes that was last used so long ago."""
    answer = service.client.post(
        f"/v1/schedules/{schedule_id}/runs", json={"estimates": True, "repeat": age_s % 999 + 1}
    )
    job_id = answer.json()["id"]
    return job_id, folder_of(service, job_id, age_s, size)


def folder_of(service, job_id, age_s, size=1000):
    folder = service.context.jobs.files.make(job_id)
    (folder / "output-0-0.npy").write_bytes(size * b"\0")
    os.utime(folder, (time.time() - age_s, time.time() - age_s))
    return folder


def finish(service, *job_ids):
    with service.context.db.write() as connection:
        connection.execute(update(jobs).where(jobs.c.id.in_(job_ids)).values(state="succeeded", finished_us=1))


def test_files_of_jobs_leave_but_for_those_in_use(start):
    service = start(job_files_bytes=2500, disk_free_bytes=0)
    schedule_id = service.schedule()
    waiting, oldest, old, new = (job_with_files(service, schedule_id, n * DAY_S + n) for n in (4, 3, 2, 1))
    _, just_now = job_with_files(service, schedule_id, 0)
    finish(service, oldest[0], old[0], new[0])
    quota(service).sweep()
    there = [folder.exists() for folder in (waiting[1], oldest[1], old[1], new[1], just_now)]
    assert there == [True, False, False, False, True]
    assert service.client.get(f"/v1/jobs/{old[0]}").json()["state"] == "succeeded"
    found = service.client.get(f"/v1/jobs/{old[0]}/outputs/blur_y.npy")
    assert (found.status_code, found.json()["code"]) == (404, "artefact_not_found")


def test_a_result_that_is_read_is_used(start):
    service = start(job_files_bytes=1000, disk_free_bytes=0)
    schedule_id = service.schedule()
    read, unread = (job_with_files(service, schedule_id, n * DAY_S) for n in (2, 1))
    finish(service, read[0], unread[0])
    files = service.context.jobs.files
    assert service.context.jobs.file(read[0], files.output(read[0], 0, 0)) is not None
    quota(service).sweep()
    assert (read[1].exists(), unread[1].exists()) == (True, False)


@pytest.mark.parametrize("job_bytes", [1000, 0])
def test_room_is_made_before_the_disk_is_full(start, monkeypatch, job_bytes):
    """Results first, then libraries, as many as are needed."""
    service = start(disk_free_bytes=1000)
    job_id, folder = job_with_files(service, service.schedule(), DAY_S, job_bytes)
    finish(service, job_id)
    libraries = []
    for age in (3, 2, 1):
        library = service.context.jobs.files.cache / "libraries" / str(age)
        library.mkdir(parents=True)
        for name in ("code.so", build.RECORD_NAME):
            (library / name).write_bytes(350 * b"\0")
            os.utime(library / name, (time.time() - age * DAY_S,) * 2)
        libraries.append(library)
    monkeypatch.setattr(quota(service), "_free_bytes", lambda: 500)  # 1500 are to be freed
    quota(service).sweep()
    assert not folder.exists()
    assert [library.exists() for library in libraries] == ([False, True, True] if job_bytes else [False, False, False])
