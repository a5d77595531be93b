"""/: the stored schedules."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Page, html
from tilesmith.app.service.paging import Paging, next_page
from tilesmith.app.service.schedules import repository
from tilesmith.app.service.schedules.endpoints import summary
from tilesmith.app.service.schedules.repository import Filters, Order

ORDERS: tuple[tuple[Order, str], ...] = (("newest", "newest first"), ("oldest", "oldest first"), ("name", "by name"))

router = APIRouter()


@router.get("/", dependencies=[Page], response_class=HTMLResponse)
def every(
    request: Request,
    services: Services,
    paging: Paging,
    q: Annotated[str, Query(max_length=64)] = "",
    order: Order = "newest",
) -> HTMLResponse:
    """The stored schedules."""
    filters = Filters(search=q or None)
    kind = f"schedules:{order}"
    rows = repository.page(services.db, filters, order, paging.key(kind, repository.KEY_TYPES[order]), paging.limit + 1)
    page = next_page(rows, [repository.key_of(row, order) for row in rows], kind, paging.limit)
    here = {"q": q, "order": order, "limit": str(paging.limit)}
    following = here | {"cursor": page.next_cursor or ""}
    return html(
        "schedules.html",
        items=[summary(row) for row in page.items],
        total=repository.count(services.db, filters),
        query=q,
        order=order,
        orders=ORDERS,
        paged=paging.after is not None,
        first=f"/?{urlencode(here)}",
        next=f"/?{urlencode(following)}" if page.next_cursor else None,
        twin=f"/v1/schedules?{urlencode(here | ({'cursor': paging.after} if paging.after else {}))}",
        base=str(request.base_url).rstrip("/"),
    )
