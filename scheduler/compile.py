"""The way of a document through the scheduler, whole: pipeline and platform in, schedule and C out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from cost_models.model import Breakdown
from platforms.model import Platform
from scheduler.emit.c import emit_c
from scheduler.emit.csource import CSource
from scheduler.emit.loopnest import to_text
from scheduler.lang.document import canonical_json
from scheduler.lang.pipeline import Pipeline
from scheduler.legality import check
from scheduler.lower import lower
from scheduler.schedule import Schedule
from scheduler.search import METHODS, SearchOptions, Trace, autoschedule

SCHEDULER_VERSION = "2"
"""Part of every key: raised when the same question gets another answer."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may ask for: `strict` keeps floating-point operations as written, `deadline_ms` ends the search."""

    method: str = "taco2019"
    strict: bool = False
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """Everything there is to say about a pipeline on a platform. `key` identifies it by content."""

    key: str
    pipeline: Pipeline
    platform: Platform
    options: Options
    schedule: Schedule
    trace: Trace
    predicted: Breakdown
    source: CSource
    loopnest: str
    timings_ms: dict[str, float]


def schedule_key(pipeline: Pipeline, platform: Platform, options: Options) -> str:
    """A hash of the question: canonical pipeline and platform, options, and the version of the scheduler."""
    question = {
        "pipeline": canonical_json(pipeline),
        "platform": platform.model_dump_json(),
        "options": asdict(options),
        "scheduler": SCHEDULER_VERSION,
    }
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:32]


def compile_pipeline(
    pipeline: Pipeline, platform: Platform, options: Options | None = None, now: Clock | None = None
) -> Compiled:
    """Schedules, lowers and emits. `now` is a clock in seconds (`time.perf_counter`): it times the parts, and a
    deadline needs it. Raises ScheduleError for an unknown method."""
    options = options or Options()
    clock = now or (lambda: 0.0)
    search = SearchOptions(options.method, options.strict, options.deadline_ms, now)
    found = autoschedule(pipeline, platform, search)
    source, timings = _generate(pipeline, found.schedule, platform, clock)
    return Compiled(
        key=schedule_key(pipeline, platform, options),
        pipeline=pipeline,
        platform=platform,
        options=options,
        schedule=found.schedule,
        trace=found.trace,
        predicted=found.predicted,
        source=source,
        loopnest=to_text(pipeline, found.schedule),
        timings_ms={**found.timings_ms, **timings},
    )


def generate(pipeline: Pipeline, schedule: Schedule, platform: Platform) -> CSource:
    """The C of a hand-written schedule. Raises IllegalSchedule, naming the stage and the rule."""
    check(pipeline, schedule)
    return emit_c(lower(pipeline, schedule, platform))


def _generate(
    pipeline: Pipeline, schedule: Schedule, platform: Platform, clock: Clock
) -> tuple[CSource, dict[str, float]]:
    start = clock()
    program = lower(pipeline, schedule, platform)
    lowered = clock()
    source = emit_c(program)
    return source, {"lower": (lowered - start) * 1e3, "emit": (clock() - lowered) * 1e3}


__all__ = ["METHODS", "Clock", "Compiled", "Options", "compile_pipeline", "generate", "schedule_key"]
