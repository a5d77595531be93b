"""A worker of the grown pool: it finds out what machine it is, joins a scheduler, and does jobs until told to end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import distributed
import structlog
from distributed.core import Status

from tilesmith import platforms
from tilesmith.app.plugins import load_plugins
from tilesmith.app.profiler.host import host
from tilesmith.app.runtime import confinement, held_folders
from tilesmith.app.runtime.build import sweep as sweep_builds
from tilesmith.app.runtime.dask_pool import FACTS, resources, scheduler_address
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.service import logs
from tilesmith.app.service.jobs.delivery import FOLDER
from tilesmith.app.service.jobs.files import JobFiles
from tilesmith.app.service.platforms.machine_names import machine_name
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.temporary import private_folder

log = structlog.get_logger("tilesmith.worker")

LOOK_S, JOIN_S, CLOSE_S = 0.1, 60.0, 10.0


def work(settings: Settings, threads: int) -> None:
    """Does jobs, as many at once as `threads`, until SIGTERM or Ctrl-C; then those that run may end within `drain_s`.
    Raises RunError `not_confined`, TimeoutError where the scheduler does not answer."""
    logs.configure(settings.log_format, settings.log_level)
    logs.take_over("distributed", "WARNING")
    os.environ[confinement.VARIABLE] = settings.confinement
    os.environ[FOLDER] = str(settings.data_dir.absolute())
    load_plugins(settings.plugins)
    files = JobFiles(settings.data_dir.absolute())
    held_folders.sweep(files.steps.glob("*"))
    sweep_builds(files.cache)
    with private_folder():
        if not confinement.allowed():
            raise RunError("not_confined", f"programs cannot be confined here: {confinement.why_not()}", "")
        facts = describe(settings)
        log.info("machine", machine=facts["machine"], confinement=confinement.mechanism())
        asyncio.run(_serve(settings, threads, facts))


def describe(settings: Settings) -> dict[str, Any]:
    """Facts of this worker: detected and, where settings allow it, measured; a document about it would be a claim."""
    document: dict[str, Any] = json.loads(
        json.dumps(platforms.to_document(host(None, settings.calibrate, log.info, log.warning)))
    )
    name = machine_name(document)
    return {"version": version("tilesmith"), "machine": name, "platform": {**document, "name": name}}


async def _serve(settings: Settings, threads: int, facts: dict[str, Any]) -> None:
    """Joins the scheduler, and joins again when it was away, until the process is told to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    told = asyncio.create_task(ended.wait())
    worker = await _joined(settings, threads, facts)
    while not ended.is_set():
        closed = asyncio.create_task(worker.finished())
        await asyncio.wait((closed, told), return_when=asyncio.FIRST_COMPLETED)
        if not ended.is_set():
            log.warning("the scheduler is gone: joining it again", scheduler=settings.pool)
            with suppress(OSError, TimeoutError):
                worker = await _joined(settings, threads, facts)
    await _drain(worker, settings.drain_s)
    with suppress(TimeoutError):  # it waits for a scheduler that may be gone
        await asyncio.wait_for(worker.close(reason="told to end"), CLOSE_S)
    log.info("worker ended")


async def _joined(settings: Settings, threads: int, facts: dict[str, Any]) -> distributed.Worker:
    """A worker that the scheduler knows; OSError, TimeoutError."""
    worker = await distributed.Worker(
        scheduler_address(str(settings.pool)),
        nthreads=threads,
        resources=resources(facts["machine"], facts["version"], threads),
        startup_information={FACTS: lambda _: facts},
        local_directory=str(settings.data_dir.absolute() / "dask"),
        memory_limit=0,  # programs are limited each for itself
        death_timeout=JOIN_S,
    )
    log.info("worker started", address=worker.address, threads=threads)
    return worker


async def _drain(worker: distributed.Worker, seconds: float) -> None:
    """Begins nothing new, and waits for what runs."""
    worker.status = Status.paused
    until = asyncio.get_running_loop().time() + seconds
    while worker.state.executing_count and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(LOOK_S)
