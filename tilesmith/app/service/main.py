"""The service: create_app() puts its parts together, serve() runs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import structlog
import uvicorn
from fastapi import APIRouter, FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.routing import BaseRoute

from tilesmith.app.plugins import load_plugins
from tilesmith.app.runtime import confinement, held_folders
from tilesmith.app.runtime.build import sweep as sweep_builds
from tilesmith.app.runtime.pool import WorkerPool
from tilesmith.app.service import db as store
from tilesmith.app.service import errors, logs
from tilesmith.app.service.baselines.endpoints import router as baselines_router
from tilesmith.app.service.baselines.service import Baselines
from tilesmith.app.service.connections import bounded
from tilesmith.app.service.context import Context, before_body
from tilesmith.app.service.dashboard.compression import CompressedPages
from tilesmith.app.service.dashboard.endpoints import router as dashboard_router
from tilesmith.app.service.dashboard.pages import error_page
from tilesmith.app.service.db import Database
from tilesmith.app.service.differences.endpoints import router as differences_router
from tilesmith.app.service.draining import DrainingServer
from tilesmith.app.service.http import Requests
from tilesmith.app.service.imports.endpoints import router as imports_router
from tilesmith.app.service.jobs.endpoints import router as jobs_router
from tilesmith.app.service.jobs.files import JobFiles
from tilesmith.app.service.jobs.pool import Pool
from tilesmith.app.service.jobs.runner import JobRunner
from tilesmith.app.service.jobs.service import Jobs
from tilesmith.app.service.measurements.endpoints import router as measurements_router
from tilesmith.app.service.meta.endpoints import router as meta_router
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.pipelines.endpoints import router as pipelines_router
from tilesmith.app.service.pipelines.service import Pipelines
from tilesmith.app.service.platforms.endpoints import router as platforms_router
from tilesmith.app.service.platforms.machine_names import machine_name
from tilesmith.app.service.platforms.service import HOST, Platforms
from tilesmith.app.service.reference import openapi
from tilesmith.app.service.reference.endpoints import router as reference_router
from tilesmith.app.service.retention import Retention
from tilesmith.app.service.schedules import work
from tilesmith.app.service.schedules.endpoints import router as schedules_router
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.schedules.known_answers import KnownAnswers
from tilesmith.app.service.schedules.note_endpoints import router as notes_router
from tilesmith.app.service.schedules.service import Schedules
from tilesmith.app.service.settings import RefusedAddress, Settings, check_address
from tilesmith.app.service.strategies.endpoints import router as strategies_router
from tilesmith.app.service.strategies.service import Strategies
from tilesmith.app.service.temporary import private_folder
from tilesmith.app.service.tokens.endpoints import router as tokens_router
from tilesmith.app.service.tokens.service import Tokens
from tilesmith.app.service.tracing import TracedRequests, Tracing
from tilesmith.app.service.validation.endpoints import router as validation_router
from tilesmith.app.service.webhooks.endpoints import router as webhooks_router
from tilesmith.app.service.webhooks.service import Webhooks

__all__ = ["RefusedAddress", "create_app", "serve"]

log = structlog.get_logger("tilesmith")

STARTUP_FAILURE = 3  # as uvicorn has it

DESCRIPTION = """
Image-processing pipelines in, schedules and fast C out.

Errors are RFC 9457 problem documents with a stable `code`; `/v1/errors` lists them.
"""


def create_app(
    settings: Settings | None = None,
    functions: Any = work,
    job: Callable[..., dict[str, Any]] | None = None,
) -> FastAPI:
    """The application. `functions` and `job` replace the scheduling and what a job does, for tests."""
    settings = settings or Settings()
    load_plugins(settings.plugins)
    context = _context(settings, functions, job)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(_start, context)
        try:
            yield
        finally:
            await asyncio.to_thread(_stop, context)

    app = FastAPI(
        title="tilesmith",
        version=version("tilesmith"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere, which the content security policy forbids
        redoc_url=None,
        redirect_slashes=False,
        openapi_tags=openapi.TAGS,
        responses=openapi.PROBLEMS,
    )
    app.state.context = context
    app.state.error_page = error_page
    app.router.routes.extend(_routes())
    errors.install(app)
    app.add_middleware(CompressedPages)
    app.add_middleware(KnownAnswers, context=context)
    app.add_middleware(TracedRequests, tracing=context.tracing)
    app.add_middleware(
        Requests,
        settings=settings,
        metrics=context.metrics,
        tokens=context.tokens.known_in_force,
        authenticate=before_body,
    )
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    return app


@cache
def _routes() -> Sequence[BaseRoute]:
    """The routes of every application: they are stateless, and to work out the parameters and answers of all takes
    longer than the rest of a start."""
    routers = (
        schedules_router,
        notes_router,
        differences_router,
        jobs_router,
        measurements_router,
        pipelines_router,
        platforms_router,
        strategies_router,
        validation_router,
        baselines_router,
        imports_router,
        webhooks_router,
        tokens_router,
        meta_router,
        reference_router,
        dashboard_router,
    )
    whole = APIRouter()
    for router in routers:
        whole.include_router(router, responses=openapi.PROBLEMS)
    return whole.routes


def _context(settings: Settings, functions: Any, job: Callable[..., dict[str, Any]] | None) -> Context:
    db = Database(settings.store_url, settings.database_busy_ms)
    metrics = Metrics()
    engine = Engine(settings, functions)
    pipelines, platforms = Pipelines(db, settings), Platforms(db, settings.host_platform, settings.calibrate)
    strategies = Strategies(db, settings)
    jobs = Jobs(db, settings)
    schedules = Schedules(db, settings, engine, pipelines, platforms, strategies, metrics)
    return Context(
        settings=settings,
        db=db,
        metrics=metrics,
        tokens=Tokens(db, settings),
        engine=engine,
        pipelines=pipelines,
        platforms=platforms,
        strategies=strategies,
        schedules=schedules,
        jobs=jobs,
        runner=JobRunner(db, settings, jobs, metrics, partial(_new_pool, settings.pool), engine, job),
        baselines=Baselines(db),
        webhooks=Webhooks(db, settings),
        tracing=Tracing(settings.otlp_endpoint),
        retention=Retention(db, settings, jobs.files, metrics, schedules.uses),
    )


def _new_pool(url: str | None, workers: int) -> Pool:
    """The embedded pool, or the one at `url`."""
    if url is None:
        return WorkerPool(workers)
    from tilesmith.app.runtime.dask_pool import DaskPool

    logs.take_over("distributed", "CRITICAL")  # what matters of it is in our own words
    return DaskPool(url, version("tilesmith"))


def _start(context: Context) -> None:
    os.environ[confinement.VARIABLE] = context.settings.confinement  # processes of the pool have it from here
    context.runner.tracing = context.tracing
    context.runner.host_machine = lambda: machine_name(context.platforms.document(HOST))
    context.runner.found_machines = context.platforms.keep_machines
    store.wait_for(context.db, context.settings.database_wait_s, partial(_start_jobs, context))
    context.baselines.told = context.webhooks.told
    context.webhooks.start()
    context.retention.start()
    threading.Thread(target=_warm_up, args=(context,), name="tilesmith-warm-up", daemon=True).start()


def _start_jobs(context: Context, db: Database) -> None:
    """Starts what does jobs, once all is read from the store that is needed for it."""
    store.upgrade(db)
    context.tokens.in_force()
    _ = context.platforms.built_in  # the host may be measured for that: before anything disturbs it, and nobody waits
    context.runner.start()


def _warm_up(context: Context) -> None:
    """Warm-up: starts and loads what the first request would otherwise wait for."""
    context.engine.warm_up()
    if context.settings.runs_programs and not confinement.allowed():
        log.warning("not_confined", detail=confinement.why_not(), remedy=confinement.REMEDY)
    _ = context.pipelines.shipped


def _stop(context: Context) -> None:
    context.retention.stop()
    context.webhooks.stop()
    context.runner.stop()
    context.engine.close()
    context.tracing.close()
    context.db.close()


def _open(settings: Settings, db: Database) -> None:
    """Brings the tables up to date, and looks whether a token is there where others can reach the service."""
    store.upgrade(db)
    check_address(settings.host, Tokens(db, settings).in_force())


def serve(
    host: str | None = None,
    port: int | None = None,
    database: str | None = None,
    settings: Settings | None = None,
) -> None:
    """Runs the service until it is told to stop; what is not given comes from the settings.

    Raises RefusedAddress where others could reach the service and no token is set up, StoreUnusable and LaterTables
    where it has no store.
    """
    given = {"host": host, "port": port, "database_url": database}
    chosen = settings or Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    logs.configure(chosen.log_format, chosen.log_level)
    db = Database(chosen.store_url, chosen.database_busy_ms)
    try:
        store.wait_for(db, chosen.database_wait_s, partial(_open, chosen))
    except SQLAlchemyError as error:
        raise store.StoreUnusable(store.why(db, error)) from None
    db.close()
    app = create_app(chosen)
    context: Context = app.state.context
    config = uvicorn.Config(
        app,
        host=chosen.host,
        port=chosen.port,
        http=bounded(chosen),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    server = DrainingServer(config, lambda: context.runner.drain(chosen.drain_s))
    sweep_builds(JobFiles(chosen.data_dir).cache)
    held_folders.sweep(JobFiles(chosen.data_dir).steps.glob("*"))
    with private_folder(), contextlib.suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)
