"""Documents about schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.schedules.examples import BLUR, SCHEDULE

Method = Literal["taco2019"]
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$"


class Options(BaseModel):
    """How to schedule. Unknown options are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Method = Field(default="taco2019", description="The search")
    strict: bool = Field(
        default=False, description="Floating point in the order written: the same bits under every schedule"
    )
    deadline_ms: int | None = Field(
        default=None, ge=1, le=600_000, description="Bounds the search; the best so far is taken"
    )
    build: bool = Field(default=False, description="Also start a job that compiles the C")
    measure: bool = Field(
        default=False, description="Also start a job that compiles, runs on random inputs and measures"
    )


class ScheduleRequest(BaseModel):
    """A pipeline, a platform, options."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"pipeline": BLUR, "platform_name": "host", "options": {"method": "taco2019"}},
                {"pipeline_id": "harris", "platform_name": "i7-6700", "options": {"strict": True, "build": True}},
            ]
        },
    )

    pipeline: dict[str, Any] | None = Field(default=None, description="A pipeline document, format 1")
    pipeline_id: str | None = Field(
        default=None, max_length=64, description="Instead: id of a stored one, or name of a shipped one"
    )
    platform: dict[str, Any] | None = Field(default=None, description="A platform document")
    platform_name: str | None = Field(
        default=None,
        max_length=64,
        description="Instead: name of a stored one, of one in the catalog, or `host` (the default)",
    )
    options: Options = Options()

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.pipeline is None) == (self.pipeline_id is None):
            raise ValueError("give either pipeline or pipeline_id")
        if self.platform is not None and self.platform_name is not None:
            raise ValueError("give either platform or platform_name")
        return self


class Group(BaseModel):
    """One loop nest of the schedule."""

    model_config = ConfigDict(extra="allow")

    output: str


class Buffer(BaseModel):
    """A scratch buffer that the schedule declares."""

    name: str
    bytes: int


class JobLink(BaseModel):
    """A job that was started."""

    id: str
    kind: str
    href: str


class Schedule(BaseModel):
    """What was decided, what it is predicted to cost, and where its forms are."""

    model_config = ConfigDict(json_schema_extra={"examples": [SCHEDULE]})

    id: str = Field(description="Content hash of pipeline, platform, options and scheduler version")
    pipeline: str
    pipeline_id: str
    platform: str
    method: str
    options: dict[str, Any]
    degraded: str | None = Field(description="Why the method had to fall back, if it did")
    groups: list[Group]
    predicted: dict[str, Any] = Field(description="The cost model's breakdown, with units in the names")
    buffers: list[Buffer]
    entry: str = Field(description="The exported C function")
    timings_ms: dict[str, float] = Field(description="Of the making of this schedule, not of this request")
    version: str
    created_at: datetime
    links: dict[str, str]
    jobs: list[JobLink] | None = Field(default=None, description="Jobs that this request started")


class ScheduleSummary(BaseModel):
    """An entry of a list."""

    id: str
    pipeline: str
    pipeline_id: str
    platform: str
    method: str
    strict: bool
    degraded: str | None
    groups: int
    created_at: datetime
    href: str


class ScheduleList(BaseModel):
    """A page of schedules."""

    items: list[ScheduleSummary]
    next_cursor: str | None
