"""Retention: what is old goes, in batches; what has a use stays."""

from __future__ import annotations

import pytest
from sqlalchemy import func, insert, select, update

from tilesmith.app.service import retention
from tilesmith.app.service.db import downgrade, now_us
from tilesmith.app.service.schedules import notes, repository
from tilesmith.app.service.schedules.notes import Notes
from tilesmith.app.service.tables import measurements, packed_forms, results, schedule_tallies, schedules

DAY_US = 86_400_000_000
DAY_S = 86_400


@pytest.fixture(params=["sqlite", "postgres"])
def keeping(request, start):
    """keeping(setting=value): a service with such settings, on either database."""
    if request.param == "sqlite":
        yield start
        return
    started = []

    def begin(**changed):
        started.append(start(database_url=request.getfixturevalue("postgres"), **changed))
        return started[-1]

    yield begin
    for service in started:
        service.context.retention.stop()
        downgrade(service.context.db, "base")


def left(service):
    return {item["id"] for item in service.client.get("/v1/schedules").json()["items"]}


def sweep(service, days):
    service.context.retention.sweep(now_us() + int(days * DAY_US))


def test_old_schedules_go_but_for_those_that_have_a_use(keeping, monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    service = keeping(schedule_retention_s=10 * DAY_S, job_retention_s=DAY_S)
    db, made = service.context.db, [service.schedule(f"p{n}") for n in range(9)]
    noted, tagged, measured, recorded, at_work, baseline, *others = made
    notes.replace(db, noted, Notes(note="the one in the paper"))
    notes.replace(db, tagged, Notes(tags=["release"]))
    measurement = {"kind": "run", "estimated": True, "times_ms": b"[]", "measured_us": now_us() + 5 * DAY_US}
    result = {"pipeline": "p3", "platform": "host", "variant": "", "pipeline_id": "p", "predicted": 1.0, "unit": "ms"}
    with db.write() as connection:
        connection.execute(insert(measurements).values(id="m", schedule_id=measured, **measurement))
        commit = {"project": "a", "branch": "main", "commit": "c", "recorded_us": 1}
        connection.execute(insert(results).values(id="r", schedule_id=recorded, **commit, **result))
    service.client.post(f"/v1/schedules/{at_work}/runs", json={"estimates": True})
    service.client.post(f"/v1/schedules/{at_work}/comparisons", json={"baseline": baseline})
    sweep(service, 9)
    assert left(service) == set(made)
    sweep(service, 11)
    assert left(service) == {noted, tagged, measured, recorded, at_work, baseline}
    assert service.context.metrics.removed.labels("schedule")._value.get() == len(others)
    with db.read() as connection:
        counted = connection.execute(select(func.sum(schedule_tallies.c.made), func.count())).one()
        assert counted == (6, 6)
        of_kept = select(packed_forms.c.schedule_id)
        assert set(connection.execute(of_kept).scalars()) == left(service)
    sweep(service, 16)
    assert measured not in left(service)


def test_the_least_recently_used_schedules_make_room(start):
    service = start(schedule_retention_count=2)
    made = [service.schedule(f"p{n}") for n in range(4)]
    with service.context.db.write() as connection:
        for number, schedule_id in enumerate(made):
            change = {"used_us": 1_000_000 - number, "predicted_ms": number}
            connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(change))
    sweep(service, 0)
    assert left(service) == set(made[:2])
    sweep(service, 0)
    assert left(service) == set(made[:2])


def test_schedules_that_are_asked_for_or_looked_at_are_kept(keeping):
    service = keeping(schedule_retention_s=10 * DAY_S)
    asked, read, looked_at, _ = (service.schedule(f"p{n}") for n in range(4))
    sweep(service, 1)
    sweep(service, 9)
    assert service.schedule("p0") == asked
    assert service.client.get(f"/v1/schedules/{read}").status_code == 200
    assert service.client.get(f"/v1/schedules/{looked_at}/loopnest.txt").status_code == 200
    sweep(service, 9.5)
    sweep(service, 12)
    assert left(service) == {asked, read, looked_at}
    sweep(service, 20)
    assert left(service) == set()


def test_what_is_left_of_a_tally_is_counted(service):
    """Removing the first, the newest or the quickest leaves the figures of the others."""
    db, made = service.context.db, [service.schedule("p", options={"deadline_ms": n}) for n in range(1, 6)]
    with db.write() as connection:
        for number, schedule_id in enumerate(made):
            change = {"created_us": number, "predicted_ms": 1.0 + number, "measured_ms": None if number else 3.0}
            connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(change))
        connection.execute(update(schedule_tallies).values(first_us=0, latest_us=4, predicted_ms=1.0, measured_ms=3.0))
    removed, jobs = repository.remove_several(db, [made[0], made[4], "none"])
    assert (set(removed), jobs) == ({made[0], made[4]}, ())
    c = schedule_tallies.c
    with db.read() as connection:
        row = connection.execute(select(c.made, c.first_us, c.latest_us, c.predicted_ms, c.measured_ms)).one()
        assert row == (3, 1, 3, 2.0, None)
    repository.remove_several(db, made)
    with db.read() as connection:
        assert connection.execute(select(func.count()).select_from(schedule_tallies)).scalar_one() == 0


def test_stored_pipelines_go_when_no_schedule_is_of_them(start, pipeline):
    service = start(pipeline_retention_s=10 * DAY_S)
    used, unused = (service.client.post("/v1/pipelines", json=pipeline(n)).json()["id"] for n in ("used", "unused"))
    service.client.post("/v1/schedules", json={"pipeline_id": used})
    sweep(service, 9)
    assert service.client.get(f"/v1/pipelines/{unused}").status_code == 200
    sweep(service, 11)
    found = {n: service.client.get(f"/v1/pipelines/{n}").status_code for n in (used, unused)}
    assert found == {used: 200, unused: 404}


def test_by_default_everything_is_kept(service):
    made = service.schedule()
    sweep(service, 10_000)
    assert left(service) == {made}
