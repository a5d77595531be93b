"""The way of a document through the scheduler, whole: pipeline and platform in, schedule and C out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tilesmith.cost_models.interface import Breakdown
from tilesmith.platforms import Platform
from tilesmith.scheduler import lowering
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.base import Backend
from tilesmith.scheduler.codegen.loopnest import to_text
from tilesmith.scheduler.codegen.registry import backend_for
from tilesmith.scheduler.frontends.document.document import canonical_json
from tilesmith.scheduler.ir.pass_manager import Observer, Observers, PassTimes
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule import document as schedule_document
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.lowering import LoweringUnit, lower
from tilesmith.scheduler.rare_collections import rare_collections
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import Candidate, SearchOptions, SearchResult, Trace, autoschedule
from tilesmith.scheduler.search.constraints import document as constraints_document
from tilesmith.scheduler.search.constraints.constraints import FREE, Fixed
from tilesmith.scheduler.search.written import priced

SCHEDULER_VERSION = "50"
"""Part of every key: raised when the same question gets another answer."""


Clock = Callable[[], float]


class Strategy(Protocol):
    """A decider in the place of a method: a `StrategyDocument` of `tilesmith.scheduler.strategies.document`. Who has
    none does not load the package, which takes a tenth of starting up."""

    def to_document(self) -> dict[str, Any]:
        """The strategy as plain data, for the key."""

    def schedule(
        self, pipeline: Pipeline, platform: Platform, options: SearchOptions, observer: Observer
    ) -> SearchResult:
        """The schedule that it makes, with its trace. Raises StrategyRefused."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a compilation: `strict` keeps floating-point operations as written, `deadline_ms` ends the search,
    `fixed` are decisions that are the caller's. `tune`: the caller times so many candidates and keeps the fastest; here
    it is part of the key, and nothing else. `cost_model`: the one that decides, by name; None: the method's own.
    `backend`: what makes the code, by name; None: the first for the platform. `strategy`: decides instead of a
    method. `schedule`: one that was written by hand, instead of any search."""

    method: str = "default"
    strict: bool = False
    deadline_ms: int | None = None
    fixed: Fixed = FREE
    tune: int | None = None
    cost_model: str | None = None
    backend: str | None = None
    strategy: Strategy | None = None
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """Everything there is to say about a pipeline on a platform. `key` identifies it by content. `plan` is the pipeline
    as it was rewritten, with the schedule of it. `timings_ms` are those of the phases, `passes_ms` those of the passes
    over the pipeline and over the loop program."""

    key: str
    plan: Plan
    platform: Platform
    options: Options
    trace: Trace
    predicted: Breakdown
    candidates: tuple[Candidate, ...]
    source: CSource
    loopnest: str
    timings_ms: dict[str, float]
    passes_ms: dict[str, float]

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as it was written."""
        return self.plan.written

    @property
    def schedule(self) -> Schedule:
        return self.plan.schedule


def schedule_key(pipeline: Pipeline, platform: Platform, options: Options) -> str:
    """A hash of the question: canonical pipeline, without its `doc`, and platform, options, and the version of the
    scheduler."""
    question = {
        "pipeline": canonical_json(replace(pipeline, doc="")),
        "platform": platform.model_dump_json(),
        "options": {
            "method": options.method,
            "strict": options.strict,
            "deadline_ms": options.deadline_ms,
            **({"fixed": constraints_document.to_document(options.fixed)} if options.fixed else {}),
            **({"tune": options.tune} if options.tune else {}),
            **({"cost_model": options.cost_model} if options.cost_model else {}),
            **({"backend": options.backend} if options.backend else {}),
            **({"strategy": options.strategy.to_document()} if options.strategy else {}),
            **({"schedule": schedule_document.to_document(options.schedule)} if options.schedule else {}),
        },
        "scheduler": SCHEDULER_VERSION,
    }
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:32]


@rare_collections
def compile_pipeline(
    pipeline: Pipeline,
    platform: Platform,
    options: Options | None = None,
    now: Clock | None = None,
    top: int = 1,
    observer: Observer | None = None,
) -> Compiled:
    """Schedules, lowers and emits. `now` is a clock in seconds (`time.perf_counter`): it times the parts, and a
    deadline needs it. `top`: how many candidates to keep, at most; the schedule is the same. `observer` sees every
    pass, lowering among them. Raises ScheduleError for an unknown method, NoBackend, StrategyRefused, and what
    `autoschedule` does."""
    options = options or Options()
    backend = backend_for(platform, options.backend)
    clock = now or (lambda: 0.0)
    times = PassTimes(clock)
    passes = times if observer is None else Observers(times, observer)
    found = _decided(pipeline, platform, options, now, top, passes)
    made = _generated(found.plan, platform, backend, clock, passes)
    return Compiled(
        key=schedule_key(pipeline, platform, options),
        plan=found.plan,
        platform=platform,
        options=options,
        trace=found.trace,
        predicted=found.predicted,
        candidates=found.candidates,
        source=made.source,
        loopnest=to_text(found.plan),
        timings_ms={**found.timings_ms, **made.timings_ms},
        passes_ms=times.ms,
    )


@rare_collections
def decide(
    pipeline: Pipeline,
    platform: Platform,
    options: Options,
    now: Clock | None = None,
    top: int = 1,
) -> SearchResult:
    """The schedule, searched, made by a strategy or written by hand, with its predicted cost: all of `compile_pipeline`
    but for the code."""
    return _decided(pipeline, platform, options, now, top, None)


def _decided(
    pipeline: Pipeline,
    platform: Platform,
    options: Options,
    now: Clock | None,
    top: int,
    observer: Observer | None,
) -> SearchResult:
    search = SearchOptions(
        options.method, options.strict, options.deadline_ms, now, top, options.fixed, options.cost_model
    )
    if options.schedule is not None:
        return priced(pipeline, options.schedule, platform, search, observer)
    if options.strategy is None:
        return autoschedule(pipeline, platform, search, observer)
    return options.strategy.schedule(pipeline, platform, search, observer or Observers())


@dataclass(frozen=True, slots=True)
class Generated:
    """The C of a plan; times in milliseconds, of the phases."""

    plan: Plan
    source: CSource
    timings_ms: dict[str, float]


@rare_collections
def laid_out(plan: Plan, platform: Platform, backend: str | None = None) -> LoweringUnit:
    """The beginning of the C of what was decided: its buffers are the `estimates` of the program. Raises NoBackend."""
    backend_for(platform, backend)
    return lowering.laid_out(plan, platform)


@rare_collections
def generated(unit: LoweringUnit, backend: str | None = None) -> CSource:
    """The C of what is laid out. Raises NoBackend."""
    chosen = backend_for(unit.platform, backend)
    program = chosen.passes(unit.platform)(lowering.expanded(unit, chosen.functions))
    return chosen.emit(program, unit.platform)


def generate(pipeline: Pipeline, schedule: Schedule, platform: Platform) -> CSource:
    """The C of a hand-written schedule. Raises IllegalSchedule, naming the stage and the rule."""
    return checked_and_generated(pipeline, schedule, platform, lambda: 0.0).source


@rare_collections
def checked_and_generated(
    pipeline: Pipeline,
    schedule: Schedule,
    platform: Platform,
    now: Clock,
    observer: Observer | None = None,
    backend: str | None = None,
) -> Generated:
    """The code of a schedule, checked, as `generate` makes it: timed by a clock in seconds, by the backend of that
    name; `observer` sees every pass."""
    chosen = backend_for(platform, backend)
    plan = rewrite(pipeline, schedule, observer)
    check(plan)
    return _generated(plan, platform, chosen, now, observer or Observers())


def _generated(plan: Plan, platform: Platform, backend: Backend, now: Clock, observer: Observer) -> Generated:
    start = now()
    program = lower(plan, platform, observer, backend.functions)
    lowered = now()
    program = backend.passes(platform)(program, observer)
    optimized = now()
    source = backend.emit(program, platform)
    seconds = {"lower": lowered - start, "passes": optimized - lowered, "emit": now() - optimized}
    return Generated(plan, source, {name: 1e3 * s for name, s in seconds.items()})


__all__ = [
    "Clock", "Compiled", "Generated", "Options", "checked_and_generated", "compile_pipeline", "decide",
    "generate", "generated", "laid_out", "schedule_key",
]  # fmt: skip
