"""/playground: a pipeline written in the browser, its problems in place, its schedule and C beside it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from tilesmith.app.service.bodies import parse_form
from tilesmith.app.service.context import Context, Services
from tilesmith.app.service.dashboard.highlight import c_html
from tilesmith.app.service.dashboard.pages import Change, Page, html
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.platforms import repository as platform_rows
from tilesmith.app.service.validation.schemas import CheckedDocument, DocumentProblem, ValidationRequest
from tilesmith.app.service.validation.work import validate
from tilesmith.cost_models.registry import names as cost_models
from tilesmith.scheduler import pipelines as shipped
from tilesmith.scheduler.search.registry import methods

FIRST = "blur"
SHOWN_PLATFORMS = 200

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Written:
    """A pipeline as it was written, and what it is to be scheduled with: the fields of the form."""

    text: str
    platform: str = "host"
    method: str = "default"
    cost_model: str = ""
    strict: bool = False

    def question(self, document: dict[str, Any]) -> bytes:
        """The request for its schedule."""
        options = {"method": self.method, "strict": self.strict, "cost_model": self.cost_model or None}
        return json.dumps({"pipeline": document, "platform_name": self.platform, "options": options}).encode()


async def _fields(request: Request, services: Services) -> Written:
    form = await services.engine.read(parse_form, await request.body())
    text = form.get("text", "").replace("\r\n", "\n")  # forms send lines so
    method, model = form.get("method", "default"), form.get("cost_model", "")
    return Written(text, form.get("platform", "host"), method, model, form.get("strict") == "true")


@router.get("/playground", dependencies=[Page], response_class=HTMLResponse)
async def start(
    services: Services,
    example: Annotated[str, Query(max_length=64)] = FIRST,
    schedule: Annotated[str, Query(max_length=64)] = "",
) -> HTMLResponse:
    """The pipeline `example`, shipped or stored, or that of a stored schedule, to start from."""
    if schedule:
        form = await asyncio.to_thread(services.schedules.kept, schedule, "pipeline.json")
        return await _page(services, Written(_written(json.loads(form.content))), twin=f"/v1/schedules/{schedule}")
    known = await asyncio.to_thread(services.pipelines.find, example)
    text = shipped.text(known.identity.name) if known.shipped else _written(json.loads(known.identity.document))
    return await _page(services, Written(text), example=example, twin=f"/v1/pipelines/{example}")


@router.post("/playground", response_class=HTMLResponse, dependencies=[Change])
async def schedule(services: Services, written: Annotated[Written, Depends(_fields)]) -> HTMLResponse:
    """The page with the schedule of what was written, which is stored, or with its problems."""
    checked = await _check(services, written.text)
    if checked.document is None:
        return await _page(services, written, problems=checked.problems)
    try:
        asked = await services.schedules.ask(written.question(checked.document))
    except ApiError as error:
        return await _page(services, written, refusal=error)
    made = json.loads(asked.content.content)
    names = ("loopnest.txt", "explain.txt", "code.c")
    forms = [await services.schedules.form(asked.id, name) for name in names]
    loopnest, explain, code = (form.content.decode() for form in forms)
    result = {"schedule": made, "loopnest": loopnest, "explain": explain, "code": c_html(code)}
    return await _page(services, written, result=result, twin=made["links"]["self"])


@router.post("/playground/problems", response_class=HTMLResponse, dependencies=[Page])
async def problems(services: Services, written: Annotated[Written, Depends(_fields)]) -> HTMLResponse:
    """The list of problems of a text, as the page has it; nothing is kept."""
    checked = await _check(services, written.text)
    return html("problems.html", problems=checked.problems, refusal=None, checked=True)


async def _check(services: Context, text: str) -> CheckedDocument:
    found = await services.engine.run(
        validate, ValidationRequest(pipeline=text), services.settings.limits, reading=True
    )
    assert found.pipeline is not None
    return found.pipeline


async def _page(
    services: Context,
    written: Written,
    *,
    example: str = "",
    problems: list[DocumentProblem] | None = None,
    refusal: ApiError | None = None,
    result: dict[str, Any] | None = None,
    twin: str = "/v1/pipelines",
) -> HTMLResponse:
    stored = await asyncio.to_thread(platform_rows.page, services.db, None, SHOWN_PLATFORMS)
    return html(
        "playground.html",
        written=written,
        example=example,
        examples=shipped.names(),
        platforms=sorted({*services.platforms.built_in, *(row.name for row in stored), written.platform}),
        methods=methods(),
        cost_models=cost_models(),
        problems=problems or [],
        refusal=refusal,
        result=result,
        checked=problems is not None or refusal is not None,
        twin=twin,
    )


def _written(document: dict[str, Any]) -> str:
    """A document as a person would write it."""
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
