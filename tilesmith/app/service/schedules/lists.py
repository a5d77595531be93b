"""Lists of schedules: what they are filtered by, the orders that they come in, their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import eq
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Select, and_, false, func, or_, select

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
        wanted = _wanted(connection, _beyond(filters, order, position), order)
        asked = _Asked(connection, sorted_by(order), position, count)
        return _timed(asked, wanted) if order.removeprefix("-") in _TIMES else _ordered(asked, wanted)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A page that is asked for: `count` rows in an order that the store has, from a position on."""

    connection: Connection
    order: Sequence[Sorted]
    position: Position | None
    count: int

    @property
    def back(self) -> bool:
        """True if rows are read from greater values to less."""
        return self.order[0].descending != (self.position is not None and self.position.backwards)


def _beyond(filters: Filters, order: Order, position: Position | None) -> Filters:
    """The filters without the end of a span of time that a position in the order of the time is past: the store would
    seek by that end, and read all rows up to the position."""
    if position is None or not position.key or order not in ("newest", "oldest"):
        return filters
    here, back = int(position.key[0]), (order == "newest") != position.backwards
    if back:
        return replace(filters, until=None) if filters.until is not None and here < filters.until else filters
    return replace(filters, since=None) if filters.since is not None and here >= filters.since else filters


def _timed(asked: _Asked, wanted: _Wanted) -> Sequence[Any]:
    """A page in the order of a time: those that have one, then the others by their id, said to be in the order of the
    time, too: it is that of the index."""
    time, position = asked.order[0].column, asked.position
    timed, others = wanted.also(time.is_not(None)), wanted.also(time.is_(None))
    phases = (timed, replace(others, fixed={**others.fixed, time.name: None}))
    at, back, start, found = 0, False, position, list[Any]()
    if position is not None:
        at, back = int(position.key[0] == NEVER), position.backwards
    for phase in reversed(phases[: at + 1]) if back else phases[at:]:
        if len(found) < asked.count:
            found += _ordered(replace(asked, position=start, count=asked.count - len(found)), phase)
        start = Position((), True) if back else None
    return found


def _ordered(asked: _Asked, wanted: _Wanted) -> Sequence[Any]:
    """A page in an order that the store has: from each source the first ones, and of these the first."""
    if wanted.sources is None:
        return _rows(asked, wanted)
    if wanted.walked:
        return _walked(asked, wanted)
    parts = [_rows(asked, wanted.within(source)) for source in wanted.sources]
    found = {row.id: row for rows in parts for row in rows}
    return sorted(found.values(), key=lambda row: _key(row, asked.order), reverse=asked.back)[: asked.count]


def _walked(asked: _Asked, wanted: _Wanted) -> Sequence[Any]:
    """A page in the order of a name that each source has another value of: one source after the other."""
    name, back, found = asked.order[0].column.name, asked.back, list[Any]()
    sources = sorted(wanted.sources or (), key=lambda source: source.fixed[name], reverse=back)
    if asked.position is not None and asked.position.key:
        start = str(asked.position.key[0])
        sources = [s for s in sources if s.fixed[name] == start or (s.fixed[name] < start) == back]
    for source in sources:
        if len(found) == asked.count:
            break
        found += _rows(replace(asked, count=asked.count - len(found)), wanted.within(source))
    return found


def _rows(asked: _Asked, wanted: _Wanted) -> Sequence[Any]:
    """A page of the rows that meet the conditions. A value that all of them have is no part of the place: the store
    would seek by it and no further. The place is before all rows, after all, or in the order of the other columns."""
    order, position, back = asked.order, asked.position, asked.back
    among = [n for n, part in enumerate(order) if part.column.name not in wanted.fixed]
    if position is not None and position.key:
        value = wanted.fixed.get(order[0].column.name)
        if value is None or value == position.key[0]:
            position = replace(position, key=tuple(position.key[n] for n in among))
        elif (str(value) < str(position.key[0])) != back:
            return ()
        else:
            position = Position((), position.backwards)
    if position is not None and position.key and among[0] == 0 and order[0].column in _NAMES.values():
        return _from_a_name(replace(asked, position=position), wanted, str(position.key[0]))
    none = [part.column for part in order if wanted.fixed.get(part.column.name, "") is None]
    query = select(*SUMMARY).where(*wanted.conditions).order_by(*(c.desc() if back else c for c in none))
    rows = in_order(query, [order[n] for n in among], position).limit(asked.count)
    return asked.connection.execute(rows).all()


def _from_a_name(asked: _Asked, wanted: _Wanted, here: str) -> Sequence[Any]:
    """A page in the order of a name, from the name `here` on: what is left of the position's own, then those of the
    names beyond. Said at once, names that a search looks for are read from their first rows on."""
    assert asked.position is not None
    name, beyond = asked.order[0].column, Position((), asked.position.backwards)
    own = replace(wanted.also(name == here), fixed={**wanted.fixed, name.name: here})
    found = [*_rows(asked, own)]
    if len(found) < asked.count:
        others = wanted.also(name < here if asked.back else name > here)
        found += _rows(replace(asked, position=beyond, count=asked.count - len(found)), others)
    return found


def summary(db: Database, schedule_id: str) -> Any | None:
    """The summary of one schedule."""
    with db.read() as connection:
        return connection.execute(select(*SUMMARY).where(schedules.c.id == schedule_id)).first()


def count(db: Database, filters: Filters) -> str:
    """The number of schedules in words; what is not kept is counted up to COUNTED. That of schedules by their names is
    kept, and of a search, too, all of whose words are found in names alone."""
    with db.read() as connection:
        if replace(filters, pipeline=None, platform=None, method=None, search=None) == Filters():
            words = _words(connection, filters)
            if not any(word.tags or word.started for word in words):
                t = schedule_tallies.c
                named = [t[column] == name for column, name in _names(connection, filters).items()]
                said = [or_(false(), *(t[c.name].in_(names) for c, names in word.names if names)) for word in words]
                query = select(func.coalesce(func.sum(t.made), 0)).where(*named, *said)
                return _number(int(connection.execute(query).scalar_one()))
        wanted = _wanted(connection, filters)
        sources = () if wanted.sources is None else (or_(false(), *(source.condition for source in wanted.sources)),)
        some = select(schedules.c.id).where(*wanted.conditions, *sources).limit(COUNTED + 1).subquery()
        found = int(connection.execute(select(func.count()).select_from(some)).scalar_one())
        return _number(found) if found <= COUNTED else f"more than {_number(COUNTED)}"


def _number(count: int) -> str:
    return f"{count:,} schedule{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Conditions on the rows of a list. With `sources` a row has to meet one of these, too: each is a name, of which
    there are few rows or which an index has in order. `fixed` are values that all rows have, by column.
    `walked`: the list is in the order of a column of which each source has another value."""

    conditions: tuple[ColumnElement[bool], ...]
    sources: tuple[_Source, ...] | None = None
    fixed: Mapping[str, str | None] = field(default_factory=dict)
    walked: bool = False

    def also(self, condition: ColumnElement[bool]) -> _Wanted:
        return replace(self, conditions=(*self.conditions, condition))

    def within(self, source: _Source) -> _Wanted:
        """The rows of one source."""
        return replace(self.also(source.condition), sources=None, fixed={**source.fixed, **self.fixed})


@dataclass(frozen=True, slots=True)
class _Source:
    """Rows that a word of a search stands for, and the values that all of these have, by column. A common word has many
    sources, few of which are read: a condition is made when it is."""

    made: Callable[[], ColumnElement[bool]]
    fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def condition(self) -> ColumnElement[bool]:
        return self.made()


def _wanted(connection: Connection, filters: Filters, order: Order = "newest") -> _Wanted:
    s, names = schedules.c, _names(connection, filters)
    found = [s[column] == name for column, name in names.items()]
    if filters.degraded is not None:
        found.append(s.degraded.is_not(None) if filters.degraded else s.degraded.is_(None))
    if filters.tag is not None:
        found.append(_of_tag(connection, filters.tag))
    found += _span(connection, filters, order)
    words = _words(connection, filters)
    if not words:
        return _Wanted(tuple(found), fixed=names)
    first = words.pop(min(range(len(words)), key=lambda n: words[n].count))  # the others, its rows are held to
    sought = not _is_sqlite(connection)
    found += [word.condition(sought) for word in words]
    if first.count > SOURCES and (column := first.only) is not None and column is sorted_by(order)[0].column:
        met = (s for s in first.sources() if all(w.only is not column or w.has(column, s) for w in words))
        return _Wanted(tuple(found), tuple(met), names, walked=True)
    if first.count > SOURCES:
        return _Wanted((*found, first.condition(sought)), fixed=names)
    return _Wanted(tuple(found), first.sources(), names)


def _is_sqlite(connection: Connection) -> bool:
    """True where indices are chosen without knowing what the columns hold: conditions have to say which."""
    return connection.dialect.name == "sqlite"


def _span(connection: Connection, filters: Filters, order: Order) -> list[ColumnElement[bool]]:
    """The conditions of a span of time. In an order that is not of the time, the rows are sorted where they are few,
    and sought in the order where they are many."""
    made = schedules.c.created_us
    span = _between(made, filters)
    if not span or order in ("newest", "oldest"):
        return span
    some = select(made).where(*span).limit(FEW + 1).subquery()
    count = connection.execute(select(func.count()).select_from(some)).scalar_one()
    if count == 0:
        return [false()]
    if _is_sqlite(connection):
        return span if count <= FEW else _between(made + 0, filters)  # no index leads from an expression to its rows
    return [_by_ids(select(schedules.c.id).where(*span))] if count <= FEW else span


def _of_tag(connection: Connection, tag: str) -> ColumnElement[bool]:
    """The condition of a tag: rows are sought by their ids where they are few. PostgreSQL takes rows after a place in
    an order for fewer than they are, and would read all of these."""
    tagged = schedule_tags.c.tag == tag
    some = select(schedule_tags.c.schedule_id).where(tagged).limit(FEW + 1).subquery()
    if _is_sqlite(connection) or connection.execute(select(func.count()).select_from(some)).scalar_one() > FEW:
        return _tagged(tagged)
    return _by_ids(select(schedule_tags.c.schedule_id).where(tagged))


def _by_ids(ids: Select[tuple[str]]) -> ColumnElement[bool]:
    """The rows of these ids, which PostgreSQL finds first."""
    return schedules.c.id == func.any(func.array(ids.scalar_subquery()))


def _between(time: ColumnElement[Any], filters: Filters) -> list[ColumnElement[bool]]:
    since = [time >= filters.since] if filters.since is not None else []
    return since + ([time < filters.until] if filters.until is not None else [])


def _names(connection: Connection, filters: Filters) -> dict[str, str]:
    """The names that are filtered by, by column. A pipeline's is its name or its id, of which there is one name: that
    is said as well, so that the order by name is that of the time."""
    found = {n: v for n in ("platform", "method") if (v := getattr(filters, n)) is not None}
    if filters.pipeline is not None:
        by_id = select(schedules.c.pipeline).where(schedules.c.pipeline_id == filters.pipeline).limit(1)
        name = connection.execute(by_id).scalar_one_or_none()
        found["pipeline"] = filters.pipeline if name is None else name
        if name is not None:
            found["pipeline_id"] = filters.pipeline
    return found


@dataclass(frozen=True, slots=True)
class _Meanings:
    """The names that a word of a search stands for, by column, and the tags; `started` are those whose id it begins."""

    names: tuple[tuple[ColumnElement[str], tuple[str, ...]], ...]
    tags: tuple[str, ...]
    started: tuple[ColumnElement[bool], ...]

    @property
    def count(self) -> int:
        return sum(len(names) for _, names in self.names) + len(self.tags) + len(self.started)

    @property
    def only(self) -> ColumnElement[str] | None:
        """The column that all of them are names in."""
        columns = [column for column, names in self.names if names]
        return columns[0] if len(columns) == 1 and not self.tags and not self.started else None

    def has(self, column: ColumnElement[str], source: _Source) -> bool:
        """True if the name that the source is of is one of them."""
        return any(source.fixed[column.name] in names for c, names in self.names if c is column)

    def sources(self) -> tuple[_Source, ...]:
        """A source for each."""
        found = [
            _Source(partial(eq, column, name), {column.name: name}) for column, names in self.names for name in names
        ]
        others = (*(_tagged(schedule_tags.c.tag == tag) for tag in self.tags), *self.started)
        return (*found, *(_Source(partial(and_, other)) for other in others))

    def condition(self, sought: bool) -> ColumnElement[bool]:
        """One for all of them. Unless `sought`, no index is to lead to their rows: none does from an expression."""
        named = [(column if sought else column.concat("")).in_(names) for column, names in self.names if names]
        return or_(
            false(), *named, *([_tagged(schedule_tags.c.tag.in_(self.tags))] if self.tags else ()), *self.started
        )


def _words(connection: Connection, filters: Filters) -> list[_Meanings]:
    return [_meanings(connection, word) for word in (filters.search or "").lower().split()]


def _meanings(connection: Connection, word: str) -> _Meanings:
    s, n, tag = schedules.c, schedule_names.c, schedule_tags.c.tag
    query = select(n.kind, n.name).where(n.name.icontains(word, autoescape=True)).order_by(n.kind, n.name)
    found = connection.execute(query).all()
    columns = (s.pipeline, s.platform, s.method)
    names = tuple((column, tuple(row.name for row in found if row.kind == column.name)) for column in columns)
    tags = connection.execute(select(tag).where(tag.contains(word, autoescape=True)).distinct()).scalars()
    return _Meanings(names, tuple(tags), (_started(connection, word),) if _ID.fullmatch(word) else ())


def _started(connection: Connection, start: str) -> ColumnElement[bool]:
    """The schedules whose id begins so: by their ids where they are few."""
    column = schedules.c.id
    found = and_(column >= start, column < start + "g")  # ids are hexadecimal
    if len(start) < START_DIGITS:
        return found
    ids = connection.execute(select(column).where(found).limit(SOURCES + 1)).scalars().all()
    return column.in_(ids) if len(ids) <= SOURCES else column.in_(select(column).where(found))


def _tagged(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return schedules.c.id.in_(select(schedule_tags.c.schedule_id).where(condition))
