"""Documents about schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tilesmith.app.service.errors import misplaced
from tilesmith.app.service.problems import Problem as ProblemDocument
from tilesmith.app.service.schedules.decisions import (
    AnsweredOptions,
    Factor,
    Group,
    Joining,
    Packing,
    Predicted,
    Separation,
    Step,
    Tuning,
)
from tilesmith.app.service.schedules.examples import BLUR, SCHEDULE
from tilesmith.cost_models.registry import names as cost_models
from tilesmith.scheduler.codegen.registry import names as backends
from tilesmith.scheduler.search.registry import method, methods

Extent = Annotated[list[int], Field(min_length=2, max_length=2)]


class Options(BaseModel):
    """Options of scheduling. Unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str = Field(default="default", description="The search: `/v1/capabilities` lists them")
    strict: bool = Field(
        default=False, description="Floating point in the order written: the same bits under every schedule"
    )
    deadline_ms: int | None = Field(
        default=None,
        ge=1,
        le=600_000,
        description="Bounds reading and searching; the best so far is taken",
    )
    timeout_ms: int | None = Field(
        default=None,
        ge=1,
        le=600_000,
        description="Bounds all of the work; `timeout` after it, and the work is not lost",
    )
    fixed: dict[str, Any] = Field(
        default={}, description="Decisions that are the caller's, by stage; the method `default` searches the rest"
    )
    tune: int | None = Field(
        default=None, ge=2, le=16, description="Time so many of the best candidates, by a job, and keep the fastest"
    )
    cost_model: str | None = Field(
        default=None,
        description="The cost model that decides: `/v1/capabilities` lists them; default: the method's own",
    )
    backend: str | None = Field(
        default=None,
        description="Makes the code: `/v1/capabilities` lists them; default: the first for the kind of platform",
    )
    build: bool = Field(default=False, description="Also start a job that compiles the C")
    measure: bool = Field(
        default=False, description="Also start a job that compiles, runs on random inputs and measures"
    )

    @field_validator("method")
    @classmethod
    def _known_method(cls, name: str) -> str:
        if name not in methods():
            raise ValueError(f"there is no such method; methods: {', '.join(methods())}")
        return name

    @field_validator("cost_model")
    @classmethod
    def _known_cost_model(cls, name: str | None) -> str | None:
        if name is not None and name not in cost_models():
            raise ValueError(f"there is no such cost model; cost models: {', '.join(cost_models())}")
        return name

    @field_validator("backend")
    @classmethod
    def _known_backend(cls, name: str | None) -> str | None:
        if name is not None and name not in backends():
            raise ValueError(f"there is no such backend; backends: {', '.join(backends())}")
        return name

    @model_validator(mode="after")
    def _who_takes_decisions(self) -> Self:
        chosen = method(self.method)
        if self.fixed and not chosen.takes_fixed:
            raise misplaced(f"the method {chosen.name} takes no fixed decisions; default does", "fixed")
        if self.cost_model and not chosen.takes_model:
            raise misplaced(f"the method {chosen.name} takes no cost model; default does", "cost_model")
        return self


OPTION_DEFAULTS = Options().model_dump()


class ScheduleRequest(BaseModel):
    """A pipeline, a platform, options."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"pipeline": BLUR, "platform_name": "host", "options": {"method": "default"}},
                {"pipeline_id": "harris", "platform_name": "i7-6700", "options": {"strict": True, "build": True}},
                {"pipeline_id": "harris", "platform_name": "i7-6700", "strategy_id": "cbuf+rrot"},
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
    strategy: dict[str, Any] | None = Field(
        default=None, description="A strategy document: decides instead of a method"
    )
    strategy_id: str | None = Field(
        default=None, max_length=64, description="Instead: id of a stored one, or name of a shipped one"
    )
    schedule: dict[str, Any] | None = Field(
        default=None, description="A schedule of one's own: checked, priced and compiled, instead of a search"
    )
    estimates: dict[str, list[Extent]] | None = Field(
        default=None,
        max_length=512,
        description="[min, extent] for each dim, by output or input: instead of the document's, of those named",
    )
    options: Options = Options()

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.pipeline is None) == (self.pipeline_id is None):
            at = "pipeline" if self.pipeline is None else "pipeline_id"
            raise misplaced("give either pipeline or pipeline_id", at)
        if self.platform is not None and self.platform_name is not None:
            raise misplaced("give either platform or platform_name", "platform_name")
        if self.strategy is not None and self.strategy_id is not None:
            raise misplaced("give either strategy or strategy_id", "strategy_id")
        if self.schedule is not None:
            self._only_a_schedule()
        decided = self.options.fixed or self.options.tune or self.options.method != "default"
        if decided and (self.strategy is not None or self.strategy_id is not None):
            message = "a strategy decides: method, fixed and tune do not go with it"
            given = next(k for k in ("fixed", "tune", "method") if getattr(self.options, k) != OPTION_DEFAULTS[k])
            raise misplaced(message, "options", given, hint="end the strategy with `search`")
        return self

    def _only_a_schedule(self) -> None:
        for name in ("strategy", "strategy_id"):
            if getattr(self, name) is not None:
                raise misplaced("give either a schedule or a strategy", name)
        for name in ("method", "fixed", "tune", "strict"):
            if getattr(self.options, name) != OPTION_DEFAULTS[name]:
                raise misplaced("a schedule decides everything, strict too: leave it out", "options", name)


class BatchRequest(BaseModel):
    """Several requests in one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "requests": [
                        {"pipeline_id": "blur", "platform_name": "i7-6700", "options": {"strict": True}},
                        {"pipeline_id": "blur", "estimates": {"blur_y": [[0, 640], [0, 480]]}},
                    ]
                }
            ]
        },
    )

    requests: list[dict[str, Any]] = Field(
        min_length=1,
        description="Each a ScheduleRequest; see /v1/capabilities for how many",
    )


class Buffer(BaseModel):
    """A scratch buffer that the schedule declares."""

    name: str
    bytes: int


class Misfit(BaseModel):
    """A kernel that does not fit its device."""

    kernel: str
    rule: str = Field(description="`local memory`, `coalesced` or `work-groups`")
    why: str


class JobLink(BaseModel):
    """A job that was started."""

    id: str
    kind: str
    href: str


class Schedule(BaseModel):
    """A schedule: the decisions, their predicted cost, and links to its forms."""

    model_config = ConfigDict(json_schema_extra={"examples": [SCHEDULE]})

    id: str = Field(description="Content hash of pipeline, platform, options and scheduler version")
    pipeline: str
    pipeline_id: str
    platform: str
    method: str
    options: AnsweredOptions
    degraded: str | None = Field(description="Why the method had to fall back, if it did")
    factors: list[Factor] = Field(default=[], description="Reductions cut into parts, before anything else")
    separations: list[Separation] = Field(default=[], description="Windows computed in two steps, after the factors")
    joinings: list[Joining] = Field(default=[], description="Outputs computed together, after the separations")
    packings: list[Packing] = Field(default=[], description="Operands copied to where they lie as they are read")
    groups: list[Group]
    predicted: Predicted
    buffers: list[Buffer] = Field(description="Scratch buffers that the schedule declares")
    entry: str = Field(description="The exported C function")
    steps: list[Step] = Field(default=[], description="Of a schedule by a strategy: what was done, in order")
    misfits: list[Misfit] = Field(default=[], description="Of an OpenCL device: kernels that do not fit it")
    warnings: list[str] = Field(
        default=[], description="Sizes that do not go together at the estimates: inputs too small, buffers too large"
    )
    tuning: Tuning | None = Field(default=None, description="Of a tuned schedule")
    timings_ms: dict[str, float] = Field(description="Of the making of this schedule, not of this request")
    version: str
    created_at: datetime
    links: dict[str, str]
    jobs: list[JobLink] | None = Field(default=None, description="Jobs that this request started")


class BatchItem(BaseModel):
    """The answer to one request of several: a schedule, or what was wrong."""

    status: int = Field(description="As the request alone would have been answered with")
    schedule: Schedule | None = None
    problem: ProblemDocument | None = Field(default=None, description="With pointers into the whole body")


class Batch(BaseModel):
    """The answers to several requests, in their order."""

    items: list[BatchItem]


class Candidate(BaseModel):
    """A schedule that the search could have answered with."""

    rank: int = Field(description="From 1, which is the schedule itself, unless it was tuned")
    predicted: float = Field(description="By the cost model, in the unit of the list")
    memory_bytes: int = Field(description="The most bytes of scratch buffers alive at once, of all threads")
    recompute: float = Field(description="Points computed over points that must be, weighted by operations")
    parallelism: float = Field(description="Independent iterations of the parallel loops, the fewest of all groups")
    pareto: bool = Field(description="No other is at least as good in all of these, and better in one")
    differs: str = Field(description="What it decides otherwise than the first")
    chosen: bool | None = Field(default=None, description="Of a tuned schedule: this one is the schedule itself")
    measured_ms: float | None = Field(default=None, description="Of a tuned schedule: the median of its calls")
    error: str | None = Field(default=None, description="Of a tuned schedule: why it could not be timed")
    links: dict[str, str]


class CandidateList(BaseModel):
    """The best schedules that the search found, the best first."""

    model: str
    unit: str
    items: list[Candidate]


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
    predicted_ms: float | None = Field(description="Where the cost model counts time")
    measured_ms: float | None = Field(description="The median, when it was last measured at the estimated sizes")
    tags: list[str]
    created_at: datetime
    href: str


class ScheduleList(BaseModel):
    """A page of schedules."""

    items: list[ScheduleSummary]
    next_cursor: str | None
    previous_cursor: str | None
