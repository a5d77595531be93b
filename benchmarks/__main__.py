"""Everything that the project measures itself by, in one run: `make bench`, or

    python -m benchmarks [--output FOLDER] [--threads 2 1] [--isa avx2 ...] [--compilers gcc ...] [--rounds 15]
                         [--pipelines NAME ...] [--quick]

Tables on standard output; all samples as `figures.json` and the plots in FOLDER, out/benchmarks where none is given.
Exit status 1 where a figure is missed, a Halide scheduler is as fast as we are on one of the four pipelines that count,
or Mullapudi2016 or our own code with every stage at root is on any, or the method of the paper is faster than ours.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import (
    cold_start,
    compare,
    compile_time,
    halide_peers,
    machine,
    memory,
    pages,
    plots,
    report,
    search_time,
    service_load,
)
from benchmarks.figures import Figure, as_data, table
from benchmarks.summary import AT_ROOT, PAPER, build_name

HELD_TO = ("blur", "unsharp", "harris", "interpolate")
HELD_AGAINST = (AT_ROOT, "Mullapudi2016")
NOISE = 1.03
"""The noise between two runs of the same code: the method of the paper often finds the same schedule."""
PARTS = (search_time, compile_time, cold_start, service_load, pages, memory)
OUTPUT = Path("out/benchmarks")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="All benchmarks in one run.")
    compare.add_arguments(parser)
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FOLDER", help="for figures.json and the plots")
    parser.add_argument("--quick", action="store_true", help="only what takes seconds: no NumPy, 5 rounds")
    parser.add_argument("--only-compare", action="store_true", help="the comparison, none of the other figures")
    arguments = parser.parse_args()
    rounds = 5 if arguments.quick else arguments.rounds
    peers = [p for p in arguments.peers if not (arguments.quick and p == "numpy")]

    figures: list[Figure] = []
    for part in () if arguments.only_compare else PARTS:
        report.progress(part.__name__.rpartition(".")[2])
        figures += part.measure()
    if figures:
        print(table(figures), end="\n\n", flush=True)
    runs = compare.runs(arguments, rounds, peers)
    data = {"machine": machine.describe(), "figures": as_data(figures), "runs": runs}
    report.write(arguments.output / "figures.json", data)
    drawn = plots.draw(data, arguments.output)
    report.progress(f"all samples and {len(drawn)} plots: {arguments.output}")

    missed = [f"{f.name}: {f.value:.3g} {f.unit}, limit {f.bounds}" for f in figures if not f.held]
    for run in runs:
        missed += [f"{line} ({build_name(run)})" for line in lost(run["contests"])]
    for line in dict.fromkeys(missed):
        report.progress(f"missed: {line}")
    sys.exit(1 if missed else 0)


def lost(contests: list[dict[str, Any]]) -> list[str]:
    """A line for every contest that had to be won and was not."""
    found = compare.losses([c for c in contests if c["pipeline"] in HELD_TO], halide_peers.METHODS)
    found += compare.losses(contests, HELD_AGAINST)
    return found + compare.losses(contests, (PAPER,), NOISE)


if __name__ == "__main__":
    main()
