"""Peers: a pipeline scheduled by one of Halide's autoschedulers, compiled to a shared object.

    python -m benchmarks.halide_peers PIPELINE --method Adams2019 --threads 2 [--isa avx2]

prints where the object is, as JSON. Scheduling and compiling happen in the process that runs this,
which may abort: a plugin that dislikes a pipeline ends its process. `build` starts it as a child.
Objects are kept by content under build/benchmarks, for Adams2019 may think for minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.builds import NATIVE, isa_of
from benchmarks.documents import pipeline_of
from benchmarks.problem import Problem, at_estimates
from tilesmith.platforms.cpu.detect import host
from tilesmith.platforms.cpu.isa import ISAS
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    import halide as hl

    from tilesmith.app.bench.to_halide import HalidePipeline

CACHE = Path(__file__).resolve().parent.parent / "build" / "benchmarks" / "halide"

# What each scheduler is told of the machine; `balance` and whatever else it has stay at its defaults.
LAST_LEVEL_CACHE_BYTES = 32 * 1024 * 1024
METHODS: dict[str, dict[str, str]] = {
    "Mullapudi2016": {"last_level_cache_size": str(LAST_LEVEL_CACHE_BYTES)},
    "Adams2019": {},
    "Li2018": {},
}
TARGETS = {
    "avx512": "x86-64-linux-sse41-avx-avx2-fma-f16c-avx512-avx512_skylake",
    "avx2": "x86-64-linux-sse41-avx-avx2-fma-f16c",
    "sse4.2": "x86-64-linux-sse41",
}
"""Halide's names for the instruction sets. It knows nothing between SSE4.1 and AVX."""
EXPERT = "expert"
"""Not a scheduler: the schedule that an expert wrote, where `experts` has one."""
MACHADO = ("machado_1", "machado_2", "machado_3", "machado_4")
"""The four schedules that Machado (2019) has for each of his two pipelines, in his order."""
HAND_WRITTEN = dict.fromkeys(MACHADO, ("machado_blur", "machado_interpolation")) | {
    EXPERT: (
        "bilateral_grid", "blur", "camera_pipe", "harris", "interpolate", "lens_blur", "local_laplacian", "max_filter",
        "nl_means", "pyramid_blend", "unsharp",
    ),
}  # fmt: skip
"""The peers that nobody but a person scheduled, and the pipelines that they are for."""
SYMBOL = "peer"
FAILED = ".failed"
PLACE = "place: "
KNOWN_FAILURE = 7
START_S = 600.0
POLL_S = 0.02
MEMORY_SHARE = 0.5
"""Share of the machine's memory that a scheduler may use. Some take all there is."""


@dataclass(frozen=True)
class Peer:
    """A compiled peer. Times in milliseconds; `source` is the schedule as Halide prints it."""

    pipeline: str
    method: str
    threads: int
    target: str
    library: str
    symbol: str
    schedule_ms: float
    compile_ms: float
    source: str


class PeerError(Exception):
    """The peer could not be built; the message has the end of what it printed."""


def build(pipeline: str, method: str, threads: int, timeout_s: float = 1200, nice: int = 0, isa: str = NATIVE) -> Peer:
    """The peer for that instruction set from the cache, or made now in a child process. Raises PeerError.

    Who failed is remembered with what it was given: it is not asked again for as much time, or less.
    """
    command = [sys.executable, "-m", "benchmarks.halide_peers", pipeline, "--method", method, "--threads", str(threads)]
    if nice:
        command = ["nice", "-n", str(nice), *command]
    command += ["--isa", isa, "--limit", str(timeout_s)]
    status, said, errors = _made(command, timeout_s)
    if status is None:
        raise _failure(said, f"none in {timeout_s:g} s", timeout_s)
    if status == KNOWN_FAILURE:
        raise PeerError(said.splitlines()[-1])
    if status != 0:
        lines = (errors.strip() or said.strip()).splitlines()
        raise _failure(said, f"exit status {status}: {' / '.join(lines[-3:])[-400:]}", None)
    return Peer(**json.loads(said.splitlines()[-1]))


def _made(command: Sequence[str], timeout_s: float) -> tuple[int | None, str, str]:
    """The exit status of the child (None: it took too long), and what it said. Its time begins when it has said where
    the peer will be: until then it only looks whether there is one."""
    with tempfile.TemporaryDirectory() as made:
        said, errors = Path(made) / "said", Path(made) / "errors"
        with (
            said.open("wb") as out,
            errors.open("wb") as err,
            subprocess.Popen(command, stdout=out, stderr=err) as child,
        ):
            end = time.monotonic() + START_S
            begun = False
            while child.poll() is None:
                if not begun and PLACE in said.read_text(errors="replace"):
                    begun, end = True, time.monotonic() + timeout_s
                if time.monotonic() > end:
                    child.kill()
                    child.wait()
                    return None, said.read_text(errors="replace"), errors.read_text(errors="replace")
                time.sleep(POLL_S)
        return child.returncode, said.read_text(errors="replace"), errors.read_text(errors="replace")


def _failure(said: str, message: str, limit_s: float | None) -> PeerError:
    """The error; remembered beside where the peer would be, which the child has said. `limit_s` None: whatever the
    time, it would fail again."""
    place = next((line.removeprefix(PLACE) for line in said.splitlines() if line.startswith(PLACE)), None)
    if place is not None:
        record = Path(place).with_suffix(FAILED)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"error": message, "limit_s": limit_s}))
    return PeerError(message)


def known_failure(directory: Path, limit_s: float) -> str | None:
    """Why a peer could not be made before, if it is not worth trying again in that time."""
    record = directory.with_suffix(FAILED)
    if not record.exists():
        return None
    found = json.loads(record.read_text())
    return found["error"] if found["limit_s"] is None or limit_s <= found["limit_s"] else None


def target_of(isa: str) -> hl.Target:
    """Halide's target with that instruction set: the host's own where it is NATIVE."""
    import halide as hl

    return hl.get_host_target() if isa == NATIVE else hl.Target(TARGETS[isa])


def build_here(
    pipeline: Pipeline,
    method: str,
    threads: int,
    cache: Path = CACHE,
    limit_s: float = float("inf"),
    isa: str = NATIVE,
) -> Peer:
    """The same, in this process. A plugin that fails ends the process. Raises PeerError where it is known to fail."""
    import halide as hl

    from benchmarks import machado
    from benchmarks.experts import EXPERTS
    from tilesmith.app.bench.to_halide import to_halide

    problem = at_estimates(pipeline)
    translated = to_halide(pipeline)
    set_estimates(translated, problem)
    target = target_of(isa)
    parameters = METHODS.get(method, {}) | {"parallelism": str(threads)}
    if method == EXPERT:
        EXPERTS[pipeline.name](translated, target.natural_vector_size(hl.Float(32)))
    elif method in MACHADO:
        machado.SCHEDULES[pipeline.name][MACHADO.index(method)](translated)
    key = hashlib.sha256(bytes(hl.serialize_pipeline(translated.pipeline)))
    for part in (method, json.dumps(parameters, sort_keys=True), str(target), version("halide")):
        key.update(b"\0" + part.encode())
    directory = cache / f"{pipeline.name}-{method}-{key.hexdigest()[:16]}"
    record = directory / "peer.json"
    library = str(directory / "peer.so")
    if record.exists():
        return Peer(**json.loads(record.read_text()) | {"library": library})  # the cache may have been moved
    if (failure := known_failure(directory, limit_s)) is not None:
        raise PeerError(failure)
    print(f"{PLACE}{directory}", flush=True)
    start = time.perf_counter()
    source = "" if method in HAND_WRITTEN else autoschedule(translated, method, target, parameters)
    scheduled = time.perf_counter()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        work = Path(made) / "peer"
        work.mkdir()
        translated.pipeline.compile_to(
            {hl.OutputFileType.object: str(work / "peer.o")}, translated.arguments, SYMBOL, target
        )
        # -Bsymbolic: each library keeps to its own copy of Halide's runtime, and so to its own thread pool.
        subprocess.run(
            ["gcc", "-shared", "-Wl,-Bsymbolic", "-o", work / "peer.so", work / "peer.o", "-lpthread", "-ldl", "-lm"],
            check=True,
        )
        peer = Peer(
            pipeline=pipeline.name,
            method=method,
            threads=threads,
            target=str(target),
            library=library,
            symbol=SYMBOL,
            schedule_ms=(scheduled - start) * 1e3,
            compile_ms=(time.perf_counter() - scheduled) * 1e3,
            source=source,
        )
        (work / "peer.json").write_text(json.dumps(dataclasses.asdict(peer), indent=1))
        if not directory.exists():
            os.replace(work, directory)
    return peer


def autoschedule(translated: HalidePipeline, method: str, target: hl.Target, parameters: dict[str, str]) -> str:
    """Applies the scheduler of that name; returns the schedule as it prints it."""
    import halide as hl

    hl.load_plugin(str(Path(hl.__file__).parent / "lib64" / f"libautoschedule_{method.lower()}.so"))
    found = translated.pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(method, parameters))
    return str(found.schedule_source)


def set_estimates(translated: HalidePipeline, problem: Problem) -> None:
    """Set the estimates of Halide: the sizes of inputs and outputs and the values of params that the schedule is
    for."""
    import halide as hl

    for name, image in translated.inputs.items():
        for d, (lo, extent) in enumerate(problem.input_regions[name]):
            image.dim(d).set_estimate(lo, extent)
    for name, func in zip(problem.pipeline.outputs, translated.outputs, strict=True):
        func.set_estimates([hl.Range(lo, extent) for lo, extent in problem.output_regions[name]])
    for name, param in translated.params.items():
        param.set_estimate(problem.params[name])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Schedule and compile one pipeline with one of Halide's autoschedulers."
    )
    parser.add_argument("pipeline")
    parser.add_argument("--method", choices=[*METHODS, *HAND_WRITTEN], required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa", choices=[NATIVE, *ISAS], default=isa_of(host()), help="what it is compiled for")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds that it will be given")
    arguments = parser.parse_args()
    most = int(MEMORY_SHARE * psutil.virtual_memory().total)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    pipeline = pipeline_of(arguments.pipeline)
    try:
        peer = build_here(pipeline, arguments.method, arguments.threads, limit_s=arguments.limit, isa=arguments.isa)
    except PeerError as error:
        print(error)
        sys.exit(KNOWN_FAILURE)
    print(json.dumps(dataclasses.asdict(peer)))


if __name__ == "__main__":
    main()
