"""Documents about webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.service.baselines.schemas import Project
from tilesmith.app.service.webhooks.repository import State


class WebhookRequest(BaseModel):
    """An address to be told of regressions."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"url": "https://hooks.example.org/tilesmith", "project": "camera"}]},
    )

    url: str = Field(min_length=1, max_length=2000)
    project: Project | None = Field(default=None, description="Of this project only; of every one when not given")
    above: float = Field(
        default=0.05, strict=True, ge=0, le=1000, description="Growth of predicted time that is told, a share"
    )


class WebhookDocument(BaseModel):
    """A webhook without its secret."""

    id: str
    url: str
    project: str | None
    above: float
    created_at: datetime


class NewWebhookDocument(BaseModel):
    """A webhook just made: its secret, by which deliveries are signed, is not shown again."""

    id: str
    url: str
    project: str | None
    above: float
    secret: str


class WebhookList(BaseModel):
    """All webhooks."""

    items: list[WebhookDocument]


class Delivery(BaseModel):
    """An event that was sent, or is to be."""

    id: str
    state: State
    attempts: int
    status: int | None = Field(description="Status of the last answer")
    error: str | None = Field(description="What went wrong with the last attempt, where nobody answered")
    event: dict[str, Any]
    created_at: datetime
    next_at: datetime | None = Field(description="The next attempt")


class DeliveryList(BaseModel):
    """A page of deliveries, the newest first."""

    items: list[Delivery]
    next_cursor: str | None
