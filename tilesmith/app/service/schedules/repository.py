"""Rows of schedules and their forms. What was decided is never changed once stored; lists of them are in lists.py."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, case, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import ANSWER, Answer, compact, is_made, media_type
from tilesmith.app.service.schedules.packing import pack, pack_one, unpack, unpack_one
from tilesmith.app.service.tables import jobs, kept_forms, made_forms, schedule_names, schedule_tallies, schedules

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
    packed = _kept(db, schedule_id, kept_forms.c.answer)
    return None if packed is None else Content(media_type(ANSWER), unpack_one(packed))


def find_form(db: Database, schedule_id: str, name: str) -> Content | None:
    """One form of a schedule but its document; None where it is not kept and has not been made, or there is none."""
    content = _made(db, schedule_id, name) if is_made(name) else None
    if content is None:
        content = others(db, schedule_id).get(name)
    return None if content is None else Content(media_type(name), content)


def others(db: Database, schedule_id: str) -> dict[str, bytes]:
    """The forms of a schedule that are kept but for its document, by name."""
    packed = _kept(db, schedule_id, kept_forms.c.others)
    return {} if packed is None else unpack(packed)


def _kept(db: Database, schedule_id: str, column: Column[bytes]) -> bytes | None:
    with db.read() as connection:
        query = select(column).where(kept_forms.c.schedule_id == schedule_id)
        return connection.execute(query).scalar_one_or_none()


def _made(db: Database, schedule_id: str, name: str) -> bytes | None:
    c = made_forms.c
    with db.read() as connection:
        query = select(c.content).where(c.schedule_id == schedule_id, c.name == name)
        packed = connection.execute(query).scalar_one_or_none()
    return None if packed is None else unpack_one(packed)


def exists(db: Database, schedule_id: str) -> bool:
    with db.read() as connection:
        return connection.execute(select(schedules.c.id).where(schedules.c.id == schedule_id)).first() is not None


def add(db: Database, answer: Answer, created_us: int, links: dict[str, str], created_at: str) -> bool:
    """Stores an answer in all its forms, or nothing where the store has it: whether it was new."""
    body = compact(answer.body | {"version": answer.version, "created_at": created_at, "links": links}).encode()
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
        "predicted_ms": predicted_ms(answer.body["predicted"]),
    }
    forms = {"schedule_id": answer.id, "answer": pack_one(body), "others": pack(answer.forms)}
    with db.write() as connection:
        if not db.insert_new(connection, schedules, row):
            return False
        connection.execute(kept_forms.insert().values(forms))
        _tally(db, connection, row)
    return True


def _tally(db: Database, connection: Connection, row: Mapping[str, Any]) -> None:
    """Counts a new schedule."""
    t, made_us = schedule_tallies.c, row["created_us"]
    names = {name: row[name] for name in TALLIED}
    first = {**names, "made": 0, "first_us": made_us, "latest_us": made_us, "predicted_ms": row["predicted_ms"]}
    if db.insert_new(connection, schedule_tallies, first):
        for kind in ("pipeline", "platform", "method"):
            db.insert_new(connection, schedule_names, {"kind": kind, "name": row[kind]})
    values: dict[str, Any] = {
        "made": t.made + 1,
        "latest_us": case((t.latest_us < made_us, made_us), else_=t.latest_us),
    }
    if row["predicted_ms"] is not None:
        less = or_(t.predicted_ms.is_(None), t.predicted_ms > row["predicted_ms"])
        values["predicted_ms"] = case((less, row["predicted_ms"]), else_=t.predicted_ms)
    connection.execute(update(schedule_tallies).where(*(t[n] == v for n, v in names.items())).values(values))


def predicted_ms(predicted: Mapping[str, Any]) -> float | None:
    """The time that a breakdown predicts; None where its model does not count time."""
    return predicted["total"] / 1000 if predicted.get("unit") == "microseconds" else None


def remove(db: Database, schedule_id: str) -> tuple[str, ...] | None:
    """Deletes a schedule with all that belongs to it; the ids of its jobs, None where there is no such schedule.
    ApiError `schedule_in_use` where one of them has not come to an end."""
    s, t, j = schedules.c, schedule_tallies.c, jobs.c
    with db.write() as connection:
        found = connection.execute(select(j.id, j.finished_us).where(j.schedule_id == schedule_id)).all()
        if any(job.finished_us is None for job in found):
            raise ApiError("schedule_in_use", "a job of the schedule has not come to an end: cancel it first")
        names = [s[name] for name in TALLIED]
        row = connection.execute(delete(schedules).where(s.id == schedule_id).returning(*names)).first()
        if row is None:
            return None
        alike = [s[n] == v for n, v in row._mapping.items()]
        tally = [t[n] == v for n, v in row._mapping.items()]
        figures = (func.count(), func.min(s.created_us), func.max(s.created_us), func.min(s.predicted_ms))
        made, first, latest, predicted = connection.execute(select(*figures).where(*alike)).one()
        least = connection.execute(select(func.min(s.measured_ms)).where(*alike)).scalar_one()
        values = {"made": made, "first_us": first, "latest_us": latest, "predicted_ms": predicted, "measured_ms": least}
        change = update(schedule_tallies).values(values) if made else delete(schedule_tallies)
        connection.execute(change.where(*tally))
    return tuple(job.id for job in found)


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
    """Keeps a form that was made, for whoever asks next; nothing where the schedule is gone."""
    row = {"schedule_id": schedule_id, "name": name, "content": pack_one(content)}
    with suppress(IntegrityError), db.write() as connection:
        db.insert_new(connection, made_forms, row)
