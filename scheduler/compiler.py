"""The way of a document through the scheduler, whole: pipeline and platform in, schedule and C out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from cost_models.model import Breakdown
from platforms import Platform
from scheduler.codegen.artifact import CSource
from scheduler.codegen.loopnest import to_text
from scheduler.codegen.registry import backend_for
from scheduler.frontends.document.document import canonical_json
from scheduler.ir.pass_manager import Observer, Observers, PassTimes
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.ir.plan import Plan
from scheduler.ir.schedule.schedule import Schedule
from scheduler.legality.verifier import check
from scheduler.loop_passes.passes import optimize
from scheduler.lowering import lower
from scheduler.rewrites.passes import rewrite
from scheduler.search import METHODS, Candidate, SearchOptions, Trace, autoschedule
from scheduler.search.constraints import document as constraints_document
from scheduler.search.constraints.constraints import FREE, Fixed

SCHEDULER_VERSION = "19"
"""Part of every key: raised when the same question gets another answer."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a compilation: `strict` keeps floating-point operations as written, `deadline_ms` ends the search,
    `fixed` are decisions that are the caller's. `tune`: the caller times so many candidates and keeps the fastest; here
    it is part of the key, and nothing else."""

    method: str = "default"
    strict: bool = False
    deadline_ms: int | None = None
    fixed: Fixed = FREE
    tune: int | None = None


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
    """A hash of the question: canonical pipeline and platform, options, and the version of the scheduler."""
    question = {
        "pipeline": canonical_json(pipeline),
        "platform": platform.model_dump_json(),
        "options": {
            "method": options.method,
            "strict": options.strict,
            "deadline_ms": options.deadline_ms,
            **({"fixed": constraints_document.to_document(options.fixed)} if options.fixed else {}),
            **({"tune": options.tune} if options.tune else {}),
        },
        "scheduler": SCHEDULER_VERSION,
    }
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:32]


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
    pass, lowering among them. Raises ScheduleError for an unknown method, NoBackend, and what `autoschedule` does."""
    options = options or Options()
    backend_for(platform)
    clock = now or (lambda: 0.0)
    search = SearchOptions(options.method, options.strict, options.deadline_ms, now, top, options.fixed)
    times = PassTimes(clock)
    passes = times if observer is None else Observers(times, observer)
    found = autoschedule(pipeline, platform, search, passes)
    made = _generated(found.plan, platform, clock, passes)
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


@dataclass(frozen=True, slots=True)
class Generated:
    """The C of a plan; times in milliseconds, of the phases."""

    plan: Plan
    source: CSource
    timings_ms: dict[str, float]


def generate(pipeline: Pipeline, schedule: Schedule, platform: Platform) -> CSource:
    """The C of a hand-written schedule. Raises IllegalSchedule, naming the stage and the rule."""
    return checked_and_generated(pipeline, schedule, platform, lambda: 0.0).source


def checked_and_generated(
    pipeline: Pipeline, schedule: Schedule, platform: Platform, now: Clock, observer: Observer | None = None
) -> Generated:
    """As `generate`, timed by a clock in seconds; `observer` sees every pass."""
    backend_for(platform)
    plan = rewrite(pipeline, schedule, observer)
    check(plan)
    return _generated(plan, platform, now, observer or Observers())


def _generated(plan: Plan, platform: Platform, now: Clock, observer: Observer) -> Generated:
    start = now()
    observer.begun("lower")
    program = lower(plan, platform)
    observer.ended("lower", program)
    lowered = now()
    program = optimize(program, observer)
    optimized = now()
    source = backend_for(platform).emit(program)
    seconds = {"lower": lowered - start, "passes": optimized - lowered, "emit": now() - optimized}
    return Generated(plan, source, {name: 1e3 * s for name, s in seconds.items()})


__all__ = [
    "METHODS", "Clock", "Compiled", "Generated", "Options", "checked_and_generated", "compile_pipeline", "generate",
    "schedule_key",
]  # fmt: skip
