"""Measurements: kept with their schedules, listed and filtered; what an earlier service kept is not lost."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from sqlalchemy import text

from tilesmith.app.profiler.tuning import Sample
from tilesmith.app.service.db import Database, downgrade, upgrade
from tilesmith.app.service.measurements import repository

CONDITIONS = {
    "machine": {"description": "a machine", "triple": "x-y-z", "threads": 2, "clock_mhz": None, "memory_bytes": 1},
    "compiler": "gcc 13",
    "flags": ["-O3"],
    "sizes": {"inputs": {"input": [[0, 8], [0, 8]]}, "outputs": {"blur_y": [[0, 6], [0, 6]]}},
    "clock": "CLOCK_MONOTONIC",
    "measured_at": "2026-01-01T12:00:00Z",
    "load_before": [0.0, 0.0, 0.0],
    "load_after": [0.5, 0.0, 0.0],
    "confinement": "landlock",
}


def run(service, schedule_id, times, estimated=True, at=1, machine="a machine"):
    conditions = CONDITIONS | {"machine": CONDITIONS["machine"] | {"description": machine}}
    result = {"times_ms": times, "threads": 2, "measurement": conditions}
    repository.add_run(service.context.db, schedule_id, f"job of {schedule_id}, {times}", result, estimated, at)


def listed(service, **filters):
    answer = service.client.get("/v1/measurements", params=filters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_run_is_kept_with_what_it_was(service):
    schedule_id = service.schedule()
    url = f"/v1/schedules/{schedule_id}/measurements"
    assert service.client.get(url).json()["items"] == []
    run(service, schedule_id, [3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0])
    (found,) = service.client.get(url).json()["items"]
    assert (found["minimum_ms"], found["median_ms"], found["interval_ms"]) == (1.0, 4.0, [1.0, 7.0])
    assert (found["pipeline"], found["platform"], found["threads"]) == ("blur", "host", 2)
    assert found["conditions"] == CONDITIONS
    assert listed(service)["items"] == [found]
    assert service.client.get("/v1/schedules/none/measurements").json()["code"] == "schedule_not_found"


def test_candidates_come_before_runs(service):
    schedule_id = service.schedule()
    run(service, schedule_id, [1.0], at=5)
    samples = [Sample(2, 1.5, (2.0,), 10.0), Sample(1, 1.0, (), None, "it crashed")]
    repository.add_tuned(service.context.db, schedule_id, "job", samples, 2, CONDITIONS, 1)
    found = service.client.get(f"/v1/schedules/{schedule_id}/measurements").json()["items"]
    assert [(m["kind"], m["rank"], m["error"]) for m in found] == [
        ("tune", 1, "it crashed"), ("tune", 2, None), ("run", None, None),
    ]  # fmt: skip
    assert (found[0]["median_ms"], found[1]["median_ms"], found[1]["compile_ms"]) == (None, 2.0, 10.0)


@pytest.mark.parametrize("limit", [1, 2, 200])
def test_the_list_is_filtered_and_has_pages(service, limit):
    blur, other = service.schedule(), service.schedule("other")
    for n in range(3):
        run(service, blur, [1.0 + n], at=10, estimated=n == 0)
    run(service, other, [9.0], at=20, machine="another")
    found, cursor = [], None
    while True:
        page = listed(service, limit=limit, **({"cursor": cursor} if cursor else {}))
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found[0]["median_ms"] == 9.0
    assert sorted(m["median_ms"] for m in found) == [1.0, 2.0, 3.0, 9.0]
    for filters, count in (
        ({"schedule": blur}, 3),
        ({"pipeline": "other"}, 1),
        ({"platform": "host"}, 4),
        ({"platform": "none"}, 0),
        ({"machine": "another"}, 1),
        ({"kind": "tune"}, 0),
        ({"estimated": True}, 2),
        ({"estimated": False, "schedule": other}, 0),
    ):
        assert len(listed(service, **filters)["items"]) == count, filters


def test_what_was_kept_before_is_kept(tmp_path):
    with closing(Database(f"sqlite:///{tmp_path}/store.db")) as db:
        upgrade(db, "0003")
        with db.write() as connection:
            row = {"b": b"[1.0, 3.0]", "body": b"{}"}
            connection.execute(
                text(
                    "INSERT INTO schedules (id, pipeline_id, pipeline, platform, method, strict, groups, version, "
                    "created_us, etag, body) VALUES ('s', 'p', 'blur', 'host', 'default', 0, 1, '0', 1, 'e', :body)"
                ),
                {"body": row["body"]},
            )
            connection.execute(
                text("INSERT INTO measurements VALUES ('s', 1, 2.5, 1.0, 2.0, 0.25, :b, NULL, 7)"), {"b": row["b"]}
            )
        upgrade(db, "0004")
        with db.read() as connection:
            (found,) = connection.execute(text("SELECT * FROM measurements")).mappings().all()
        assert (found["kind"], found["candidate"], found["compile_ms"], found["estimated"]) == ("tune", 1, 250.0, 1)
        assert json.loads(found["times_ms"]) == [1.0, 3.0]
        downgrade(db, "0003")
        with db.read() as connection:
            (back,) = connection.execute(text("SELECT * FROM measurements")).all()
        assert tuple(back) == ("s", 1, 2.5, 1.0, 2.0, 0.25, b"[1.0, 3.0]", None, 7)
