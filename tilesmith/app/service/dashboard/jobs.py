"""/jobs: the jobs, the newest first."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BeforeValidator

from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Page, address, html, leaves
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.schemas import Kind
from tilesmith.app.service.jobs.states import STATES, State
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.times import instant

router = APIRouter()

_given = BeforeValidator(lambda value: value or None)


@router.get("/jobs", dependencies=[Page], response_class=HTMLResponse)
def every(
    request: Request,
    services: Services,
    paging: Paging,
    state: Annotated[State | None, _given, Query()] = None,
    kind: Annotated[Kind | None, _given, Query()] = None,
    schedule: Annotated[str, Query(max_length=64)] = "",
) -> HTMLResponse:
    """The jobs."""
    page = repository.listed(services.db, schedule or None, state, kind, paging)
    here = {"state": state or "", "kind": kind or "", "schedule": schedule}
    return html(
        "jobs.html",
        items=[_item(row) for row in page.items],
        states=STATES,
        kinds=get_args(Kind),
        wanted=here,
        filtered=any(here.values()),
        leaves=leaves(request, "/jobs", here, page),
        twin=address("/v1/jobs", **here, cursor=paging.after),
    )


def _item(row: Any) -> dict[str, Any]:
    """A job as the table has it."""
    return {
        "id": row.id,
        "kind": row.kind,
        "state": row.state,
        "pipeline": row.pipeline,
        "schedule_id": row.schedule_id,
        "queued": instant(row.created_us),
        "seconds": _seconds(row.started_us, row.finished_us),
    }


def _seconds(started_us: int | None, finished_us: int | None) -> str:
    """The time that a job took, once it has ended."""
    if started_us is None or finished_us is None:
        return ""
    return f"{(finished_us - started_us) / 1e6:.1f}"
