"""Schedules of one pipeline side by side: that of the search, that by `taco2019`, and every stage at root; what the
benchmarks share that hold these against something else."""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, report
from benchmarks.contender import TilesmithBuffer, tilesmith_buffer
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

THREADS = (1, 2)
PATIENCE_S = 600.0

Clock = Callable[[], float]
Finding = dict[str, Any]


class Contender:
    """A schedule of a pipeline, compiled, with its arguments: those of `other`, where one is given, since a call takes
    more or less time by where its images lie in memory."""

    def __init__(self, of: Pipeline, platform: CpuPlatform, options: Options, other: Contender | None = None) -> None:
        made = compile_pipeline(of, platform, options)
        self.predicted_ms = float(made.predicted.total) / 1e3 if made.predicted.unit == "microseconds" else None
        self.folder = tempfile.TemporaryDirectory()
        library = build(made.source, platform, Path(self.folder.name), PATIENCE_S)
        self.function: Callable[..., int] = getattr(ctypes.CDLL(str(library.path)), f"tilesmith_{of.name}")
        self.arrays: list[np.ndarray] = []
        self.arguments: list[TilesmithBuffer] = []
        self.bytes = 0
        if other is not None:
            self.arrays, self.arguments, self.bytes = other.arrays, other.arguments, other.bytes
            return
        types = [(i.name, i.type.name) for i in of.inputs] + [(s.name, s.types[0].name) for s in of.stages]
        for name, type_ in types:
            region = of.estimate(name)
            assert region is not None
            extents = [n for _, n in region]
            array = (np.random.default_rng(1).random(int(np.prod(extents))) * 200).astype(type_)
            strides = np.cumprod([1, *extents[:-1]]).tolist()
            self.arrays.append(array)
            self.arguments.append(tilesmith_buffer(array, region, strides))
            self.bytes += array.nbytes

    def __call__(self) -> None:
        status = self.function(*map(ctypes.byref, self.arguments))
        assert status == 0


def platform_of(threads: int) -> CpuPlatform:
    """This machine with so many threads, of which the calls that follow have as many."""
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(threads)
    return host().model_copy(update={"threads": threads})


def contenders(of: Pipeline, platform: CpuPlatform) -> dict[str, Contender]:
    """The schedules of a pipeline, by name, of the same images."""
    first = Contender(of, platform, Options())
    ways = {"taco2019": Options(method="taco2019"), "root": Options(schedule=root_schedule(of, platform))}
    return {"default": first} | {name: Contender(of, platform, options, first) for name, options in ways.items()}


def in_turns(runs: Mapping[str, Callable[[], object]], threads: int, repeats: int, once: Sequence[str] = ()) -> Finding:
    """The least time of each of several runs, in milliseconds, and that of `default` over those of the other schedules.
    They take turns, every other one backwards, so that none always follows what empties the caches; those of `once`
    have the first only. What runs beside takes none of the time of a single thread."""
    clock: Clock = time.thread_time if threads == 1 else time.perf_counter
    best = dict.fromkeys(runs, np.inf)
    for turn in range(repeats + 1):
        for name in list(runs)[:: -1 if turn % 2 else 1]:
            if turn and name in once:
                continue
            begin = clock()
            runs[name]()
            best[name] = min(best[name], clock() - begin)
    return {
        "threads": threads,
        "milliseconds": {name: seconds * 1e3 for name, seconds in best.items()},
        **{f"over_{name}": best["default"] / best[name] for name in ("taco2019", "root")},
    }


def main(
    description: str,
    repeats: int,
    cases: Iterable[tuple[str, Callable[[int, int], Finding]]],
    columns: Mapping[str, Callable[[Finding], str]],
    told: Mapping[str, Any],
) -> None:
    """The command of a benchmark. A case has its name, and what it finds for a number of threads and of repeats; a
    column of the table its head, and the text of a finding. What is `told` stands before them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=repeats, metavar="N")
    parser.add_argument("--only", metavar="NAME", help="those whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    for name, value in told.items():
        print(f"{name}: {value}")
    found = []
    for name, measure in cases:
        if arguments.only is None or arguments.only in name:
            report.progress(name)
            found += [{"pipeline": name, **measure(threads, arguments.repeats)} for threads in THREADS]
    every = {"pipeline": lambda f: f["pipeline"], "threads": lambda f: str(f["threads"]), **columns}
    print(report.table(list(every), [[text(f) for text in every.values()] for f in found]))
    report.write(arguments.json, {"machine": machine.describe(), **told, "found": found})
