"""Documents about strategies."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

Source = Literal["shipped", "stored"]


class StrategySummary(BaseModel):
    """An entry of a list."""

    id: str = Field(description="Content hash of the canonical document")
    name: str
    source: Source
    created_at: datetime | None = Field(default=None, description="When it was stored")
    href: str


class Strategy(BaseModel):
    """A strategy with its canonical document."""

    id: str
    name: str
    source: Source
    href: str
    document: dict[str, Any]


class StrategyList(BaseModel):
    """A page of strategies, by name."""

    items: list[StrategySummary]
    next_cursor: str | None
