"""Pages: the stored schedules, and one of them. Rendered here, usable without scripts; each has a JSON twin."""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tilesmith.app.service.context import Bearer, Context, Services
from tilesmith.app.service.dashboard.charts import Point, scatter
from tilesmith.app.service.dashboard.highlight import c_html, style_sheet
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.jobs.service import summary as job_summary
from tilesmith.app.service.paging import Paging, next_page
from tilesmith.app.service.schedules import repository
from tilesmith.app.service.schedules.endpoints import summary
from tilesmith.app.service.schedules.repository import Filters, Order
from tilesmith.app.service.schedules.service import FORMS
from tilesmith.app.service.tokens.service import unauthorized

ORDERS: tuple[tuple[Order, str], ...] = (("newest", "newest first"), ("oldest", "oldest first"), ("name", "by name"))
SHOWN_JOBS = 20

_pages = Environment(
    loader=PackageLoader("tilesmith.app.service.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_basic = HTTPBasic(auto_error=False, description="A token as the password, for browsers")
Basic = Annotated[HTTPBasicCredentials | None, Depends(_basic)]


def _reader(services: Services, basic: Basic, bearer: Bearer) -> None:
    """Pages take the token as the password of a browser's own question."""
    token = bearer.credentials if bearer else basic.password if basic else None
    try:
        services.tokens.check(token, "read")
    except ApiError as error:
        if error.code == "unauthorized":
            raise unauthorized(error.detail, 'Basic realm="tilesmith: a token as the password"') from None
        raise


router = APIRouter(tags=["dashboard"], include_in_schema=False)
Page: Any = Depends(_reader)


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
    return _html(
        "list.html",
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


@router.get("/schedules/{schedule_id}", dependencies=[Page], response_class=HTMLResponse)
def one(schedule_id: str, services: Services) -> HTMLResponse:
    """One schedule: what was decided, the loop nest, the C, the documents, its jobs."""
    schedule = json.loads(services.schedules.get(schedule_id).content)
    text = {
        name: services.schedules.form(schedule_id, name).content.decode()
        for name in ("code.c", "loopnest.txt", "explain.txt", "pipeline.json", "platform.json")
    }
    candidates = _candidates(services, schedule_id)
    fixed = schedule["options"].get("fixed")
    jobs = job_rows.page(services.db, schedule_id, None, None, None, SHOWN_JOBS)
    return _html(
        "schedule.html",
        schedule=schedule,
        candidates=candidates,
        chart=_chart(candidates),
        measured_chart=_measured_chart(candidates),
        fixed=json.dumps(fixed, indent=2) if fixed else "",
        forms=FORMS,
        built=job_rows.library(services.db, schedule_id) is not None,
        loopnest=text["loopnest.txt"],
        explain=text["explain.txt"],
        code=c_html(text["code.c"]),
        pipeline=_readable(text["pipeline.json"]),
        platform=_readable(text["platform.json"]),
        jobs=[job_summary(row) for row in jobs],
    )


def _candidates(services: Context, schedule_id: str) -> dict[str, Any]:
    """The table of candidates; empty where the schedule was made by a version that kept none."""
    found = repository.find_form(services.db, schedule_id, "candidates")
    table: dict[str, Any] = json.loads(found.content) if found is not None else {}
    return table if table.get("items") else {}


def _chart(candidates: dict[str, Any]) -> Markup:
    """Memory over predicted cost."""
    points = [
        Point(str(c["rank"]), c["predicted"], c["memory_bytes"] / 1024, _kind(c)) for c in candidates.get("items", ())
    ]
    return scatter(
        "Memory of the candidates over their predicted cost",
        points,
        f"predicted {candidates.get('unit', '')}",
        "KiB of memory",
    )


def _measured_chart(candidates: dict[str, Any]) -> Markup:
    """Measured time over predicted cost, of the candidates that ran."""
    points = [
        Point(str(c["rank"]), c["predicted"], c["measured_ms"], "best" if c.get("chosen") else "plain")
        for c in candidates.get("items", ())
        if c.get("measured_ms") is not None and c.get("error") is None
    ]
    title = "Measured time of the candidates over their predicted cost"
    return scatter(title, points, f"predicted {candidates.get('unit', '')}", "ms measured")


def _kind(candidate: dict[str, Any]) -> str:
    best = candidate.get("chosen", candidate["rank"] == 1)
    return "best" if best else "good" if candidate["pareto"] else "plain"


@router.get("/static/style.css")
def style() -> Response:
    """The pages' own style sheet."""
    return _css((files("tilesmith.app.service.dashboard") / "static" / "style.css").read_text(encoding="utf-8"))


@router.get("/static/code.css")
def code_style() -> Response:
    """Colours of highlighted code."""
    return _css(style_sheet())


def error_page(problem: dict[str, Any], status: int, headers: dict[str, str]) -> HTMLResponse:
    """A problem document for people."""
    return _html("error.html", status, headers, problem={"request_id": ""} | problem)


def _html(template: str, status: int = 200, headers: dict[str, str] | None = None, /, **values: Any) -> HTMLResponse:
    content = _pages.get_template(template).render(version=version("tilesmith"), **values)
    return HTMLResponse(content, status, {"Cache-Control": "no-store"} | (headers or {}))


def _css(content: str) -> Response:
    return Response(content, media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


def _readable(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
