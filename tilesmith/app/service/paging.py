"""Lists: opaque cursors, an enforced limit, pages that neither repeat nor skip while rows are added.

A cursor holds the key of an entry and the side of it that the page is on.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query, Request
from sqlalchemy import ColumnElement, Select, tuple_

from tilesmith.app.service.errors import ApiError
from tilesmith.scheduler.errors import Problem

T = TypeVar("T")
Key = tuple[str | int | float, ...]
BEFORE = "before:"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a list: the page wanted follows the entry of that key or, with `backwards`, comes before it. Without a
    key it is the end that the page begins at."""

    key: Key
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Sorted:
    """A part of a list's order. All have one direction, and the last is unique."""

    column: ColumnElement[Any]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page: its start (None: the beginning) and the most entries that it may have."""

    after: str | None
    limit: int

    def key(self, kind: str, types: tuple[type, ...]) -> Key | None:
        """The key of the last entry of the page before, for lists that lead onwards only; ApiError `bad_cursor`."""
        position = self.position(kind, types)
        if position is not None and position.backwards:
            raise _bad_cursor()
        return position.key if position is not None else None

    def position(self, kind: str, types: tuple[type, ...]) -> Position | None:
        """The place where the page starts, as `next_page` wrote it; ApiError `bad_cursor`."""
        if self.after is None:
            return None
        try:
            decoded = json.loads(base64.urlsafe_b64decode(self.after.encode("ascii")))
        except (ValueError, binascii.Error, RecursionError):
            decoded = None
        if (
            not isinstance(decoded, list)
            or decoded[:1] not in ([kind], [BEFORE + kind])
            or len(decoded) != 1 + len(types)
            or not all(_is_key(v, t) for v, t in zip(decoded[1:], types, strict=True))
        ):
            raise _bad_cursor()
        return Position(tuple(decoded[1:]), decoded[0] != kind)


def _bad_cursor() -> ApiError:
    return ApiError("bad_cursor", "use a cursor of the page before, with the same filters and order")


def _is_key(value: object, wanted: type) -> bool:
    """True if a part of a cursor is one that the store can compare."""
    if isinstance(value, str):
        return wanted is str and "\0" not in value
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is wanted is int and 0 <= value < 1 << 63


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page; `next_cursor` is None on the last one, `previous_cursor` on the first."""

    items: tuple[T, ...]
    next_cursor: str | None
    previous_cursor: str | None = None


def next_page(
    found: Sequence[T], keys: Sequence[Key], kind: str, limit: int, position: Position | None = None
) -> Page[T]:
    """The page of `found`, which has up to limit + 1 entries from the position on; cursors lead to what is left."""
    more = len(found) > limit
    items, keys = tuple(found[:limit]), keys[:limit]
    if position is not None and position.backwards:
        items, keys = items[::-1], keys[::-1]
        before, after = more, True
    else:
        before, after = position is not None, more
    return Page(
        items,
        _cursor(kind, keys[-1]) if keys and after else None,
        _cursor(BEFORE + kind, keys[0]) if keys and before else None,
    )


def merged_page(
    built_in: Iterable[tuple[Key, T]], stored: Iterable[tuple[Key, T]], after: Key | None, kind: str, limit: int
) -> Page[T]:
    """The page of two lists in the order of their keys: of `built_in`, which is all that there is, and of `stored`, up
    to limit + 1 entries after the key."""
    left = (entry for entry in built_in if after is None or entry[0] > after)
    entries = sorted((*left, *stored), key=lambda entry: entry[0])[: limit + 1]
    return next_page([item for _, item in entries], [key for key, _ in entries], kind, limit)


def _cursor(kind: str, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([kind, *key], separators=(",", ":")).encode()).decode()


def names_beyond(names: Iterable[str], position: Position | None) -> list[str]:
    """The names, of a list ordered by name, that are on the page's side of the position, in the order of `in_order`."""
    if position is None:
        return sorted(names)
    place = str(position.key[0])
    if position.backwards:
        return sorted((n for n in names if n < place), reverse=True)
    return sorted(n for n in names if n > place)


def in_order(query: Select[Any], order: Sequence[Sorted], position: Position | None) -> Select[Any]:
    """The query's rows in that order, whose parts have one direction, from the position on: an index that has them
    leads to the place. Those before a position come the last first."""
    descending = order[0].descending != (position is not None and position.backwards)
    query = query.order_by(*(s.column.desc() if descending else s.column for s in order))
    if position is None or not position.key:
        return query
    here, there = tuple_(*(s.column for s in order)), tuple_(*position.key)
    return query.where(here < there if descending else here > there)


def _page_request(
    request: Request,
    cursor: Annotated[
        str | None, Query(max_length=500, description="`next_cursor` or `previous_cursor` of a page")
    ] = None,
    limit: Annotated[int | None, Query(ge=1, description="Largest number of entries; see /v1/capabilities")] = None,
) -> PageRequest:
    settings = request.app.state.context.settings
    if limit is not None and limit > settings.page_limit:
        problem = Problem("less_than_equal", "/query/limit", f"Input should be at most {settings.page_limit}")
        raise ApiError("bad_request", f"a page has at most {settings.page_limit} entries", (problem,))
    return PageRequest(cursor, limit or min(settings.page_default, settings.page_limit))


Paging = Annotated[PageRequest, Depends(_page_request)]
