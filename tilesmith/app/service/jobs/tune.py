"""A job that tunes: the best candidates of a schedule timed, the fastest kept as a schedule of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilesmith import platforms
from tilesmith.app.profiler.tuning import Arguments, Contender, Tuned, tune
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build import BuiltLibrary, build
from tilesmith.app.runtime.errors import WorkerError
from tilesmith.app.runtime.run import RUN_LIMITS, cpus
from tilesmith.app.runtime.telling import tell
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs.files import JobFiles
from tilesmith.app.service.jobs.schemas import RunRequest, TuneRequest
from tilesmith.app.service.jobs.work import Beginning, Task, check_memory
from tilesmith.app.service.schedules.answers import (
    Answer,
    Decided,
    Generated,
    PipelineIdentity,
    candidate_form,
    compact,
)
from tilesmith.app.service.schedules.service import DOCUMENTS
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.frontends.document import document as documents
from tilesmith.scheduler.ir.schedule.document import decisions, from_document
from tilesmith.scheduler.search import explain

Generate = Callable[[Decided], Generated]
Forms = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of tuning, the C of the candidate that was chosen, and the conditions of the measurement."""

    tuned: Tuned
    generated: Generated
    conditions: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate with its C, or why there is none."""

    rank: int
    predicted: float
    made: Generated | WorkerError

    def source(self) -> CSource:
        """Its C; WorkerError."""
        if isinstance(self.made, WorkerError):
            raise self.made
        return self.made.source


def candidates(task: Task, count: int, base: dict[str, Any], forms: Forms, generate: Generate) -> list[Candidate]:
    """The first `count` candidates of the schedule that has this document and these forms."""
    backend, model = base["options"].get("backend"), base["predicted"]["model"]

    def made(rank: int) -> Generated | WorkerError:
        try:
            schedule = forms[candidate_form(rank, "schedule.json")]
            return generate(Decided(task.pipeline, task.platform, schedule, backend, priced=True, cost_model=model))
        except ApiError as error:
            return WorkerError(error.code, str(error.detail))

    items = json.loads(forms["candidates"])["items"][:count]
    return [Candidate(c["rank"], c["predicted"], made(c["rank"])) for c in items]


def tune_candidates(task: Task, offered: Sequence[Candidate]) -> Outcome:
    """Times the candidates."""
    pipeline = documents.load(json.loads(task.pipeline), task.limits)
    platform = platforms.parse(json.loads(task.platform))
    regions = estimates.output_regions(pipeline)
    check_memory(task, pipeline, RunRequest(estimates=True), regions)
    contenders = [Contender(c.rank, c.predicted, c.source) for c in offered]
    limits = replace(RUN_LIMITS, wall_s=task.run_timeout_s, memory_bytes=task.run_memory_bytes)
    inputs, threads = estimates.images(pipeline, {}), min(platform.threads, cpus())
    cache = JobFiles(task.data_dir).cache
    built: list[BuiltLibrary] = []

    def compiled(code: CSource) -> BuiltLibrary:
        built.append(build(code, platform, cache, task.build_timeout_s, task.build_cache_bytes))
        return built[-1]

    begun = Beginning.now()
    tuned = tune(contenders, Arguments(pipeline, inputs, {}, regions, threads, limits), compiled, tell)
    chosen = next(c.made for c in offered if c.rank == tuned.chosen)
    assert isinstance(chosen, Generated)
    return Outcome(tuned, chosen, begun.conditions(built[0], inputs, regions))


def answer(request: TuneRequest, base: dict[str, Any], forms: Forms, outcome: Outcome) -> Answer:
    """The tuned schedule, from the document and the forms of the one that was not."""
    tuned, source = outcome.tuned, outcome.generated.source
    chosen = tuned.chosen
    kept = {k: v for k, v in base.items() if k not in ("version", "created_at", "links", *decided_keys(base))}
    schedule = forms[candidate_form(chosen, "schedule.json")]
    body = kept | {
        "id": request.schedule_id,
        "options": base["options"] | {"tune": request.candidates},
        **decisions(from_document(json.loads(schedule))),
        "predicted": outcome.generated.predicted,
        "buffers": [{"name": name, "bytes": count} for name, count in source.buffers],
        "entry": source.entry,
        "misfits": list(outcome.generated.misfits),
        "warnings": list(outcome.generated.warnings),
        "tuning": tuned.to_document(),
        "timings_ms": base["timings_ms"] | {"tune": round(1000 * tuned.seconds, 3)},
    }
    texts = {
        "explain.txt": f"{tuned.in_words()}\n\n{explain.text_of(json.loads(forms['explain']))}",
        "explain": compact(json.loads(forms["explain"]) | {"tuning": tuned.to_document()}),
        "candidates": _candidates(request, forms, tuned),
    }
    copied = {n: c for n, c in forms.items() if n in DOCUMENTS or (n.startswith("candidates/") and n.endswith(".json"))}
    return Answer(
        id=request.schedule_id,
        pipeline=PipelineIdentity(base["pipeline_id"], base["pipeline"], 0, b""),
        platform=base["platform"],
        method=base["method"],
        strict=base["options"]["strict"],
        degraded=base["degraded"],
        version=base["version"],
        body=body,
        forms={**copied, **{name: text.encode() for name, text in texts.items()}, "schedule.json": schedule},
    )


def decided_keys(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a schedule's document that say what was decided."""
    return tuple(k for k in ("factors", "separations", "joinings", "packings", "groups") if k in body)


def _candidates(request: TuneRequest, forms: Forms, tuned: Tuned) -> str:
    """The table of the candidates with what was measured, and links to the forms of the tuned schedule."""
    table = json.loads(forms["candidates"])
    samples = {s.rank: s for s in tuned.samples}
    for item in table["items"]:
        sample, base = samples.get(item["rank"]), f"/v1/schedules/{request.schedule_id}"
        item["links"] = {n: f"{base}/{candidate_form(item['rank'], n)}" for n in item["links"]}
        item["chosen"] = item["rank"] == tuned.chosen
        if sample is not None:
            item |= {"measured_ms": sample.median_ms, "error": sample.error}
    return compact(table)
