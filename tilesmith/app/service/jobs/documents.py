"""Documents of jobs as they are answered: one form for each kind of work."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.service.jobs.schemas import BuildRequest, CompareRequest, CompareResult, RunRequest, TuneRequest
from tilesmith.app.service.jobs.states import State
from tilesmith.app.service.problems import Problem
from tilesmith.app.service.schedules.decisions import Tuning
from tilesmith.app.service.schedules.examples import JOB

Extent = tuple[int, int]


class BuildResult(BaseModel):
    """A library that was compiled, or was there from an earlier build of the same C."""

    key: str = Field(description="Of code, compiler, flags and target")
    entry: str
    compiler: str
    flags: list[str]
    seconds: float
    cached: bool
    bytes: int
    log: str = Field(description="The last 20,000 characters that the compiler printed")


class Machine(BaseModel):
    """The machine that something was measured on."""

    description: str
    triple: str
    threads: int
    clock_mhz: float | None
    memory_bytes: int


class Sizes(BaseModel):
    """[min, extent] for each dim of every input and output."""

    inputs: dict[str, list[Extent]]
    outputs: dict[str, list[Extent]]


class Conditions(BaseModel):
    """The conditions of a measurement."""

    machine: Machine
    compiler: str
    flags: list[str]
    sizes: Sizes
    clock: str
    measured_at: datetime
    load_before: list[float] = Field(description="Of the last 1, 5 and 15 minutes")
    load_after: list[float]
    confinement: str | None = Field(
        default=None, description="What kept the program apart: `bubblewrap`, `landlock`, `none`"
    )


class Output(BaseModel):
    """A result that can be fetched."""

    name: str
    component: int
    type: str
    dims: list[str]
    region: list[Extent]
    links: dict[str, str]


class RunResult(BaseModel):
    """A run: the times of its calls, the kernel alone, under which conditions, and what it made."""

    threads: int
    times_ms: list[float] = Field(description="One a repeat")
    minimum_ms: float
    median_ms: float
    peak_rss_bytes: int
    library: str = Field(description="The key of the library that ran")
    measurement: Conditions
    outputs: list[Output]


class TuneResult(Tuning):
    """A tuning, and the schedule that came of it."""

    schedule_id: str
    href: str


class JobBase(BaseModel):
    """A job of any kind."""

    id: str
    schedule_id: str
    state: State
    phase: str | None = Field(default=None, description="What a running job is at")
    attempts: int
    error: Problem | None = Field(default=None, description="Why it failed")
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    links: dict[str, str]


class BuildJob(JobBase):
    """Compiles the C of a schedule."""

    kind: Literal["build"]
    request: BuildRequest
    result: BuildResult | None = Field(default=None, description="Once it succeeded")


class RunJob(JobBase):
    """Compiles and runs the C of a schedule."""

    model_config = ConfigDict(json_schema_extra={"examples": [JOB]})

    kind: Literal["run"]
    request: RunRequest
    result: RunResult | None = Field(default=None, description="Once it succeeded")


class TuneJob(JobBase):
    """Times the best candidates of a schedule."""

    kind: Literal["tune"]
    request: TuneRequest
    result: TuneResult | None = Field(default=None, description="Once it succeeded")


class CompareJob(JobBase):
    """Runs the C of a schedule in turns with that of another."""

    kind: Literal["compare"]
    request: CompareRequest
    result: CompareResult | None = Field(default=None, description="Once it succeeded")


JobDocument = Annotated[BuildJob | RunJob | TuneJob | CompareJob, Field(discriminator="kind")]
"""A job: `result` once it succeeded, `error` (a problem document) once it failed."""


class JobEvent(BaseModel):
    """A server-sent event of a job."""

    id: str = Field(description="A number, to go on after with `Last-Event-ID`")
    event: Literal["state", "progress"]
    data: str = Field(description="JSON: `state`, `phase`, `attempt`, `at_us` (microseconds since 1970)")
