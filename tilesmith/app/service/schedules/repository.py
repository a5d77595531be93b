"""Rows of schedules and their forms. They are never changed once stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, tuple_

from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Key
from tilesmith.app.service.schedules.answers import Answer, compact, media_type
from tilesmith.app.service.tables import schedule_forms, schedules

Order = Literal["newest", "oldest", "name"]


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes as they are sent, with what HTTP says of them."""

    media_type: str
    etag: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list of schedules; None takes all. `search` is found anywhere in the names of pipeline or
    platform."""

    pipeline: str | None = None
    platform: str | None = None
    method: str | None = None
    degraded: bool | None = None
    search: str | None = None


SUMMARY = (
    schedules.c.id,
    schedules.c.pipeline,
    schedules.c.pipeline_id,
    schedules.c.platform,
    schedules.c.method,
    schedules.c.strict,
    schedules.c.degraded,
    schedules.c.groups,
    schedules.c.created_us,
)


def find(db: Database, schedule_id: str) -> Content | None:
    """The document of a schedule."""
    query = select(schedules.c.etag, schedules.c.body).where(schedules.c.id == schedule_id)
    with db.read() as connection:
        row = connection.execute(query).first()
    return Content("application/json", row.etag, row.body) if row else None


def find_form(db: Database, schedule_id: str, name: str) -> Content | None:
    """One form of a schedule."""
    forms = schedule_forms
    query = select(forms.c.media_type, forms.c.etag, forms.c.content)
    with db.read() as connection:
        row = connection.execute(query.where(forms.c.schedule_id == schedule_id, forms.c.name == name)).first()
    return Content(row.media_type, row.etag, row.content) if row else None


def has_form(db: Database, schedule_id: str, name: str) -> bool:
    c = schedule_forms.c
    with db.read() as connection:
        found = connection.execute(select(c.name).where(c.schedule_id == schedule_id, c.name == name)).first()
    return found is not None


def exists(db: Database, schedule_id: str) -> bool:
    with db.read() as connection:
        return connection.execute(select(schedules.c.id).where(schedules.c.id == schedule_id)).first() is not None


def summary(db: Database, schedule_id: str) -> Any | None:
    """The summary of one schedule in a list."""
    with db.read() as connection:
        return connection.execute(select(*SUMMARY).where(schedules.c.id == schedule_id)).first()


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
        "etag": etag(body),
        "body": body,
    }
    forms = [_form(answer.id, name, content) for name, content in sorted(answer.forms.items())]
    with db.write() as connection:
        if not db.insert_new(connection, schedules, row):
            return False
        connection.execute(schedule_forms.insert(), forms)
    return True


def forms(db: Database, schedule_id: str) -> dict[str, bytes]:
    """Every form of a schedule that is kept."""
    query = select(schedule_forms.c.name, schedule_forms.c.content).where(schedule_forms.c.schedule_id == schedule_id)
    with db.read() as connection:
        return {row.name: row.content for row in connection.execute(query)}


def add_form(db: Database, schedule_id: str, name: str, content: bytes) -> None:
    """Stores one more form, unless it is there."""
    with db.write() as connection:
        db.insert_new(connection, schedule_forms, _form(schedule_id, name, content))


def _form(schedule_id: str, name: str, content: bytes) -> dict[str, object]:
    return {
        "schedule_id": schedule_id,
        "name": name,
        "media_type": media_type(name),
        "etag": etag(content),
        "content": content,
    }


def etag(content: bytes) -> str:
    """A strong validator: quoted, by content."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def page(db: Database, filters: Filters, order: Order, after: Key | None, count: int) -> Sequence[Any]:
    """Up to `count` summaries after the key of the last one seen (see `key_of`)."""
    query = select(*SUMMARY).where(*_conditions(filters))
    with db.read() as connection:
        return connection.execute(_ordered(query, order, after).limit(count)).all()


def count(db: Database, filters: Filters) -> int:
    """The number of schedules."""
    with db.read() as connection:
        query = select(func.count()).select_from(schedules).where(*_conditions(filters))
        return int(connection.execute(query).scalar_one())


KEY_TYPES: dict[Order, tuple[type, ...]] = {"newest": (int, str), "oldest": (int, str), "name": (str, int, str)}


def key_of(row: Any, order: Order) -> Key:
    """The sort key of a summary in an order."""
    key: Key = (row.created_us, row.id)
    return (row.pipeline, *key) if order == "name" else key


def _conditions(filters: Filters) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if filters.pipeline is not None:
        found.append(or_(schedules.c.pipeline == filters.pipeline, schedules.c.pipeline_id == filters.pipeline))
    if filters.platform is not None:
        found.append(schedules.c.platform == filters.platform)
    if filters.method is not None:
        found.append(schedules.c.method == filters.method)
    if filters.degraded is not None:
        found.append(schedules.c.degraded.is_not(None) if filters.degraded else schedules.c.degraded.is_(None))
    if filters.search:
        found.append(
            or_(
                schedules.c.pipeline.icontains(filters.search, autoescape=True),
                schedules.c.platform.icontains(filters.search, autoescape=True),
                schedules.c.id == filters.search,
            )
        )
    return found


def _ordered(query: Select[Any], order: Order, after: Key | None) -> Select[Any]:
    s = schedules.c
    match order:
        case "newest":
            query = query.order_by(s.created_us.desc(), s.id.desc())
            return query if after is None else query.where(tuple_(s.created_us, s.id) < tuple_(*after))
        case "oldest":
            query = query.order_by(s.created_us, s.id)
            return query if after is None else query.where(tuple_(s.created_us, s.id) > tuple_(*after))
        case "name":
            query = query.order_by(s.pipeline, s.created_us.desc(), s.id.desc())
            if after is None:
                return query
            name, created, last = after
            later = and_(s.pipeline == name, tuple_(s.created_us, s.id) < tuple_(created, last))
            return query.where(or_(s.pipeline > name, later))
