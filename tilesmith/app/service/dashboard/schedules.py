"""/: the stored schedules, found, sorted, leafed through, and two of them picked to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BeforeValidator

from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Page, address, html, leaves
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.schedules.endpoints import summary
from tilesmith.app.service.schedules.lists import Filters, Order, count, listed
from tilesmith.app.service.times import Dated, microseconds

router = APIRouter()

Word = Annotated[str, Query(max_length=64)]
Day = Annotated[datetime | None, Dated, BeforeValidator(lambda value: value or None), Query()]


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

    @property
    def query(self) -> dict[str, str]:
        """The question as its address has it; the usual order is left out."""
        return {"q": self.q, **self.fields, "order": self.order if self.order != "newest" else ""}

    def href(self, **changed: str) -> str:
        """The address of the page with something changed."""
        return address("/", **self.query | changed)


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


@router.get("/schedules", dependencies=[Page])
def schedules_elsewhere(request: Request) -> RedirectResponse:
    """The list is the first page; its address stands above that of each schedule."""
    query = request.url.query
    return RedirectResponse(f"/?{query}" if query else "/", 308)


@router.get("/", dependencies=[Page], response_class=HTMLResponse)
def every(
    request: Request, services: Services, paging: Paging, wanted: Annotated[Wanted, Depends(_wanted)]
) -> HTMLResponse:
    """The stored schedules."""
    page = listed(services.db, wanted.filters, wanted.order, paging)
    return html(
        "schedules.html",
        items=[summary(row) for row in page.items],
        total=count(services.db, wanted.filters),
        wanted=wanted,
        filtered=any(wanted.fields.values()),
        columns=[_heading(column, wanted) for column in COLUMNS],
        leaves=leaves(request, "/", wanted.query, page),
        twin=address("/v1/schedules", **wanted.query, cursor=paging.after),
        base=str(request.base_url).rstrip("/"),
    )


def _heading(column: Column, wanted: Wanted) -> dict[str, Any]:
    """A heading with the address that sorts by it, and the direction that it is sorted in, if it is."""
    first, second = column.orders
    chosen = wanted.order in column.orders
    other = second if wanted.order == first else first
    back = (wanted.order == second) != (first in DESCENDING)
    return {
        "title": column.title,
        "number": column.number,
        "sort": ("descending" if back else "ascending") if chosen else None,
        "href": wanted.href(order=other if other != "newest" else ""),
    }
