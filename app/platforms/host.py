"""What `host` means: this machine as detected, or a document about it, such as calibration writes."""

from __future__ import annotations

import os
from pathlib import Path

import platforms
from platforms import Platform

VARIABLE = "TILESMITH_HOST_PLATFORM"
"""Names the document in the environment; the service's setting of that name."""


def host(document: Path | None = None) -> Platform:
    """The platform that `document` describes; without one, what the operating system says.

    Raises OSError where the file cannot be read, PlatformError where it is wrong.
    """
    return platforms.load("host") if document is None else platforms.load_text(document.read_bytes())


def document_in_environment() -> Path | None:
    """The document that the environment names."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None
