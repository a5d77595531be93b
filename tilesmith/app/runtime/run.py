"""A compiled pipeline on images: in a child process with limits, through files in a private folder.

The child (`runner.c`) has the inputs, the outputs and what the pipeline allocates, and nothing twice.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tilesmith.app.runtime import devices
from tilesmith.app.runtime.build import BuiltLibrary
from tilesmith.app.runtime.confinement import Confinement
from tilesmith.app.runtime.errors import LOST, RunError
from tilesmith.app.runtime.regions import largest_regions
from tilesmith.app.runtime.sandbox import Exceeded, Finished, Limits, execute
from tilesmith.app.runtime.shortage import no_memory
from tilesmith.scheduler.ir.pipeline.arguments import (
    ArgumentError,
    Image,
    Region,
    RegionError,
    Scalar,
    checked_images,
    checked_params,
    checked_regions,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.rewrites.fuse_outputs import apart

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

RUN_LIMITS = Limits(
    wall_s=120.0,
    cpu_s=3600,
    memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    file_bytes=1 << 40,
    output_bytes=32 << 20,
)
MAX_THREADS, MAX_REPEAT = 4096, 1_000_000
_DEVICE_FAILURES = {
    4: "there is no such OpenCL device here, or it fails: its driver is needed, such as that of pip install "
    "'tilesmith[opencl]', and the platform's `device` is the name that tilesmith platforms detect --opencl tells",
    5: "the OpenCL device's compiler refuses the kernels",
}
_INT32 = range(-(1 << 31), 1 << 31)
_STACK_BYTES = 8 << 20  # of each thread: written to only in part, but counted whole against the limit
_BLOCK_BYTES = 1 << 20
_OWN_BYTES = 64 << 20  # of the runner, its libraries and an emulator


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run. `outputs` has one array per tuple component, axes the reverse of the stage's dims, over
    `regions` ((min, extent) per dim). `times_ms` are of the pipeline alone, one a repeat, after one call unmeasured.
    `peak_rss_bytes` is of the whole program, `start_rss_bytes` what it had with its libraries before any image."""

    outputs: dict[str, tuple[Array, ...]]
    regions: dict[str, Region]
    times_ms: tuple[float, ...]
    threads: int
    peak_rss_bytes: int
    start_rss_bytes: int


def run(
    library: BuiltLibrary,
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, Scalar],
    regions: Mapping[str, Region] | None = None,
    threads: int = 1,
    repeat: int = 1,
    limits: Limits = RUN_LIMITS,
) -> RunResult:
    """Call the compiled `pipeline` once, then `repeat` times with a clock.

    Outputs without a region get the largest that the inputs allow. Raises ArgumentError or RegionError where the
    arguments do not fit the pipeline, RunError `run_failure`, `run_timeout`, `out_of_memory` or `store_full`.
    """
    with loaded(pipeline, inputs, params, regions) as prepared:
        return prepared.call(library, threads, repeat, limits)


@contextmanager
def loaded(
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, Scalar],
    regions: Mapping[str, Region] | None = None,
) -> Iterator[Loaded]:
    """The arguments of a run, checked and written once, for any number of calls of libraries of the pipeline. Raises as
    `run` does."""
    given = checked_regions(pipeline, regions or {})
    images = checked_images(pipeline, inputs)
    values = checked_params(pipeline, params)
    if set(given) != set(pipeline.outputs):
        given = {**largest_regions(pipeline, images, params), **given}
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as name, _storage_errors():
        job = _Job(pipeline, images, values, given, Path(name).resolve())
        yield Loaded(job, tuple(job.load()))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Arguments that are ready to be passed; made by `loaded`."""

    job: _Job
    lines: tuple[str, ...]

    def call(
        self, library: BuiltLibrary, threads: int = 1, repeat: int = 1, limits: Limits = RUN_LIMITS, keep: bool = True
    ) -> RunResult:
        """Call the library as `run` does; without `keep` the outputs are left in the child, and there are none."""
        _check_counts(threads, repeat)
        job = self.job
        store = job.store() if keep else ()
        with _storage_errors():
            answer = job.call(library, (*self.lines, f"run {repeat}", *store), threads, limits)
            if answer["code"] != 0:
                raise _refusal(answer, job, library)
            outputs = job.outputs() if keep else {}
        times = tuple(ns / 1e6 for ns in answer["times_ns"])
        return RunResult(outputs, job.regions, times, threads, answer["peak_rss_bytes"], answer["start_rss_bytes"])


@dataclass(frozen=True, slots=True)
class _Job:
    """The arguments of one call, as lines for the runner. Argument numbers: inputs, params, output components."""

    pipeline: Pipeline
    images: dict[str, Image]
    params: dict[str, Array]
    regions: dict[str, Region]
    folder: Path

    def call(self, library: BuiltLibrary, commands: Iterable[str], threads: int, limits: Limits) -> dict[str, Any]:
        """The runner's answer to `commands`, after every argument is declared; RunError where it has none."""
        done = execute(
            (*_emulator(library.run_prefix), str(library.runner), str(library.path), f"{library.entry}_argv"),
            cwd=self.folder,
            limits=self.with_overhead(library, limits, threads),
            environment=environment(threads) | self.of_devices(library, threads),
            stdin="\n".join((*self.declare(), *commands, "")).encode(),
            confinement=self.confinement(library),
        )
        return _answer(done)

    def of_devices(self, library: BuiltLibrary, threads: int) -> dict[str, str]:
        """The environment that code that starts kernels finds its device by; nothing for other code."""
        return devices.environment(self.folder, threads) if library.starts_kernels else {}

    def confinement(self, library: BuiltLibrary) -> Confinement:
        """The files that the code may see."""
        own = Confinement(writable=(self.folder,), readable=(library.path.parent, library.runner.parent))
        if not library.starts_kernels:
            return own
        return replace(own, readable=(*own.readable, *devices.readable()), devices=devices.devices(), processes=True)

    def with_overhead(self, library: BuiltLibrary, limits: Limits, threads: int) -> Limits:
        """The limits with room for what is not the pipeline's: stacks, libraries. Files are outputs, no larger, and
        what a driver compiles."""
        spare = devices.KERNEL_BYTES if library.starts_kernels else 1 << 20
        sizes = [prod(n for _, n in self.regions[name]) * type_.bytes for _, name, type_ in self.components()]
        files_bytes = sum(sizes) + spare
        return replace(
            limits,
            memory_bytes=limits.memory_bytes + threads * _STACK_BYTES + _OWN_BYTES,
            file_bytes=min(limits.file_bytes, max(sizes, default=0) + spare),
            files_bytes=files_bytes,
            processes=limits.processes + threads,
        )

    def declare(self) -> list[str]:
        """Every argument's kind and shape."""
        lines = []
        for index, i in enumerate(self.pipeline.inputs):
            lines.append(_buffer(index, i.type, self.input_region(i.name), i.dims, i.storage))
        for p in self.pipeline.params:
            index = len(self.pipeline.inputs) + self.pipeline.params.index(p)
            lines.append(f"scalar {index} {self.params[p.name].astype(p.type.numpy).tobytes().hex()}")
        for index, name, type_ in self.components():
            stage = self.pipeline.stage(name)
            lines.append(_buffer(index, type_, self.regions[name], stage.dims, stage.storage))
        return [f"arguments {len(lines)}", *lines]

    def input_region(self, name: str) -> Region:
        """(min, extent) per dim of an input."""
        image = self.images[name]
        return tuple(zip(image.min, image.extent, strict=True))

    def components(self) -> list[tuple[int, str, ScalarType]]:
        """(argument number, output, type) of every component of every output."""
        first = len(self.pipeline.inputs) + len(self.pipeline.params)
        flat = [(name, type_) for name in self.pipeline.outputs for type_ in self.pipeline.stage(name).types]
        return [(first + index, name, type_) for index, (name, type_) in enumerate(flat)]

    def load(self) -> list[str]:
        """Write the inputs to files in their storage orders, and the lines that read them."""
        lines = []
        for index, i in enumerate(self.pipeline.inputs):
            _write(self.folder / f"{index}.raw", _stored(self.images[i.name].array, i.dims, i.storage))
            lines.append(f"load {index} {index}.raw")
        return lines + [f"allocate {index}" for index, _, _ in self.components()]

    def store(self) -> list[str]:
        """The lines that write the outputs to files."""
        return [f"store {index} {index}.raw" for index, _, _ in self.components()]

    def outputs(self) -> dict[str, tuple[Array, ...]]:
        """The outputs, mapped from their files, which are unlinked: never copied."""
        found: dict[str, list[Array]] = {}
        for index, name, type_ in self.components():
            stage, region = self.pipeline.stage(name), self.regions[name]
            extent = dict(zip(stage.dims, (n for _, n in region), strict=True))
            shape = tuple(extent[d] for d in reversed(stage.storage))
            path = self.folder / f"{index}.raw"
            flat = np.memmap(path, dtype=type_.numpy, mode="c")
            path.unlink()
            axes = tuple(stage.storage[::-1].index(d) for d in reversed(stage.dims))
            found.setdefault(name, []).append(np.asarray(flat).reshape(shape).transpose(axes))
        return {name: tuple(arrays) for name, arrays in found.items()}


def _buffer(index: int, type_: ScalarType, region: Region, dims: tuple[str, ...], storage: tuple[str, ...]) -> str:
    """The line that declares a buffer, dense in its storage order."""
    for dim, (low, extent) in zip(dims, region, strict=True):
        if low not in _INT32 or low + extent - 1 not in _INT32:
            raise ArgumentError(f"dim {dim}: {low} and {extent} points are beyond 32-bit coordinates")
    extents = dict(zip(dims, (extent for _, extent in region), strict=True))
    strides, stride = {}, 1
    for dim in storage:
        strides[dim] = stride
        stride *= extents[dim]
    numbers = (*(low for low, _ in region), *(extent for _, extent in region), *(strides[d] for d in dims))
    return " ".join(map(str, ("buffer", index, len(dims), type_.bytes, *numbers)))


def _stored(array: Array, dims: tuple[str, ...], storage: tuple[str, ...]) -> Array:
    """A view of `array` (axes the reverse of `dims`) with its axes the reverse of `storage`."""
    return array.transpose(tuple(dims[::-1].index(d) for d in reversed(storage)))


def _write(path: Path, array: Array) -> None:
    """The bytes of `array` in C order; a slice at a time where that takes a copy. What is mapped from a file is read
    from there: pages that are mapped count as memory of this process."""
    mapped = _file_of(array)
    if mapped is not None:
        source, offset = mapped
        with source.open("rb") as there, path.open("wb") as file:
            there.seek(offset)
            left = array.nbytes
            while left and (block := there.read(min(left, _BLOCK_BYTES))):
                left -= file.write(block)
        return
    parts = [array] if array.flags.c_contiguous or array.ndim < 2 else array
    with path.open("wb") as file:
        for part in parts:
            # ndarray.tofile would lose the reason of a failure
            file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)


def _file_of(array: Array) -> tuple[Path, int] | None:
    """The file that a contiguous array is mapped from, and where it begins there; None for any other array."""
    if not array.flags.c_contiguous:
        return None
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not isinstance(owner, np.memmap) or owner.mode != "r" or owner.filename is None:
        return None
    return Path(owner.filename), owner.offset + array.ctypes.data - owner.ctypes.data


def _check_counts(threads: int, repeat: int) -> None:
    if not 1 <= threads <= MAX_THREADS:
        raise ArgumentError(f"threads must be 1 to {MAX_THREADS}, not {threads}")
    if not 1 <= repeat <= MAX_REPEAT:
        raise ArgumentError(f"repeat must be 1 to {MAX_REPEAT}, not {repeat}")


def _emulator(prefix: tuple[str, ...]) -> tuple[str, ...]:
    """The run prefix with the path of its program; RunError where it is not installed."""
    if not prefix:
        return ()
    program = shutil.which(prefix[0])
    if program is None:
        raise RunError("run_failure", f"{prefix[0]}, which runs code for this platform, is not installed here")
    return (program, *prefix[1:])


def cpus() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(threads: int) -> dict[str, str]:
    """The environment of compiled code."""
    # Threads that wait spin for tens of microseconds, then sleep: GCC's default, milliseconds, takes the CPU from
    # the thread that is waited for wherever something else runs as well.
    spin = {"GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1"}
    return {"OMP_NUM_THREADS": str(threads), "OMP_DYNAMIC": "false", "MALLOC_ARENA_MAX": "4", "LC_ALL": "C", **spin}


def _answer(done: Finished) -> dict[str, Any]:
    """The runner's last word; RunError where the program did not come to its end."""
    said = done.stderr.decode("utf-8", "replace")
    if done.timed_out or done.signal == signal.SIGXCPU:
        raise RunError("run_timeout", f"the compiled code was stopped after {done.seconds:.1f} s", said)
    if done.exceeded is not None:
        raise _EXCEEDED[done.exceeded](said)
    if done.signal is not None:
        raise _death(done.signal, said)
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        answer = {}
    match answer:
        case {"error": "memory", "detail": detail}:
            raise RunError("out_of_memory", str(detail), said)
        case {"error": "file", "detail": detail}:
            raise RunError("store_full", str(detail), said)
        case {"error": "library" | "protocol", "detail": detail}:
            raise RunError("run_failure", f"the compiled code cannot be called: {detail}", said)
        case {"code": int()} if done.returncode == 0:
            return dict(answer) | {"said": said}
    if "libgomp: Out of memory" in said:
        raise RunError("out_of_memory", "there is not enough memory for the threads", said)
    raise RunError("run_failure", f"the compiled code ended with status {done.returncode}", said)


_EXCEEDED: dict[Exceeded, Callable[[str], RunError]] = {
    "memory": lambda said: RunError("out_of_memory", "the compiled code used more memory than a run may", said),
    "processes": lambda said: RunError("run_failure", "the compiled code started too many processes", said),
    "files": lambda said: RunError("run_failure", "the compiled code wrote more than its outputs", said),
}


def _death(number: int, said: str) -> RunError:
    """The error for a signal that killed the program."""
    if number == signal.SIGKILL:
        return RunError(LOST, "the compiled code was killed from outside, not for want of memory", said)
    if number == signal.SIGILL:
        return RunError(
            "run_failure", "this machine lacks instructions that the platform's compiler flags ask for", said
        )
    names = {s.value: s.name for s in signal.Signals}
    return RunError("run_failure", f"the compiled code crashed: {names.get(number, f'signal {number}')}", said)


def _refusal(answer: dict[str, Any], job: _Job, library: BuiltLibrary) -> RunError | RegionError | ArgumentError:
    """The error for a code of the generated C other than 0."""
    if answer["code"] == 2:  # sizes and params have been checked before
        names = apart(job.pipeline, job.regions)
        if names:
            return ArgumentError(
                f"the schedule may compute {' and '.join(names)} together: they are to be asked for on one region, or "
                "to have different estimates in the document"
            )
        return ArgumentError("the regions of the outputs need places that lie beyond 32-bit coordinates")
    if answer["code"] == 3:
        images = {i.name: job.input_region(i.name) for i in job.pipeline.inputs}
        params = {name: value.item() for name, value in job.params.items()}
        return no_memory(job.pipeline, library.buffers, job.regions, params, images)
    if answer["code"] in _DEVICE_FAILURES:
        return RunError("run_failure", _DEVICE_FAILURES[answer["code"]], answer["said"])
    if answer["code"] != 1:
        return RunError("run_failure", f"the compiled code refused its arguments with code {answer['code']}")
    needed = _required(answer, job.pipeline)
    for i in job.pipeline.inputs:
        for dim, (low, extent), (has, size) in zip(i.dims, needed[i.name], job.input_region(i.name), strict=True):
            if low < has or low + extent > has + size:
                return RegionError(
                    f"input {i.name}, dim {dim}: {low}..{low + extent - 1} is required, "
                    f"the image has {has}..{has + size - 1}"
                )
    return RunError("run_failure", "the compiled code asked for a region that it was given")


def _required(answer: dict[str, Any], pipeline: Pipeline) -> dict[str, Region]:
    """The regions of the inputs in a runner's answer."""
    buffers = {index: tuple(zip(low, extent, strict=True)) for index, low, extent in answer["buffers"]}
    return {i.name: buffers[index] for index, i in enumerate(pipeline.inputs)}


@contextmanager
def _storage_errors() -> Iterator[None]:
    """No space for the files of a run, as the error of a job."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError("store_full", "there is no space left for the images of a run") from None
        raise
