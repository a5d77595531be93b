"""Rows of jobs and their events. Every change of state is one conditional UPDATE with its event, so that any
number of services can work on one store: of two that want the same job, one gets it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, false, func, insert, select, update

from tilesmith.app.service.db import Database
from tilesmith.app.service.jobs.states import FINISHED, State, check
from tilesmith.app.service.paging import Page, PageRequest, Position, Sorted, in_order, next_page
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.tables import job_events, jobs, libraries, schedules


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that a worker has taken."""

    id: str
    kind: str
    schedule_id: str
    request: bytes
    attempts: int
    artifacts: bytes | None = None
    created_us: int = 0
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job; numbers count from 1 within it."""

    number: int
    type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Added:
    """Outcome of queueing a job: it waits now, a limit is reached, or the key was used before for `earlier`,
    which was asked as `fingerprint` says."""

    full: bool = False
    owner_full: bool = False
    earlier: str | None = None
    fingerprint: str | None = None


def add(db: Database, row: dict[str, Any], limit: int, owner_limit: int, now_us: int, delay_us: int = 0) -> Added:
    """Queues a job, due `delay_us` from now, unless `limit` are waiting already, or `owner_limit` of its owner, or its
    key was used before."""
    c = jobs.c
    with db.write() as connection:
        if row.get("once") is not None:
            earlier = connection.execute(select(c.id, c.fingerprint).where(c.once == row["once"])).first()
            if earlier is not None:
                return Added(earlier=earlier.id, fingerprint=earlier.fingerprint)
        waiting = select(func.count()).select_from(jobs).where(c.state == "queued")
        if connection.execute(waiting).scalar_one() >= limit:
            return Added(full=True)
        if connection.execute(waiting.where(c.owner == row.get("owner", ""))).scalar_one() >= owner_limit:
            return Added(owner_full=True)
        connection.execute(
            insert(jobs).values(
                **row, state="queued", attempts=0, cancel_requested=False, created_us=now_us, due_us=now_us + delay_us
            )
        )
        _event(connection, row["id"], "state", {"state": "queued"}, now_us)
    return Added()


def find(db: Database, job_id: str) -> Any | None:
    with db.read() as connection:
        return connection.execute(select(jobs).where(jobs.c.id == job_id)).first()


def unfinished(db: Database, schedule_id: str, kind: str, request: bytes) -> str | None:
    """The id of a job that does just this and has not come to an end."""
    c = jobs.c
    mine = (c.schedule_id == schedule_id, c.kind == kind, c.request == request, c.state.not_in(sorted(FINISHED)))
    with db.read() as connection:
        return connection.execute(select(c.id).where(*mine).order_by(c.created_us).limit(1)).scalar_one_or_none()


def page(
    db: Database,
    schedule_id: str | None,
    state: State | None,
    kind: str | None,
    position: Position | None,
    count: int,
) -> Sequence[Any]:
    """Up to `count` jobs from the position on, the newest first; the key is (created_us, id)."""
    c = jobs.c
    query = select(
        c.id, c.kind, c.schedule_id, c.state, c.created_us, c.started_us, c.finished_us, schedules.c.pipeline
    )
    query = query.join(schedules, schedules.c.id == c.schedule_id)
    for column, value in ((c.schedule_id, schedule_id), (c.state, state), (c.kind, kind)):
        if value is not None:
            query = query.where(column == value)
    query = in_order(query, (Sorted(c.created_us, True), Sorted(c.id, True)), position)
    with db.read() as connection:
        return connection.execute(query.limit(count)).all()


def listed(
    db: Database, schedule_id: str | None, state: State | None, kind: str | None, paging: PageRequest
) -> Page[Any]:
    """The page of jobs that is asked for; ApiError `bad_cursor`."""
    position = paging.position("jobs", (int, str))
    rows = page(db, schedule_id, state, kind, position, paging.limit + 1)
    return next_page(rows, [(row.created_us, row.id) for row in rows], "jobs", paging.limit, position)


def claim(db: Database, worker: str, lease_us: int, now_us: int, busy_platforms: Collection[str] = ()) -> Claim | None:
    """The queued job that is due first, of the owner who has waited longest since one was started, now running for
    `worker`; None where none waits or another was quicker. Its schedule is for none of the platforms."""
    c, others = jobs.c, jobs.alias()
    last = select(func.max(others.c.started_us)).where(others.c.owner == c.owner).correlate(jobs).scalar_subquery()
    waiting = select(c.id).where(c.state == "queued")
    if busy_platforms:
        waiting = waiting.join(schedules, schedules.c.id == c.schedule_id).where(
            schedules.c.platform.not_in(sorted(busy_platforms))
        )
    oldest = waiting.order_by(func.coalesce(last, 0), c.due_us, c.created_us, c.id).limit(1).scalar_subquery()
    with db.read() as connection:  # the common answer, none, needs no write lock
        if connection.execute(select(oldest)).scalar_one() is None:
            return None
    with db.write() as connection:
        row = connection.execute(
            update(jobs)
            .where(c.id == oldest, c.state == "queued")
            .values(state="running", worker=worker, lease_us=lease_us, started_us=now_us, attempts=c.attempts + 1)
            .returning(c.id, c.kind, c.schedule_id, c.request, c.attempts, c.artifacts, c.created_us, c.owner)
        ).first()
        if row is None:
            return None
        _event(connection, row.id, "state", {"state": "running", "attempt": row.attempts}, now_us)
    return Claim(row.id, row.kind, row.schedule_id, row.request, row.attempts, row.artifacts, row.created_us, row.owner)


def move(
    db: Database,
    job_id: str,
    before: State,
    after: State,
    now_us: int,
    worker: str | None = None,
    **values: Any,
) -> bool:
    """Takes a job from one state to another (only its own worker's, where one is named); False where it is not
    in that state any more. Raises WrongTransition where there is no such way."""
    check(before, after)
    where = [jobs.c.id == job_id, jobs.c.state == before]
    if worker is not None:
        where.append(jobs.c.worker == worker)
    changed: dict[str, Any] = {"state": after, "phase": None, "worker": None, "lease_us": None, **values}
    if after in FINISHED:
        changed["finished_us"] = now_us
    with db.write() as connection:
        if connection.execute(update(jobs).where(*where).values(**changed)).rowcount != 1:
            return False
        _event(connection, job_id, "state", {"state": after}, now_us)
    return True


def progress(db: Database, job_id: str, worker: str, phase: str, now_us: int) -> None:
    """Record the step that a running job is at."""
    mine = (jobs.c.id == job_id, jobs.c.state == "running", jobs.c.worker == worker)
    with db.write() as connection:
        if connection.execute(update(jobs).where(*mine).values(phase=phase)).rowcount == 1:
            _event(connection, job_id, "progress", {"state": "running", "phase": phase}, now_us)


def renew(db: Database, job_id: str, worker: str, lease_us: int) -> bool | None:
    """Prolongs the lease. True where the job shall be cancelled, None where it is not the worker's any more."""
    mine = (jobs.c.id == job_id, jobs.c.state == "running", jobs.c.worker == worker)
    with db.write() as connection:
        query = update(jobs).where(*mine).values(lease_us=lease_us).returning(jobs.c.cancel_requested)
        return connection.execute(query).scalar_one_or_none()


def request_cancel(db: Database, job_id: str) -> bool:
    """Request that the worker of a running job stops; False where it is not running."""
    with db.write() as connection:
        query = update(jobs).where(jobs.c.id == job_id, jobs.c.state == "running").values(cancel_requested=True)
        return connection.execute(query).rowcount == 1


def stale(db: Database, now_us: int) -> Sequence[Any]:
    """Running jobs whose worker has been silent for longer than its lease."""
    c = jobs.c
    with db.read() as connection:
        query = select(c.id, c.worker, c.attempts, c.cancel_requested).where(c.state == "running", c.lease_us < now_us)
        return connection.execute(query).all()


def queued_before(db: Database, time_us: int) -> Sequence[str]:
    """Jobs that have waited since before that time."""
    with db.read() as connection:
        query = select(jobs.c.id).where(jobs.c.state == "queued", jobs.c.created_us < time_us)
        return connection.execute(query).scalars().all()


def finished_before(db: Database, time_us: int, most: int) -> Sequence[str]:
    """Up to so many jobs that came to an end before that time."""
    with db.read() as connection:
        query = select(jobs.c.id).where(jobs.c.finished_us < time_us).order_by(jobs.c.finished_us).limit(most)
        return connection.execute(query).scalars().all()


def ends(db: Database, job_ids: Sequence[str]) -> dict[str, Any]:
    """`state` and `request` of the jobs that there are, by id."""
    c = jobs.c
    with db.read() as connection:
        found = connection.execute(select(c.id, c.state, c.request).where(c.id.in_(job_ids))).all()
    return {row.id: row for row in found}


def unfinished_ids(db: Database) -> frozenset[str]:
    """The jobs that have not come to an end."""
    with db.read() as connection:
        query = select(jobs.c.id).where(jobs.c.state.in_(("queued", "running")))
        return frozenset(connection.execute(query).scalars())


def forget(db: Database, job_id: str) -> None:
    """Removes a job and its events."""
    with db.write() as connection:
        connection.execute(delete(job_events).where(job_events.c.job_id == job_id))
        connection.execute(delete(jobs).where(jobs.c.id == job_id))


def queued(db: Database) -> int:
    """The number of jobs that wait."""
    with db.read() as connection:
        query = select(func.count()).select_from(jobs).where(jobs.c.state == "queued")
        return int(connection.execute(query).scalar_one())


def events(db: Database, job_id: str, after: int) -> list[Event]:
    """The events of a job after number `after`."""
    c = job_events.c
    query = select(c.number, c.type, c.data).where(c.job_id == job_id, c.number > after).order_by(c.number)
    with db.read() as connection:
        return [Event(row.number, row.type, row.data) for row in connection.execute(query)]


def keep_library(db: Database, schedule_id: str, key: str, path: str, now_us: int, sha256: str | None = None) -> None:
    """Remembers where the compiled code of a schedule is: a path here, a digest in the object store."""
    row = {"schedule_id": schedule_id, "key": key, "path": path, "built_us": now_us, "sha256": sha256}
    with db.write() as connection:
        db.put(connection, libraries, row)


def library(db: Database, schedule_id: str) -> Any | None:
    """The compiled code of a schedule: `path` and `sha256`."""
    with db.read() as connection:
        query = select(libraries.c.path, libraries.c.sha256).where(libraries.c.schedule_id == schedule_id)
        return connection.execute(query).first()


def artifacts(db: Database, job_id: str) -> bytes | None:
    """The digests of a job's files in the object store."""
    with db.read() as connection:
        return connection.execute(select(jobs.c.artifacts).where(jobs.c.id == job_id)).scalar_one_or_none()


def referenced(db: Database, unfinished: bool = False) -> set[str]:
    """The digests of all objects that somebody refers to, or those of jobs that have not come to an end."""
    of_jobs = select(jobs.c.artifacts).where(jobs.c.artifacts.is_not(None))
    of_schedules = select(libraries.c.sha256).where(libraries.c.sha256.is_not(None))
    if unfinished:
        of_jobs, of_schedules = of_jobs.where(jobs.c.finished_us.is_(None)), of_schedules.where(false())
    with db.read() as connection:
        built, kept = connection.execute(of_schedules).scalars(), connection.execute(of_jobs).scalars()
        return {*built, *(str(digest) for content in kept for digest in json.loads(content).values())}


def call_ms(db: Database, schedule_id: str) -> float | None:
    """The time of a call of a schedule at the estimated sizes, measured or else predicted; None where neither is."""
    c = schedules.c
    with db.read() as connection:
        query = select(func.coalesce(c.measured_ms, c.predicted_ms)).where(c.id == schedule_id)
        return connection.execute(query).scalar_one_or_none()


def has_schedule(db: Database, schedule_id: str) -> bool:
    with db.read() as connection:
        return connection.execute(select(schedules.c.id).where(schedules.c.id == schedule_id)).first() is not None


def _event(connection: Connection, job_id: str, kind: str, data: dict[str, Any], now_us: int) -> None:
    """Appends an event. The transaction holds the job's row, so that numbers have no gaps."""
    number = select(func.coalesce(func.max(job_events.c.number), 0) + 1).where(job_events.c.job_id == job_id)
    content = compact(data | {"at_us": now_us}).encode()
    row = {"job_id": job_id, "number": number.scalar_subquery(), "at_us": now_us, "type": kind, "data": content}
    connection.execute(insert(job_events).values(**row))
