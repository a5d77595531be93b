"""The work of a schedule request that takes time: loading the document, its key, the schedule itself.

Plain functions of plain data, so that they run in another process. What is wrong with a document is a value
(an ApiError, returned), not an exception: it crosses processes unchanged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from tilesmith import platforms
from tilesmith.app.service.errors import ApiError, from_core
from tilesmith.app.service.schedules.answers import (
    SOURCE_FORM,
    Answer,
    Generated,
    PipelineIdentity,
    Question,
    StrategyIdentity,
    candidate_form,
    compact,
    content_hash,
    plain,
    strategy_identity,
)
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.cost_models.ecm import Ecm
from tilesmith.scheduler.codegen import loopnest
from tilesmith.scheduler.codegen.halide import source as halide
from tilesmith.scheduler.codegen.opencl.device_fit import misfits
from tilesmith.scheduler.compiler import Compiled, Options, checked_and_generated, compile_pipeline, schedule_key
from tilesmith.scheduler.errors import InternalError, Problem, TilesmithError
from tilesmith.scheduler.features.stage_figures import figures_of
from tilesmith.scheduler.frontends.document import document as documents
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.registry import content_importers
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule import document as schedule_document
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import candidate_table, explain
from tilesmith.scheduler.search.constraints import document as constraints_document
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.tile_costs import tile_costs
from tilesmith.scheduler.strategies import document as strategies


def inspect(document: object, limits: Limits) -> PipelineIdentity | ApiError:
    """The facts of a pipeline document, or its errors."""
    try:
        return _identity(documents.load(document, limits))
    except TilesmithError as error:
        return _refusal(error, "")


def inspect_strategy(document: object) -> StrategyIdentity | ApiError:
    """A strategy document in canonical form, or its errors."""
    try:
        return strategy_identity(strategies.from_document(document))
    except TilesmithError as error:
        return _refusal(error, "")


def import_content(name: str, content: bytes, limits: Limits) -> dict[str, Any] | ApiError:
    """The document that an importer makes of a file, its notes, and the inputs that the file has values of."""
    importer = content_importers().get(name)
    if importer is None:
        known = ", ".join(sorted(content_importers()))
        return ApiError("importer_not_found", f"no importer {name[:64]!r} reads files; there are: {known}")
    try:
        found = importer.read(content)
        document = documents.to_document(documents.load(documents.to_document(found.pipeline), limits))
    except ImportFailed as error:
        problems = [Problem(error.code, "", message, hint) for message, hint in error.problems]
        return ApiError(error.code, "; ".join(p.message for p in problems)[:1000], problems)
    except TilesmithError as error:
        return _refusal(error, "")
    except MemoryError:
        return ApiError("out_of_memory", "the import needs more memory than the service allows")
    weights = [{"name": n, "type": str(w.dtype), "shape": list(w.shape)} for n, w in found.weights.items()]
    return {"importer": name, "document": document, "notes": list(found.notes), "weights": weights}


def key(question: Question) -> str | ApiError:
    """The id of the schedule that answers the question, without making it."""
    try:
        pipeline, platform, options = _load(question)
        return schedule_key(pipeline, platform, options)
    except TilesmithError as error:
        return _refusal(error, "/pipeline")
    except ApiError as error:
        return error


def answer(question: Question) -> Answer | ApiError:
    """The schedule and its C, or why there is none."""
    started = time.perf_counter()
    try:
        pipeline, platform, options = _load(question)
        parse_ms = 1000 * (time.perf_counter() - started)
        compiled = compile_pipeline(pipeline, platform, options, time.perf_counter, PARAMS.listed_candidates)
        return _answer(compiled, question, parse_ms, started)
    except TilesmithError as error:
        return _refusal(error, "/pipeline")
    except ApiError as error:
        return error
    except MemoryError:
        return ApiError("out_of_memory", "scheduling needs more memory than the service allows")
    except RecursionError:
        return ApiError("limit_exceeded", "the chain of stages is longer than the scheduler can follow")


def derive(name: str, pipeline: bytes, platform: bytes, schedule: bytes, limits: Limits) -> bytes | ApiError:
    """A form of DERIVED_FORMS, or a loop nest, from the stored documents."""
    try:
        made = documents.load(json.loads(pipeline), limits), schedule_document.from_document(json.loads(schedule))
        return _MAKERS[name](rewrite(*made), platforms.load(json.loads(platform))).encode()
    except TilesmithError as error:
        return _refusal(error, "")


def generate(pipeline: bytes, platform: bytes, schedule: bytes, limits: Limits) -> Generated | ApiError:
    """The C of a candidate from the stored documents."""
    try:
        parsed = documents.load(json.loads(pipeline), limits)
        decided = schedule_document.from_document(json.loads(schedule))
        machine = platforms.load(json.loads(platform))
        made = checked_and_generated(parsed, decided, machine, time.perf_counter)
        found = tuple(m.to_document() for m in misfits(made.plan, machine))
        return Generated(made.source, loopnest.to_text(made.plan), found)
    except TilesmithError as error:
        return _refusal(error, "")


def _tiles(plan: Plan, platform: platforms.Platform) -> str:
    model = Ecm()
    groups = [costs.to_document() for costs in tile_costs(plan, platform, model)]
    return compact(plain({"model": model.name, "unit": model.unit, "groups": groups}))


_MAKERS: dict[str, Callable[[Plan, platforms.Platform], str]] = {
    "schedule.h": lambda plan, _: halide.to_cpp(plan),
    "schedule.py": lambda plan, _: halide.to_python(plan),
    "loopnest.txt": lambda plan, _: loopnest.to_text(plan),
    "figures.json": lambda plan, platform: compact(plain(figures_of(plan, platform).to_document())),
    "tiles.json": _tiles,
}


def warm_up() -> None:
    """Schedules something small, so that all that is loaded or set up at first use is there."""
    answer(Question(BLUR, platforms.to_document(platforms.load("host")), Options().method, False, None))


def _load(question: Question) -> tuple[Pipeline, platforms.Platform, Options]:
    pipeline = documents.load(question.pipeline, question.limits)
    platform = platforms.load(question.platform)
    try:
        fixed = constraints_document.load(question.fixed, pipeline, question.strict, platform)
    except TilesmithError as error:
        raise from_core(error, "/options/fixed") from None
    q = question
    try:
        strategy = None if q.strategy is None else strategies.from_document(q.strategy)
    except TilesmithError as error:
        raise from_core(error, "/strategy") from None
    options = Options(q.method, q.strict, q.deadline_ms, fixed, q.tune, q.cost_model, q.backend, strategy)
    return pipeline, platform, options


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
        "options": question.options(),
        "degraded": schedule.degraded,
        **schedule_document.decisions(schedule),
        "predicted": plain(compiled.predicted.to_document()),
        "buffers": [{"name": name, "bytes": count} for name, count in compiled.source.buffers],
        "entry": compiled.source.entry,
        **({"steps": [s.to_document() for s in compiled.trace.steps]} if compiled.trace.steps else {}),
        "misfits": [m.to_document() for m in misfits(compiled.plan, compiled.platform)],
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
        "candidates": compact(_candidates(compiled)),
        SOURCE_FORM: compact(plain(source)),
    }
    for rank, candidate in enumerate(compiled.candidates, start=1):
        texts[candidate_form(rank, "schedule.json")] = compact(schedule_document.to_document(candidate.schedule))
        texts[candidate_form(rank, "predicted.json")] = compact(plain(candidate.predicted.to_document()))
    return {name: text.encode() for name, text in texts.items()}


def _candidates(compiled: Compiled) -> dict[str, Any]:
    """The table of the candidates, with links to their forms."""
    base = f"/v1/schedules/{compiled.key}"
    items = [
        figures
        | {
            "links": {
                name: f"{base}/{candidate_form(figures['rank'], name)}" for name in ("schedule.json", "loopnest.txt")
            }
        }
        for figures in candidate_table.to_document(compiled.candidates)
    ]
    return {"model": compiled.predicted.model, "unit": compiled.predicted.unit, "items": plain(items)}
