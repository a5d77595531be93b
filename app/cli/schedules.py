"""`schedule`, `explain` and `validate`: a document and a machine in; a schedule, its C and its reasons out."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.cli.report import BadDocument, UsageError, print_error, print_json, progress
from app.cli.sources import load_pipeline, load_platform, suggestion

if TYPE_CHECKING:
    from scheduler.compile import Compiled
    from scheduler.lang.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Request:
    """What to schedule, for which machine, and how."""

    doc: str
    platform: str
    method: str
    strict: bool = False
    deadline_ms: int | None = None
    schedule_file: str | None = None


def compiled(request: Request) -> tuple[Compiled, dict[str, float]]:
    """The request answered, and how long each step took, in ms: parse, analysis, search, lower, emit, total."""
    started = time.perf_counter()
    pipeline = load_pipeline(request.doc)
    parsed = time.perf_counter()
    result = compiled_pipeline(pipeline, request)
    timings = {"parse": 1e3 * (parsed - started), **result.timings_ms, "total": 1e3 * (time.perf_counter() - started)}
    return result, timings


def compiled_pipeline(pipeline: Pipeline, request: Request) -> Compiled:
    """A pipeline that is already read, scheduled as requested."""
    from scheduler.compile import METHODS, Options, compile_pipeline

    if request.method not in METHODS:
        hint = suggestion(request.method, METHODS, "methods")
        raise UsageError((f"--method {request.method}: there is no such method", hint))
    platform = load_platform(request.platform)
    options = Options(method=request.method, strict=request.strict, deadline_ms=request.deadline_ms)
    with progress(f"scheduling {pipeline.name} for {platform.name}"):
        return compile_pipeline(pipeline, platform, options, time.perf_counter)


def schedule(request: Request, out: Path | None, as_json: bool) -> None:
    """Prints the schedule; with `out` writes the C and every other form into that directory."""
    result, timings = compiled(request)
    written = [] if out is None else _write_forms(result, out)
    if as_json:
        print_json({**description(result), "timings_ms": timings} | ({} if out is None else {"files": written}))
        return
    typer.echo(f"{result.pipeline.name} for {result.platform.name} by {result.schedule.method}, id {result.key}")
    if result.schedule.degraded:
        typer.echo(f"degraded: {result.schedule.degraded}")
    typer.echo(", ".join(f"{step} {ms:.1f} ms" for step, ms in timings.items()))
    typer.echo("\n" + result.loopnest.rstrip())
    for file in written:
        typer.echo(f"wrote {file}", err=True)


def explain(request: Request) -> None:
    """Prints every decision of the search."""
    result, _ = compiled(request)
    typer.echo(_explained(result).rstrip())


def validate(doc: str, as_json: bool) -> None:
    """Prints what a correct document is; BadDocument, after printing the problems, where it is wrong."""
    try:
        pipeline = load_pipeline(doc)
    except BadDocument as error:
        if not as_json:
            raise
        print_json({"valid": False, "problems": [_problem(p) for p in error.problems]})
        print_error(error)
        raise typer.Exit(2) from None
    counts = {"inputs": len(pipeline.inputs), "params": len(pipeline.params), "stages": len(pipeline.stages)}
    if as_json:
        print_json({"valid": True, "pipeline": pipeline.name, **counts, "outputs": list(pipeline.outputs)})
        return
    listed = ", ".join(f"{n} {what if n != 1 else what[:-1]}" for what, n in counts.items())
    typer.echo(f"{pipeline.name} is valid: {listed}; output {', '.join(pipeline.outputs)}")


def description(result: Compiled) -> dict[str, Any]:
    """A compiled pipeline as JSON: what was decided and what it is predicted to cost."""
    from scheduler.schedule_document import to_document

    return {
        "id": result.key,
        "pipeline": result.pipeline.name,
        "platform": result.platform.name,
        "method": result.schedule.method,
        "degraded": result.schedule.degraded,
        "groups": to_document(result.schedule)["groups"],
        "predicted": result.predicted.to_document(),
    }


def _problem(problem: Any) -> dict[str, Any]:
    fields = ("code", "pointer", "column", "message", "hint")
    return {field: value for field in fields if (value := getattr(problem, field, None)) is not None}


def _explained(result: Compiled) -> str:
    from scheduler import explain as explanations

    return explanations.to_text(result.trace)


def _write_forms(result: Compiled, out: Path) -> list[str]:
    """Writes the C, the header and every form of the schedule; the names of the files."""
    from scheduler.emit import halide
    from scheduler.schedule_document import to_document

    stem = Path(result.source.header_name).stem
    forms = {
        f"{stem}.c": result.source.code,
        result.source.header_name: result.source.header,
        "schedule.json": json.dumps(to_document(result.schedule), indent=2) + "\n",
        "loopnest.txt": result.loopnest,
        "schedule.halide.h": halide.to_cpp(result.pipeline, result.schedule),
        "schedule.halide.py": halide.to_python(result.pipeline, result.schedule),
        "explain.txt": _explained(result),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in forms.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError((f"--out {out}: cannot be written: {error.strerror or error}", None)) from None
    return [str(out / name) for name in forms]
