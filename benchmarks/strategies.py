"""Harris by strategies, the case of CGO 2021: the shipped ones against an expert's schedule in Halide and
OpenCV's cornerHarris, and against each other on Arm, where instructions are counted.

    python -m benchmarks.strategies [--strategies naive cbuf cbuf+rrot default] [--pipelines harris harris@4256x2832]
                                    [--schedules NAME=FILE ...] [--threads 2 1] [--isa avx2 ...] [--rounds 15]
                                    [--emulate cortex-a7 cortex-a53 ...] [--pixels N] [--json FILE]

All contenders of a pipeline and build take turns in one contest, as in `compare`; a schedule of your own takes part by
`--schedules`. With `--emulate` nothing is timed: each strategy is compiled for these machines of the catalog, called in
QEMU's user mode, and compared with the first one's values. Exit status 1 where a figure of the paper is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contest, halide_peers, report
from benchmarks.builds import NATIVE, instruction_sets, isa_of, machine_of
from benchmarks.contest import Entry
from benchmarks.documents import pipeline_of
from benchmarks.emulated import PIXELS, with_fewer_rows
from benchmarks.emulation import PROCESSORS, EmulationError, emulated, without_sve
from benchmarks.problem import at_estimates
from benchmarks.summary import build_name
from tilesmith import platforms
from tilesmith.app.bench.agreement import ContenderError, agreement
from tilesmith.app.profiler.tuning import has_floats
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import Options, compile_pipeline, generate
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import from_document
from tilesmith.scheduler.strategies import catalog

PIPELINES = ("harris", "harris@4256x2832")
STRATEGIES = ("naive", "cbuf", "cbuf+rrot", "default")
OPENCV = "opencv"
Make = Callable[[Pipeline, CpuPlatform], CSource]


@dataclass(frozen=True)
class Bound:
    """A figure to reach: the time (or count) of `less` over that of `more` is below `most`."""

    less: str
    more: str
    most: float
    source: str


TIMED = (
    Bound("cbuf+rrot", "cbuf", 1.0, "the paper: 1 / 1.4 to 1 / 1.1"),
    Bound("cbuf+rrot", halide_peers.EXPERT, 1.0, "the paper: 1 / 1.4 to about 1"),
    Bound("cbuf+rrot", OPENCV, 0.1, "the paper: down to 1 / 16"),
    Bound("default", "cbuf+rrot", 1.02, "what decides by itself loses nothing"),
)
COUNTED = (Bound("cbuf+rrot", "cbuf", 1.0, "fewer instructions"),)


def by_strategy(name: str, pipeline: Pipeline, platform: CpuPlatform) -> CSource:
    """The C of the schedule that a shipped strategy makes."""
    return compile_pipeline(pipeline, platform, Options(strategy=catalog.load(name))).source


def by_file(file: str, pipeline: Pipeline, platform: CpuPlatform) -> CSource:
    """The C of a schedule that a person wrote."""
    return generate(pipeline, from_document(json.loads(Path(file).read_text())), platform)


def timed(name: str, makers: Mapping[str, Make], platform: CpuPlatform, rounds: int) -> dict[str, dict[str, Any]]:
    """Times of all contenders at a pipeline's estimates, in milliseconds, or why there are none."""
    problem = replace(at_estimates(pipeline_of(name)), document=name)
    entries = []
    for label, make in makers.items():
        source = make(problem.pipeline, platform)
        library = build(source, platform, contest.BUILD / "ours", timeout_s=300)
        entries.append(Entry(label, "tilesmith", str(library.path), source.entry))
    peer = halide_peers.build(name, halide_peers.EXPERT, platform.threads, isa=isa_of(platform))
    entries += [Entry(halide_peers.EXPERT, "halide", peer.library, peer.symbol), Entry(OPENCV, OPENCV)]
    results = contest.run(problem, entries, platform.threads, rounds)
    return {r.name: {"best": r.best_ms, "rounds": r.figures, "error": r.error} for r in results}


def counted(name: str, makers: Mapping[str, Make], platform: CpuPlatform) -> dict[str, dict[str, Any]]:
    """Instructions of a call of each contender in the emulator, or why there are none."""
    problem = at_estimates(pipeline_of(name))
    found: dict[str, dict[str, Any]] = {}
    first: list[np.ndarray] = []
    for label, make in makers.items():
        source = make(problem.pipeline, platform)
        library = build(source, platform, contest.BUILD / "ours", timeout_s=300)
        try:
            counts, outputs = emulated(library.path, library.runner, source.entry, problem, platform)
            first = first or outputs
            agreement(first, outputs, cut=[has_floats(problem.pipeline)] * len(outputs))
        except (EmulationError, ContenderError) as e:
            found[label] = {"best": None, "rounds": [], "error": str(e)}
        else:
            found[label] = {"best": counts.instructions, "rounds": [counts.instructions], "error": None}
    return found


def ratio(found: Mapping[str, Mapping[str, Any]], less: str, more: str) -> float | None:
    """The median over the rounds of one figure over another's; None where either is missing."""
    rounds = [found.get(name, {}).get("rounds", []) for name in (less, more)]
    pairs = [a / b for a, b in zip(*rounds, strict=False) if a is not None and b is not None]
    return statistics.median(pairs) if pairs else None


def show(what: str, unit: str, found: Mapping[str, Mapping[str, Any]], bounds: Sequence[Bound]) -> list[str]:
    """Prints a table; what is missed of the bounds, and who failed."""
    heads = ["contender", unit, *(f"over {name}" for name in found)]
    rows = [
        [name, report.number(figures["best"]), *(report.number(ratio(found, name, other)) for other in found)]
        for name, figures in found.items()
    ]
    print(f"{what}\n\n{report.table(heads, rows)}\n", flush=True)
    missed = [f"{what}: {name} fails: {f['error']}" for name, f in found.items() if f["error"]]
    for b in bounds:
        reached = ratio(found, b.less, b.more)
        if reached is not None and reached >= b.most:
            missed.append(f"{what}: {b.less} over {b.more} is {reached:.3f}, not below {b.most} ({b.source})")
    return missed


def main() -> None:
    arms = [n for n in platforms.catalog_names() if platforms.get(n).triple.partition("-")[0] in PROCESSORS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strategies", description="Harris by strategies.")
    parser.add_argument("--pipelines", nargs="+", default=PIPELINES, metavar="NAME[@WxH]")
    parser.add_argument("--strategies", nargs="*", default=STRATEGIES, choices=catalog.names(), metavar="NAME")
    parser.add_argument("--schedules", nargs="*", default=[], metavar="NAME=FILE", help="schedules of your own")
    parser.add_argument("--isa", nargs="+", default=[NATIVE], choices=instruction_sets())
    parser.add_argument("--threads", nargs="+", type=int, default=list(dict.fromkeys((host().threads, 1))))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--emulate", nargs="*", default=[], choices=arms, metavar="MACHINE")
    parser.add_argument("--pixels", type=int, default=PIXELS, help="of an emulated image, about, by leaving out rows")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    makers: dict[str, Make] = {name: partial(by_strategy, name) for name in asked.strategies}
    makers |= {name: partial(by_file, file) for name, _, file in (s.partition("=") for s in asked.schedules)}
    figures, missed = {}, []
    for machine in asked.emulate:
        for name in dict.fromkeys(with_fewer_rows(name, asked.pixels) for name in asked.pipelines):
            what = f"{name} on {machine}"
            figures[what] = counted(name, makers, without_sve(CpuPlatform.of(platforms.get(machine))))
            missed += show(what, "instructions", figures[what], COUNTED)
    for isa in asked.isa if not asked.emulate else []:
        for threads in asked.threads:
            platform = machine_of(isa, host().compiler.command, threads)
            for name in asked.pipelines:
                what = f"{name}, {build_name({'isa': isa, 'compiler': platform.compiler.command, 'threads': threads})}"
                figures[what] = timed(name, makers, platform, asked.rounds)
                missed += show(what, "best ms", figures[what], TIMED)
    report.write(asked.json, figures)
    for line in missed:
        print(f"missed: {line}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
