"""Documents about pipelines."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.service.schedules.examples import BLUR

Source = Literal["shipped", "stored"]


class PipelineSummary(BaseModel):
    """An entry of a list."""

    id: str = Field(description="Content hash of the canonical document")
    name: str
    stages: int
    source: Source
    created_at: datetime | None = Field(default=None, description="When it was stored")
    href: str


class Pipeline(BaseModel):
    """A pipeline with its canonical document."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "8a4d1be2c9f07635d4b1a6e8f3c2907b",
                    "name": "blur",
                    "stages": 2,
                    "source": "shipped",
                    "href": "/v1/pipelines/blur",
                    "document": BLUR,
                }
            ]
        }
    )

    id: str
    name: str
    stages: int
    source: Source
    href: str
    document: dict[str, Any]


class PipelineList(BaseModel):
    """A page of pipelines, by name."""

    items: list[PipelineSummary]
    next_cursor: str | None
