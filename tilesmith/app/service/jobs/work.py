"""The work of jobs: compile a schedule's C; load or make images, run the library, keep results and the measurement.

Plain functions of plain data, in a worker of the pool. They raise the errors of the core and of app.runtime.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tilesmith import platforms
from tilesmith.app.runtime import estimates, images
from tilesmith.app.runtime.build import BuiltLibrary, build
from tilesmith.app.runtime.confinement import mechanism
from tilesmith.app.runtime.decoding import decoded
from tilesmith.app.runtime.run import RUN_LIMITS, RunResult, cpus, run
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.jobs.files import JobFiles
from tilesmith.app.service.jobs.schemas import RunRequest
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.frontends.document import document as documents
from tilesmith.scheduler.frontends.document.limits import Limits as DocumentLimits
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Image, Region
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

IMAGE_BYTES = 512 << 20
CONVERT = "add `convert: true` to the request to have it converted"


@dataclass(frozen=True, slots=True)
class Task:
    """A job with all that it needs: documents as they are stored, where files are, limits."""

    job_id: str
    pipeline: bytes
    platform: bytes
    source: bytes
    data_dir: Path
    build_timeout_s: float
    build_cache_bytes: int
    run_timeout_s: float
    run_memory_bytes: int
    limits: DocumentLimits
    image_bytes: int = IMAGE_BYTES


@dataclass(frozen=True, slots=True)
class Built:
    """A library of a job: where it is on the machine that compiled it, and the result of a build job."""

    key: str
    path: str
    description: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The time at which a measurement begins, and the load of the machine then."""

    measured_at: datetime
    load: tuple[float, ...]

    @staticmethod
    def now() -> Beginning:
        return Beginning(datetime.now(UTC), os.getloadavg())

    def conditions(
        self, library: BuiltLibrary, inputs: Mapping[str, Image], regions: Mapping[str, Region]
    ) -> dict[str, Any]:
        """The conditions of the measurement, which has ended."""
        return {
            "machine": describe_machine(),
            "compiler": library.compiler,
            "flags": list(library.flags),
            "sizes": {
                "inputs": {name: _sizes(image) for name, image in sorted(inputs.items())},
                "outputs": {name: [list(r) for r in region] for name, region in sorted(regions.items())},
            },
            "clock": "CLOCK_MONOTONIC",
            "measured_at": self.measured_at.isoformat().replace("+00:00", "Z"),
            "load_before": [round(v, 2) for v in self.load],
            "load_after": [round(v, 2) for v in os.getloadavg()],
            "confinement": mechanism(),
        }


def build_library(task: Task) -> Built:
    """The library of the schedule for who asked for it; CompileError."""
    library = compile_library(task)
    return Built(library.key, str(library.path), describe_build(library))


def compile_library(task: Task) -> BuiltLibrary:
    """The library of the schedule, compiled or from the cache; CompileError."""
    fields = json.loads(task.source)
    source = CSource(
        code=fields["code"],
        header=fields["header"],
        header_name=fields["header_name"],
        entry=fields["entry"],
        flags=tuple(fields["flags"]),
        buffers=tuple((name, count) for name, count in fields["buffers"]),
    )
    platform = platforms.parse(json.loads(task.platform))
    return build(source, platform, JobFiles(task.data_dir).cache, task.build_timeout_s, task.build_cache_bytes)


def describe_build(library: BuiltLibrary) -> dict[str, Any]:
    """The result of a build job. Of the log, the last 20,000 characters."""
    return {
        "key": library.key,
        "entry": library.entry,
        "compiler": library.compiler,
        "flags": list(library.flags),
        "seconds": round(library.seconds, 3),
        "cached": library.cached,
        "bytes": library.path.stat().st_size,
        "log": library.log[-20_000:],
    }


def run_library(task: Task, request: RunRequest) -> dict[str, Any]:
    """Runs the schedule's library, which is kept where it was built before, as the request says; the result of a run
    job. Results are written to the job's folder."""
    library = compile_library(task)
    pipeline = documents.load(json.loads(task.pipeline), task.limits)
    platform = platforms.parse(json.loads(task.platform))
    params = dict(request.params)
    regions: dict[str, Region] = dict(request.regions or {})
    if request.estimates:
        regions = estimates.output_regions(pipeline) | regions
    check_memory(task, pipeline, request, regions)
    limits = replace(RUN_LIMITS, wall_s=task.run_timeout_s, memory_bytes=task.run_memory_bytes)
    threads = request.threads or min(platform.threads, cpus())
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as folder:
        if request.estimates:
            inputs = estimates.images(pipeline, params)
        else:
            inputs = _read(task, pipeline, request, Path(folder).resolve())
        begun = Beginning.now()
        result = run(library, pipeline, inputs, params, regions or None, threads, request.repeat, limits)
        measurement = begun.conditions(library, inputs, result.regions)
    return _timings(result) | {
        "library": library.key,
        "measurement": measurement,
        "outputs": _keep(task, pipeline, result) if request.outputs else [],
    }


def check_memory(task: Task, pipeline: Pipeline, request: RunRequest, regions: Mapping[str, Region]) -> None:
    """ApiError `out_of_memory` where the images alone would pass the limit: found before they are made."""
    needed = 0
    if request.estimates:
        sizes = estimates.input_regions(pipeline, request.params)
        needed += sum(prod(e for _, e in sizes[i.name]) * i.type.bytes for i in pipeline.inputs)
    for name, region in regions.items():
        if name in pipeline.outputs:
            needed += prod(e for _, e in region) * sum(t.bytes for t in pipeline.stage(name).types)
    if needed > task.run_memory_bytes:
        limit = f"{task.run_memory_bytes / 2**20:,.0f} MiB"
        raise ApiError("out_of_memory", f"the images need {needed / 2**20:,.0f} MiB; a run may have {limit}")


def _read(task: Task, pipeline: Pipeline, request: RunRequest, folder: Path) -> dict[str, Image]:
    """The uploaded images as the pipeline wants them, decoded apart to files in `folder`, of which the arrays are
    views; ApiError `bad_image`. Small pictures of them are kept where the request says so."""
    files = JobFiles(task.data_dir)
    found: dict[str, Image] = {}
    left = task.run_memory_bytes
    for number, wanted in enumerate(pipeline.inputs):
        path = files.upload(task.job_id, number)
        if wanted.table is not None and not path.exists():
            continue
        try:
            channels = estimates.channels(pipeline, wanted, request.params)
            own = folder / str(number)
            own.mkdir()
            array = decoded(
                path,
                wanted,
                own,
                channels=channels,
                convert=request.convert,
                most_bytes=min(task.image_bytes, left),
                wall_s=task.run_timeout_s,
                preview=files.preview(task.job_id, number) if request.keep_inputs else None,
            )
            left -= array.nbytes
        except images.ImageError as error:
            message = str(error).replace(str(path), f"the file of input {wanted.name}")
            hint = CONVERT if error.hint == images.CONVERT else error.hint
            raise ApiError("bad_image", message if hint is None else f"{message}; {hint}") from None
        mins = request.mins.get(wanted.name, (0,) * len(wanted.dims))
        if len(mins) != len(wanted.dims):
            raise ArgumentError(f"mins of input {wanted.name}: {len(mins)} given for {len(wanted.dims)} dims")
        found[wanted.name] = Image(array, mins)
    return found


def _keep(task: Task, pipeline: Pipeline, result: RunResult) -> list[dict[str, Any]]:
    """Writes every output; what there is, with links."""
    files = JobFiles(task.data_dir)
    files.make(task.job_id)
    kept = []
    for number, name in enumerate(pipeline.outputs):
        for component, array in enumerate(result.outputs[name]):
            with files.output(task.job_id, number, component).open("wb") as file:
                np.save(file, array, allow_pickle=False)
            base = f"/v1/jobs/{task.job_id}/outputs/{name}" + (f"/{component}" if component else "")
            kept.append(
                {
                    "name": name,
                    "component": component,
                    "type": str(array.dtype),
                    "dims": list(pipeline.stage(name).dims),
                    "region": [list(r) for r in result.regions[name]],
                    "links": {"npy": f"{base}.npy", "png": f"{base}.png"},
                }
            )
    return kept


def _timings(result: RunResult) -> dict[str, Any]:
    times = [round(ms, 6) for ms in result.times_ms]
    return {
        "threads": result.threads,
        "times_ms": times,
        "minimum_ms": min(times),
        "median_ms": statistics.median(times),
        "peak_rss_bytes": result.peak_rss_bytes,
    }


def describe_machine() -> dict[str, Any]:
    """Description of the machine that the run was made on."""
    machine = host()
    frequency = psutil.cpu_freq()
    return {
        "description": machine.description,
        "triple": machine.triple,
        "threads": machine.threads,
        "clock_mhz": round(frequency.current, 1) if frequency else None,
        "memory_bytes": psutil.virtual_memory().total,
    }


def _sizes(image: Image) -> list[list[int]]:
    return [[low, extent] for low, extent in zip(image.min, image.extent, strict=True)]
