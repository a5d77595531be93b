"""The machine that the figures were measured on, and how fast it copies."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from benchmarks.builds import COMPILERS
from benchmarks.contest import harness

COPY_BYTES = 256 * 1024 * 1024
"""Well beyond any last-level cache we know of."""
COPY_S = 0.5
"""Seconds for which copies are tried."""


def describe() -> dict[str, object]:
    """Processor, cores, load, compiler and versions: what a figure is worth little without."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        **{name: _first_line([name, "--version"]) for name in COMPILERS},
        **{name: _version(name) for name in ("tilesmith", "halide", "opencv-python-headless", "numpy")},
    }


def copy_gb_s(threads: int) -> float:
    """Bytes read plus bytes written in 1e9 a second, when copying far more than the caches hold."""
    return 2 * COPY_BYTES / copy_ms(threads, 2 * COPY_BYTES) / 1e6


def copy_ms(threads: int, moved_bytes: int) -> float:
    """The fastest copy that reads half of `moved_bytes` and writes the other half, in milliseconds.

    In a child process, because OpenMP reads the number of threads when a process starts.
    """
    code = f"from benchmarks import machine; print(machine._copy_ms({moved_bytes // 2}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _copy_ms(size: int) -> float:
    library = ctypes.CDLL(str(harness()))
    library.time_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32]
    library.time_copy.restype = ctypes.c_double
    arrays = [np.ones(size + 64, np.uint8) for _ in range(2)]
    to, source = (a.ctypes.data + -a.ctypes.data % 64 for a in arrays)
    best = [math.inf, math.inf]
    end = time.monotonic() + COPY_S
    while time.monotonic() < end:
        best = [min(b, library.time_copy(to, source, size, way)) for way, b in enumerate(best)]
    return min(best)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _first_line(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
