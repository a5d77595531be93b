"""Every pair of states: allowed ways are taken once, others never."""

from __future__ import annotations

import itertools
import shutil

import pytest

from tilesmith.app.service.db import Database
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.expected import delay_us, expected_s
from tilesmith.app.service.jobs.schemas import BuildRequest, CompareRequest, RunRequest, TuneRequest
from tilesmith.app.service.jobs.states import FINISHED, STATES, TRANSITIONS, WrongTransition, check
from tilesmith.app.service.tables import jobs, schedules

ALLOWED = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "expired"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("running", "queued"),
}
JOB = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def db(tmp_path, migrated):
    shutil.copy(migrated, tmp_path / "t.db")
    database = Database(f"sqlite:///{tmp_path}/t.db")
    row = {c.name: "x" for c in schedules.columns} | {"id": "s", "strict": False, "degraded": None, "groups": 1}
    with database.write() as connection:
        connection.execute(
            schedules.insert().values(**row | {"created_us": 1, "predicted_ms": 1.0, "measured_ms": None})
        )
    yield database
    database.close()


def put(db, state):
    row = {"id": JOB, "kind": "run", "schedule_id": "s", "request": b"{}", "state": state, "created_us": 5}
    with db.write() as connection:
        connection.execute(jobs.insert().values(**row, attempts=1, cancel_requested=False, worker="me"))


def test_states_that_end_are_those_without_a_way_out():
    assert {"succeeded", "failed", "cancelled", "expired"} == FINISHED
    assert set(TRANSITIONS) == set(STATES)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_every_pair_of_states(db, before, after):
    put(db, before)
    if (before, after) not in ALLOWED:
        with pytest.raises(WrongTransition):
            check(before, after)
        with pytest.raises(WrongTransition):
            repository.move(db, JOB, before, after, 7)
        assert repository.find(db, JOB).state == before
        assert repository.events(db, JOB, 0) == []
        return
    assert repository.move(db, JOB, before, after, 7)
    row = repository.find(db, JOB)
    assert row.state == after
    assert (row.finished_us == 7) is (after in FINISHED)
    assert row.worker is None
    assert [(e.number, e.type) for e in repository.events(db, JOB, 0)] == [(1, "state")]
    assert not repository.move(db, JOB, before, after, 8), "a second time it is not in that state any more"
    assert len(repository.events(db, JOB, 0)) == 1


def test_only_the_own_worker_moves_a_job(db):
    put(db, "running")
    assert not repository.move(db, JOB, "running", "succeeded", 7, worker="another")
    assert repository.move(db, JOB, "running", "succeeded", 7, worker="me")


def test_a_job_is_claimed_once_and_the_oldest_first(db):
    for number, created in ((1, 30), (2, 10), (3, 20)):
        row = {"id": f"j{number}", "kind": "run", "schedule_id": "s", "request": b"{}"}
        assert repository.add(db, row, limit=10, owner_limit=10, now_us=created) == repository.Added()
    claimed = [repository.claim(db, "me", 99, 50) for _ in range(4)]
    assert [c.id if c else None for c in claimed] == ["j2", "j3", "j1", None]
    assert repository.find(db, "j2").attempts == 1


def test_the_queue_has_a_limit(db):
    rows = [{"id": f"j{n}", "kind": "run", "schedule_id": "s", "request": b"{}"} for n in range(3)]
    assert [repository.add(db, row, 2, 9, n).full for n, row in enumerate(rows)] == [False, False, True]


def test_a_lease_is_prolonged_by_its_worker_only(db):
    put(db, "running")
    assert repository.renew(db, JOB, "me", 100) is False
    assert repository.renew(db, JOB, "another", 100) is None
    assert repository.find(db, JOB).lease_us == 100
    assert repository.request_cancel(db, JOB)
    assert repository.renew(db, JOB, "me", 200) is True


def test_owners_take_turns_and_have_limits(db):
    def row(owner, number):
        job_id = f"00000000-0000-0000-0000-0000000000{owner}{number}"
        return {"id": job_id, "kind": "run", "schedule_id": "s", "request": b"{}", "owner": owner}

    for number in range(4):
        assert repository.add(db, row("a", number), 10, 4, 1 + number) == repository.Added()
    assert repository.add(db, row("a", 4), 10, 4, 5) == repository.Added(owner_full=True)
    for number in range(2):
        assert repository.add(db, row("b", number), 10, 4, 10 + number) == repository.Added()
    claimed = [repository.claim(db, "me", 99, 20 + n).id[-2:] for n in range(6)]
    assert claimed == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_a_short_job_is_not_stuck_behind_a_long_one_and_a_long_one_not_for_ever(db):
    """Of one owner: a long job that was asked for first waits for short ones, up to its delay."""

    def put_at(job_id, now, delay):
        row = {"id": job_id, "kind": "run", "schedule_id": "s", "request": b"{}"}
        assert repository.add(db, row, 10, 10, now, delay) == repository.Added()

    put_at("long", 10, 100)
    put_at("short", 50, 5)
    put_at("late", 108, 5)
    claimed = [repository.claim(db, "me", 999, 200 + n).id for n in range(3)]
    assert claimed == ["short", "long", "late"]


def test_jobs_are_expected_to_take_as_long_as_what_they_do():
    run, tune = RunRequest(estimates=True, repeat=9), TuneRequest(schedule_id="t", candidates=16)
    times = [expected_s(request, ms) for request, ms in ((BuildRequest(), 5.0), (run, 5.0), (run, 5000.0))]
    assert times == [2.0, 2.05, 52.0]
    assert expected_s(run, None) == 3.0
    assert expected_s(tune, 5.0) == 48.0
    assert expected_s(run, 5.0) < expected_s(CompareRequest(baseline="b"), 5.0) < expected_s(tune, 5.0)
    assert delay_us(BuildRequest(), 5.0) == 40_000_000
