"""/schedules/{id}: one stored schedule."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from tilesmith.app.service.context import Context, Services
from tilesmith.app.service.dashboard.act import acts
from tilesmith.app.service.dashboard.charts import Point, scatter
from tilesmith.app.service.dashboard.highlight import c_html
from tilesmith.app.service.dashboard.pages import Page, html
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.jobs.service import summary as job_summary
from tilesmith.app.service.schedules import repository
from tilesmith.app.service.schedules.service import FORMS

SHOWN_JOBS = 20

router = APIRouter()


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
    return html(
        "schedule.html",
        schedule=schedule,
        acts=acts(schedule, json.loads(text["pipeline.json"])),
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
        twin=schedule["links"]["self"],
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


def _readable(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
