"""/v1/schedules: ask for one, list them, read one in its forms."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.bodies import json_body
from app.builds.schemas import BuildRequest, RunRequest
from app.caching import immutable
from app.context import Context, Read, Services, Submit
from app.paging import Paging, next_page
from app.schedules import repository
from app.schedules.answers import DERIVED_FORMS
from app.schedules.repository import Content, Filters, Order
from app.schedules.schemas import Schedule, ScheduleList, ScheduleRequest, ScheduleSummary
from app.schedules.service import Asked
from app.times import instant

MEASURED_REPEATS = 10

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

Name = Annotated[str | None, Query(max_length=64)]


@router.post(
    "",
    dependencies=[Submit],
    status_code=201,
    response_model=Schedule,
    responses={200: {"model": Schedule, "description": "The store had it already"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ScheduleRequest"}}},
        }
    },
    summary="Schedule a pipeline",
)
async def ask(request: Request, services: Services) -> Response:
    """The schedule itself, made now (201) or answered from the store (200)."""
    asked = await services.schedules.ask(await json_body(request))
    content = asked.content.content
    if asked.options.build or asked.options.measure:
        content = await asyncio.to_thread(_with_jobs, asked, services)
    return Response(
        content,
        201 if asked.new else 200,
        {"Location": f"/v1/schedules/{asked.id}"},
        media_type="application/json",
    )


def _with_jobs(asked: Asked, services: Context) -> bytes:
    """The schedule with links to the jobs that the request asks for."""
    jobs = []
    if asked.options.build:
        jobs.append(services.jobs.submit_build(asked.id, BuildRequest()))
    if asked.options.measure:
        jobs.append(
            services.jobs.submit_run(asked.id, RunRequest(estimates=True, outputs=False, repeat=MEASURED_REPEATS), {})
        )
    document = json.loads(asked.content.content)
    document["jobs"] = [{"id": job.id, "kind": job.kind, "href": f"/v1/jobs/{job.id}"} for job in jobs]
    return json.dumps(document, separators=(",", ":")).encode()


@router.get("", dependencies=[Read], summary="List schedules")
def every(
    services: Services,
    paging: Paging,
    pipeline: Annotated[str | None, Query(max_length=64, description="Name or id of the pipeline")] = None,
    platform: Name = None,
    method: Name = None,
    degraded: bool | None = None,
    q: Annotated[str | None, Query(max_length=64, description="Found in the names of pipeline or platform")] = None,
    order: Order = "newest",
) -> ScheduleList:
    filters = Filters(pipeline, platform, method, degraded, q)
    kind = f"schedules:{order}"
    after = paging.key(kind, repository.KEY_TYPES[order])
    rows = repository.page(services.db, filters, order, after, paging.limit + 1)
    page = next_page(rows, [repository.key_of(row, order) for row in rows], kind, paging.limit)
    return ScheduleList(items=[summary(row) for row in page.items], next_cursor=page.next_cursor)


def summary(row: Any) -> ScheduleSummary:
    """An entry of a list from its row."""
    return ScheduleSummary(
        id=row.id,
        pipeline=row.pipeline,
        pipeline_id=row.pipeline_id,
        platform=row.platform,
        method=row.method,
        strict=row.strict,
        degraded=row.degraded,
        groups=row.groups,
        created_at=instant(row.created_us),
        href=f"/v1/schedules/{row.id}",
    )


@router.get("/{schedule_id}", dependencies=[Read], response_model=Schedule, summary="One schedule")
def one(schedule_id: str, request: Request, services: Services) -> Response:
    """Immutable: strong ETag, long cache."""
    return immutable(request, services.schedules.get(schedule_id))


def _add_form(name: str, media_type: str, title: str) -> None:
    """A route for one form of a schedule."""

    def form(schedule_id: str, request: Request, services: Services) -> Response:
        return immutable(request, services.schedules.form(schedule_id, name))

    async def derived(schedule_id: str, request: Request, services: Services) -> Response:
        return immutable(request, await services.schedules.derived(schedule_id, name))

    router.add_api_route(
        f"/{{schedule_id}}/{name}",
        derived if name in DERIVED_FORMS else form,
        dependencies=[Read],
        summary=title,
        description="Immutable: strong ETag, long cache.",
        operation_id="schedule_" + name.replace(".", "_"),
        response_class=Response,
        responses={200: {"content": {media_type: {}}}},
    )


for _name, _type, _title in (
    ("code.c", "text/x-c", "The C file"),
    ("code.h", "text/x-c", "Its header"),
    ("loopnest.txt", "text/plain", "The loop nest, to read"),
    ("schedule.json", "application/json", "The schedule as data, as the command line reads it"),
    ("schedule.h", "text/x-c++", "The schedule in Halide C++"),
    ("schedule.py", "text/x-python", "The schedule in Halide Python"),
    ("explain", "application/json", "Every decision: chosen, rejected, cost, reason"),
    ("explain.txt", "text/plain", "The decisions, to read"),
    ("pipeline.json", "application/json", "The pipeline in canonical form"),
    ("platform.json", "application/json", "The platform"),
):
    _add_form(_name, _type, _title)


@router.get(
    "/{schedule_id}/library.so",
    dependencies=[Read],
    response_class=Response,
    responses={200: {"content": {"application/x-sharedlib": {}}}},
    summary="The shared library, once built",
)
def library(schedule_id: str, request: Request, services: Services) -> Response:
    """`not_built` before a build job has succeeded."""
    services.schedules.get(schedule_id)
    content = services.jobs.library(schedule_id)
    etag = repository.etag(content)
    answer = immutable(request, Content("application/x-sharedlib", etag, content))
    answer.headers["Cache-Control"] = "private, no-cache"  # another compiler may build it anew
    return answer


__all__ = ["ScheduleRequest", "router", "summary"]
