"""A calibration of this machine, made once: quick, its figures good for nothing."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from support.tools import require_tool

from tilesmith.app.profiler.calibrate import Effort, measure
from tilesmith.app.profiler.samples import Measured
from tilesmith.platforms.cpu.detect import host

TRY = Effort(turns=1, rounds=1, sample_us=20, memory_bytes=1 << 20, calls=2, again_s=0.0)
"""The least effort, which shows that a calibration works, and measures nothing well."""


@cache
def quick_calibration() -> Measured:
    require_tool("gcc")
    with tempfile.TemporaryDirectory() as folder:
        return measure(host(), Path(folder), TRY)
