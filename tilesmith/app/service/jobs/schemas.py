"""Documents about jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.service.jobs.states import State

Kind = Literal["build", "run", "tune", "compare"]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Coordinate = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]
Extent = Annotated[int, Field(ge=1, lt=1 << 31)]


class BuildRequest(BaseModel):
    """Compile the C of a schedule with its platform's compiler."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RunRequest(BaseModel):
    """Run a schedule on images, or on random ones of the estimated sizes."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"estimates": True, "repeat": 5, "outputs": False}]},
    )

    estimates: bool = Field(default=False, description="Make deterministic random inputs of the estimated sizes")
    params: dict[Identifier, bool | int | float] = Field(
        default={}, max_length=256, description="Values of params by name"
    )
    regions: dict[Identifier, tuple[tuple[Coordinate, Extent], ...]] | None = Field(
        default=None,
        description="(min, extent) per dim of each output; the largest that the inputs allow when not given",
    )
    mins: dict[Identifier, tuple[Coordinate, ...]] = Field(
        default={}, description="Where an input's image begins; 0 by default"
    )
    threads: int | None = Field(default=None, ge=1, description="All of the platform's when not given")
    repeat: int = Field(default=1, ge=1, description="Timed calls, after one that is not timed")
    outputs: bool = Field(default=True, description="Keep the results as artefacts")
    convert: bool = Field(
        default=False, description="Convert depth and channels of uploaded images instead of refusing"
    )
    keep_inputs: bool = Field(
        default=False, description="Keep uploaded images as long as the job, to be shown and run again"
    )


class TuneRequest(BaseModel):
    """Time the best candidates of a schedule, and keep the fastest as the schedule of that id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schedule_id: str
    candidates: int = Field(ge=2, le=16)


class CompareRequest(BaseModel):
    """Run a schedule and another, the baseline, in turns on random inputs of their estimated sizes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"baseline": "8a4d1be2c9f07635d4b1a6e8f3c2907b"}]}
    )

    baseline: str = Field(max_length=64, description="Id of the other schedule")


class CompareResult(BaseModel):
    """Times of two schedules that were run in turns: the median of each round's calls."""

    now_ms: list[float]
    baseline_ms: list[float]
    rounds: int
    calls: dict[str, int] = Field(description="In a round, of `now` and `baseline`")
    threads: dict[str, int]
    machine: dict[str, Any]
    load_after: list[float]


class Job(BaseModel):
    """Work on a schedule as the service has it; `JobDocument` says of each kind what is in the objects."""

    id: str
    kind: Kind
    schedule_id: str
    state: State
    phase: str | None = None
    attempts: int
    request: dict[str, Any]
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    links: dict[str, str]


class JobSummary(BaseModel):
    """An entry of a list."""

    id: str
    kind: Kind
    schedule_id: str
    state: State
    created_at: datetime
    href: str


class JobList(BaseModel):
    """A page of jobs, the newest first."""

    items: list[JobSummary]
    next_cursor: str | None
    previous_cursor: str | None
