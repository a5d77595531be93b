"""/platforms: all of them, and one: its caches drawn, where its figures are from, and what if they were others."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from tilesmith import platforms as machines
from tilesmith.app.runtime.confinement import mechanism
from tilesmith.app.service.context import Context, Services
from tilesmith.app.service.dashboard.pages import Change, Page, html, leaves
from tilesmith.app.service.dashboard.pipelines import newest_document
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.paging import Paging
from tilesmith.app.service.platforms import lists
from tilesmith.app.service.platforms.reading import checked
from tilesmith.app.service.platforms.service import Known
from tilesmith.app.service.platforms.what_if import Changeable, Outcome, changeable, changed, what_if
from tilesmith.platforms import Platform

router = APIRouter()

MOST_BOXES = 32
NOT_CALIBRATED = "not calibrated"


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a drawn machine: what it is, and how many of it there are, of which so many are drawn."""

    title: str
    facts: str
    count: int

    @property
    def boxes(self) -> int:
        return min(self.count, MOST_BOXES)


@dataclass(frozen=True, slots=True)
class Sourced:
    """A figure with where it is from; `measured` or `documented`, else it is an estimate: not calibrated."""

    name: str
    value: str
    source: str
    kind: str


@router.get("/platforms", dependencies=[Page], response_class=HTMLResponse)
def every(request: Request, services: Services, paging: Paging) -> HTMLResponse:
    """Platforms by name."""
    page = lists.listed(services.db, services.platforms.built_in, paging)
    counts = lists.schedules_of(services.db, [known.name for known in page.items])
    return html(
        "platforms.html",
        items=[(_row(known), counts[known.name]) for known in page.items],
        leaves=leaves(request, "/platforms", {}, page),
        twin="/v1/platforms",
    )


@router.get("/platforms/{name}", dependencies=[Page], response_class=HTMLResponse)
def one(name: str, services: Services) -> HTMLResponse:
    """One platform; ApiError `platform_not_found`."""
    known = services.platforms.find(name)
    return _page(services, known, {}, "", None, "", 200)


@router.get("/platforms/{name}/what-if", dependencies=[Change], response_class=HTMLResponse)
async def other(
    name: str, request: Request, services: Services, pipeline: Annotated[str, Query(max_length=64)] = ""
) -> HTMLResponse:
    """The page of the platform with what would change; what is wrong with the question, where something is."""
    known = await asyncio.to_thread(services.platforms.find, name)
    fields = {f.name: f for f in changeable(machines.parse(known.document))}
    given = {key: value for key, value in request.query_params.items() if key in fields}
    outcome, wrong = None, ""
    try:
        values = {key: value for key, text in given.items() if (value := _number(key, text)) != fields[key].value}
        document = checked(changed(known.document, values))
        text = await asyncio.to_thread(newest_document, services, pipeline)
        outcome = await what_if(services.engine, services.settings.limits, json.loads(text), known.document, document)
    except ApiError as error:
        wrong = "; ".join([error.detail, *(f"{p.pointer}: {p.message}" for p in error.problems)])
    return await asyncio.to_thread(_page, services, known, given, pipeline, outcome, wrong, 422 if wrong else 200)


def _number(figure: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ApiError("bad_request", f"{figure} is a number")
    return value


def _page(
    services: Context,
    known: Known,
    given: dict[str, str],
    pipeline: str,
    outcome: Outcome | None,
    wrong: str,
    status: int,
) -> HTMLResponse:
    platform = machines.parse(known.document)
    figures = _figures(platform)
    return html(
        "platform.html",
        status,
        known=known,
        platform=platform,
        levels=_levels(platform),
        figures=figures,
        estimates=sum(f.kind == NOT_CALIBRATED for f in figures),
        confinement=mechanism(),
        fields=[(f, given.get(f.name, _plain(f))) for f in changeable(platform)],
        pipelines=sorted(services.pipelines.shipped),
        pipeline=pipeline or "harris",
        outcome=outcome,
        wrong=wrong,
        schedules=lists.schedules_of(services.db, [known.name])[known.name],
        document=json.dumps(known.document, indent=2, ensure_ascii=False),
        twin=f"/v1/platforms/{known.name}",
    )


def _plain(field: Changeable) -> str:
    return f"{field.value:g}" if field.value < 1e5 else f"{field.value:.0f}"


def _row(known: Known) -> dict[str, Any]:
    """A platform as the table has it."""
    platform = machines.parse(known.document)
    return {
        "name": known.name,
        "description": platform.description,
        "kind": platform.kind,
        "source": known.source,
        "threads": platform.threads,
        "caches": " · ".join(size(c.size_bytes) for c in platform.caches),
        "bandwidth": platform.memory_bandwidth_gb_s,
        "measured": any(f.kind == "measured" for f in _figures(platform)),
    }


def _levels(platform: Platform) -> list[Level]:
    """The machine from its threads outwards."""
    levels = [
        Level("Threads", f"{platform.threads}, each with vectors of {platform.vector_bytes} bytes", platform.threads)
    ]
    for cache in platform.caches:
        count = max(1, math.ceil(platform.threads / cache.shared_by_threads))
        facts = (
            f"{count} of {size(cache.size_bytes)}, {cache.ways} ways, lines of {cache.line_bytes} bytes, "
            f"{cache.latency_cycles:g} cycles, {cache.bandwidth_bytes_per_cycle:.3g} bytes a cycle"
        )
        levels.append(Level(f"L{cache.level}", facts, count))
    memory = f"{platform.memory_bandwidth_gb_s:,.4g} GB/s, {platform.memory_latency_ns:,.4g} ns"
    return [*levels, Level("Memory", memory, 1)]


def size(count: int) -> str:
    """Bytes as people say them."""
    for unit, amount in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= amount:
            return f"{count / amount:.3g} {unit}"
    return f"{count} bytes"


def _figures(platform: Platform) -> list[Sourced]:
    found = []
    for name, value in platform.figures().items():
        source = platform.source_of(name) or ""
        kind = "measured" if source.startswith("measured") else "documented"
        if not source or source.startswith("estimate"):
            kind = NOT_CALIBRATED
        number = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{value:g}"
        shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else number
        found.append(Sourced(name, shown, source, kind))
    return found
