"""Rows of schedules and their forms. What was decided is never changed once stored; lists of them are in lists.py."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Executable,
    bindparam,
    case,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError, OperationalError

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import ANSWER, Answer, compact, is_made, media_type
from tilesmith.app.service.schedules.packing import pack, pack_one, unpack, unpack_one
from tilesmith.app.service.tables import (
    jobs,
    made_forms,
    measurements,
    packed_forms,
    results,
    schedule_names,
    schedule_tallies,
    schedules,
)

USED_US = 3_600_000_000
"""The last use of a form that was made is known to an hour: a write a request would cost more than the request."""
TALLIED = ("pipeline", "pipeline_id", "platform", "method")


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes as they are sent, with what HTTP says of them."""

    media_type: str
    content: bytes

    @property
    def etag(self) -> str:
        """A strong validator: quoted, by content."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


def find(db: Database, schedule_id: str) -> Content | None:
    """The document of a schedule."""
    return _content(ANSWER, kept(db, schedule_id).get(ANSWER))


def find_form(db: Database, schedule_id: str, name: str) -> Content | None:
    """One form of a schedule but its document; None where it is not kept and has not been made, or there is none."""
    return form_or_kept(db, schedule_id, name)[0]


def form_or_kept(db: Database, schedule_id: str, name: str) -> tuple[Content | None, dict[str, bytes]]:
    """The result of `find_form`; and the forms that are kept, which it may be made of, where it has not been made."""
    content = _made(db, schedule_id, name) if is_made(name) else None
    forms = kept(db, schedule_id) if content is None else {}
    return _content(name, forms.get(name) if content is None else content), forms


def _content(name: str, content: bytes | None) -> Content | None:
    return None if content is None else Content(media_type(name), content)


def kept(db: Database, schedule_id: str) -> dict[str, bytes]:
    """The forms of a schedule that are kept, by name, its document among them; empty where there is no schedule."""
    with db.read() as connection:
        packed = connection.execute(_FORMS, {"id": schedule_id}).scalar_one_or_none()
    return {} if packed is None else unpack(packed)


_FORMS = select(packed_forms.c.content).where(packed_forms.c.schedule_id == bindparam("id"))
"""Made once: that would take as long as the look into the store."""


def _made(db: Database, schedule_id: str, name: str) -> bytes | None:
    c, now = made_forms.c, now_us()
    this = (c.schedule_id == schedule_id, c.name == name)
    with db.read() as connection:
        row = connection.execute(select(c.content, c.used_us).where(*this)).first()
    if row is None:
        return None
    if now - row.used_us > USED_US:
        with suppress(OperationalError), db.write() as connection:  # no reason to fail who only reads
            connection.execute(update(made_forms).where(*this).values(used_us=now))
    return unpack_one(row.content)


def made_bytes(db: Database) -> int:
    """The bytes of all forms that were made."""
    with db.read() as connection:
        return int(connection.execute(select(func.coalesce(func.sum(made_forms.c.bytes), 0))).scalar_one())


def remove_made(db: Database, wanted: int, most: int) -> tuple[int, int]:
    """Removes forms that were made, the least recently used first, up to so many bytes or so many forms; how many there
    were, and their bytes."""
    c = made_forms.c
    with db.write() as connection:
        query = select(c.schedule_id, c.name, c.bytes).order_by(c.used_us, c.schedule_id, c.name).limit(most)
        rows, size = [], 0
        for row in connection.execute(query):
            if size >= wanted:
                break
            rows.append(row)
            size += row.bytes
        for row in rows:
            connection.execute(delete(made_forms).where(c.schedule_id == row.schedule_id, c.name == row.name))
    return len(rows), size


def add(db: Database, answer: Answer, created_us: int, links: dict[str, str], created_at: str, owner: str) -> bool:
    """Stores an answer in all its forms, or nothing where the store has it: whether it was new."""
    body = compact(answer.body | {"version": answer.version, "created_at": created_at, "links": links}).encode()
    packed = pack({ANSWER: body, **answer.forms})
    row = {
        "id": answer.id,
        "pipeline_id": answer.pipeline.id,
        "pipeline": answer.pipeline.name,
        "platform": answer.platform,
        "method": answer.method,
        "strict": answer.strict,
        "degraded": answer.degraded,
        "groups": len(answer.body["groups"]),
        "version": answer.version,
        "created_us": created_us,
        "used_us": created_us,
        "predicted_ms": predicted_ms(answer.body["predicted"]),
        "owner": owner,
        "bytes": len(packed),
    }
    with db.write() as connection:
        if not db.insert_new(connection, schedules, row):
            return False
        connection.execute(_PACKED, {"schedule_id": answer.id, "content": packed})
        _tally(db, connection, row)
        holdings.change(db, connection, owner, 1, len(packed))
    return True


def _counted() -> Executable:
    """The statement that counts a schedule `of_` these names, made at `at_us`, that is predicted to cost `cost_ms`."""
    t = schedule_tallies.c
    at_us, cost_ms = bindparam("at_us", type_=t.latest_us.type), bindparam("cost_ms", type_=t.predicted_ms.type)
    values = {
        "made": t.made + 1,
        "latest_us": case((t.latest_us < at_us, at_us), else_=t.latest_us),
        "predicted_ms": case((or_(t.predicted_ms.is_(None), t.predicted_ms > cost_ms), cost_ms), else_=t.predicted_ms),
    }
    return update(schedule_tallies).where(*(t[name] == bindparam(f"of_{name}") for name in TALLIED)).values(values)


_PACKED, _COUNTED = packed_forms.insert(), _counted()


def _tally(db: Database, connection: Connection, row: Mapping[str, Any]) -> None:
    """Counts a new schedule."""
    made_us = row["created_us"]
    names = {name: row[name] for name in TALLIED}
    first = {**names, "made": 0, "first_us": made_us, "latest_us": made_us, "predicted_ms": row["predicted_ms"]}
    if db.insert_new(connection, schedule_tallies, first):
        for kind in ("pipeline", "platform", "method"):
            db.insert_new(connection, schedule_names, {"kind": kind, "name": row[kind]})
    of = {f"of_{name}": value for name, value in names.items()}
    connection.execute(_COUNTED, of | {"at_us": made_us, "cost_ms": row["predicted_ms"]})


def predicted_ms(predicted: Mapping[str, Any]) -> float | None:
    """The time that a breakdown predicts; None where its model does not count time."""
    return predicted["total"] / 1000 if predicted.get("unit") == "microseconds" else None


def count(db: Database) -> int:
    """The number of schedules."""
    with db.read() as connection:
        return int(connection.execute(select(func.coalesce(func.sum(schedule_tallies.c.made), 0))).scalar_one())


def unused(db: Database, before_us: int, after: tuple[int, str], most: int) -> list[tuple[int, str]]:
    """Times of last use, and ids, of schedules used before that time, the least recently used first, after that key.
    Left out are those with a note or a tag, those measured since, those of a recorded commit, and those that a job is
    at."""
    s, j = schedules.c, jobs.c
    measured = exists().where(measurements.c.schedule_id == s.id, measurements.c.measured_us >= before_us)
    recorded = exists().where(results.c.schedule_id == s.id)
    at_work = exists().where(j.schedule_id == s.id, j.finished_us.is_(None))
    query = select(s.used_us, s.id).where(s.used_us < before_us, tuple_(s.used_us, s.id) > tuple_(*after))
    query = query.where(s.note == "", s.tags == "", ~measured, ~recorded, ~at_work).order_by(s.used_us, s.id)
    with db.read() as connection:
        compared = {
            json.loads(request)["baseline"]
            for request in connection.execute(
                select(j.request).where(j.state.in_(("queued", "running")), j.kind == "compare")
            ).scalars()
        }
        rows = connection.execute(query.where(s.id.not_in(sorted(compared))).limit(most))
        return [(row.used_us, row.id) for row in rows]


def mark_used(db: Database, ids: Collection[str], now: int) -> None:
    """Keeps that schedules were used at that time."""
    c = schedules.c
    with db.write() as connection:
        connection.execute(update(schedules).where(c.id.in_(sorted(ids)), c.used_us < now).values(used_us=now))


def remove_several(db: Database, ids: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Deletes schedules with all that belongs to them, but for those of which a job has not come to an end; the ids of
    those that were there and of their jobs."""
    with db.write() as connection:
        return _remove(db, connection, ids)


def _remove(db: Database, connection: Connection, ids: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    s, j = schedules.c, jobs.c
    _hold(connection, ids)
    found = connection.execute(select(j.id, j.schedule_id, j.finished_us).where(j.schedule_id.in_(ids))).all()
    busy = {job.schedule_id for job in found if job.finished_us is None}
    gone = sorted(set(ids) - busy)
    names = [s[name] for name in TALLIED]
    rows = connection.execute(delete(schedules).where(s.id.in_(gone)).returning(s.id, s.owner, s.bytes, *names)).all()
    for alike, number in Counter(tuple(row[3:]) for row in rows).items():
        _tally_removed(connection, alike, number)
    for row in rows:
        holdings.change(db, connection, row.owner, -1, -row.bytes)
    return tuple(row.id for row in rows), tuple(job.id for job in found if job.schedule_id not in busy)


def _hold(connection: Connection, ids: Collection[str]) -> None:
    """Until the transaction ends no job is added to these schedules: those that were before are seen now."""
    s = schedules.c
    connection.execute(select(s.id).where(s.id.in_(sorted(ids))).order_by(s.id).with_for_update())


def _tally_removed(connection: Connection, names: tuple[str, ...], number: int) -> None:
    """Counts off schedules that were deleted; the rest is looked up in indices, whatever their number."""
    s, t = schedules.c, schedule_tallies.c
    alike = [s[name] == value for name, value in zip(TALLIED, names, strict=True)]
    this = [t[name] == value for name, value in zip(TALLIED, names, strict=True)]

    def first(column: Column[Any], order: Any) -> Any:
        return select(column).where(*alike, column.is_not(None)).order_by(order).limit(1).scalar_subquery()

    values = {
        "made": t.made - number,
        "first_us": func.coalesce(first(s.created_us, s.created_us), t.first_us),
        "latest_us": func.coalesce(first(s.created_us, s.created_us.desc()), t.latest_us),
        "predicted_ms": first(s.predicted_ms, s.predicted_ms),
        "measured_ms": first(s.measured_ms, s.measured_ms),
    }
    connection.execute(update(schedule_tallies).where(*this).values(values))
    connection.execute(delete(schedule_tallies).where(*this, t.made <= 0))


def remove(db: Database, schedule_id: str) -> tuple[str, ...] | None:
    """Deletes a schedule with all that belongs to it; the ids of its jobs, None where there is no such schedule.
    ApiError `schedule_in_use` where one of them has not come to an end."""
    j = jobs.c
    with db.write() as connection:
        _hold(connection, [schedule_id])
        at_work = select(j.id).where(j.schedule_id == schedule_id, j.finished_us.is_(None)).limit(1)
        if connection.execute(at_work).first() is not None:
            raise ApiError("schedule_in_use", "a job of the schedule has not come to an end: cancel it first")
        removed, job_ids = _remove(db, connection, [schedule_id])
    return job_ids if removed else None


def set_measured(db: Database, schedule_id: str, measured_ms: float) -> None:
    """Keeps the time that the schedule took when it was last measured at the estimated sizes."""
    s, t = schedules.c, schedule_tallies.c
    this = update(schedules).where(s.id == schedule_id).values(measured_ms=measured_ms)
    with db.write() as connection:
        row = connection.execute(this.returning(*(s[name] for name in TALLIED))).first()
        if row is not None:
            names = row._mapping.items()
            least = select(func.min(s.measured_ms)).where(*(s[n] == v for n, v in names), s.measured_ms.is_not(None))
            tally = update(schedule_tallies).where(*(t[n] == v for n, v in names))
            connection.execute(tally.values(measured_ms=least.scalar_subquery()))


def add_form(db: Database, schedule_id: str, name: str, content: bytes) -> None:
    """Keeps a form that was made, for whoever asks next; nothing where the schedule is gone, or the store is full or
    locked, which is no reason to fail who only reads."""
    packed = pack_one(content)
    row = {"schedule_id": schedule_id, "name": name, "content": packed, "bytes": len(packed), "used_us": now_us()}
    with suppress(IntegrityError, OperationalError), db.write() as connection:
        db.insert_new(connection, made_forms, row)
