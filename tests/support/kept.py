"""The folder of what tests have compiled, by content: processes share it, and later runs find it again."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

KEPT = Path(os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir()) / f"tilesmith-tests-{os.getuid()}"
KEPT_S = 7 * 86_400.0
"""Seconds that compiled code is kept: generated code changes from day to day."""


def sweep_kept() -> None:
    """Deletes what is old."""
    for folder in KEPT.glob("*"):
        with suppress(FileNotFoundError):  # another run sweeps, too
            if folder.stat().st_mtime < time.time() - KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)
