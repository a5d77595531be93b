"""A calibration of this machine, made once: quick, its figures good for nothing."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from support.tools import require_tool

from app.workers.calibrate import QUICK, Measured, measure
from platforms.detect import host


@cache
def quick_calibration() -> Measured:
    require_tool("gcc")
    with tempfile.TemporaryDirectory() as folder:
        return measure(host(), Path(folder), QUICK)
