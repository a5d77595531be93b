"""Lists of schedules: what they are filtered by, the orders that they come in, their rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Table, and_, false, func, or_, select

from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Key, Page, PageRequest, Position, Sorted, in_order, next_page
from tilesmith.app.service.tables import schedule_names, schedule_tags, schedule_tallies, schedules

Order = Literal[
    "newest", "oldest", "name", "-name", "platform", "-platform", "predicted", "-predicted", "measured", "-measured"
]
"""Orders of a list; with "-", backwards. Schedules without a time come last either way."""
ORDERS: tuple[Order, ...] = get_args(Order)

_ID = re.compile("[0-9a-f]{1,32}")


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
NEVER = 1e300  # the time in a key of a schedule that has none
SOURCES = 64
"""Names that a word of a search may stand for before rows are looked through in their order: it is a common word then.
"""
COUNTED = 1000
FEW = 2000  # rows of a span of time that are sorted rather than sought in an order
START_DIGITS = 6  # of an id, from which few have it

_TIMES = {"predicted": schedules.c.predicted_ms, "measured": schedules.c.measured_ms}
_NAMES = {"name": schedules.c.pipeline, "platform": schedules.c.platform}


def sorted_by(order: Order) -> tuple[Sorted, ...]:
    """The parts of an order: what it is called after, then when they were made."""
    name, back = order.removeprefix("-"), order.startswith("-") or order == "newest"
    columns: tuple[ColumnElement[Any], ...] = (schedules.c.created_us, schedules.c.id)
    if name in _TIMES:
        columns = (_TIMES[name], schedules.c.id)
    elif name in _NAMES:
        columns = (_NAMES[name], *columns)
    return tuple(Sorted(column, back) for column in columns)


def key_types(order: Order) -> tuple[type, ...]:
    """The types of the parts of a key."""
    if order in ("newest", "oldest"):
        return int, str
    return (float, str) if order.removeprefix("-") in _TIMES else (str, int, str)


def key_of(row: Any, order: Order) -> Key:
    """The sort key of a summary in an order."""
    return _key(row, sorted_by(order))


def _key(row: Any, order: Sequence[Sorted]) -> Key:
    values = (row._mapping[part.column] for part in order)
    return tuple(NEVER if value is None else value for value in values)


def listed(db: Database, filters: Filters, order: Order, paging: PageRequest) -> Page[Any]:
    """The page of summaries that is asked for; ApiError `bad_cursor`."""
    kind = f"schedules:{order}"
    position = paging.position(kind, key_types(order))
    rows = page(db, filters, order, position, paging.limit + 1)
    return next_page(rows, [key_of(row, order) for row in rows], kind, paging.limit, position)


def page(db: Database, filters: Filters, order: Order, position: Position | None, count: int) -> Sequence[Any]:
    """Up to `count` summaries from the position on (see `key_of`)."""
    with db.read() as connection:
        wanted = _wanted(connection, filters, order)
        if order.removeprefix("-") in _TIMES:
            return _timed(connection, wanted, order, position, count)
        return _ordered(connection, wanted, sorted_by(order), position, count)


def _timed(
    connection: Connection, wanted: _Wanted, order: Order, position: Position | None, count: int
) -> Sequence[Any]:
    """A page in the order of a time: those that have one, then the others by their id."""
    time, by_id = sorted_by(order)
    phases = ((time.column.is_not(None), (time, by_id)), (time.column.is_(None), (by_id,)))
    at, back, start, found = 0, False, None, list[Any]()
    if position is not None:
        at, back = int(position.key[0] == NEVER), position.backwards
        start = Position(position.key[at:], back)
    for condition, parts in reversed(phases[: at + 1]) if back else phases[at:]:
        if len(found) < count:
            found += _ordered(connection, wanted.also(condition), parts, start, count - len(found))
        start = Position((), True) if back else None
    return found


def _ordered(
    connection: Connection, wanted: _Wanted, order: Sequence[Sorted], position: Position | None, count: int
) -> Sequence[Any]:
    """A page in an order that the store has: from each source the first ones, and of these the first. Columns that all
    rows have alike are no part of the order: the store would seek by them and no further."""
    among = [n for n, part in enumerate(order) if part.column.name not in wanted.fixed]
    if position is not None and position.key:
        position = replace(position, key=tuple(position.key[n] for n in among))
    order = [order[n] for n in among]
    query = in_order(select(*SUMMARY).where(*wanted.conditions), order, position).limit(count)
    if wanted.sources is None:
        return connection.execute(query).all()
    found = {row.id: row for source in wanted.sources for row in connection.execute(query.where(source))}
    back = order[0].descending != (position is not None and position.backwards)
    return sorted(found.values(), key=lambda row: _key(row, order), reverse=back)[:count]


def summary(db: Database, schedule_id: str) -> Any | None:
    """The summary of one schedule."""
    with db.read() as connection:
        return connection.execute(select(*SUMMARY).where(schedules.c.id == schedule_id)).first()


def count(db: Database, filters: Filters) -> str:
    """The number of schedules in words; what is not kept is counted up to COUNTED."""
    with db.read() as connection:
        if replace(filters, pipeline=None, platform=None, method=None) == Filters():
            t = schedule_tallies.c
            query = select(func.coalesce(func.sum(t.made), 0)).where(*_named(connection, filters, schedule_tallies))
            return _number(int(connection.execute(query).scalar_one()))
        wanted = _wanted(connection, filters)
        sources = () if wanted.sources is None else (or_(false(), *wanted.sources),)
        some = select(schedules.c.id).where(*wanted.conditions, *sources).limit(COUNTED + 1).subquery()
        found = int(connection.execute(select(func.count()).select_from(some)).scalar_one())
        return _number(found) if found <= COUNTED else f"more than {_number(COUNTED)}"


def _number(count: int) -> str:
    return f"{count:,} schedule{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Conditions on the rows of a list. With `sources` a row has to meet one of these, too: each is a name, of which
    there are few rows or which an index has in order. All rows are alike in the columns `fixed`."""

    conditions: tuple[ColumnElement[bool], ...]
    sources: tuple[ColumnElement[bool], ...] | None = None
    fixed: frozenset[str] = frozenset()

    def also(self, condition: ColumnElement[bool]) -> _Wanted:
        return replace(self, conditions=(*self.conditions, condition))


def _wanted(connection: Connection, filters: Filters, order: Order = "newest") -> _Wanted:
    s, found = schedules.c, _named(connection, filters, schedules)
    if filters.degraded is not None:
        found.append(s.degraded.is_not(None) if filters.degraded else s.degraded.is_(None))
    if filters.tag is not None:
        found.append(_tagged(schedule_tags.c.tag == filters.tag))
    found += _span(connection, filters, order)
    fixed = frozenset(name for name in ("pipeline", "platform") if getattr(filters, name) is not None)
    words = [_meanings(connection, word) for word in (filters.search or "").lower().split()]
    if not words:
        return _Wanted(tuple(found), fixed=fixed)
    first = words.pop(min(range(len(words)), key=lambda n: words[n].count))  # the others, its rows are held to
    found += [word.condition() for word in words]
    if first.count > SOURCES:
        return _Wanted((*found, first.condition()), fixed=fixed)
    return _Wanted(tuple(found), first.sources(), fixed)


def _span(connection: Connection, filters: Filters, order: Order) -> list[ColumnElement[bool]]:
    """The conditions of a span of time. One that has many rows is not looked up in an order that is not of the time."""
    made = schedules.c.created_us
    span = [made >= filters.since] if filters.since is not None else []
    span += [made < filters.until] if filters.until is not None else []
    if not span or order in ("newest", "oldest"):
        return span
    some = select(made).where(*span).limit(FEW + 1).subquery()
    if connection.execute(select(func.count()).select_from(some)).scalar_one() <= FEW:
        return span
    unsought = made + 0  # no index leads from an expression to its rows
    span = [unsought >= filters.since] if filters.since is not None else []
    return span + ([unsought < filters.until] if filters.until is not None else [])


def _named(connection: Connection, filters: Filters, table: Table) -> list[ColumnElement[bool]]:
    """The filters by name, on the columns of a table. A pipeline's is its name or its id, of which there is one name:
    that is said as well, so that the order by name is that of the time."""
    found = [table.c[n] == v for n in ("platform", "method") if (v := getattr(filters, n)) is not None]
    if filters.pipeline is not None:
        by_id = select(schedules.c.pipeline).where(schedules.c.pipeline_id == filters.pipeline).limit(1)
        name = connection.execute(by_id).scalar_one_or_none()
        found.append(table.c.pipeline == (filters.pipeline if name is None else name))
        if name is not None:
            found.append(table.c.pipeline_id == filters.pipeline)
    return found


@dataclass(frozen=True, slots=True)
class _Meanings:
    """The names that a word of a search stands for, by column, and the tags; `start` where it may begin an id."""

    names: tuple[tuple[ColumnElement[str], tuple[str, ...]], ...]
    tags: tuple[str, ...]
    start: str | None

    @property
    def count(self) -> int:
        return sum(len(names) for _, names in self.names) + len(self.tags) + (self.start is not None)

    def sources(self) -> tuple[ColumnElement[bool], ...]:
        """A condition for each."""
        found = [column == name for column, names in self.names for name in names]
        return (*found, *(_tagged(schedule_tags.c.tag == tag) for tag in self.tags), *self._started())

    def condition(self) -> ColumnElement[bool]:
        """One for all of them, on rows that are found otherwise: no index leads from an expression to its rows."""
        named = [column.concat("").in_(names) for column, names in self.names if names]
        return or_(
            false(), *named, *([_tagged(schedule_tags.c.tag.in_(self.tags))] if self.tags else ()), *self._started()
        )

    def _started(self) -> tuple[ColumnElement[bool], ...]:
        if self.start is None:
            return ()
        column = schedules.c.id
        found = and_(column >= self.start, column < self.start + "g")  # ids are hexadecimal
        return (found if len(self.start) < START_DIGITS else column.in_(select(column).where(found)),)


def _meanings(connection: Connection, word: str) -> _Meanings:
    s, n, tag = schedules.c, schedule_names.c, schedule_tags.c.tag
    query = select(n.kind, n.name).where(n.name.icontains(word, autoescape=True)).order_by(n.kind, n.name)
    found = connection.execute(query).all()
    columns = (s.pipeline, s.platform, s.method)
    names = tuple((column, tuple(row.name for row in found if row.kind == column.name)) for column in columns)
    tags = connection.execute(select(tag).where(tag.contains(word, autoescape=True)).distinct()).scalars()
    return _Meanings(names, tuple(tags), word if _ID.fullmatch(word) else None)


def _tagged(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return schedules.c.id.in_(select(schedule_tags.c.schedule_id).where(condition))
