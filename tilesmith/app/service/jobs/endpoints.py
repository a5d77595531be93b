"""Jobs: started at a schedule, read, followed and cancelled at /v1/jobs."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Annotated, Any

import numpy as np
import structlog
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy.exc import DBAPIError
from sse_starlette.sse import EventSourceResponse
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from tilesmith.app.runtime import images
from tilesmith.app.service.bodies import binary, described, events, json_body, media_type, parse_model
from tilesmith.app.service.context import Context, Read, Services, Submit
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.documents import JobDocument, JobEvent
from tilesmith.app.service.jobs.schemas import BuildRequest, CompareRequest, Job, JobList, Kind, RunRequest
from tilesmith.app.service.jobs.service import idempotency_key, summary
from tilesmith.app.service.jobs.states import FINISHED, State
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.tokens.service import Holder
from tilesmith.scheduler.frontends.document import document as documents
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import TYPES

log = structlog.get_logger("tilesmith.jobs")

router = APIRouter(tags=["jobs"])

MAX_FILES = 300
JsonRequest = dict[str, Any]
Once = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Sent again with the same request, the answer is the job that the first one started",
    ),
]


def _json_or_form() -> JsonRequest:
    """The OpenAPI description of the two ways to ask for a run."""
    content: dict[str, Any] = described(RunRequest)["requestBody"]["content"]
    form = {
        "type": "object",
        "properties": {"request": {"type": "string", "description": "A RunRequest as JSON"}},
        "additionalProperties": {
            "type": "string",
            "contentMediaType": "application/octet-stream",
            "description": "A .npy, PNG, TIFF or JPEG file, in a field of the name of the input",
        },
    }
    return {"requestBody": {"required": True, "content": content | {"multipart/form-data": {"schema": form}}}}


@router.post(
    "/v1/schedules/{schedule_id}/builds",
    response_model=JobDocument,
    dependencies=[Submit],
    status_code=202,
    operation_id="startBuild",
    summary="Build a schedule",
)
async def build(
    schedule_id: str, services: Services, request: BuildRequest | None = None, once: Once = None
) -> Response:
    """Starts a job that compiles the C. Libraries are kept by content: a second build takes no time."""
    idempotency_key.set(once)
    job = await asyncio.to_thread(services.jobs.submit_build, schedule_id, request or BuildRequest())
    return _started(job)


@router.post(
    "/v1/schedules/{schedule_id}/comparisons",
    response_model=JobDocument,
    dependencies=[Submit],
    status_code=202,
    operation_id="startComparison",
    summary="Run a schedule and another in turns",
)
async def compare(schedule_id: str, request: CompareRequest, services: Services, once: Once = None) -> Response:
    """Starts a job that compiles both and calls them in rounds, one after the other in each: what else the machine does
    falls on both. Its result has `now_ms` and `baseline_ms`, the median of each round."""
    idempotency_key.set(once)
    return _started(await asyncio.to_thread(services.jobs.submit_compare, schedule_id, request))


@router.post(
    "/v1/schedules/{schedule_id}/runs",
    dependencies=[Submit],
    status_code=202,
    response_model=JobDocument,
    openapi_extra=_json_or_form(),
    operation_id="startRun",
    summary="Run a schedule",
)
async def run(schedule_id: str, request: Request, services: Services, once: Once = None) -> Response:
    """Starts a job that compiles the C and runs it: on uploaded images (multipart/form-data) or, with
    `estimates`, on random ones (JSON). The job measures; with `outputs` its results can be fetched."""
    idempotency_key.set(once)
    if media_type(request) == "multipart/form-data":
        job = await _run_with_images(schedule_id, request, services)
    else:
        asked = await services.engine.model(await json_body(request), RunRequest)
        job = await asyncio.to_thread(submit, services, schedule_id, asked, {})
    return _started(job)


def _started(job: Job) -> Response:
    return JSONResponse(job.model_dump(mode="json"), 202, {"Location": job.links["self"]})


async def _run_with_images(schedule_id: str, request: Request, services: Context) -> Job:
    try:
        async with request.form(max_files=MAX_FILES, max_fields=1, max_part_size=1 << 20) as form:
            said = form.get("request", "{}")
            if not isinstance(said, str):
                raise ApiError("bad_form", "the field `request` is a RunRequest as JSON, not a file")
            files = {name: value for name, value in form.multi_items() if isinstance(value, UploadFile)}
            if len(files) + ("request" in form) != len(form.multi_items()):
                raise ApiError("bad_form", "a field is there twice, or has text where a file is expected")
            asked = await asyncio.to_thread(parse_model, said.encode(), RunRequest)
            return await asyncio.to_thread(submit, services, schedule_id, asked, files)
    except HTTPException as error:
        if isinstance(error, ApiError):
            raise
        raise ApiError("bad_form", str(error.detail)) from None


def submit(services: Context, schedule_id: str, asked: RunRequest, files: dict[str, UploadFile]) -> Job:
    """Checks names, keeps the files under names of ours, queues the job."""
    pipeline = _pipeline(services, schedule_id)
    _check_names(pipeline, asked, set(files))
    if not files:
        return services.jobs.submit_run(schedule_id, asked, {})
    job_id = services.jobs.new_id()
    kept: dict[str, FilePath] = {}
    with services.jobs.files.filling(job_id):
        for number, wanted in enumerate(pipeline.inputs):
            if wanted.name in files:
                kept[wanted.name] = services.jobs.files.upload(job_id, number)
                with kept[wanted.name].open("wb") as file:
                    shutil.copyfileobj(files[wanted.name].file, file)
        return services.jobs.submit_run(schedule_id, asked, kept, job_id)


def _pipeline(services: Context, schedule_id: str) -> Pipeline:
    form = services.schedules.kept(schedule_id, "pipeline.json")
    return documents.load_text(form.content, services.settings.limits)


def _check_names(pipeline: Pipeline, asked: RunRequest, files: set[str]) -> None:
    """ApiError `bad_request` where names are not the pipeline's, or inputs are missing."""
    inputs = {i.name for i in pipeline.inputs}
    wanted = set() if asked.estimates else {i.name for i in pipeline.inputs if i.table is None}
    groups = (
        ("input", files, inputs),
        ("input", set(asked.mins), inputs),
        ("param", set(asked.params), {p.name for p in pipeline.params}),
        ("output", set(asked.regions or {}), set(pipeline.outputs)),
    )
    complaints = [
        f"there is no {what} {name!r}"[:200] for what, given, known in groups for name in sorted(given - known)
    ]
    complaints += [f"the image of input {name!r} is missing" for name in sorted(wanted - files)]
    if asked.estimates and files:
        complaints.append("give either estimates or images")
    if complaints:
        raise ApiError("bad_request", "; ".join(complaints[:20]))


@router.get("/v1/jobs", dependencies=[Read], operation_id="listJobs", summary="List jobs")
def every(
    services: Services,
    paging: Paging,
    schedule: Annotated[str | None, Query(max_length=64, description="Id of a schedule")] = None,
    state: State | None = None,
    kind: Kind | None = None,
) -> JobList:
    """The newest first."""
    page = repository.listed(services.db, schedule, state, kind, paging)
    return JobList(
        items=[summary(row) for row in page.items],
        next_cursor=page.next_cursor,
        previous_cursor=page.previous_cursor,
    )


@router.get(
    "/v1/jobs/{job_id}", response_model=JobDocument, dependencies=[Read], operation_id="getJob", summary="One job"
)
def one(job_id: str, services: Services) -> Response:
    """The job as it stands."""
    return JSONResponse(services.jobs.get(job_id).model_dump(mode="json"), headers={"Cache-Control": "no-store"})


@router.delete(
    "/v1/jobs/{job_id}",
    response_model=JobDocument,
    responses={202: {"model": JobDocument, "description": "It runs, and is asked to stop"}},
    operation_id="cancelJob",
    summary="Cancel a job",
)
def cancel(job_id: str, services: Services, holder: Annotated[Holder, Submit]) -> Response:
    """A queued job is cancelled at once (200); a running one is asked to stop (202) and soon is `cancelled`. Jobs of
    other tokens need the scope `admin`."""
    job = services.jobs.cancel(job_id, holder)
    return JSONResponse(job.model_dump(mode="json"), 200 if job.state == "cancelled" else 202)


@router.get(
    "/v1/jobs/{job_id}/events",
    dependencies=[Read],
    response_class=EventSourceResponse,
    responses=events(JobEvent),
    operation_id="followJob",
    summary="Follow a job",
)
async def follow(job_id: str, request: Request, services: Services) -> Response:
    """Server-sent events: `state` and `progress`, numbered, from the first or after `Last-Event-ID`; the stream
    ends when the job does. Comments are sent as heartbeats."""
    await asyncio.to_thread(services.jobs.get, job_id)
    last = request.headers.get("last-event-id", "0")
    after = int(last) if last.isdecimal() and len(last) < 10 else 0
    return EventSourceResponse(_events(services, job_id, after), ping=services.settings.event_heartbeat_s)


async def _events(services: Context, job_id: str, after: int) -> AsyncIterator[dict[str, str]]:
    while True:
        try:
            row = await asyncio.to_thread(repository.find, services.db, job_id)
            found = await asyncio.to_thread(repository.events, services.db, job_id, after)
        except DBAPIError as error:  # the answer has begun: the stream goes on when the store answers again
            log.warning("store failed", error=str(error.orig))
            await asyncio.sleep(services.settings.event_poll_s)
            continue
        for event in found:
            after = event.number
            yield {"id": str(event.number), "event": event.type, "data": event.data.decode()}
        if row is None or row.state in FINISHED:  # no event follows the last one, which is as old as that state
            return
        if not found:
            await asyncio.sleep(services.settings.event_poll_s)


OutputName = Annotated[str, Path(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


@router.get(
    "/v1/jobs/{job_id}/outputs/{name}.npy",
    response_class=FileResponse,
    responses=binary("application/x-npy"),
    dependencies=[Read],
    operation_id="getOutputArray",
    summary="A result as an array",
)
def output_npy(job_id: str, name: OutputName, services: Services) -> FileResponse:
    """NumPy's format, axes the reverse of the dims."""
    return _npy(services, job_id, name, 0)


@router.get(
    "/v1/jobs/{job_id}/outputs/{name}.png",
    response_class=Response,
    responses=binary("image/png"),
    dependencies=[Read],
    operation_id="getOutputPicture",
    summary="A result as a picture",
)
def output_png(job_id: str, name: OutputName, services: Services, stretch: bool = False) -> Response:
    """Floats are clipped to 0..1, or with `stretch` mapped from the 1st to the 99th percentile. ApiError
    `bad_image` where the result is not a picture."""
    return _png(services, job_id, name, 0, stretch)


@router.get(
    "/v1/jobs/{job_id}/outputs/{name}/{component}.npy",
    response_class=FileResponse,
    responses=binary("application/x-npy"),
    dependencies=[Read],
    operation_id="getComponentArray",
    summary="A component as an array",
)
def component_npy(job_id: str, name: OutputName, component: int, services: Services) -> FileResponse:
    """One component of a tuple."""
    return _npy(services, job_id, name, component)


@router.get(
    "/v1/jobs/{job_id}/outputs/{name}/{component}.png",
    response_class=Response,
    responses=binary("image/png"),
    dependencies=[Read],
    operation_id="getComponentPicture",
    summary="A component as a picture",
)
def component_png(job_id: str, name: OutputName, component: int, services: Services, stretch: bool = False) -> Response:
    """One component of a tuple."""
    return _png(services, job_id, name, component, stretch)


def _npy(services: Context, job_id: str, name: str, component: int) -> FileResponse:
    path, _ = services.jobs.output(job_id, name, component)
    return FileResponse(path, media_type="application/x-npy", filename=f"{name}-{component}.npy")


def _png(services: Context, job_id: str, name: str, component: int, stretch: bool) -> Response:
    path, dims = services.jobs.output(job_id, name, component)
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as folder:
        picture = FilePath(folder) / "output.png"
        try:
            images.check_writable(picture, tuple(dims), TYPES[str(array.dtype)])
            images.write(picture, array, tuple(dims), stretch)
        except images.ImageError as error:
            raise ApiError("bad_image", f"output {name}: {error}".replace(f"{picture}: ", "")) from None
        return Response(picture.read_bytes(), media_type="image/png")
