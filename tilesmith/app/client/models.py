"""The answers of the service as typed dictionaries.

Made of the OpenAPI document by `pytest tests/client/test_models.py --renew-golden`; that test holds them to it.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AnsweredOptions(TypedDict):
    """The options that a schedule was made with: those that were not set are left out, but for three."""

    method: str
    strict: bool
    deadline_ms: int | None
    fixed: NotRequired[dict[str, Any] | None]
    tune: NotRequired[int | None]
    cost_model: NotRequired[str | None]
    strategy: NotRequired[dict[str, Any] | None]


class Baseline(TypedDict):
    """The results that a reference means."""

    ref: str
    kind: Literal["branch", "commit"]
    items: list[ProjectResult]


class Batch(TypedDict):
    """The answers to several requests, in their order."""

    items: list[BatchItem]


class BatchItem(TypedDict):
    """The answer to one request of several: a schedule, or what was wrong."""

    status: int
    schedule: NotRequired[Schedule | None]
    problem: NotRequired[Problem | None]


class Buffer(TypedDict):
    """A scratch buffer that the schedule declares."""

    name: str
    bytes: int


class BuildJob(TypedDict):
    """Compiles the C of a schedule."""

    id: str
    schedule_id: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    phase: NotRequired[str | None]
    attempts: int
    error: NotRequired[Problem | None]
    created_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    links: dict[str, str]
    kind: Literal["build"]
    request: BuildRequest
    result: NotRequired[BuildResult | None]


class BuildRequest(TypedDict):
    """Compile the C of a schedule with its platform's compiler."""


class BuildResult(TypedDict):
    """A library that was compiled, or was there from an earlier build of the same C."""

    key: str
    entry: str
    compiler: str
    flags: list[str]
    seconds: float
    cached: bool
    bytes: int
    log: str


class Candidate(TypedDict):
    """A schedule that the search could have answered with."""

    rank: int
    predicted: float
    memory_bytes: int
    recompute: float
    parallelism: float
    pareto: bool
    differs: str
    chosen: NotRequired[bool | None]
    measured_ms: NotRequired[float | None]
    error: NotRequired[str | None]
    links: dict[str, str]


class CandidateList(TypedDict):
    """The best schedules that the search found, the best first."""

    model: str
    unit: str
    items: list[Candidate]


class Capabilities(TypedDict):
    """Capabilities of the service."""

    versions: dict[str, str]
    format: int
    types: list[str]
    functions: list[str]
    methods: list[str]
    cost_models: list[str]
    emitters: list[str]
    backends: list[str]
    importers: list[str]
    platform_kinds: list[str]
    job_kinds: list[str]
    job_states: list[str]
    scopes: list[str]
    limits: dict[str, int | float]


class Change(TypedDict):
    """A series against what the branch had before."""

    pipeline: str
    platform: str
    variant: str
    status: Literal["regressed", "slower", "same", "faster", "new", "removed"]
    change: float | None


class CheckedDocument(TypedDict):
    """A document that was looked at: itself in canonical form, or its problems."""

    valid: bool
    problems: NotRequired[list[DocumentProblem]]
    problems_left_off: NotRequired[int | None]
    name: NotRequired[str | None]
    id: NotRequired[str | None]
    warnings: NotRequired[list[str]]
    document: NotRequired[dict[str, Any] | None]


class CompareJob(TypedDict):
    """Runs the C of a schedule in turns with that of another."""

    id: str
    schedule_id: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    phase: NotRequired[str | None]
    attempts: int
    error: NotRequired[Problem | None]
    created_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    links: dict[str, str]
    kind: Literal["compare"]
    request: CompareRequest
    result: NotRequired[CompareResult | None]


class CompareRequest(TypedDict):
    """Run a schedule and another, the baseline, in turns on random inputs of their estimated sizes."""

    baseline: str


class CompareResult(TypedDict):
    """Times of two schedules that were run in turns: the median of each round's calls."""

    now_ms: list[float]
    baseline_ms: list[float]
    rounds: int
    calls: dict[str, int]
    threads: dict[str, int]
    machine: dict[str, Any]
    load_after: list[float]


class Conditions(TypedDict):
    """The conditions of a measurement."""

    machine: Machine
    compiler: str
    flags: list[str]
    sizes: Sizes
    clock: str
    measured_at: str
    load_before: list[float]
    load_after: list[float]
    confinement: NotRequired[str | None]


class Decision(TypedDict):
    """A decision about a stage, a group or the pipeline, by which part of the method, and why."""

    kind: str
    subject: str
    chosen: str
    reason: str
    source: str
    cost: float | None
    rejected: list[Rejected]


class Deleted(TypedDict):
    """The number of results that were deleted."""

    results: int


class Delivery(TypedDict):
    """An event that was sent, or is to be."""

    id: str
    state: Literal["waiting", "delivered", "failed"]
    attempts: int
    status: int | None
    error: str | None
    event: dict[str, Any]
    created_at: str
    next_at: str | None


class DeliveryList(TypedDict):
    """A page of deliveries, the newest first."""

    items: list[Delivery]
    next_cursor: str | None


class Difference(TypedDict):
    """Differences of two schedules."""

    a: ScheduleSummary
    b: ScheduleSummary
    decided_by_a: list[str]
    decided_by_b: list[str]
    predicted_a: Unit | None
    predicted_b: Unit | None
    stages: list[StageCosts]
    loopnest: str
    code: str


class DocumentProblem(TypedDict):
    """One thing that is wrong with a document."""

    code: str
    pointer: str
    message: str
    hint: NotRequired[str | None]
    column: NotRequired[int | None]
    position: NotRequired[TextPosition | None]


class ErrorCode(TypedDict):
    """A code of problem documents."""

    code: str
    status: int
    title: str


class ErrorCodes(TypedDict):
    """Every code."""

    items: list[ErrorCode]


class Explanation(TypedDict):
    """Every decision: chosen, rejected, cost, reason."""

    pipeline: str
    degraded: str | None
    method: str
    unit: str
    steps: NotRequired[list[Step]]
    decisions: list[Decision]
    predicted: Predicted | None
    tuning: NotRequired[Tuning | None]


class Factor(TypedDict):
    """A reduction that is cut into partial results, which a stage of its own holds."""

    stage: str
    reduction: int
    variable: str
    parts: int
    partial: str
    interleaved: NotRequired[bool]
    neighbours: NotRequired[int]


class Group(TypedDict):
    """One loop nest of the schedule: the tiles of its output, and the stages that are computed in them."""

    output: str
    loops: NotRequired[list[str]]
    tiles: NotRequired[list[Tile]]
    parallel: NotRequired[str | None]
    vector: NotRequired[Vector | None]
    unroll: NotRequired[list[str]]
    placements: NotRequired[list[Placement]]
    updates: NotRequired[list[UpdateLoops]]
    stream: NotRequired[bool]
    prefetch: NotRequired[int]


class Health(TypedDict):
    """Health of the service, check by check."""

    status: str
    checks: NotRequired[dict[str, str]]


class Imported(TypedDict):
    """A pipeline that was made of a file."""

    importer: str
    document: dict[str, Any]
    notes: list[str]
    weights: list[Weights]


class JobEvent(TypedDict):
    """A server-sent event of a job."""

    id: str
    event: Literal["state", "progress"]
    data: str


class JobLink(TypedDict):
    """A job that was started."""

    id: str
    kind: str
    href: str


class JobList(TypedDict):
    """A page of jobs, the newest first."""

    items: list[JobSummary]
    next_cursor: str | None
    previous_cursor: str | None


class JobSummary(TypedDict):
    """An entry of a list."""

    id: str
    kind: Literal["build", "run", "tune", "compare"]
    schedule_id: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    created_at: str
    href: str


class Joining(TypedDict):
    """Outputs that one group computes together, as the values of one stage."""

    stages: list[str]
    joint: str


class Machine(TypedDict):
    """The machine that something was measured on."""

    description: str
    triple: str
    threads: int
    clock_mhz: float | None
    memory_bytes: int


class MeasuredTimes(TypedDict):
    """Times of a schedule's code: the median of timed calls, with an interval for it."""

    median_ms: float
    low_ms: NotRequired[float | None]
    high_ms: NotRequired[float | None]
    runs: int
    machine: NotRequired[str | None]


class Measurement(TypedDict):
    """A measurement of a schedule: the times of its calls, the kernel alone, or what went wrong."""

    id: str
    schedule_id: str
    pipeline: str
    platform: str
    kind: Literal["run", "tune"]
    rank: int | None
    predicted: float | None
    estimated: bool
    minimum_ms: float | None
    median_ms: float | None
    interval_ms: list[float] | None
    times_ms: list[float]
    threads: int | None
    compile_ms: float | None
    conditions: Conditions | None
    error: str | None
    measured_at: str


class MeasurementList(TypedDict):
    """Measurements; `next_cursor` where there are more."""

    items: list[Measurement]
    next_cursor: NotRequired[str | None]


class Misfit(TypedDict):
    """A kernel that does not fit its device."""

    kernel: str
    rule: str
    why: str


class NewTokenDocument(TypedDict):
    """A token just made: its text is not shown again."""

    id: str
    name: str
    scopes: list[Literal["read", "submit", "admin"]]
    expires_at: NotRequired[str | None]
    token: str


class NewWebhookDocument(TypedDict):
    """A webhook just made: its secret, by which deliveries are signed, is not shown again."""

    id: str
    url: str
    project: str | None
    above: float
    secret: str


class Notes(TypedDict):
    """A note, and tags in their order."""

    note: NotRequired[str]
    tags: NotRequired[list[str]]


class Output(TypedDict):
    """A result that can be fetched."""

    name: str
    component: int
    type: str
    dims: list[str]
    region: list[list[int]]
    links: dict[str, str]


class Packing(TypedDict):
    """An operand that a stage reads from a copy, which lies in memory as it is read along a dim."""

    stage: str
    operand: str
    dim: str
    packed: str


class Pipeline(TypedDict):
    """A pipeline with its canonical document."""

    id: str
    name: str
    stages: int
    source: Literal["shipped", "stored"]
    href: str
    document: dict[str, Any]


class PipelineList(TypedDict):
    """A page of pipelines, by name."""

    items: list[PipelineSummary]
    next_cursor: str | None


class PipelineSummary(TypedDict):
    """An entry of a list."""

    id: str
    name: str
    stages: int
    source: Literal["shipped", "stored"]
    created_at: NotRequired[str | None]
    href: str


class Placement(TypedDict):
    """The placement of a stage in a group: the loops in which it is computed and stored, or `inline`."""

    stage: str
    compute: str
    store: str
    fold: NotRequired[bool | None]
    storage: NotRequired[Literal["memory", "registers"] | None]
    order: NotRequired[list[str]]
    vector: NotRequired[Vector | None]
    updates: NotRequired[list[UpdateLoops]]


class Platform(TypedDict):
    """A platform with its document."""

    name: str
    source: Literal["host", "catalog", "stored"]
    href: str
    document: dict[str, Any]


class PlatformList(TypedDict):
    """A page of platforms, by name."""

    items: list[PlatformSummary]
    next_cursor: str | None


class PlatformSummary(TypedDict):
    """An entry of a list."""

    name: str
    kind: str
    source: Literal["host", "catalog", "stored"]
    created_at: NotRequired[str | None]
    href: str


class Predicted(TypedDict):
    """The predicted cost of a schedule."""

    model: str
    unit: str
    total: float
    unsure: NotRequired[list[str]]
    stages: list[StageCost]


class Problem(TypedDict):
    """RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: NotRequired[str | None]
    request_id: NotRequired[str | None]
    errors: NotRequired[list[ProblemEntry] | None]
    errors_left_off: NotRequired[int | None]
    output: NotRequired[str | None]
    checks: NotRequired[dict[str, str] | None]


class ProblemEntry(TypedDict):
    """One thing that is wrong with a request or with a document in it."""

    code: str
    pointer: str
    column: NotRequired[int | None]
    message: str
    hint: NotRequired[str | None]


class ProjectList(TypedDict):
    """A page of projects, by name."""

    items: list[ProjectSummary]
    next_cursor: str | None


class ProjectResult(TypedDict):
    """A result of a commit."""

    id: str
    branch: str
    commit: str
    pipeline: str
    platform: str
    variant: str
    schedule_id: str
    pipeline_id: str
    predicted: float
    unit: str
    measured: NotRequired[MeasuredTimes | None]
    reason: NotRequired[str | None]
    token: NotRequired[str | None]
    recorded_at: str


class ProjectResultList(TypedDict):
    """A page of results, the newest first."""

    items: list[ProjectResult]
    next_cursor: str | None


class ProjectSummary(TypedDict):
    """An entry of a list."""

    name: str
    results: int
    recorded_at: str
    href: str


class Recorded(TypedDict):
    """Results that were kept, and how they compare with what the branch had before."""

    items: list[ProjectResult]
    changes: list[Change]


class Rejected(TypedDict):
    """A choice that was not made."""

    choice: str
    reason: str
    cost: float | None


class RunJob(TypedDict):
    """Compiles and runs the C of a schedule."""

    id: str
    schedule_id: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    phase: NotRequired[str | None]
    attempts: int
    error: NotRequired[Problem | None]
    created_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    links: dict[str, str]
    kind: Literal["run"]
    request: RunRequest
    result: NotRequired[RunResult | None]


class RunRequest(TypedDict):
    """Run a schedule on images, or on random ones of the estimated sizes."""

    estimates: NotRequired[bool]
    params: NotRequired[dict[str, Any]]
    regions: NotRequired[dict[str, Any] | None]
    mins: NotRequired[dict[str, Any]]
    threads: NotRequired[int | None]
    repeat: NotRequired[int]
    outputs: NotRequired[bool]
    convert: NotRequired[bool]
    keep_inputs: NotRequired[bool]


class RunResult(TypedDict):
    """A run: the times of its calls, the kernel alone, under which conditions, and what it made."""

    threads: int
    times_ms: list[float]
    minimum_ms: float
    median_ms: float
    peak_rss_bytes: int
    library: str
    measurement: Conditions
    outputs: list[Output]


class Schedule(TypedDict):
    """A schedule: the decisions, their predicted cost, and links to its forms."""

    id: str
    pipeline: str
    pipeline_id: str
    platform: str
    method: str
    options: AnsweredOptions
    degraded: str | None
    factors: NotRequired[list[Factor]]
    separations: NotRequired[list[Separation]]
    joinings: NotRequired[list[Joining]]
    packings: NotRequired[list[Packing]]
    groups: list[Group]
    predicted: Predicted
    buffers: list[Buffer]
    entry: str
    steps: NotRequired[list[Step]]
    misfits: NotRequired[list[Misfit]]
    warnings: NotRequired[list[str]]
    tuning: NotRequired[Tuning | None]
    timings_ms: dict[str, float]
    version: str
    created_at: str
    links: dict[str, str]
    jobs: NotRequired[list[JobLink] | None]


class ScheduleDocument(TypedDict):
    """A schedule as data, as one's own is written."""

    format: Literal[1]
    pipeline: str
    method: str
    strict: bool
    degraded: str | None
    factors: NotRequired[list[Factor]]
    separations: NotRequired[list[Separation]]
    joinings: NotRequired[list[Joining]]
    packings: NotRequired[list[Packing]]
    groups: list[Group]


class ScheduleList(TypedDict):
    """A page of schedules."""

    items: list[ScheduleSummary]
    next_cursor: str | None
    previous_cursor: str | None


class ScheduleSummary(TypedDict):
    """An entry of a list."""

    id: str
    pipeline: str
    pipeline_id: str
    platform: str
    method: str
    strict: bool
    degraded: str | None
    groups: int
    predicted_ms: float | None
    measured_ms: float | None
    tags: list[str]
    created_at: str
    href: str


class SchemaLink(TypedDict):
    """The address of a JSON Schema."""

    name: str
    title: str
    href: str


class SchemaList(TypedDict):
    """The JSON Schemas that there are."""

    items: list[SchemaLink]


class Separation(TypedDict):
    """A window of a stage that is computed in two steps; a stage of its own holds the first."""

    stage: str
    window: int
    dim: str
    partial: str
    through: NotRequired[str | None]


class Sizes(TypedDict):
    """[min, extent] for each dim of every input and output."""

    inputs: dict[str, list[list[int]]]
    outputs: dict[str, list[list[int]]]


class StageCost(TypedDict):
    """The predicted cost of a stage, in the terms of the model."""

    stage: str
    group: str
    total: float
    terms: dict[str, float]
    unsure: NotRequired[list[str]]


class StageCosts(TypedDict):
    """The predicted cost of a stage in both schedules, each in its unit; None where that has no such stage."""

    stage: str
    a: float | None
    b: float | None


class Step(TypedDict):
    """A step of the strategy that made the schedule: the lines of definitions and loop nests that it changed."""

    rule: str
    where: str
    arguments: str
    before: list[str]
    after: list[str]


class Strategy(TypedDict):
    """A strategy with its canonical document."""

    id: str
    name: str
    source: Literal["shipped", "stored"]
    href: str
    document: dict[str, Any]


class StrategyList(TypedDict):
    """A page of strategies, by name."""

    items: list[StrategySummary]
    next_cursor: str | None


class StrategySummary(TypedDict):
    """An entry of a list."""

    id: str
    name: str
    source: Literal["shipped", "stored"]
    created_at: NotRequired[str | None]
    href: str


class TextPosition(TypedDict):
    """A place in a text: both count from 1, the column in characters."""

    line: int
    column: int


class Tile(TypedDict):
    """The size of a tile along a dim."""

    dim: str
    size: int | None


class Token(TypedDict):
    """A token without its text."""

    id: str
    name: str
    scopes: list[str]
    created_at: str
    expires_at: NotRequired[str | None]
    last_used_at: NotRequired[str | None]
    revoked_at: NotRequired[str | None]
    schedules: NotRequired[int]
    stored_bytes: NotRequired[int]


class TokenList(TypedDict):
    """All tokens, revoked ones included."""

    items: list[Token]


class Trend(TypedDict):
    """A series over the commits of a branch, the oldest first."""

    pipeline: str
    platform: str
    variant: str
    unit: str
    change: float | None
    points: list[ProjectResult]


class TrendList(TypedDict):
    """Series of a branch by name."""

    branch: str
    items: list[Trend]


class TuneJob(TypedDict):
    """Times the best candidates of a schedule."""

    id: str
    schedule_id: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    phase: NotRequired[str | None]
    attempts: int
    error: NotRequired[Problem | None]
    created_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    links: dict[str, str]
    kind: Literal["tune"]
    request: TuneRequest
    result: NotRequired[TuneResult | None]


class TuneRequest(TypedDict):
    """Time the best candidates of a schedule, and keep the fastest as the schedule of that id."""

    schedule_id: str
    candidates: int


class TuneResult(TypedDict):
    """A tuning, and the schedule that came of it."""

    chosen: int
    threads: int
    seconds: float
    samples: list[TuningSample]
    schedule_id: str
    href: str


class Tuning(TypedDict):
    """The tuning of a schedule: the candidate that was chosen, and a sample for each."""

    chosen: int
    threads: int
    seconds: float
    samples: list[TuningSample]


class TuningSample(TypedDict):
    """The measurement of a candidate, or what went wrong with it."""

    rank: int
    predicted: float
    minimum_ms: float | None
    median_ms: float | None
    interval_ms: list[float] | None
    times: int
    compile_ms: float | None
    error: str | None


class Unit(TypedDict):
    """The model and unit of predicted costs, and their sum."""

    model: str
    unit: str
    total: float


class UpdateLoops(TypedDict):
    """The loops of one update of a stage, the innermost first."""

    loops: list[str]
    vector: NotRequired[Vector | None]
    parallel: NotRequired[str | None]


class Validation(TypedDict):
    """The documents of the request, each looked at for itself; `valid` if all are."""

    valid: bool
    pipeline: NotRequired[CheckedDocument | None]
    platform: NotRequired[CheckedDocument | None]
    strategy: NotRequired[CheckedDocument | None]


class Vector(TypedDict):
    """The dim along which a loop computes vectors, and how many values they have."""

    dim: str
    lanes: int


class WebhookDocument(TypedDict):
    """A webhook without its secret."""

    id: str
    url: str
    project: str | None
    above: float
    created_at: str


class WebhookList(TypedDict):
    """All webhooks."""

    items: list[WebhookDocument]


class Weights(TypedDict):
    """An input of which the file has the values."""

    name: str
    type: str
    shape: list[int]


Job = BuildJob | RunJob | TuneJob
