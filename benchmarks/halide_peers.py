"""Peers: a pipeline scheduled by one of Halide's autoschedulers, compiled to a shared object.

    python -m benchmarks.halide_peers PIPELINE --method Adams2019 --threads 2

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
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.documents import pipeline_of
from benchmarks.problem import Problem, at_estimates
from scheduler.lang.pipeline import Pipeline

if TYPE_CHECKING:
    import halide as hl

    from benchmarks.to_halide import HalidePipeline

CACHE = Path(__file__).resolve().parent.parent / "build" / "benchmarks" / "halide"

# What each scheduler is told of the machine; `balance` and whatever else it has stay at its defaults.
LAST_LEVEL_CACHE_BYTES = 32 * 1024 * 1024
METHODS: dict[str, dict[str, str]] = {
    "Mullapudi2016": {"last_level_cache_size": str(LAST_LEVEL_CACHE_BYTES)},
    "Adams2019": {},
    "Li2018": {},
}
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


def build(pipeline: str, method: str, threads: int, timeout_s: float = 1200, nice: int = 0) -> Peer:
    """The peer from the cache, or made now in a child process. Raises PeerError."""
    command = [sys.executable, "-m", "benchmarks.halide_peers", pipeline, "--method", method, "--threads", str(threads)]
    if nice:
        command = ["nice", "-n", str(nice), *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as e:
        raise PeerError(f"none in {timeout_s:.0f} s") from e
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise PeerError(f"exit status {done.returncode}: {' / '.join(lines[-3:])[-400:]}")
    return Peer(**json.loads(done.stdout.splitlines()[-1]))


def build_here(pipeline: Pipeline, method: str, threads: int, cache: Path = CACHE) -> Peer:
    """The same, in this process. A plugin that fails ends the process."""
    import halide as hl

    from benchmarks import machado
    from benchmarks.experts import EXPERTS
    from benchmarks.to_halide import to_halide

    problem = at_estimates(pipeline)
    translated = to_halide(pipeline)
    set_estimates(translated, problem)
    target = hl.get_host_target()
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
    if record.exists():
        return Peer(**json.loads(record.read_text()))
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
            library=str(directory / "peer.so"),
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
    return translated.pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(method, parameters)).schedule_source


def set_estimates(translated: HalidePipeline, problem: Problem) -> None:
    """Tells Halide the sizes of inputs and outputs and the values of params that the schedule is for."""
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
    arguments = parser.parse_args()
    peer = build_here(pipeline_of(arguments.pipeline), arguments.method, arguments.threads)
    print(json.dumps(dataclasses.asdict(peer)))


if __name__ == "__main__":
    main()
