"""/jobs/{id}: a job, live: what it is at, what it has done, what came out; cancelled and asked again."""

from __future__ import annotations

import asyncio
import json
import statistics
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse

from tilesmith.app.runtime import images, previews
from tilesmith.app.runtime.visibility import is_dark
from tilesmith.app.service.context import Context, Services
from tilesmith.app.service.dashboard import job_charts
from tilesmith.app.service.dashboard.act import SEEN
from tilesmith.app.service.dashboard.charts import picture_response
from tilesmith.app.service.dashboard.pages import Change, Page, html
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.endpoints import OutputName, follow
from tilesmith.app.service.jobs.schemas import Job
from tilesmith.app.service.jobs.states import FINISHED
from tilesmith.app.service.times import instant
from tilesmith.app.service.tokens.service import Holder

KEPT = {"Cache-Control": "private, max-age=86400"}  # what a job has read or made never changes

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened to a job."""

    at: datetime
    words: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of an image that went in or came out. `dark`: only `stretched` shows something of it."""

    title: str
    words: str
    address: str
    downloads: tuple[tuple[str, str], ...] = ()
    dark: bool = False


@router.get("/jobs/{job_id}", dependencies=[Page], response_class=HTMLResponse)
def one(job_id: str, services: Services) -> HTMLResponse:
    """The job as it is now."""
    job = services.jobs.get(job_id)
    schedule = json.loads(services.schedules.get(job.schedule_id).content)
    return html(
        "job.html",
        job=job,
        schedule=schedule,
        finished=job.state in FINISHED,
        steps=_steps(services, job_id),
        spread=_spread(job.result or {}),
        before=_before(services, job),
        after=_after(services, job),
        request=json.dumps(job.request, indent=2),
        twin=job.links["self"],
    )


def _steps(services: Context, job_id: str) -> tuple[Step, ...]:
    found = repository.events(services.db, job_id, 0)
    data = [json.loads(event.data) for event in found]
    return tuple(Step(instant(d["at_us"]), d.get("phase") or d["state"]) for d in data)


def _spread(result: dict[str, Any]) -> dict[str, float]:
    """Figures of the times of a run, in milliseconds; the spread is between the quartiles."""
    times = result.get("times_ms", [])
    if not times:
        return {}
    low, median, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return {"median": median, "low": low, "high": high, "least": min(times), "most": max(times)}


def _before(services: Context, job: Job) -> tuple[Picture, ...]:
    """The images that a run was made on, where they are kept."""
    if not job.request.get("keep_inputs"):
        return ()
    pipeline = json.loads(services.schedules.kept(job.schedule_id, "pipeline.json").content)
    return tuple(
        Picture(i["name"], f"before: {i['name']}, {i['type']}", f"/jobs/{job.id}/inputs/{number}.png")
        for number, i in enumerate(pipeline["inputs"])
        if services.jobs.file(job.id, services.jobs.files.preview(job.id, number)) is not None
    )


def _after(services: Context, job: Job) -> tuple[Picture, ...]:
    """The images that came out of a run."""
    return tuple(_output(services, job, output) for output in (job.result or {}).get("outputs", ()))


def _output(services: Context, job: Job, output: dict[str, Any]) -> Picture:
    name, component, links = output["name"], output["component"], output["links"]
    title = f"{name}, component {component}" if component else name
    size = " x ".join(str(extent) for _, extent in output["region"])
    shown = dark = False
    with suppress(ApiError):  # a result whose file is gone
        array, dims = _array(services, job.id, name, component)
        shown = previews.is_picture(array, dims)
        dark = shown and is_dark(array)
    downloads = [("as an array (.npy)", links["npy"])]
    if shown:
        downloads.append(("as a picture (.png)", links["png"]))
    if dark:
        downloads.append(("as a stretched picture (.png)", f"{links['png']}?stretch=true"))
    address = f"/jobs/{job.id}/outputs/{name}/{component}.png" if shown else ""
    return Picture(title, f"after: {title}, {size} points of {output['type']}", address, tuple(downloads), dark)


def _array(services: Context, job_id: str, name: str, component: int) -> tuple[previews.Array, tuple[str, ...]]:
    path, dims = services.jobs.output(job_id, name, component)
    return np.load(path, mmap_mode="r", allow_pickle=False), tuple(dims)


@router.get("/jobs/{job_id}/outputs/{name}/{component}.png", dependencies=[Page])
def output(
    job_id: str,
    name: OutputName,
    component: Annotated[int, Path(ge=0)],
    services: Services,
    stretch: Annotated[bool, Query()] = False,
) -> Response:
    """A small picture of what came out. ApiError `artefact_not_found`, `bad_image`."""
    array, dims = _array(services, job_id, name, component)
    try:
        content = previews.png(array, dims, stretch)
    except images.ImageError as error:
        raise ApiError("bad_image", f"output {name} is no picture: {error.hint or 'fetch it as an array'}") from None
    return Response(content, media_type="image/png", headers=KEPT)


@router.get("/jobs/{job_id}/inputs/{number}.png", dependencies=[Page])
def before(job_id: str, number: Annotated[int, Path(ge=0)], services: Services) -> Response:
    """A small picture of what went in, as the pipeline got it. ApiError `artefact_not_found`."""
    path = services.jobs.file(job_id, services.jobs.files.preview(services.jobs.get(job_id).id, number))
    if path is None:
        raise ApiError("artefact_not_found", f"no picture of input {number} is kept")
    return FileResponse(path, media_type="image/png", headers=KEPT)


@router.get("/jobs/{job_id}/times.svg", dependencies=[Page])
async def times(job_id: str, request: Request, services: Services) -> Response:
    """A chart of the times of a run. ApiError `artefact_not_found` where there are no two."""
    job = await asyncio.to_thread(services.jobs.get, job_id)
    result = job.result or {}
    samples = result.get("times_ms", ())
    if len(samples) < 2:
        raise ApiError("artefact_not_found", "the job has not timed two calls")
    return await picture_response(request, job_charts.times(samples, _spread(result)))


@router.get("/jobs/{job_id}/events", dependencies=[Page])
async def events(job_id: str, request: Request, services: Services) -> Response:
    """The events of the job, as those of `/v1/jobs/{job_id}/events`."""
    return await follow(job_id, request, services)


@router.post("/jobs/{job_id}/cancel")
async def cancel(job_id: str, services: Services, holder: Annotated[Holder, Change]) -> RedirectResponse:
    """Cancels the job."""
    await asyncio.to_thread(services.jobs.cancel, job_id, holder)
    return RedirectResponse(f"/jobs/{job_id}", SEEN)


@router.post("/jobs/{job_id}/again", dependencies=[Change])
async def again(job_id: str, services: Services) -> RedirectResponse:
    """A new job that is asked the same."""
    job = await asyncio.to_thread(services.jobs.again, job_id)
    return RedirectResponse(f"/jobs/{job.id}", SEEN)
