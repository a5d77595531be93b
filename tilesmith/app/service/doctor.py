"""Doctor: an installation checked, part by part, by doing what the service will do there."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from tilesmith.app.profiler.first_use import kept_measurement
from tilesmith.app.profiler.host import host
from tilesmith.app.runtime import confinement
from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.errors import RunError, WorkerError
from tilesmith.app.service.configuration import BadSettings, read_settings
from tilesmith.app.service.db import Database, alembic_config, now_us
from tilesmith.app.service.settings import GIB, RefusedAddress, Settings, check_address
from tilesmith.app.service.tables import jobs, schedules
from tilesmith.app.service.tokens.service import Tokens
from tilesmith.platforms.cpu.detect import host as detected
from tilesmith.scheduler.codegen.artifact import CSource

Status = Literal["ok", "warning", "failed"]

LITTLE_BYTES = GIB
"""Free space of the data folder below which there is a warning."""
CLOCKS_S = 2.0
"""Difference between the clocks of this machine and of the database from which leases of jobs go wrong."""
TIME_ERROR = 5
"""The answer of adjtimex(2) where nothing keeps the clock right."""
PROBE = CSource(
    code="int tilesmith_probe(void) { return 0; }\n",
    header="int tilesmith_probe(void);\n",
    header_name="probe.h",
    entry="tilesmith_probe",
    flags=(),
    buffers=(),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: `remedy` says what to do where it is not ok."""

    check: str
    status: Status
    detail: str
    remedy: str | None = None


def examine() -> list[Finding]:
    """The findings of all checks; of the settings alone where they cannot be read."""
    try:
        settings = read_settings()
    except BadSettings as error:
        return [Finding("settings", "failed", f"{c.variable}: {c.message}", c.remedy) for c in error.complaints]
    checks: tuple[Callable[[Settings], Finding], ...] = (
        _confinement,
        _compiler,
        _calibration,
        _disk,
        _database,
        _address,
        _clock,
        _pool,
    )
    return [Finding("settings", "ok", f"valid; data in {settings.data_dir}"), *(check(settings) for check in checks)]


def _confinement(settings: Settings) -> Finding:
    os.environ[confinement.VARIABLE] = settings.confinement  # what else runs programs here reads it there
    found = confinement.mechanism()
    if found != "none":
        return Finding("confinement", "ok", f"{found}, which withstood its test")
    if confinement.allowed():
        return Finding("confinement", "warning", "programs run unconfined, as TILESMITH_CONFINEMENT says", _CONFINE)
    return Finding("confinement", "failed", confinement.why_not(), confinement.REMEDY)


_CONFINE = "let it be `required`, unless nobody else can reach the service"


def _compiler(settings: Settings) -> Finding:
    """Compiles a line of C for the host, confined, as jobs are."""
    machine = host(settings.host_platform)
    try:
        with tempfile.TemporaryDirectory(prefix="tilesmith-") as folder:
            built = build(PROBE, machine, Path(folder), settings.build_timeout_s)
    except RunError as error:
        return Finding("compiler", "failed", f"not tried: {error}", "see confinement")
    except WorkerError as error:
        command = machine.compiler.command
        remedy = f"install {command}, or name another compiler in the document of TILESMITH_HOST_PLATFORM"
        return Finding("compiler", "failed", str(error).splitlines()[0], remedy)
    return Finding("compiler", "ok", f"{built.compiler}, a line of C in {built.seconds:.2f} s")


def _calibration(settings: Settings) -> Finding:
    if settings.host_platform is not None:
        return Finding("calibration", "ok", f"the platform host is {settings.host_platform}")
    if kept_measurement(detected()) is not None:
        return Finding("calibration", "ok", "this machine is measured")
    remedy = "tilesmith platforms calibrate --quick"
    if not settings.calibrate:
        return Finding("calibration", "warning", "estimates, as TILESMITH_CALIBRATE says", f"allow it, or {remedy}")
    return Finding("calibration", "warning", "not measured yet: the first start will", remedy)


def _disk(settings: Settings) -> Finding:
    folder = settings.data_dir
    free = shutil.disk_usage(folder).free
    detail = f"{free / GIB:,.1f} GiB free in {folder}"
    if free < settings.disk_free_bytes:
        return Finding("disk", "failed", detail, "make room, or set TILESMITH_DATA_DIR to a larger disk")
    if free < LITTLE_BYTES:
        return Finding("disk", "warning", detail, "make room, or lower TILESMITH_BUILD_CACHE_BYTES")
    return Finding("disk", "ok", detail)


def _database(settings: Settings) -> Finding:
    """Looks at the store and changes nothing: a service that starts makes or upgrades the tables."""
    db = _store(settings)
    if db is None:
        return Finding("database", "ok", "not there yet: the service makes it")
    try:
        with db.read() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
    except SQLAlchemyError as error:
        detail = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        where = db.url.render_as_string(hide_password=True)
        return Finding("database", "failed", f"{where}: {detail}", "is TILESMITH_DATABASE_URL right, and does it run?")
    finally:
        db.close()
    script = ScriptDirectory.from_config(alembic_config())
    kind = db.url.get_backend_name()
    if found == script.get_current_head():
        return Finding("database", "ok", f"{kind}, its tables are current ({found})")
    if found is None:
        return Finding("database", "ok", f"{kind}, without tables yet: the service makes them")
    if found in {revision.revision for revision in script.walk_revisions()}:
        detail = f"{kind}, tables of {found}: the next start brings them to {script.get_current_head()}"
        return Finding("database", "warning", detail, "make a backup first")
    detail = f"{kind}, its tables ({found}) are of a later version"
    return Finding("database", "failed", detail, "install that version, or restore the backup from before it")


def _address(settings: Settings) -> Finding:
    db = _store(settings)
    try:
        tokens = settings.admin_token is not None or (db is not None and Tokens(db, settings).in_force())
    except SQLAlchemyError:
        tokens = False
    finally:
        if db is not None:
            db.close()
    try:
        check_address(settings.host, tokens)
    except RefusedAddress as error:
        message, _, remedy = str(error).partition(": ")
        return Finding("address", "failed", message, remedy)
    guarded = "with tokens" if tokens else "without tokens, from this machine alone"
    return Finding("address", "ok", f"{settings.host}:{settings.port}, {guarded}")


def _clock(settings: Settings) -> Finding:
    """Compares the clock with the database's and with the times of its rows; asks the kernel if something keeps it."""
    here = datetime.now(UTC)
    off = _ahead_of_us(settings)
    if abs(off) > CLOCKS_S:
        detail = f"{here:%Y-%m-%d %H:%M:%S} UTC; the store is {off:+,.0f} s from it"
        return Finding("clock", "failed", detail, "let NTP keep the clocks of both: jobs are leased by time")
    if _unsynchronised():
        return Finding("clock", "warning", f"{here:%Y-%m-%d %H:%M:%S} UTC; nothing keeps it", "start an NTP client")
    return Finding("clock", "ok", f"{here:%Y-%m-%d %H:%M:%S} UTC, steps of {_step_ns():,.0f} ns")


def _ahead_of_us(settings: Settings) -> float:
    """Seconds that the database's clock, or the latest of its rows, is ahead; negative where the clock is behind."""
    db = _store(settings)
    if db is None:
        return 0.0
    try:
        with db.read() as connection:
            before = now_us()
            told = None if db.is_sqlite else connection.execute(select(func.clock_timestamp())).scalar_one()
            after = now_us()
            if told is not None:
                return float(1e6 * told.timestamp() - (before + after) / 2) / 1e6
            latest = [connection.execute(select(func.max(t.c.created_us))).scalar() for t in (jobs, schedules)]
            return max(0.0, (max(filter(None, latest), default=0) - after) / 1e6)
    except SQLAlchemyError:
        return 0.0
    finally:
        db.close()


def _unsynchronised() -> bool:
    """True if the kernel says that nothing keeps its clock right; a sandbox that does not say is believed."""
    state = ctypes.create_string_buffer(1024)  # struct timex, all zero: nothing is changed
    try:
        return int(ctypes.CDLL(None).adjtimex(state)) == TIME_ERROR
    except (AttributeError, OSError):
        return False


def _step_ns() -> float:
    return 1e9 * time.get_clock_info("monotonic").resolution


def _pool(settings: Settings) -> Finding:
    if settings.pool is not None:
        return _dask_pool(settings.pool)
    if settings.job_workers == 0:
        detail = "no jobs are done here, as TILESMITH_JOB_WORKERS says"
        return Finding("pool", "warning", detail, "let another service on the same store do them")
    return Finding("pool", "ok", f"embedded, jobs at once: {settings.job_workers}")


def _dask_pool(url: str) -> Finding:
    """Asks the scheduler for its workers."""
    from tilesmith.app.runtime.dask_pool import DaskPool

    pool = DaskPool(url, version("tilesmith"))
    found = pool.machines()
    pool.shutdown()
    if found is None:
        return Finding("pool", "failed", f"{url} does not answer", "start it: dask scheduler --port 8786")
    if not any(found.threads.values()):
        detail = f"{url} has no workers of tilesmith {version('tilesmith')}"
        return Finding("pool", "warning", detail, "start some: tilesmith worker")
    machines = ", ".join(f"{threads} x {name}" for name, threads in sorted(found.threads.items()))
    return Finding("pool", "ok", f"{url}: {machines}")


def _store(settings: Settings) -> Database | None:
    """The store; None where it is a file that is not there, which looking would make."""
    name = settings.store_url.removeprefix("sqlite:///")
    if settings.store_url.startswith("sqlite") and not Path(name.partition("?")[0]).exists():
        return None
    return Database(settings.store_url, settings.database_busy_ms)
