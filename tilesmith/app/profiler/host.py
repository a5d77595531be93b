"""The platform `host`: this machine, measured on first use, or a document about it, such as calibration writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tilesmith import platforms
from tilesmith.app.profiler.first_use import measured_once
from tilesmith.platforms import Platform
from tilesmith.platforms.cpu.detect import host as detected

VARIABLE = "TILESMITH_HOST_PLATFORM"
"""Names the document in the environment; the service's setting of that name."""


def host(
    document: Path | None = None,
    calibrate: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Platform:
    """The platform that `document` describes; without one, what the operating system says, and, to `calibrate`, what is
    measured on first use, of which `tell` and `warn` are told.

    Raises OSError where the file cannot be read, PlatformError where it, or the instruction set that the environment
    asks for, is wrong.
    """
    if document is not None:
        return platforms.load_text(document.read_bytes())
    found = detected()
    return measured_once(found, tell, warn) if calibrate else found


def document_in_environment() -> Path | None:
    """The document that the environment names."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None
