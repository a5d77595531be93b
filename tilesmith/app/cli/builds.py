"""Builds of the command: where compiled code is kept, how much of it, and how long a compiler may take."""

from __future__ import annotations

from pathlib import Path

import platformdirs

COMPILE_TIMEOUT_S = 120.0
CACHE_BYTES = 4 << 30


def cache_dir() -> Path:
    """The folder of compiled libraries, which are kept between calls, by content."""
    return platformdirs.user_cache_path("tilesmith", appauthor=False) / "builds"
