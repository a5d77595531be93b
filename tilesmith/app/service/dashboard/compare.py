"""/compare: two schedules side by side."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from tilesmith.app.service.context import Services
from tilesmith.app.service.dashboard.charts import picture_response
from tilesmith.app.service.dashboard.pages import Page, html
from tilesmith.app.service.dashboard.schedule_charts import costs_of_two
from tilesmith.app.service.differences.endpoints import Id
from tilesmith.app.service.differences.schemas import Difference
from tilesmith.app.service.differences.service import Side, difference, side_by_side, sides
from tilesmith.app.service.errors import ApiError

SHOWN_LINES = 3000
"""Lines of a difference of code that a page shows."""

router = APIRouter()


@router.get("/compare", dependencies=[Page], response_class=HTMLResponse)
async def compare(a: Id, b: Id, services: Services) -> HTMLResponse:
    """Two schedules: decisions that differ, costs, loop nests, C."""
    return await asyncio.to_thread(_page, *await sides(services, a, b))


def _page(first: Side, second: Side) -> HTMLResponse:
    found = difference(first, second)
    query = urlencode({"a": found.a.id, "b": found.b.id})
    code = found.code.splitlines()
    chart = costs_of_two(found.model_dump())
    return html(
        "compare.html",
        found=found,
        same_unit=_unit(found.predicted_a) == _unit(found.predicted_b),
        total=_times(found),
        chart=chart and chart["description"],
        query=query,
        options=_differing(first.body["options"], second.body["options"]),
        nest=side_by_side(first.loopnest, second.loopnest),
        code=code[:SHOWN_LINES],
        more=max(0, len(code) - SHOWN_LINES),
        twin=f"/v1/compare?{query}",
    )


@router.get("/compare/cost.svg", dependencies=[Page])
async def cost(a: Id, b: Id, request: Request, services: Services) -> Response:
    """The chart of the page; ApiError `not_found` where costs cannot be compared."""
    found = await asyncio.to_thread(difference, *await sides(services, a, b))
    spec = costs_of_two(found.model_dump())
    if spec is None:
        raise ApiError("not_found", "the predicted costs of these two cannot be compared")
    return await picture_response(request, spec)


def _unit(predicted: Any) -> tuple[str, str] | None:
    return None if predicted is None else (predicted.model, predicted.unit)


def _times(found: Difference) -> float | None:
    """The predicted cost of `b` over that of `a`, by the same model."""
    a, b = found.predicted_a, found.predicted_b
    return b.total / a.total if a and b and _unit(a) == _unit(b) and a.total > 0 else None


def _differing(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The options that differ, as JSON."""
    names = [n for n in dict.fromkeys([*a, *b]) if a.get(n) != b.get(n)]
    return [(n, _told(a.get(n)), _told(b.get(n))) for n in names]


def _told(option: Any) -> str:
    return "not set" if option is None else json.dumps(option)
