"""`schedule`, `explain` and `validate`: a document and a machine in; a schedule, its C and its reasons out."""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tilesmith.app.cli import candidates, decisions
from tilesmith.app.cli import strategy as strategies
from tilesmith.app.cli.report import BadDocument, UsageError, print_error, print_json, print_warning, progress
from tilesmith.app.cli.result import Result
from tilesmith.app.cli.sources import load_pipeline, load_platform, load_schedule, suggestion

if TYPE_CHECKING:
    from tilesmith.platforms import Platform
    from tilesmith.scheduler.codegen.opencl.device_fit import Misfit
    from tilesmith.scheduler.compiler import Options
    from tilesmith.scheduler.ir.pass_manager import Observer
    from tilesmith.scheduler.ir.pipeline.arguments import Scalar
    from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the pipeline, the machine, the options. `fixed` are the texts of --fix; `top`: candidates to keep;
    `tune`: candidates to time, with `params`; `calibrate`: whether the host is measured on first use; `print_after`,
    `verify_each`: what is done after passes."""

    doc: str
    platform: str
    method: str
    strict: bool = False
    cost_model: str | None = None
    deadline_ms: int | None = None
    schedule_file: str | None = None
    fixed: tuple[str, ...] = ()
    top: int = 1
    tune: int | None = None
    params: Mapping[str, Scalar] = field(default_factory=dict)
    calibrate: bool = True
    print_after: tuple[str, ...] = ()
    verify_each: bool = False
    backend: str | None = None
    strategy: str | None = None


def answer(request: Request) -> Result:
    """The request answered; its timings are parse, analysis, search, lower, passes, emit and total."""
    import tilesmith.scheduler.compiler
    import tilesmith.scheduler.pipelines  # noqa: F401  (so that starting up is not counted as parsing)

    started = time.perf_counter()
    pipeline = load_pipeline(request.doc)
    parse_ms = 1e3 * (time.perf_counter() - started)
    result = answer_for(pipeline, request)
    timings = {"parse": parse_ms, **result.timings_ms, "total": 1e3 * (time.perf_counter() - started)}
    return replace(result, timings_ms=timings)


def check(request: Request) -> None:
    """Raises UsageError where the options of a request name what is not there, or contradict each other."""
    from tilesmith.cost_models.registry import names as cost_models
    from tilesmith.scheduler.search.registry import methods

    if request.method not in methods():
        hint = suggestion(request.method, methods(), "methods")
        raise UsageError((f"--method {request.method}: there is no such method", hint))
    if request.cost_model is not None and request.cost_model not in cost_models():
        hint = suggestion(request.cost_model, cost_models(), "cost models")
        raise UsageError((f"--cost-model {request.cost_model}: there is no such cost model", hint))
    if (request.fixed or request.tune) and request.schedule_file is not None:
        raise UsageError(("--schedule decides everything: --fix and --tune are for what is searched", None))
    if request.strategy is not None:
        _check_alone(request)


def options_of(request: Request, pipeline: Pipeline, platform: Platform) -> Options:
    """The options of a compilation that a request asks for. Raises UsageError, BadDocument, FixedContradiction."""
    from tilesmith.scheduler.compiler import Options

    return Options(
        request.method,
        request.strict,
        request.deadline_ms,
        decisions.fixed(request.fixed, pipeline, request.strict, platform),
        request.tune,
        request.cost_model,
        request.backend,
        None if request.strategy is None else strategies.load(request.strategy),
    )


def answer_for(pipeline: Pipeline, request: Request) -> Result:
    """A pipeline that is already read, scheduled as requested."""
    from tilesmith.scheduler.compiler import compile_pipeline
    from tilesmith.scheduler.search.params import PARAMS

    check(request)
    platform = load_platform(request.platform, request.calibrate)
    options = options_of(request, pipeline, platform)
    observer = _observer(request)
    if request.schedule_file is not None:
        return _written_by_hand(pipeline, platform, options, request.schedule_file, observer)
    with progress(f"scheduling {pipeline.name} for {platform.name}"):
        shown = max(request.top, request.tune or 1)
        top = max(shown, PARAMS.listed_candidates) if shown > 1 else 1
        found = compile_pipeline(pipeline, platform, options, time.perf_counter, top, observer)
    result = Result(
        found.key,
        found.plan,
        platform,
        found.source,
        found.trace,
        found.predicted,
        found.timings_ms,
        found.passes_ms,
        found.candidates[:shown],
    )
    if request.tune is None:
        return result
    from tilesmith.app.cli.tuned import refined

    return refined(result, request.tune, request.params)


def _check_alone(request: Request) -> None:
    """UsageError where something else than a strategy would decide as well."""
    others = {
        "--schedule": request.schedule_file,
        "--fix": request.fixed,
        "--tune": request.tune,
        "--method": request.method != "default",
    }
    given = [option for option, value in others.items() if value]
    if given:
        raise UsageError((f"--strategy decides: {given[0]} does not go with it", "end the strategy with `search`"))


def _observer(request: Request) -> Observer | None:
    if not request.print_after and not request.verify_each:
        return None
    from tilesmith.app.cli.passes import watched

    return watched(request.print_after, request.verify_each)


def _written_by_hand(
    pipeline: Pipeline, platform: Platform, options: Options, path: str, observer: Observer | None
) -> Result:
    """The C of the schedule in a file. Its key is a hash of the question and of that schedule."""
    from tilesmith.scheduler.compiler import checked_and_generated, schedule_key
    from tilesmith.scheduler.ir.pass_manager import Observers, PassTimes
    from tilesmith.scheduler.ir.schedule.document import to_document

    written = load_schedule(path)
    times = PassTimes(time.perf_counter)
    observers = times if observer is None else Observers(times, observer)
    made = checked_and_generated(pipeline, written, platform, time.perf_counter, observers, options.backend)
    text = schedule_key(pipeline, platform, options) + json.dumps(to_document(written), sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    timings = {"analysis": 0.0, "search": 0.0, **made.timings_ms}
    return Result(key, made.plan, platform, made.source, None, None, timings, times.ms)


def schedule(
    request: Request,
    out: Path | None,
    as_json: bool,
    time_passes: bool = False,
    as_strategy: bool = False,
    trace: bool = False,
) -> None:
    """Prints the schedule; with `out` writes the C and every other form into that directory. `as_strategy`: prints the
    strategy that makes it, and no more. `trace`: prints the steps of the strategy that made it."""
    from tilesmith.scheduler.codegen.loopnest import to_text

    result = answer(request)
    for warning in _warnings(result):
        print_warning(warning)
    if as_strategy:
        typer.echo(strategies.as_strategy(result.plan, result.platform).rstrip())
        return
    written = [] if out is None else _write_forms(result, out)
    if as_json:
        files = {} if out is None else {"files": written}
        passes = {"passes_ms": result.passes_ms} if time_passes else {}
        print_json({**description(result), "timings_ms": result.timings_ms, **passes, **files})
        return
    typer.echo(f"{result.pipeline.name} for {result.platform.name} by {result.schedule.method}, id {result.key}")
    if result.schedule.degraded:
        typer.echo(f"degraded: {result.schedule.degraded}")
    typer.echo(", ".join(f"{step} {ms:.1f} ms" for step, ms in result.timings_ms.items()))
    if time_passes:
        width = max(map(len, result.passes_ms))
        typer.echo("passes over the pipeline, then over the loop program:")
        typer.echo("\n".join(f"  {name:{width}} {ms:8.2f} ms" for name, ms in result.passes_ms.items()))
    if trace and result.trace is not None:
        from tilesmith.scheduler.search.explain import steps_in_lines

        typer.echo("\n" + "\n".join(steps_in_lines(result.trace.steps)))
    typer.echo("\n" + to_text(result.plan).rstrip())
    found = _misfits(result)
    if found:
        typer.echo("\n".join(["", f"what does not fit {result.platform.name}:", *(f"  {m}" for m in found)]))
    if len(result.candidates) > 1:
        typer.echo("\n" + candidates.table(result.candidates, result.tuned))
    for file in written:
        typer.echo(f"wrote {file}", err=True)
    if out is not None and result.source.language == "c":
        compiler = result.platform.compiler
        scalar = compiler.scalar_flags(result.platform.architecture)
        flags = " ".join((*result.source.flags, *compiler.flags, *scalar))
        code = shlex.quote(str(out / result.source.code_name))
        typer.echo(f"compile it with: {compiler.command} {flags} -fopenmp -c {code}", err=True)


def explain(request: Request) -> None:
    """Prints every decision of the search."""
    typer.echo(_explained(answer(request)).rstrip())


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
    from tilesmith.scheduler.analysis.size_warnings import input_warnings
    from tilesmith.scheduler.rewrites.passes import normalise

    counts = {"inputs": len(pipeline.inputs), "params": len(pipeline.params), "stages": len(pipeline.stages)}
    warnings = list(input_warnings(normalise(pipeline)))
    if as_json:
        told = {"outputs": list(pipeline.outputs), "warnings": warnings}
        print_json({"valid": True, "pipeline": pipeline.name, **counts, **told})
        return
    for warning in warnings:
        print_warning(warning)
    listed = ", ".join(f"{n} {what if n != 1 else what[:-1]}" for what, n in counts.items())
    typer.echo(f"{pipeline.name} is valid: {listed}; output {', '.join(pipeline.outputs)}")


def description(result: Result) -> dict[str, Any]:
    """A schedule as JSON: what was decided and what it is predicted to cost."""
    from tilesmith.scheduler.ir.schedule import document

    return {
        "id": result.key,
        "pipeline": result.pipeline.name,
        "platform": result.platform.name,
        "method": result.schedule.method,
        "degraded": result.schedule.degraded,
        **document.decisions(result.schedule),
        "predicted": result.predicted and result.predicted.to_document(),
        "candidates": candidates.documents(result.candidates),
        **({"tuning": result.tuned.to_document()} if result.tuned is not None else {}),
        "entry": result.source.entry,
        "flags": list(result.source.flags),
        "buffers": [{"name": name, "bytes": count} for name, count in result.source.buffers],
        **_steps(result),
        "misfits": [m.to_document() for m in _misfits(result)],
        "warnings": list(_warnings(result)),
    }


def _warnings(result: Result) -> tuple[str, ...]:
    """Estimates that do not go together, in words."""
    from tilesmith.scheduler.analysis.size_warnings import size_warnings

    return size_warnings(result.plan, result.source.buffers)


def _misfits(result: Result) -> tuple[Misfit, ...]:
    """The kernels that do not fit, of a device that runs OpenCL."""
    if result.platform.kind != "opencl":
        return ()
    from tilesmith.scheduler.codegen.opencl.device_fit import misfits

    return misfits(result.plan, result.platform)


def _steps(result: Result) -> dict[str, Any]:
    """The steps of a strategy, where one made the schedule."""
    steps = () if result.trace is None else result.trace.steps
    return {"steps": [s.to_document() for s in steps]} if steps else {}


def _problem(problem: Any) -> dict[str, Any]:
    fields = ("code", "pointer", "column", "message", "hint")
    return {field: value for field in fields if (value := getattr(problem, field, None)) is not None}


def _explained(result: Result) -> str:
    from tilesmith.scheduler.search.explain import to_text

    if result.trace is None:
        return f"{result.pipeline.name}: the schedule was written by hand\n"
    told = to_text(result.schedule, result.trace, result.predicted)
    return told if result.tuned is None else f"{result.tuned.in_words()}\n\n{told}"


def _write_forms(result: Result, out: Path) -> list[str]:
    """Writes the C, the header and every form of the schedule; the names of the files."""
    from tilesmith.scheduler.codegen import loopnest
    from tilesmith.scheduler.codegen.halide import source as halide
    from tilesmith.scheduler.ir.schedule.document import to_document

    forms = {
        result.source.code_name: result.source.code,
        **({result.source.header_name: result.source.header} if result.source.header else {}),
        "schedule.json": json.dumps(to_document(result.schedule), indent=2) + "\n",
        "loopnest.txt": loopnest.to_text(result.plan),
        "schedule.halide.h": halide.to_cpp(result.plan),
        "schedule.halide.py": halide.to_python(result.plan),
        "explain.txt": _explained(result),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in forms.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError((f"--out {out}: cannot be written: {error.strerror or error}", None)) from None
    return [str(out / name) for name in forms]
