"""/v1/schedules: ask for one, list them, read one in its forms."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from tilesmith.app.service.bodies import binary, described, json_body, text
from tilesmith.app.service.caching import immutable
from tilesmith.app.service.context import Admin, Context, Read, Services, Submit
from tilesmith.app.service.errors import ApiError, at, problem_document
from tilesmith.app.service.jobs.schemas import BuildRequest, RunRequest, TuneRequest
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.schedules import repository
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.schedules.decisions import Explanation, ScheduleDocument
from tilesmith.app.service.schedules.lists import Filters, Order, listed
from tilesmith.app.service.schedules.reading import read_several
from tilesmith.app.service.schedules.repository import Content
from tilesmith.app.service.schedules.schemas import (
    Batch,
    BatchRequest,
    CandidateList,
    Schedule,
    ScheduleList,
    ScheduleRequest,
    ScheduleSummary,
)
from tilesmith.app.service.schedules.service import Asked
from tilesmith.app.service.times import Dated, instant, microseconds
from tilesmith.platforms.documents import AnyPlatform
from tilesmith.scheduler.frontends.document.schema import PipelineDocument
from tilesmith.scheduler.search.params import PARAMS

MEASURED_REPEATS = 10

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

Name = Annotated[str | None, Query(max_length=64)]


@router.post(
    "",
    dependencies=[Submit],
    status_code=201,
    response_model=Schedule,
    responses={
        200: {"model": Schedule, "description": "The store had it already"},
        202: {"model": Schedule, "description": "The schedule as it is before tuning, which is a job"},
    },
    openapi_extra=described(ScheduleRequest),
    operation_id="createSchedule",
    summary="Schedule a pipeline",
)
async def ask(request: Request, services: Services) -> Response:
    """The schedule itself, made now (201) or answered from the store (200). Where it is to be tuned, the untuned one
    with the job that tunes (202); asked again when that has succeeded, the tuned one."""
    status, content, location = await _answer(await json_body(request), services)
    return Response(content, status, {"Location": location}, media_type="application/json")


async def _answer(body: bytes, services: Context) -> tuple[int, bytes, str]:
    """The status, the document and the address of the answer to a ScheduleRequest."""
    asked = await services.schedules.ask(body)
    content, location = asked.content.content, asked.location
    if asked.has_jobs:
        content, tuning = await asyncio.to_thread(_with_jobs, asked, services)
        location = tuning or location
    return 202 if asked.tuned is not None else 201 if asked.new else 200, content, location


@router.post(
    "/batch",
    dependencies=[Submit],
    response_model=Batch,
    openapi_extra=described(BatchRequest),
    operation_id="createSchedules",
    summary="Schedule several pipelines",
)
async def ask_several(request: Request, services: Services) -> Response:
    """Requests for schedules, each answered as it would be alone: many pipelines, sizes (`estimates`) or platforms. It
    is 200 whatever becomes of them."""
    several = await services.engine.read(read_several, await json_body(request), services.settings.batch_limit)
    turns = asyncio.Semaphore(max(1, services.settings.schedule_workers))

    async def item(number: int, asked: bytes) -> bytes:
        async with turns:
            try:
                status, content, _ = await _answer(asked, services)
                return b'{"status":%d,"schedule":%b}' % (status, content)
            except ApiError as error:
                moved = at(error, f"/requests/{number}")
                document = problem_document(moved, request.url.path, getattr(request.state, "request_id", None))
                return compact({"status": error.status_code, "problem": document}).encode()

    items = await asyncio.gather(*(item(n, asked) for n, asked in enumerate(several)))
    return Response(b'{"items":[%b]}' % b",".join(items), media_type="application/json")


def _with_jobs(asked: Asked, services: Context) -> tuple[bytes, str | None]:
    """The schedule with links to the jobs that the request asks for; the address of the one that tunes."""
    jobs, tuning = [], None
    if asked.tuned is not None:
        count = asked.options.tune or 0
        jobs.append(services.jobs.submit_tune(asked.id, TuneRequest(schedule_id=asked.tuned, candidates=count)))
        tuning = f"/v1/jobs/{jobs[0].id}"
    if asked.options.build:
        jobs.append(services.jobs.submit_build(asked.id, BuildRequest()))
    if asked.options.measure:
        jobs.append(
            services.jobs.submit_run(asked.id, RunRequest(estimates=True, outputs=False, repeat=MEASURED_REPEATS), {})
        )
    document = json.loads(asked.content.content)
    document["jobs"] = [{"id": job.id, "kind": job.kind, "href": f"/v1/jobs/{job.id}"} for job in jobs]
    return json.dumps(document, separators=(",", ":")).encode(), tuning


@router.get("", dependencies=[Read], operation_id="listSchedules", summary="List schedules")
def every(
    services: Services,
    paging: Paging,
    pipeline: Annotated[str | None, Query(max_length=64, description="Name or id of the pipeline")] = None,
    platform: Name = None,
    method: Name = None,
    degraded: bool | None = None,
    tag: Annotated[str | None, Query(max_length=32)] = None,
    since: Annotated[datetime | None, Dated, Query(description="Made then or later")] = None,
    until: Annotated[datetime | None, Dated, Query(description="Made before")] = None,
    q: Annotated[
        str | None,
        Query(
            max_length=64,
            description="Words, each in the name of pipeline, platform or method, in a tag, or first in the id",
        ),
    ] = None,
    order: Order = "newest",
) -> ScheduleList:
    filters = Filters(pipeline, platform, method, degraded, q, tag, microseconds(since), microseconds(until))
    page = listed(services.db, filters, order, paging)
    return ScheduleList(
        items=[summary(row) for row in page.items],
        next_cursor=page.next_cursor,
        previous_cursor=page.previous_cursor,
    )


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
        predicted_ms=row.predicted_ms,
        measured_ms=row.measured_ms,
        tags=row.tags.split(),
        created_at=instant(row.created_us),
        href=f"/v1/schedules/{row.id}",
    )


@router.get(
    "/{schedule_id}", dependencies=[Read], response_model=Schedule, operation_id="getSchedule", summary="One schedule"
)
def one(schedule_id: str, request: Request, services: Services) -> Response:
    """Immutable: strong ETag, long cache."""
    return immutable(request, services.schedules.get(schedule_id))


@router.delete(
    "/{schedule_id}", dependencies=[Admin], status_code=204, operation_id="deleteSchedule", summary="Delete a schedule"
)
def remove(schedule_id: str, services: Services) -> None:
    """With its forms, measurements, finished jobs and their results. Asked for again, it is made again."""
    jobs = repository.remove(services.db, schedule_id)
    if jobs is None:
        raise ApiError("schedule_not_found", f"there is no schedule {schedule_id[:64]!r}")
    for job_id in jobs:
        services.jobs.files.remove(job_id)


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of a schedule, as its route describes it; `model` is that of JSON."""

    name: str
    operation: str
    title: str
    media_type: str = "application/json"
    model: Any = None


def _add_form(form: _Form) -> None:
    """A route for one form of a schedule."""

    async def endpoint(schedule_id: str, request: Request, services: Services) -> Response:
        return immutable(request, await services.schedules.form(schedule_id, form.name))

    router.add_api_route(
        f"/{{schedule_id}}/{form.name}",
        endpoint,
        dependencies=[Read],
        summary=form.title,
        description="Immutable: strong ETag, long cache.",
        operation_id=form.operation,
        response_class=JSONResponse if form.model else Response,
        response_model=form.model,
        responses={} if form.model else text(form.media_type),
    )


for _described in (
    _Form("code.c", "getCode", "The C file", "text/x-c"),
    _Form("code.h", "getHeader", "Its header", "text/x-c"),
    _Form("loopnest.txt", "getLoopNest", "The loop nest, to read", "text/plain"),
    _Form("schedule.json", "getDecisions", "The schedule as data", model=ScheduleDocument),
    _Form("schedule.h", "getHalideCpp", "The schedule in Halide C++", "text/x-c++"),
    _Form("schedule.py", "getHalidePython", "The schedule in Halide Python", "text/x-python"),
    _Form("figures.json", "getFigures", "Stage graph, recomputation, buffers, traffic", model=dict[str, Any]),
    _Form("tiles.json", "getTileCosts", "Predicted time over the tile sizes of every group", model=dict[str, Any]),
    _Form("candidates", "listCandidates", "The best schedules that the search found", model=CandidateList),
    _Form("explain", "explainSchedule", "Every decision: chosen, rejected, cost, reason", model=Explanation),
    _Form("explain.txt", "explainScheduleInWords", "The decisions, to read", "text/plain"),
    _Form("pipeline.json", "getPipelineOfSchedule", "The pipeline in canonical form", model=PipelineDocument),
    _Form("platform.json", "getPlatformOfSchedule", "The platform", model=AnyPlatform),
):
    _add_form(_described)


Rank = Annotated[int, Path(ge=1, le=PARAMS.listed_candidates)]


@router.get(
    "/{schedule_id}/candidates/{rank}/schedule.json",
    response_model=ScheduleDocument,
    dependencies=[Read],
    operation_id="getCandidate",
    summary="A candidate as data",
)
async def candidate_schedule(schedule_id: str, rank: Rank, request: Request, services: Services) -> Response:
    """The candidate's schedule as the command line reads it. Immutable: strong ETag, long cache."""
    return immutable(request, await services.schedules.candidate(schedule_id, rank, "schedule.json"))


@router.get(
    "/{schedule_id}/candidates/{rank}/loopnest.txt",
    dependencies=[Read],
    response_class=Response,
    responses=text("text/plain"),
    operation_id="getCandidateLoopNest",
    summary="The loop nest of a candidate",
)
async def candidate_loopnest(schedule_id: str, rank: Rank, request: Request, services: Services) -> Response:
    """Immutable: strong ETag, long cache."""
    return immutable(request, await services.schedules.candidate(schedule_id, rank, "loopnest.txt"))


@router.get(
    "/{schedule_id}/library.so",
    dependencies=[Read],
    response_class=Response,
    responses=binary("application/x-sharedlib"),
    operation_id="getLibrary",
    summary="The shared library, once built",
)
def library(schedule_id: str, request: Request, services: Services) -> Response:
    """`not_built` before a build job has succeeded."""
    services.schedules.get(schedule_id)
    answer = immutable(request, Content("application/x-sharedlib", services.jobs.library(schedule_id)))
    answer.headers["Cache-Control"] = "private, no-cache"  # another compiler may build it anew
    return answer


__all__ = ["ScheduleRequest", "router", "summary"]
