"""`run` and `interpret`: files through a pipeline, compiled or by the reference interpreter."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import typer

from tilesmith.app.cli import schedules
from tilesmith.app.cli.arguments import Arguments, Region, parse
from tilesmith.app.cli.report import UsageError, print_json, print_warning, progress
from tilesmith.app.cli.sources import load_imported, load_platform
from tilesmith.app.runtime import estimates, images, visibility
from tilesmith.app.runtime.build_cache import CACHE_BYTES, COMPILE_TIMEOUT_S, cache_dir
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.regions import largest_regions
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.rewrites.fuse_outputs import apart
from tilesmith.scheduler.rewrites.passes import normalise

if TYPE_CHECKING:
    from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

Outputs = Mapping[str, tuple[images.Array, ...]]


@dataclass(frozen=True, slots=True)
class Files:
    """The options that say what goes in and out."""

    inputs: list[str]
    outputs: list[str]
    params: list[str]
    regions: list[str]
    estimates: bool
    convert: bool
    stretch: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A pipeline with all that it is to be called with. `regions` has every output."""

    pipeline: Pipeline
    arguments: Arguments
    inputs: dict[str, Image]
    regions: dict[str, Region]


def run(request: schedules.Request, files: Files, threads: int | None, repeat: int, as_json: bool) -> None:
    """Schedules, compiles and runs; writes the outputs; prints times, each of the kernel alone."""
    from tilesmith.app.runtime import build as compilation
    from tilesmith.app.runtime import run as execution

    # ahead of the work that it would end
    compilation.find_toolchain(load_platform(request.platform, request.calibrate).compiler)
    job = _job(request.doc, files)
    result = schedules.answer_for(job.pipeline, replace(request, params=job.arguments.params))
    slow = compilation.slow_flags(result.platform)
    if slow is not None:
        print_warning(f"the flags of the compiler of {result.platform.name!r} make slow code: {slow}")
    with progress(f"compiling with {result.platform.compiler.command}"):
        library = compilation.build(result.source, result.platform, cache_dir(), COMPILE_TIMEOUT_S, CACHE_BYTES)
    with progress(f"running {job.pipeline.name}"):
        done = execution.run(
            library, job.pipeline, job.inputs, job.arguments.params, job.regions, threads or execution.cpus(), repeat
        )
    written = _write(job, done.outputs, files.stretch)
    if as_json:
        print_json(
            {
                "schedule_id": result.key,
                **{k: v for k, v in schedules.description(result).items() if k in ("pipeline", "platform", "method")},
                "threads": done.threads,
                "times_ms": list(done.times_ms),
                "compile_ms": 1e3 * library.seconds,
                "peak_rss_bytes": done.peak_rss_bytes,
                "outputs": written,
            }
        )
        return
    where = f"{job.pipeline.name} on {result.platform.name}, {done.threads} threads"
    typer.echo(f"{where}: {times_text(done.times_ms)}")
    _tell_files(written)


def times_text(times_ms: Sequence[float]) -> str:
    """Times of calls for people: the least, and of several the median and the span of their middle four fifths."""
    least, count = min(times_ms), len(times_ms)
    if count == 1:
        return f"{least:.3f} ms"
    low, median, high = (float(q) for q in np.percentile(times_ms, (10, 50, 90)))
    return f"{least:.3f} ms, the best of {count}; median {median:.3f} ms, four of five in {low:.3f}..{high:.3f} ms"


def interpret(doc: str, files: Files, as_json: bool) -> None:
    """Computes the outputs by the reference interpreter and writes them."""
    from tilesmith.scheduler.interpreter.interpreter import interpret as by_interpreter

    job = _job(doc, files)
    _check_memory(job)
    started = time.perf_counter()
    with progress(f"interpreting {job.pipeline.name}"):
        outputs = by_interpreter(job.pipeline, job.inputs, job.arguments.params, job.regions)
    seconds = time.perf_counter() - started
    written = _write(job, outputs, files.stretch)
    if as_json:
        print_json({"pipeline": job.pipeline.name, "interpreted_ms": 1e3 * seconds, "outputs": written})
        return
    typer.echo(f"{job.pipeline.name} interpreted in {seconds:.2f} s")
    _tell_files(written)


def _check_memory(job: Job) -> None:
    """RunError `out_of_memory` where what the interpreter keeps, whole stages, is more than there is."""
    sizes = {name: tuple(zip(image.min, image.extent, strict=True)) for name, image in job.inputs.items()}
    regions = required_regions(normalise(job.pipeline), job.regions, job.arguments.params, sizes)
    needed = sum(
        prod(extent for _, extent in regions[stage.name]) * sum(t.bytes for t in stage.types)
        for stage in job.pipeline.stages
        if stage.name in regions
    )
    available = psutil.virtual_memory().available
    if needed > available:
        what = f"the interpreter would keep {needed >> 20:,} MiB, {available >> 20:,} MiB are free"
        raise RunError("out_of_memory", f"not enough memory: {what}")


def _job(doc: str, files: Files) -> Job:
    """The pipeline and its arguments, inputs read or made, regions settled."""
    found = load_imported(doc)
    pipeline, weights = found.pipeline, {n: Image(a, (0,) * a.ndim) for n, a in found.weights.items()}
    arguments = parse(
        pipeline, files.inputs, files.outputs, files.params, files.regions, files.estimates, found.weights
    )
    if files.estimates:
        inputs, regions = estimates.images(pipeline, arguments.params) | weights, estimates.output_regions(pipeline)
    else:
        inputs = weights | _read(pipeline, arguments, files.convert)
        given = set(arguments.regions) == set(pipeline.outputs)
        regions = {} if given else largest_regions(pipeline, inputs, arguments.params)
    regions = regions | arguments.regions
    if apart(pipeline, regions):  # the schedule is to be one for these regions
        others = tuple((name, region) for name, region in pipeline.estimates if name not in regions)
        pipeline = replace(pipeline, estimates=tuple(sorted((*others, *regions.items()))))
    return Job(pipeline, arguments, inputs, regions)


def _read(pipeline: Pipeline, arguments: Arguments, convert: bool) -> dict[str, Image]:
    """Every input file; UsageError with the problems of all files that do not fit."""
    found: dict[str, Image] = {}
    complaints: list[tuple[str, str | None]] = []
    for wanted in (i for i in pipeline.inputs if i.name in arguments.inputs):
        file = arguments.inputs[wanted.name]
        try:
            array = images.read(file.path, wanted, estimates.channels(pipeline, wanted, arguments.params), convert)
        except images.ImageError as error:
            complaints.append((str(error), error.hint))
        else:
            found[wanted.name] = Image(array, file.mins)
    if complaints:
        raise UsageError(*complaints)
    return found


def _write(job: Job, outputs: Outputs, stretch: bool) -> dict[str, Any]:
    """Writes the outputs that files were named for; what was computed of each output, for the report."""
    told: dict[str, Any] = {}
    for name in outputs:
        stage = job.pipeline.stage(name)
        told[name] = {
            "dims": list(stage.dims),
            "region": [list(r) for r in job.regions[name]],
            "type": [t.name for t in stage.types],
            "files": {},
        }
    for (name, component), path in job.arguments.outputs.items():
        try:
            images.write(path, outputs[name][component], job.pipeline.stage(name).dims, stretch)
        except OSError as error:
            raise UsageError((f"{path} cannot be written: {error.strerror or error}", None)) from None
        told[name]["files"][str(component)] = str(path)
        shown = path.suffix.lower() != ".npy" and not stretch
        if shown and (remark := visibility.remark(outputs[name][component])) is not None:
            print_warning(f"{path}: {remark}")
    return told


def _tell_files(written: dict[str, Any]) -> None:
    for name, output in written.items():
        size = " x ".join(str(extent) for _, extent in output["region"])
        at = ",".join(str(low) for low, _ in output["region"])
        for path in output["files"].values():
            typer.echo(f"wrote {path}: {name}, {size} from {at}")
