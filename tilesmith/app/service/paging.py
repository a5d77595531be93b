"""Lists: an opaque cursor, an enforced limit, pages that neither repeat nor skip while rows are added."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Query, Request

from tilesmith.app.service.errors import ApiError
from tilesmith.scheduler.errors import Problem

T = TypeVar("T")
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page: its start (None: the beginning) and the most entries that it may have."""

    after: str | None
    limit: int

    def key(self, kind: str, types: tuple[type, ...]) -> Key | None:
        """The key of the last entry of the page before, as `next_page` wrote it; ApiError `bad_cursor`."""
        if self.after is None:
            return None
        try:
            decoded = json.loads(base64.urlsafe_b64decode(self.after.encode("ascii")))
        except (ValueError, binascii.Error, RecursionError):
            decoded = None
        if (
            not isinstance(decoded, list)
            or decoded[:1] != [kind]
            or len(decoded) != 1 + len(types)
            or not all(_is_key(v, t) for v, t in zip(decoded[1:], types, strict=True))
        ):
            raise ApiError("bad_cursor", "use `next_cursor` of the page before, with the same filters and order")
        return tuple(decoded[1:])


def _is_key(value: object, wanted: type) -> bool:
    """True if a part of a cursor is one that the store can compare."""
    if isinstance(value, str):
        return wanted is str and "\0" not in value
    return type(value) is wanted is int and 0 <= value < 1 << 63


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page; `next_cursor` is None on the last one."""

    items: tuple[T, ...]
    next_cursor: str | None


def next_page(found: Sequence[T], keys: Sequence[Key], kind: str, limit: int) -> Page[T]:
    """The page of `found`, which has up to limit + 1 entries, with a cursor where there are more."""
    if len(found) <= limit:
        return Page(tuple(found), None)
    text = json.dumps([kind, *keys[limit - 1]], separators=(",", ":"))
    return Page(tuple(found[:limit]), base64.urlsafe_b64encode(text.encode()).decode())


def _page_request(
    request: Request,
    cursor: Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before")] = None,
    limit: Annotated[int | None, Query(ge=1, description="Largest number of entries; see /v1/capabilities")] = None,
) -> PageRequest:
    settings = request.app.state.context.settings
    if limit is not None and limit > settings.page_limit:
        problem = Problem("less_than_equal", "/query/limit", f"Input should be at most {settings.page_limit}")
        raise ApiError("bad_request", f"a page has at most {settings.page_limit} entries", (problem,))
    return PageRequest(cursor, limit or min(settings.page_default, settings.page_limit))


Paging = Annotated[PageRequest, Depends(_page_request)]
