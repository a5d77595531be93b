"""Endpoints about the service itself: capabilities, errors, health, metrics."""

from __future__ import annotations

import platform as python_platform
import shutil
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from tilesmith.app.runtime import confinement
from tilesmith.app.service import db as store
from tilesmith.app.service.bodies import text
from tilesmith.app.service.context import Read, Services
from tilesmith.app.service.errors import CODES, ApiError, from_store
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.jobs.schemas import Kind
from tilesmith.app.service.jobs.states import STATES
from tilesmith.app.service.schedules.service import FORMS
from tilesmith.app.service.tokens.service import SCOPES
from tilesmith.cost_models.registry import names as cost_models
from tilesmith.platforms.documents import KINDS
from tilesmith.scheduler.codegen.registry import names as backends
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.registry import content_importers
from tilesmith.scheduler.ir.pipeline.types import TYPES
from tilesmith.scheduler.search.registry import methods

router = APIRouter(tags=["service"])
REDUCTIONS = ("sum", "product", "min", "max", "any", "all", "argmin", "argmax")


class Capabilities(BaseModel):
    """Capabilities of the service."""

    versions: dict[str, str]
    format: int
    types: list[str]
    functions: list[str]
    methods: list[str]
    cost_models: list[str]
    emitters: list[str]
    backends: list[str]
    importers: list[str]
    platform_kinds: list[str]
    job_kinds: list[str]
    job_states: list[str]
    scopes: list[str]
    limits: dict[str, int | float]


class ErrorCode(BaseModel):
    """A code of problem documents."""

    code: str
    status: int
    title: str


class ErrorCodes(BaseModel):
    """Every code."""

    items: list[ErrorCode]


class Health(BaseModel):
    """Health of the service, check by check."""

    status: str
    checks: dict[str, str] = {}


@router.get("/v1/capabilities", dependencies=[Read], operation_id="getCapabilities", summary="What the service can do")
def capabilities(services: Services) -> Capabilities:
    settings = services.settings
    limits: dict[str, int | float] = {f"document.{name}": value for name, value in asdict(settings.limits).items()}
    limits |= {
        "body_bytes": settings.body_bytes,
        "upload_bytes": settings.upload_bytes,
        "import_bytes": settings.import_bytes,
        "page_limit": settings.page_limit,
        "batch_limit": settings.batch_limit,
        "schedule_timeout_s": settings.schedule_timeout_s,
        "build_timeout_s": settings.build_timeout_s,
        "run_timeout_s": settings.run_timeout_s,
        "run_memory_bytes": settings.run_memory_bytes,
        "run_repeats": settings.run_repeats,
        "run_threads": settings.run_threads,
        "job_queue_limit": settings.job_queue_limit,
        "job_retention_s": settings.job_retention_s,
    }
    return Capabilities(
        versions={"tilesmith": version("tilesmith"), "python": python_platform.python_version(), "api": "v1"},
        format=1,
        types=list(TYPES),
        functions=sorted({*FUNCTIONS, *REDUCTIONS}),
        methods=list(methods()),
        cost_models=list(cost_models()),
        emitters=list(FORMS),
        backends=list(backends()),
        importers=sorted(content_importers()),
        platform_kinds=sorted(KINDS),
        job_kinds=list(get_args(Kind)),
        job_states=list(STATES),
        scopes=list(SCOPES),
        limits=limits,
    )


@router.get("/v1/errors", operation_id="listErrorCodes", summary="The codes of errors")
def errors() -> ErrorCodes:
    """The codes of errors, which the `type` of a problem document leads to."""
    return ErrorCodes(items=[ErrorCode(code=c, status=status, title=title) for c, (status, title) in CODES.items()])


@router.get("/healthz", operation_id="getHealth", summary="Whether the process lives")
async def healthz() -> Health:
    return Health(status="ok")


@router.get("/readyz", operation_id="getReadiness", summary="Whether the service can do its work")
def readyz(services: Services) -> Health:
    """`not_ready` names the checks that fail: the store, its tables, room on the disk, the threads that take jobs, and
    what confines programs, where this service runs any."""
    checks = {
        **_store(services),
        "disk": _disk(services.settings.data_dir, services.settings.disk_free_bytes),
        "jobs": "draining" if services.runner.draining else "ok" if services.runner.alive else "not running",
    }
    failing = {name for name, found in checks.items() if found != "ok"}
    if services.settings.runs_programs and not confinement.allowed():
        failing.add("confinement")
    checks["confinement"] = confinement.mechanism()
    if services.settings.pool is not None:  # without it jobs wait, and all else goes on
        checks["pool"] = services.runner.pool_state()
    if failing:
        raise ApiError("not_ready", "; ".join(f"{k}: {v}" for k, v in checks.items()), extra={"checks": checks})
    return Health(status="ok", checks=checks)


def _store(services: Services) -> dict[str, str]:
    """The checks of the store: nothing is known of the tables of one that does not answer."""
    try:
        services.db.ping()
        return {"store": "ok", "tables": "ok" if store.is_current(services.db) else "not migrated"}
    except SQLAlchemyError as error:
        return {"store": from_store(error).detail}
    except OSError:
        return {"store": "its file is gone: restore it, and start the service again"}


def _disk(folder: Path, wanted: int) -> str:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"the data folder cannot be read: {error.strerror}"
    return "ok" if free >= wanted else f"{free >> 20} MiB are free of {wanted >> 20} that are wanted"


@router.get(
    "/metrics",
    dependencies=[Read],
    response_class=Response,
    responses=text("text/plain"),
    operation_id="getMetrics",
    summary="Counters for Prometheus",
)
def metrics(services: Services) -> Response:
    services.metrics.queued.set(job_rows.queued(services.db))
    return Response(generate_latest(services.metrics.registry), media_type=CONTENT_TYPE_LATEST)


__all__: list[Any] = ["router"]
