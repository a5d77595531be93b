"""The work of a schedule request that takes time: loading the document, its key, the schedule itself.

Plain functions of plain data, so that they run in another process. What is wrong with a document is a value
(an ApiError, returned), not an exception: it crosses processes unchanged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from tilesmith import platforms
from tilesmith.app.service.bodies import data, parse_json
from tilesmith.app.service.errors import ApiError, from_core
from tilesmith.app.service.remembered import Remembered
from tilesmith.app.service.schedules.answers import (
    Answer,
    Decided,
    Generated,
    PipelineIdentity,
    Question,
    StrategyIdentity,
    candidate_form,
    compact,
    identity,
    plain,
    strategy_identity,
)
from tilesmith.app.service.schedules.examples import BLUR
from tilesmith.cost_models.ecm import Ecm
from tilesmith.scheduler.analysis.size_warnings import size_warnings
from tilesmith.scheduler.codegen import loopnest
from tilesmith.scheduler.codegen.c.prelude import entry_name
from tilesmith.scheduler.codegen.halide import source as halide
from tilesmith.scheduler.codegen.opencl.device_fit import misfits
from tilesmith.scheduler.compiler import Options, decide, generated, laid_out, schedule_key
from tilesmith.scheduler.errors import InternalError, Problem, TilesmithError
from tilesmith.scheduler.features.stage_figures import figures_of
from tilesmith.scheduler.frontends.document import document as documents
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.registry import content_importers
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule import document as schedule_document
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.lowering import LoweringUnit
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import Candidate, SearchOptions, SearchResult, candidate_table, explain
from tilesmith.scheduler.search.constraints import document as constraints_document
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.registry import method
from tilesmith.scheduler.search.tile_costs import tile_costs
from tilesmith.scheduler.search.written import priced
from tilesmith.scheduler.strategies import document as strategies

VERSION = version("tilesmith")


def inspect(document: bytes, limits: Limits) -> PipelineIdentity | ApiError:
    """The facts of a pipeline document, or its errors."""
    try:
        return identity(documents.load(parse_json(document), limits))
    except ApiError as error:
        return error
    except TilesmithError as error:
        return _refusal(error, "")


def inspect_strategy(document: bytes) -> StrategyIdentity | ApiError:
    """A strategy document in canonical form, or its errors."""
    try:
        return strategy_identity(strategies.from_document(parse_json(document)))
    except ApiError as error:
        return error
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
        loaded = _load(question)
        found = schedule_key(*loaded)
        _LOADED.put(found, loaded)
        return found
    except TilesmithError as error:
        return _refusal(error, "/pipeline")
    except ApiError as error:
        return error


def answer(question: Question, schedule_id: str | None = None) -> Answer | ApiError:
    """The schedule, of that id where it is known already, or why there is none."""
    started = time.perf_counter()
    try:
        pipeline, platform, options = _LOADED.get(schedule_id) or _load(question)
        parse_ms = 1000 * (time.perf_counter() - started)
        found = decide(pipeline, platform, _within(options, parse_ms), time.perf_counter)
        decided = time.perf_counter()
        unit = laid_out(found.plan, platform, options.backend)
        ended = time.perf_counter()
        timings = {"parse": parse_ms, **found.timings_ms, "buffers": 1000 * (ended - decided)}
        timings["total"] = 1000 * (ended - started)
        found_id = schedule_id or schedule_key(pipeline, platform, options)
        return _answer(_Found(found_id, found, unit, timings), question)
    except TilesmithError as error:
        return _refusal(error, "/pipeline")
    except ApiError as error:
        return error
    except MemoryError:
        return ApiError("out_of_memory", "scheduling needs more memory than the service allows")
    except RecursionError:
        return ApiError("limit_exceeded", "the chain of stages is longer than the scheduler can follow")


def candidates(question: Question, schedule_id: str, schedule: bytes) -> dict[str, str] | ApiError:
    """The table of candidates and each as data, JSON by the names of their forms: the schedule that answers the
    question first, then the others that the search finds."""
    try:
        pipeline, platform, options = _load(question)
        found = decide(pipeline, platform, options, time.perf_counter, PARAMS.listed_candidates).candidates
        chosen = schedule_document.from_document(json.loads(schedule))
        if found[0].schedule != chosen:  # a deadline came, or an earlier version has searched
            model = options.cost_model or method(options.method).model
            (own,) = priced(pipeline, chosen, platform, SearchOptions(cost_model=model)).candidates
            found = (own, *(c for c in found if c.schedule != chosen))[: PARAMS.listed_candidates]
        texts = {"candidates": compact(_table(schedule_id, found))}
        for rank, candidate in enumerate(found, start=1):
            document = schedule_document.to_document(candidate.schedule if rank > 1 else chosen)
            texts[candidate_form(rank, "schedule.json")] = compact(document)
        return texts
    except TilesmithError as error:
        return _refusal(error, "")


def derive(name: str, pipeline: bytes, platform: bytes, schedule: bytes, limits: Limits) -> bytes | ApiError:
    """A form of MADE_FORMS from the stored documents."""
    try:
        made = documents.load(json.loads(pipeline), limits), schedule_document.from_document(json.loads(schedule))
        return _MAKERS[name](rewrite(*made), platforms.load(json.loads(platform))).encode()
    except TilesmithError as error:
        return _refusal(error, "")


def generate(decided: Decided, limits: Limits) -> Generated | ApiError:
    """The C of a stored schedule, or of a candidate."""
    try:
        unit = _LAID_OUT.get((decided.pipeline, decided.platform, decided.schedule))
        if unit is None:
            pipeline = documents.load(json.loads(decided.pipeline), limits)
            plan = rewrite(pipeline, schedule_document.from_document(json.loads(decided.schedule)))
            check(plan)
            unit = laid_out(plan, _platform(decided.platform.decode()), decided.backend)
        source, plan, machine = generated(unit, decided.backend), unit.plan, unit.platform
        if not decided.priced:
            return Generated(source)
        options = SearchOptions(cost_model=decided.cost_model)
        predicted = plain(priced(plan.written, plan.schedule, machine, options).predicted.to_document())
        found = tuple(m.to_document() for m in misfits(plan, machine))
        return Generated(source, found, size_warnings(plan, source.buffers), predicted)
    except TilesmithError as error:
        return _refusal(error, "")


_LOADED: Remembered[str | None, tuple[Pipeline, platforms.Platform, Options]] = Remembered(8)
"""The questions that this process has read last, by the ids of their answers, which are asked for next."""

_LAID_OUT: Remembered[tuple[bytes, bytes, bytes], LoweringUnit] = Remembered(8)
"""Plans that this process has decided on last, by the documents of pipeline, platform and schedule: who asks for a
schedule often asks for its C next."""


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


def _within(options: Options, spent_ms: float) -> Options:
    """The options of a search that has what is left of the deadline."""
    if options.deadline_ms is None:
        return options
    return replace(options, deadline_ms=max(1, round(options.deadline_ms - spent_ms)))


@lru_cache(maxsize=64)
def _platform(document: str) -> platforms.Platform:
    """The platform of a document: the same one for each request, so that what is remembered by platform is found
    without comparing all of its figures."""
    return platforms.load(json.loads(document))


def _load(question: Question) -> tuple[Pipeline, platforms.Platform, Options]:
    pipeline = documents.load(question.estimated(), question.limits)
    platform = _platform(compact(question.platform))
    decisions = data(question.fixed)
    if len(decisions) > question.limits.stages:  # before each is looked at
        problem = Problem("limit_exceeded", "/options/fixed", f"{len(decisions)} stages, of {len(pipeline.stages)}")
        raise ApiError("limit_exceeded", "decisions are fixed for more stages than a pipeline may have", (problem,))
    try:
        fixed = constraints_document.load(decisions, pipeline, question.strict, platform)
    except TilesmithError as error:
        raise from_core(error, "/options/fixed") from None
    q = question
    try:
        strategy = None if q.strategy is None else strategies.from_document(data(q.strategy))
    except TilesmithError as error:
        raise from_core(error, "/strategy") from None
    try:
        written = None if q.schedule is None else schedule_document.from_document(data(q.schedule))
    except TilesmithError as error:
        raise from_core(error, "/schedule") from None
    options = Options(
        q.method, q.strict, q.deadline_ms, fixed, q.tune, q.cost_model, q.backend, strategy=strategy, schedule=written
    )
    return pipeline, platform, options


def _refusal(error: TilesmithError, prefix: str) -> ApiError:
    if isinstance(error, InternalError):
        raise error
    return from_core(error, prefix)


@dataclass(frozen=True, slots=True)
class _Found:
    """A schedule that was decided, laid out."""

    id: str
    result: SearchResult
    unit: LoweringUnit
    timings_ms: dict[str, float]


def _answer(found: _Found, question: Question) -> Answer:
    plan, platform, buffers = found.unit.plan, found.unit.platform, found.unit.program.estimates
    pipeline, schedule = identity(plan.written), plan.schedule
    decided = schedule_document.to_document(schedule)
    body = {
        "id": found.id,
        "pipeline": pipeline.name,
        "pipeline_id": pipeline.id,
        "platform": platform.name,
        "method": schedule.method,
        "options": question.options(),
        "degraded": schedule.degraded,
        **schedule_document.decisions(schedule),
        "predicted": plain(found.result.predicted.to_document()),
        "buffers": [{"name": name, "bytes": count} for name, count in buffers],
        "entry": entry_name(plan.written.name),
        **({"steps": [s.to_document() for s in found.result.trace.steps]} if found.result.trace.steps else {}),
        "misfits": [m.to_document() for m in misfits(plan, platform)],
        "warnings": list(size_warnings(plan, buffers)),
        "timings_ms": {name: round(ms, 3) for name, ms in found.timings_ms.items()},
    }
    forms = _forms(found, pipeline, decided)
    _LAID_OUT.put((forms["pipeline.json"], forms["platform.json"], forms["schedule.json"]), found.unit)
    return Answer(
        id=found.id,
        pipeline=pipeline,
        platform=platform.name,
        method=schedule.method,
        strict=schedule.strict,
        degraded=schedule.degraded,
        version=VERSION,
        body=body,
        forms=forms,
    )


def _forms(found: _Found, pipeline: PipelineIdentity, decided: dict[str, Any]) -> dict[str, bytes]:
    result = found.result
    texts = {
        "schedule.json": compact(decided),
        "explain": compact(plain(explain.to_document(result.schedule, result.trace, result.predicted))),
        "pipeline.json": pipeline.document.decode(),
        "platform.json": found.unit.platform.model_dump_json(),
    }
    return {name: text.encode() for name, text in texts.items()}


def _table(schedule_id: str, found: Sequence[Candidate]) -> dict[str, Any]:
    """The table of the candidates, with links to their forms."""
    base = f"/v1/schedules/{schedule_id}"
    items = [
        figures
        | {
            "links": {
                name: f"{base}/{candidate_form(figures['rank'], name)}" for name in ("schedule.json", "loopnest.txt")
            }
        }
        for figures in candidate_table.to_document(found)
    ]
    predicted = found[0].predicted
    return {"model": predicted.model, "unit": predicted.unit, "items": plain(items)}
