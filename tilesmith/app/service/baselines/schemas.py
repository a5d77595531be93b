"""Documents about projects, their results and baselines."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.comparison.compare import Status

Project = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$")]
Branch = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
CommitHash = Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")]
Milliseconds = Annotated[float, Field(strict=True, gt=0, lt=1e12, allow_inf_nan=False)]

COMMIT = "5f0c8f3b1d0f4d1c9a44c4f6f7a4f1de5f0c8f3b"
SCHEDULE = "1f0c6a7e5d2b4938a1c4e0f7b9d86532"


class MeasuredTimes(BaseModel):
    """Times of a schedule's code: the median of timed calls, with an interval for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    median_ms: Milliseconds
    low_ms: Milliseconds | None = Field(default=None, description="Lower end of the 99 % interval of the median")
    high_ms: Milliseconds | None = Field(default=None, description="Upper end")
    runs: int = Field(strict=True, ge=1, lt=1 << 31, description="Timed calls")
    machine: str | None = Field(default=None, max_length=200, description="The machine that they ran on")


class NewResult(BaseModel):
    """A schedule of this service that a commit has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schedule_id: str = Field(max_length=64)
    measured: MeasuredTimes | None = None


class RecordRequest(BaseModel):
    """Results of a commit, to be kept."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"branch": "main", "commit": COMMIT, "results": [{"schedule_id": SCHEDULE}]}],
        },
    )

    branch: Branch
    commit: CommitHash
    results: tuple[NewResult, ...] = Field(min_length=1, max_length=1000)


class AcknowledgeRequest(BaseModel):
    """A person accepts the result of a schedule at a commit."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"branch": "wider", "commit": COMMIT, "schedule_id": SCHEDULE, "reason": "a wider window, on purpose"}
            ]
        },
    )

    branch: Branch
    commit: CommitHash
    schedule_id: str = Field(max_length=64)
    reason: str = Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]+$", description="In one line")


class BaselineRequest(BaseModel):
    """A question for what a commit is compared with."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"ref": "main", "ancestors": [COMMIT]}]}
    )

    ref: Branch = Field(description="A branch: its latest commit. Else a commit: it, or its nearest ancestor")
    ancestors: tuple[CommitHash, ...] = Field(
        default=(), max_length=1000, description="The commit that is checked and those before it, the nearest first"
    )


class ProjectResult(BaseModel):
    """A result of a commit."""

    id: str
    branch: str
    commit: str
    pipeline: str
    platform: str
    variant: str = Field(description="The way of scheduling: method and options")
    schedule_id: str
    pipeline_id: str
    predicted: float
    unit: str = Field(description="Of the prediction")
    measured: MeasuredTimes | None = None
    reason: str | None = Field(default=None, description="Why a person accepted it in spite of a regression")
    token: str | None = Field(default=None, description="Name of the token that recorded it")
    recorded_at: datetime


class Baseline(BaseModel):
    """The results that a reference means."""

    ref: str
    kind: Literal["branch", "commit"]
    items: list[ProjectResult]


class Change(BaseModel):
    """A series against what the branch had before."""

    pipeline: str
    platform: str
    variant: str
    status: Status
    change: float | None = Field(description="Relative change of predicted time")


class Recorded(BaseModel):
    """Results that were kept, and how they compare with what the branch had before."""

    items: list[ProjectResult]
    changes: list[Change]


class ResultFilters(BaseModel, extra="forbid"):
    """Filters of the results of a project; those that are not given take all."""

    branch: str | None = Field(None, max_length=255)
    commit: str | None = Field(None, max_length=255)
    pipeline: str | None = Field(None, max_length=255)
    platform: str | None = Field(None, max_length=255)
    variant: str | None = Field(None, max_length=255)


class Deleted(BaseModel):
    """The number of results that were deleted."""

    results: int


class ProjectResultList(BaseModel):
    """A page of results, the newest first."""

    items: list[ProjectResult]
    next_cursor: str | None


class Trend(BaseModel):
    """A series over the commits of a branch, the oldest first."""

    pipeline: str
    platform: str
    variant: str
    unit: str
    change: float | None = Field(description="Relative change of predicted time from the first to the last point")
    points: list[ProjectResult]


class TrendList(BaseModel):
    """Series of a branch by name."""

    branch: str
    items: list[Trend]


class ProjectSummary(BaseModel):
    """An entry of a list."""

    name: str
    results: int
    recorded_at: datetime
    href: str


class ProjectList(BaseModel):
    """A page of projects, by name."""

    items: list[ProjectSummary]
    next_cursor: str | None
