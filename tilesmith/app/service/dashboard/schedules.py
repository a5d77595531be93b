"""/: the stored schedules, found, sorted, leafed through, and two of them picked to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BeforeValidator

from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Page, html
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.schedules.endpoints import summary
from tilesmith.app.service.schedules.lists import Filters, Order, count, listed
from tilesmith.app.service.times import microseconds

router = APIRouter()

Word = Annotated[str, Query(max_length=64)]
Day = Annotated[datetime | None, BeforeValidator(lambda value: value or None), Query()]


@dataclass(frozen=True, slots=True)
class Column:
    """A column that the list can be sorted by: in the first order when chosen, in the second when chosen again."""

    title: str
    orders: tuple[Order, Order]
    number: bool = False


COLUMNS = (
    Column("Pipeline", ("name", "-name")),
    Column("Platform", ("platform", "-platform")),
    Column("Predicted (ms)", ("predicted", "-predicted"), number=True),
    Column("Measured (ms)", ("measured", "-measured"), number=True),
    Column("Made (UTC)", ("newest", "oldest")),
)
DESCENDING = ("newest",)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The question of the page: the fields of its form, and the order."""

    q: str
    fields: dict[str, str]
    filters: Filters
    order: Order

    def href(self, **changed: str) -> str:
        """The address of the page with something changed; what is empty is left out."""
        everything = {"q": self.q, **self.fields, "order": self.order if self.order != "newest" else ""} | changed
        given = {name: value for name, value in everything.items() if value}
        return f"/?{urlencode(given)}" if given else "/"


def _wanted(
    q: Word = "",
    pipeline: Word = "",
    platform: Word = "",
    method: Word = "",
    tag: Word = "",
    since: Day = None,
    until: Day = None,
    order: Order = "newest",
) -> Wanted:
    days = {"since": since, "until": until}
    fields = {"pipeline": pipeline, "platform": platform, "method": method, "tag": tag}
    fields |= {name: day.date().isoformat() if day is not None else "" for name, day in days.items()}
    filters = Filters(
        pipeline=pipeline or None,
        platform=platform or None,
        method=method or None,
        search=q or None,
        tag=tag.lower() or None,
        since=microseconds(since),
        until=microseconds(until),
    )
    return Wanted(q, fields, filters, order)


@router.get("/", dependencies=[Page], response_class=HTMLResponse)
def every(
    request: Request, services: Services, paging: Paging, wanted: Annotated[Wanted, Depends(_wanted)]
) -> HTMLResponse:
    """The stored schedules."""
    page = listed(services.db, wanted.filters, wanted.order, paging)
    limit = {"limit": str(paging.limit)} if "limit" in request.query_params else {}
    return html(
        "schedules.html",
        items=[summary(row) for row in page.items],
        total=count(services.db, wanted.filters),
        wanted=wanted,
        filtered=any(wanted.fields.values()),
        columns=[_heading(column, wanted) for column in COLUMNS],
        first=wanted.href(**limit) if page.previous_cursor else None,
        previous=wanted.href(cursor=page.previous_cursor, **limit) if page.previous_cursor else None,
        next=wanted.href(cursor=page.next_cursor, **limit) if page.next_cursor else None,
        twin="/v1/schedules" + wanted.href(**limit, cursor=paging.after or "")[1:],
        base=str(request.base_url).rstrip("/"),
    )


def _heading(column: Column, wanted: Wanted) -> dict[str, Any]:
    """A heading with the address that sorts by it, and the direction that it is sorted in, if it is."""
    first, second = column.orders
    chosen = wanted.order in column.orders
    back = (wanted.order == second) != (first in DESCENDING)
    return {
        "title": column.title,
        "number": column.number,
        "sort": ("descending" if back else "ascending") if chosen else None,
        "href": wanted.href(order="" if (order := second if wanted.order == first else first) == "newest" else order),
    }
