"""Rows of measurements: what jobs found, kept as long as their schedule."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import select, tuple_

from tilesmith.app.profiler.statistics import summary
from tilesmith.app.profiler.tuning import Sample
from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Key
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.tables import measurements, schedules

Kind = Literal["run", "tune"]


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list of measurements; None takes all."""

    schedule: str | None = None
    pipeline: str | None = None
    platform: str | None = None
    machine: str | None = None
    kind: Kind | None = None
    estimated: bool | None = None


def add_run(
    db: Database, schedule_id: str, job_id: str, result: Mapping[str, Any], estimated: bool, now_us: int
) -> None:
    """Keeps what a run found; `estimated`: at the sizes of the document."""
    row = _row(schedule_id, "run", job_id, result["times_ms"], now_us) | _conditions(result["measurement"])
    _add(db, schedule_id, [row | {"estimated": estimated, "threads": result["threads"]}])


def add_tuned(
    db: Database,
    schedule_id: str,
    job_id: str,
    samples: Sequence[Sample],
    threads: int,
    conditions: Mapping[str, Any],
    now_us: int,
) -> None:
    """Keeps what became of every candidate of a tuned schedule."""
    said = _conditions(conditions) | {"estimated": True, "threads": threads}
    rows = [
        _row(schedule_id, "tune", job_id, sample.times_ms, now_us, sample.rank)
        | said
        | {
            "candidate": sample.rank,
            "predicted": sample.predicted,
            "compile_ms": sample.compile_ms,
            "error": sample.error,
        }
        for sample in samples
    ]
    _add(db, schedule_id, rows)


def _add(db: Database, schedule_id: str, rows: Sequence[dict[str, Any]]) -> None:
    """Keeps measurements of a schedule, with what lists filter them by; none where it is gone."""
    s = schedules.c
    with db.write() as connection:
        of = connection.execute(select(s.pipeline, s.platform).where(s.id == schedule_id)).mappings().first()
        if of is not None:
            for row in rows:
                db.put(connection, measurements, {**row, **of})


def _row(
    schedule_id: str, kind: Kind, job_id: str, times: Sequence[float], now_us: int, rank: int = 0
) -> dict[str, Any]:
    """A row whose id follows from the job and the candidate: a job that is done again has no more of them."""
    found = summary(times) if times else None
    low, high = (found.interval if found else None) or (None, None)
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{job_id}/{rank}")),
        "schedule_id": schedule_id,
        "kind": kind,
        "job_id": job_id,
        "minimum_ms": found and found.minimum,
        "median_ms": found and found.median,
        "low_ms": low,
        "high_ms": high,
        "times_ms": compact(list(times)).encode(),
        "measured_us": now_us,
    }


def _conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {"machine": conditions["machine"]["description"], "conditions": compact(conditions).encode()}


def page(db: Database, filters: Filters, after: Key | None, count: int) -> Sequence[Any]:
    """Up to `count` measurements, the newest first, after the key (measured_us, id)."""
    m = measurements.c
    query = select(measurements).order_by(m.measured_us.desc(), m.id.desc())
    wanted = (
        (m.schedule_id, filters.schedule),
        (m.pipeline, filters.pipeline),
        (m.platform, filters.platform),
        (m.machine, filters.machine),
        (m.kind, filters.kind),
        (m.estimated, filters.estimated),
    )
    query = query.where(*(column == value for column, value in wanted if value is not None))
    if after is not None:
        query = query.where(tuple_(m.measured_us, m.id) < tuple_(*after))
    with db.read() as connection:
        return connection.execute(query.limit(count)).all()


def of_schedule(db: Database, schedule_id: str) -> Sequence[Any]:
    """All measurements of a schedule: the candidates of tuning by rank, then runs, the newest first."""
    m = measurements.c
    query = select(measurements).where(m.schedule_id == schedule_id)
    with db.read() as connection:
        return connection.execute(query.order_by(m.kind.desc(), m.candidate, m.measured_us.desc(), m.id)).all()
