"""/schedules/{id}: one stored schedule, and its charts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from tilesmith.app.service.context import Context, Services
from tilesmith.app.service.dashboard.act import acts
from tilesmith.app.service.dashboard.charts import picture_response
from tilesmith.app.service.dashboard.pages import Page, html
from tilesmith.app.service.dashboard.schedule_body import TEXTS, Stored, body_of, specs_of
from tilesmith.app.service.dashboard.schedule_charts import Spec, tile_map
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.jobs.service import summary as job_summary
from tilesmith.app.service.schedules import lists, notes

SHOWN_JOBS = 20
SHOWN_OTHERS = 20

router = APIRouter()


async def stored(services: Context, schedule_id: str) -> Stored:
    """The schedule of that id with what pages show; ApiError `schedule_not_found`."""
    content = await asyncio.to_thread(services.schedules.get, schedule_id)
    figures, lacking = await services.schedules.text(schedule_id, "figures.json")
    table, _ = await services.schedules.text(schedule_id, "candidates")
    texts = {}
    for name in TEXTS:
        text, why_not = await services.schedules.text(schedule_id, name)
        texts[name] = text or f"/* {why_not} */\n"
    return Stored(
        schedule_id,
        content.etag,
        json.loads(content.content),
        json.loads(figures) if figures else None,
        json.loads(table) if table else {},
        texts,
        lacking,
    )


@router.get("/schedules/{schedule_id}", dependencies=[Page], response_class=HTMLResponse)
async def one(schedule_id: str, services: Services) -> HTMLResponse:
    """One schedule: the stage graph, costs, what was decided, the loop nest, the C, the documents, its jobs."""
    return await asyncio.to_thread(_page, services, await stored(services, schedule_id))


def _page(services: Context, found: Stored) -> HTMLResponse:
    schedule, body, row = found.schedule, body_of(found), lists.summary(services.db, found.id)
    return html(
        "schedule.html",
        schedule=schedule,
        acts=acts(schedule, json.loads(found.texts["pipeline.json"])),
        base=f"/v1/schedules/{found.id}",
        predicted_ms=row and row.predicted_ms,
        measured_ms=row and row.measured_ms,
        calibrated=found.calibrated,
        notes=notes.find(services.db, found.id),
        others=_others(services, found),
        body=body,
        built=job_rows.library(services.db, found.id) is not None,
        jobs=[job_summary(row) for row in job_rows.page(services.db, found.id, None, None, None, SHOWN_JOBS)],
        twin=schedule["links"]["self"],
    )


def _others(services: Context, found: Stored) -> list[Any]:
    """The newest schedules of the same pipeline, to compare with."""
    filters = lists.Filters(pipeline=found.schedule["pipeline"])
    rows = lists.page(services.db, filters, "newest", None, SHOWN_OTHERS + 1)
    return [row for row in rows if row.id != found.id][:SHOWN_OTHERS]


@router.get("/schedules/{schedule_id}/charts/{name}.svg", dependencies=[Page])
async def chart(schedule_id: str, name: str, request: Request, services: Services) -> Response:
    """A chart of the schedule's page; ApiError `not_found` where it has none of that name."""
    spec = await _spec(services, schedule_id, name)
    if spec is None:
        raise ApiError("not_found", "the schedule has no such chart")
    return await picture_response(request, spec)


async def _spec(services: Context, schedule_id: str, name: str) -> Spec | None:
    found = await stored(services, schedule_id)
    outputs = {f"tiles-{n}": group["output"] for n, group in enumerate(found.groups, start=1)}
    if name not in outputs:
        return specs_of(found).get(name)
    costs = json.loads((await services.schedules.form(schedule_id, "tiles.json")).content)
    group = next((g for g in costs["groups"] if g["output"] == outputs[name]), None)
    return group and tile_map(group, costs["unit"])
