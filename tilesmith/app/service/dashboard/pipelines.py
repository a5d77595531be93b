"""/pipelines: all of them by name, and one with its versions, its schedules and the trend of its times."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from tilesmith.app.service.context import Context, Services
from tilesmith.app.service.dashboard.charts import chart
from tilesmith.app.service.dashboard.pages import Page, html, leaves
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.pipelines import history
from tilesmith.app.service.pipelines.history import Version
from tilesmith.app.service.schedules.endpoints import summary
from tilesmith.app.service.times import instant, maybe_instant
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.frontends.document import document as documents

router = APIRouter()

SHOWN = 20
TREND = 40
"""Versions of a trend, the newest: more cannot be told apart."""
WIDTH = re.compile(r' style="max-width:100%;width:(\d+)px"')


@router.get("/pipelines", dependencies=[Page], response_class=HTMLResponse)
def every(
    request: Request, services: Services, paging: Paging, q: Annotated[str, Query(max_length=64)] = ""
) -> HTMLResponse:
    """Pipelines by name."""
    page = history.listed(services.db, services.pipelines.shipped, q, paging)
    return html(
        "pipelines.html",
        items=[(entry, maybe_instant(entry.latest_us)) for entry in page.items],
        query=q,
        leaves=leaves(request, "/pipelines", {"q": q}, page),
        twin="/v1/pipelines",
    )


@router.get("/pipelines/{name}", dependencies=[Page], response_class=HTMLResponse)
def one(name: str, services: Services) -> HTMLResponse:
    """One pipeline: its graph, versions, trend, schedules, results of commits. ApiError `pipeline_not_found`."""
    shipped = services.pipelines.shipped
    versions = history.versions(services.db, shipped, name)
    if not versions:
        raise ApiError("pipeline_not_found", f"there is no pipeline {name[:64]!r}")
    best = history.best(services.db, name)
    text = _document(services, name, versions[-1])
    doc, picture = _drawn(services, text)
    return html(
        "pipeline.html",
        name=name,
        doc=doc,
        picture=picture,
        document=json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else "",
        versions=[(v, maybe_instant(v.first_us), [b for b in best if b.pipeline_id == v.id]) for v in versions[::-1]],
        trend=_trend(name, versions[-TREND:], best),
        schedules=[summary(row) for row in history.newest(services.db, name, SHOWN)],
        total=sum(v.schedules for v in versions),
        commits=[_commit(row) for row in history.commits(services.db, name, SHOWN)],
        twin=f"/v1/pipelines?name={quote(name)}",
    )


def _document(services: Context, name: str, version: Version) -> str:
    """The document of a version; empty where it went with the schedules that had it."""
    if version.source != "request":
        return services.pipelines.find(version.id).identity.document.decode()
    schedule_id = history.schedule_with(services.db, name, version.id)
    return "" if schedule_id is None else services.schedules.kept(schedule_id, "pipeline.json").content.decode()


def newest_document(services: Context, name_or_id: str) -> str:
    """The document of a pipeline by id, or the newest version by name; ApiError `pipeline_not_found`."""
    versions = history.versions(services.db, services.pipelines.shipped, name_or_id)
    text = _document(services, name_or_id, versions[-1]) if versions else ""
    return text or services.pipelines.find(name_or_id).identity.document.decode()


def _drawn(services: Context, text: str) -> tuple[str, Markup]:
    """The words of the document on itself, and the picture of its stages."""
    try:
        pipeline = documents.load_text(text.encode(), services.settings.limits)
    except TilesmithError:  # limits were wider when it was stored
        return "", Markup("")
    return pipeline.doc, Markup(WIDTH.sub(r' width="\1"', pipeline.picture()))


def _trend(name: str, versions: Sequence[Version], best: Sequence[Any]) -> Markup:
    """Predicted and measured times over the versions; empty for less than two that have any."""
    numbers = {v.id: v.number for v in versions}
    values = [
        {"version": numbers[row.pipeline_id], "ms": ms, "platform": row.platform, "time": time}
        for row in best
        if row.pipeline_id in numbers
        for time, ms in (("predicted", row.predicted_ms), ("measured", row.measured_ms))
        if ms is not None
    ]
    if len({value["version"] for value in values}) < 2:
        return Markup("")
    return chart(
        {
            "description": f"Least predicted and measured time of {name} over its versions; the table has the numbers",
            "data": {"values": values},
            "mark": {"type": "line", "point": True},
            "encoding": {
                "x": {"field": "version", "type": "ordinal", "title": "version", "axis": {"labelAngle": 0}},
                "y": {"field": "ms", "type": "quantitative", "title": "milliseconds"},
                "color": {"field": "platform", "type": "nominal"},
                "strokeDash": {"field": "time", "type": "nominal", "sort": ["predicted", "measured"], "legend": None},
                "shape": {"field": "time", "type": "nominal", "sort": ["predicted", "measured"]},
            },
        }
    )


def _commit(row: Any) -> dict[str, Any]:
    """A result of a commit as the table has it."""
    measured = json.loads(row.measured) if row.measured is not None else {}
    return {
        "project": row.project,
        "branch": row.branch,
        "commit": row.commit,
        "platform": row.platform,
        "variant": row.variant,
        "predicted_ms": row.predicted / 1000 if row.unit == "microseconds" else None,
        "measured_ms": measured.get("median_ms"),
        "reason": row.reason,
        "schedule_id": row.schedule_id,
        "at": instant(row.recorded_us),
    }
