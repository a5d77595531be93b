"""Documents about platforms."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from tilesmith.app.service.platforms.service import Source


class PlatformSummary(BaseModel):
    """An entry of a list."""

    name: str
    kind: str
    source: Source
    created_at: datetime | None = None
    href: str


class Platform(BaseModel):
    """A platform with its document."""

    name: str
    source: Source
    href: str
    document: dict[str, Any]


class PlatformList(BaseModel):
    """A page of platforms, by name."""

    items: list[PlatformSummary]
    next_cursor: str | None
