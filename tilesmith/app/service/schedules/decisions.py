"""Documents about what a schedule decides, what that is predicted to cost, and why it was decided.

Primitives that plugins register add keys to groups and placements.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Tile(BaseModel):
    """The size of a tile along a dim."""

    dim: str
    size: int | None = Field(description="null: the whole extent")


class Vector(BaseModel):
    """The dim along which a loop computes vectors, and how many values they have."""

    dim: str
    lanes: int


class UpdateLoops(BaseModel):
    """The loops of one update of a stage, the innermost first."""

    loops: list[str]
    vector: Vector | None = None
    parallel: str | None = None


class Placement(BaseModel):
    """The placement of a stage in a group: the loops in which it is computed and stored, or `inline`."""

    model_config = ConfigDict(extra="allow")

    stage: str
    compute: str
    store: str
    fold: bool | None = Field(default=None, description="Its buffer holds only the rows that are alive")
    storage: Literal["memory", "registers"] | None = None
    order: list[str] = Field(default=[], description="Its own loops, the innermost first")
    vector: Vector | None = None
    updates: list[UpdateLoops] = []


class Group(BaseModel):
    """One loop nest of the schedule: the tiles of its output, and the stages that are computed in them."""

    model_config = ConfigDict(extra="allow")

    output: str
    loops: list[str] = Field(default=[], description="The innermost first")
    tiles: list[Tile] = []
    parallel: str | None = Field(default=None, description="The loop that threads share")
    vector: Vector | None = None
    unroll: list[str] = []
    placements: list[Placement] = []
    updates: list[UpdateLoops] = []
    stream: bool = Field(default=False, description="The output is written past the caches")
    prefetch: int = Field(default=0, description="Bytes that are asked for ahead")


class Factor(BaseModel):
    """A reduction that is cut into partial results, which a stage of its own holds."""

    model_config = ConfigDict(extra="allow")

    stage: str
    reduction: int
    variable: str
    parts: int
    partial: str
    interleaved: bool = False
    neighbours: int = 1


class Separation(BaseModel):
    """A window of a stage that is computed in two steps; a stage of its own holds the first."""

    model_config = ConfigDict(extra="allow")

    stage: str
    window: int
    dim: str
    partial: str
    through: str | None = None


class Joining(BaseModel):
    """Outputs that one group computes together, as the values of one stage."""

    model_config = ConfigDict(extra="allow")

    stages: list[str]
    joint: str


class Packing(BaseModel):
    """An operand that a stage reads from a copy, which lies in memory as it is read along a dim."""

    model_config = ConfigDict(extra="allow")

    stage: str
    operand: str
    dim: str
    packed: str


class StageCost(BaseModel):
    """The predicted cost of a stage, in the terms of the model."""

    stage: str
    group: str
    total: float
    terms: dict[str, float]
    unsure: list[str] = []


class Predicted(BaseModel):
    """The predicted cost of a schedule. `unit` says what the numbers are, `unsure` why they may be off."""

    model: str
    unit: str
    total: float
    unsure: list[str] = []
    stages: list[StageCost]


class Step(BaseModel):
    """A step of the strategy that made the schedule: the lines of definitions and loop nests that it changed."""

    rule: str
    where: str
    arguments: str
    before: list[str]
    after: list[str]


class Rejected(BaseModel):
    """A choice that was not made."""

    choice: str
    reason: str
    cost: float | None


class Decision(BaseModel):
    """A decision about a stage, a group or the pipeline, by which part of the method, and why."""

    kind: str
    subject: str
    chosen: str
    reason: str
    source: str
    cost: float | None
    rejected: list[Rejected]


class TuningSample(BaseModel):
    """The measurement of a candidate, or what went wrong with it."""

    rank: int
    predicted: float
    minimum_ms: float | None
    median_ms: float | None
    interval_ms: tuple[float, float] | None = Field(
        description="Where the true median is with 95 % confidence; null where the times are too few"
    )
    times: int = Field(description="Timed calls")
    compile_ms: float | None
    error: str | None


class Tuning(BaseModel):
    """The tuning of a schedule: the candidate that was chosen, and a sample for each."""

    chosen: int
    threads: int
    seconds: float
    samples: list[TuningSample]


class Explanation(BaseModel):
    """Every decision: chosen, rejected, cost, reason."""

    pipeline: str
    degraded: str | None
    method: str
    unit: str = Field(description="Of the costs of decisions")
    steps: list[Step] = []
    decisions: list[Decision]
    predicted: Predicted | None
    tuning: Tuning | None = None


class ScheduleDocument(BaseModel):
    """A schedule as data, as one's own is written."""

    format: Literal[1]
    pipeline: str
    method: str
    strict: bool
    degraded: str | None
    factors: list[Factor] = []
    separations: list[Separation] = []
    joinings: list[Joining] = []
    packings: list[Packing] = []
    groups: list[Group]


class AnsweredOptions(BaseModel):
    """The options that a schedule was made with: those that were not set are left out, but for three."""

    method: str
    strict: bool
    deadline_ms: int | None
    fixed: dict[str, Any] | None = None
    tune: int | None = None
    cost_model: str | None = None
    strategy: dict[str, Any] | None = None
