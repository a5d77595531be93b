"""Lists of schedules: what they are filtered by, the orders that they come in, their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, func, or_, select

from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Key, Page, PageRequest, Position, Sorted, in_order, next_page
from tilesmith.app.service.tables import schedules

Order = Literal[
    "newest", "oldest", "name", "-name", "platform", "-platform", "predicted", "-predicted", "measured", "-measured"
]
"""Orders of a list; with "-", backwards. Schedules without a time come last either way."""
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list of schedules; None takes all. Every word of `search` is found anywhere in the name of pipeline,
    platform or method or in a tag, or starts the id. `since` and `until` are microseconds since 1970, the latter not
    included."""

    pipeline: str | None = None
    platform: str | None = None
    method: str | None = None
    degraded: bool | None = None
    search: str | None = None
    tag: str | None = None
    since: int | None = None
    until: int | None = None


SUMMARY = (
    schedules.c.id,
    schedules.c.pipeline,
    schedules.c.pipeline_id,
    schedules.c.platform,
    schedules.c.method,
    schedules.c.strict,
    schedules.c.degraded,
    schedules.c.groups,
    schedules.c.predicted_ms,
    schedules.c.measured_ms,
    schedules.c.tags,
    schedules.c.created_us,
)
MADE = Sorted(schedules.c.created_us, descending=True)
NEVER = 1e300  # sorts after every time

_TIMES = {"predicted": schedules.c.predicted_ms, "measured": schedules.c.measured_ms}
_NAMES = {"name": schedules.c.pipeline, "platform": schedules.c.platform}


def sorted_by(order: Order) -> tuple[Sorted, ...]:
    """The parts of an order: what it is called after, then the newest first."""
    name, back = order.removeprefix("-"), order.startswith("-")
    last = Sorted(schedules.c.id, descending=True)
    if order == "newest":
        return MADE, last
    if order == "oldest":
        return Sorted(schedules.c.created_us), Sorted(schedules.c.id)
    if name in _TIMES:
        return Sorted(func.coalesce(_TIMES[name], -1.0 if back else NEVER), back), last
    return Sorted(_NAMES[name], back), MADE, last


def key_types(order: Order) -> tuple[type, ...]:
    """The types of the parts of a key."""
    if order in ("newest", "oldest"):
        return int, str
    return (float, str) if order.removeprefix("-") in _TIMES else (str, int, str)


def key_of(row: Any, order: Order) -> Key:
    """The sort key of a summary in an order."""
    name = order.removeprefix("-")
    if order in ("newest", "oldest"):
        return row.created_us, row.id
    if name in _TIMES:
        value = row._mapping[_TIMES[name]]
        return (-1.0 if order.startswith("-") else NEVER) if value is None else value, row.id
    return row._mapping[_NAMES[name]], row.created_us, row.id


def listed(db: Database, filters: Filters, order: Order, paging: PageRequest) -> Page[Any]:
    """The page of summaries that is asked for; ApiError `bad_cursor`."""
    kind = f"schedules:{order}"
    position = paging.position(kind, key_types(order))
    rows = page(db, filters, order, position, paging.limit + 1)
    return next_page(rows, [key_of(row, order) for row in rows], kind, paging.limit, position)


def page(db: Database, filters: Filters, order: Order, position: Position | None, count: int) -> Sequence[Any]:
    """Up to `count` summaries from the position on (see `key_of`)."""
    query = select(*SUMMARY).where(*_conditions(filters))
    with db.read() as connection:
        return connection.execute(in_order(query, sorted_by(order), position).limit(count)).all()


def summary(db: Database, schedule_id: str) -> Any | None:
    """The summary of one schedule."""
    with db.read() as connection:
        return connection.execute(select(*SUMMARY).where(schedules.c.id == schedule_id)).first()


def count(db: Database, filters: Filters) -> int:
    """The number of schedules."""
    with db.read() as connection:
        query = select(func.count()).select_from(schedules).where(*_conditions(filters))
        return int(connection.execute(query).scalar_one())


def _conditions(filters: Filters) -> list[ColumnElement[bool]]:
    s, found = schedules.c, list[ColumnElement[bool]]()
    if filters.pipeline is not None:
        found.append(or_(s.pipeline == filters.pipeline, s.pipeline_id == filters.pipeline))
    if filters.platform is not None:
        found.append(s.platform == filters.platform)
    if filters.method is not None:
        found.append(s.method == filters.method)
    if filters.degraded is not None:
        found.append(s.degraded.is_not(None) if filters.degraded else s.degraded.is_(None))
    if filters.tag is not None:
        found.append(s.tags.contains(f" {filters.tag} ", autoescape=True))
    if filters.since is not None:
        found.append(s.created_us >= filters.since)
    if filters.until is not None:
        found.append(s.created_us < filters.until)
    for word in (filters.search or "").lower().split():
        found.append(or_(s.words.contains(word, autoescape=True), s.id.startswith(word, autoescape=True)))
    return found
