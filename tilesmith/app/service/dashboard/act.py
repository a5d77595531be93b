"""/schedules/{id}: what can be done with a schedule from its page: build, run on pictures, measure, tune."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from tilesmith.app.runtime.axes import channel_dim
from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.pages import Change
from tilesmith.app.service.errors import ApiError, from_pydantic
from tilesmith.app.service.jobs.endpoints import MAX_FILES, submit
from tilesmith.app.service.jobs.schemas import BuildRequest, RunRequest, TuneRequest

MAX_FIELDS = 600  # a parameter each, and the options
INPUT, PARAM = "input.", "param."
CANDIDATES = 8
REPEATS = 30
SEEN = 303  # see other: the browser fetches that page, and reloading it sends nothing twice

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Given:
    """An input or a parameter, as the form asks for it."""

    name: str
    words: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class Acts:
    """The acts that the page of a schedule offers, as `act.html` shows them."""

    base: str
    playground: str
    inputs: tuple[Given, ...]
    params: tuple[Given, ...]
    tunable: bool
    candidates: int = CANDIDATES
    repeats: int = REPEATS


def acts(schedule: Mapping[str, Any], pipeline: Mapping[str, Any]) -> Acts:
    """The acts of a stored schedule, from its document and the pipeline's."""
    return Acts(
        f"/schedules/{schedule['id']}",
        f"/playground?schedule={schedule['id']}",
        tuple(Given(i["name"], _wanted(i)) for i in pipeline["inputs"]),
        tuple(
            Given(p["name"], p["type"], json.dumps(p["default"]) if "default" in p else "")
            for p in pipeline.get("params", ())
        ),
        not (schedule["options"].get("strategy") or schedule["options"].get("tune")),
    )


def _wanted(image: Mapping[str, Any]) -> str:
    """The kind of file that an input takes."""
    dims = tuple(image["dims"])
    if len(dims) not in (2, 3):
        return f"an array of {image['type']}, .npy, axes {', '.join(reversed(dims))}"
    colour = "gray" if channel_dim(dims) is None else "colour"
    return f"a picture, {colour}: PNG, JPEG, TIFF, or .npy of {image['type']}"


@router.post("/schedules/{schedule_id}/builds", dependencies=[Change])
async def build(schedule_id: str, services: Services) -> RedirectResponse:
    """A job that compiles the C."""
    job = await asyncio.to_thread(services.jobs.submit_build, schedule_id, BuildRequest())
    return RedirectResponse(f"/jobs/{job.id}", SEEN)


@router.post("/schedules/{schedule_id}/measurements", dependencies=[Change])
async def measure(schedule_id: str, services: Services, repeat: Annotated[int, Form(ge=1)]) -> RedirectResponse:
    """A job that times the schedule on random images of the estimated sizes."""
    asked = RunRequest(estimates=True, outputs=False, repeat=repeat)
    job = await asyncio.to_thread(services.jobs.submit_run, schedule_id, asked, {})
    return RedirectResponse(f"/jobs/{job.id}", SEEN)


@router.post("/schedules/{schedule_id}/tunings", dependencies=[Change])
async def tune(schedule_id: str, services: Services, candidates: Annotated[int, Form(ge=2, le=16)]) -> RedirectResponse:
    """A job that times the best candidates; the tuned schedule, where there is one already."""
    schedule = json.loads((await asyncio.to_thread(services.schedules.get, schedule_id)).content)
    documents = {}
    for name in ("pipeline", "platform"):
        form = await asyncio.to_thread(services.schedules.kept, schedule_id, f"{name}.json")
        documents[name] = json.loads(form.content)
    options = {**schedule["options"], "tune": candidates}
    asked = await services.schedules.ask(json.dumps({**documents, "options": options}).encode())
    if asked.tuned is None:
        return RedirectResponse(f"/schedules/{asked.id}", SEEN)
    request = TuneRequest(schedule_id=asked.tuned, candidates=candidates)
    job = await asyncio.to_thread(services.jobs.submit_tune, asked.id, request)
    return RedirectResponse(f"/jobs/{job.id}", SEEN)


@router.post("/schedules/{schedule_id}/runs", dependencies=[Change])
async def run(schedule_id: str, request: Request, services: Services) -> RedirectResponse:
    """A job that runs the schedule on pictures, which are kept with it."""
    try:
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=1 << 20) as form:
            files = {
                name.removeprefix(INPUT): value
                for name, value in form.multi_items()
                if isinstance(value, UploadFile) and value.filename  # a field without a file has no name
            }
            job = await asyncio.to_thread(submit, services, schedule_id, _run_request(form), files)
            return RedirectResponse(f"/jobs/{job.id}", SEEN)
    except HTTPException as error:
        if isinstance(error, ApiError):
            raise
        raise ApiError("bad_form", str(error.detail)) from None


def _run_request(form: FormData) -> RunRequest:
    params = {
        name.removeprefix(PARAM): _number(name.removeprefix(PARAM), value)
        for name, value in form.multi_items()
        if name.startswith(PARAM) and isinstance(value, str) and value.strip()
    }
    try:
        return RunRequest.model_validate(
            {
                "params": params,
                "repeat": form.get("repeat") or 1,
                "convert": "convert" in form,
                "keep_inputs": True,
            }
        )
    except ValidationError as error:
        raise from_pydantic(error.errors(include_url=False, include_input=False), RunRequest) from None


def _number(name: str, text: str) -> Any:
    """The value of a parameter: a number, or true or false. ApiError `bad_argument`."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, bool | int | float):
        raise ApiError("bad_argument", f"param {name}: {text[:40]!r} is neither a number, nor true or false")
    return value
