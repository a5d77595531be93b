"""The work of a schedule request that takes time: loading the document, its key, the schedule itself.

Plain functions of plain data, so that they run in another process. What is wrong with a document is a value
(an ApiError, returned), not an exception: it crosses processes unchanged.
"""

from __future__ import annotations

import json
import time
from importlib.metadata import version
from typing import Any

import platforms
from app.errors import ApiError, from_core
from app.schedules.answers import SOURCE_FORM, Answer, PipelineIdentity, Question, compact, content_hash, plain
from app.schedules.examples import BLUR
from scheduler import explain, schedule_document
from scheduler.compile import Compiled, Options, compile_pipeline, schedule_key
from scheduler.emit import halide
from scheduler.errors import InternalError, TilesmithError
from scheduler.lang import document as documents
from scheduler.lang.limits import Limits
from scheduler.lang.pipeline import Pipeline


def inspect(document: object, limits: Limits) -> PipelineIdentity | ApiError:
    """What a pipeline document is, or what is wrong with it."""
    try:
        return _identity(documents.load(document, limits))
    except TilesmithError as error:
        return _refusal(error, "")


def key(question: Question) -> str | ApiError:
    """The id of the schedule that answers the question, without making it."""
    try:
        pipeline, platform, options = _load(question)
        return schedule_key(pipeline, platform, options)
    except TilesmithError as error:
        return _refusal(error, "/pipeline")


def answer(question: Question) -> Answer | ApiError:
    """The schedule and its C, or why there is none."""
    started = time.perf_counter()
    try:
        pipeline, platform, options = _load(question)
        parse_ms = 1000 * (time.perf_counter() - started)
        compiled = compile_pipeline(pipeline, platform, options, time.perf_counter)
        return _answer(compiled, question, parse_ms, started)
    except TilesmithError as error:
        return _refusal(error, "/pipeline")
    except MemoryError:
        return ApiError("out_of_memory", "scheduling needs more memory than the service allows")
    except RecursionError:
        return ApiError("limit_exceeded", "the chain of stages is longer than the scheduler can follow")


def derive(name: str, pipeline: bytes, schedule: bytes, limits: Limits) -> bytes | ApiError:
    """A form of DERIVED_FORMS from the stored documents."""
    try:
        made = documents.load(json.loads(pipeline), limits), schedule_document.from_document(json.loads(schedule))
        return {"schedule.h": halide.to_cpp, "schedule.py": halide.to_python}[name](*made).encode()
    except TilesmithError as error:
        return _refusal(error, "")


def warm_up() -> None:
    """Schedules something small, so that all that is loaded or set up at first use is there."""
    answer(Question(BLUR, platforms.to_document(platforms.load("host")), Options().method, False, None))


def _load(question: Question) -> tuple[Pipeline, platforms.Platform, Options]:
    pipeline = documents.load(question.pipeline, question.limits)
    platform = platforms.load(question.platform)
    return pipeline, platform, Options(question.method, question.strict, question.deadline_ms)


def _refusal(error: TilesmithError, prefix: str) -> ApiError:
    if isinstance(error, InternalError):
        raise error
    return from_core(error, prefix)


def _identity(pipeline: Pipeline) -> PipelineIdentity:
    text = documents.canonical_json(pipeline).encode()
    return PipelineIdentity(content_hash(text), pipeline.name, len(pipeline.stages), text)


def _answer(compiled: Compiled, question: Question, parse_ms: float, started: float) -> Answer:
    pipeline = _identity(compiled.pipeline)
    schedule = compiled.schedule
    decided = schedule_document.to_document(schedule)
    forms = _forms(compiled, pipeline, decided)
    timings = {"parse": parse_ms, **compiled.timings_ms}
    timings["total"] = 1000 * (time.perf_counter() - started)
    body = {
        "id": compiled.key,
        "pipeline": pipeline.name,
        "pipeline_id": pipeline.id,
        "platform": compiled.platform.name,
        "method": schedule.method,
        "options": {"method": question.method, "strict": question.strict, "deadline_ms": question.deadline_ms},
        "degraded": schedule.degraded,
        "groups": decided["groups"],
        "predicted": plain(compiled.predicted.to_document()),
        "buffers": [{"name": name, "bytes": count} for name, count in compiled.source.buffers],
        "entry": compiled.source.entry,
        "timings_ms": {name: round(ms, 3) for name, ms in timings.items()},
    }
    return Answer(
        id=compiled.key,
        pipeline=pipeline,
        platform=compiled.platform.name,
        method=schedule.method,
        strict=schedule.strict,
        degraded=schedule.degraded,
        version=version("tilesmith"),
        body=body,
        forms=forms,
    )


def _forms(compiled: Compiled, pipeline: PipelineIdentity, decided: dict[str, Any]) -> dict[str, bytes]:
    source, schedule = compiled.source, compiled.schedule
    texts = {
        "code.c": source.code,
        "code.h": source.header,
        "loopnest.txt": compiled.loopnest,
        "schedule.json": compact(decided),
        "explain": compact(plain(explain.to_document(schedule, compiled.trace, compiled.predicted))),
        "explain.txt": explain.to_text(schedule, compiled.trace, compiled.predicted),
        "pipeline.json": pipeline.document.decode(),
        "platform.json": compiled.platform.model_dump_json(),
        SOURCE_FORM: compact(plain(source)),
    }
    return {name: text.encode() for name, text in texts.items()}
