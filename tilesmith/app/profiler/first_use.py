"""`host` measured on first use, and kept for as long as the machine and its compiler stay what they are."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from tilesmith.platforms import CpuPlatform, PlatformError, parse, to_document

VARIABLE = "TILESMITH_CALIBRATE"
"""Says in the environment that nothing is measured on first use, where it is one of _NO."""
_NO = ("0", "false", "no", "off", "f", "n")
_MEASURED = 10
"""The version of the measurement: counts up where figures of before are no longer what they would be."""
DISTURBED_S = 3600.0
"""For so long a measurement is kept that other programs disturbed, or machines beside this virtual one."""

Tell = Callable[[str], None]


def asked() -> bool:
    """The environment's word on measuring: true unless it says no."""
    return os.environ.get(VARIABLE, "").strip().lower() not in _NO


def measured_once(detected: CpuPlatform, tell: Tell, warn: Tell, again: bool = False) -> CpuPlatform:
    """`detected`, this machine, with the figures that were measured on first use: now, in a second or two, of which
    `tell` is told, or before, unless `again`. Processes that come meanwhile wait. Where that does not work `warn` is
    told, and `detected` it is."""
    folder = platformdirs.user_cache_path("tilesmith", appauthor=False) / "hosts"
    path = folder / f"{_key(detected)}.json"
    found = None if again else _kept(path)
    if found is not None:
        return found
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder / "lock"):
            found = None if again else _kept(path)
            if found is None:
                found, busy = _measured(detected, tell, warn)
                _keep(found, path, time.time() + DISTURBED_S if busy else None)
            return found
    except OSError as error:
        warn(f"this machine is not measured: {folder} cannot be used: {error.strerror}")
        return detected


def kept_measurement(detected: CpuPlatform) -> CpuPlatform | None:
    """The measurement of `detected` that is kept; None where there is none. Nothing is measured."""
    return _kept(platformdirs.user_cache_path("tilesmith", appauthor=False) / "hosts" / f"{_key(detected)}.json")


def _measured(detected: CpuPlatform, tell: Tell, warn: Tell) -> tuple[CpuPlatform, bool]:
    """A measurement, and whether something disturbed it; `detected` where it fails: kept too, it is not tried
    again as long as nothing changes."""
    from tilesmith.app.profiler.calibrate import QUICK, measure, quick_parts
    from tilesmith.app.profiler.calibrated_platform import calibrated, disturbed
    from tilesmith.app.runtime.errors import WorkerError

    tell("measuring this machine, once: a second or two (--no-calibrate leaves it out)")
    try:
        with tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
            found = measure(detected, Path(name), QUICK, parts=quick_parts(detected))
            return calibrated(detected, found), disturbed(found)
    except WorkerError as error:
        warn(f"this machine cannot be measured, estimates will do: {error}")
        return detected, False


def _key(detected: CpuPlatform) -> str:
    """A hash of the machine but for its clock, which the system may tell otherwise every time, and of its compiler."""
    program = shutil.which(detected.compiler.command)
    stamp = os.stat(program) if program else None
    compiler = (program, stamp.st_mtime_ns, stamp.st_size) if stamp else None
    machine = to_document(detected) | {"clock_ghz": 0}
    return hashlib.sha256(json.dumps([_MEASURED, machine, compiler], sort_keys=True).encode()).hexdigest()[:32]


def _kept(path: Path) -> CpuPlatform | None:
    """The measurement that a file has; None where there is none, its time is over, or the file is damaged."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        platform = parse(kept["platform"]) if kept["until"] is None or time.time() < kept["until"] else None
        return platform if isinstance(platform, CpuPlatform) else None
    except (OSError, ValueError, KeyError, TypeError, PlatformError):
        return None


def _keep(platform: CpuPlatform, path: Path, until: float | None) -> None:
    """Writes the file, whole or not at all, valid for good or until that time. Raises OSError."""
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps({"until": until, "platform": to_document(platform)}), encoding="utf-8")
    aside.replace(path)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time: two that measure at once measure each other."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
