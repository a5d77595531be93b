"""Everything that the project measures itself by, in one run: `make bench`, or

    python -m benchmarks [--json FILE] [--rounds 15] [--pipelines NAME ...] [--quick]

Tables on standard output, all samples as JSON in build/benchmarks/figures.json. Exit status 1 where a
figure is missed, a Halide scheduler is as fast as we are on one of the four pipelines that count, or Mullapudi2016 or
our own code with every stage at root is on any.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import cold_start, compare, compile_time, halide_peers, memory, report, search_time, service_latency
from benchmarks.contest import BUILD
from benchmarks.figures import as_data, table

HELD_TO = ("blur", "unsharp", "harris", "interpolate")
HELD_AGAINST = (compare.AT_ROOT, "Mullapudi2016")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="All benchmarks in one run.")
    parser.add_argument("--json", type=Path, default=BUILD / "figures.json", metavar="FILE")
    parser.add_argument("--pipelines", nargs="+", default=list(compare.PIPELINES), metavar="NAME|FILE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds: no NumPy, 5 rounds")
    arguments = parser.parse_args()
    rounds = 5 if arguments.quick else arguments.rounds
    peers = [p for p in compare.PEERS if not (arguments.quick and p == "numpy")]

    figures = []
    for part in (search_time, compile_time, cold_start, service_latency, memory):
        report.progress(part.__name__.rpartition(".")[2])
        figures += part.measure()
    print(table(figures), end="\n\n", flush=True)
    contests = compare.run(arguments.pipelines, peers, threads=arguments.threads, rounds=rounds)
    compare.show(contests)
    report.write(arguments.json, contests | {"figures": as_data(figures)})
    report.progress(f"all samples: {arguments.json}")

    missed = [f"{f.name}: {f.value:.3g} {f.unit}, limit {f.limit:g}" for f in figures if f.limit and not f.held]
    held_to = [c for c in contests["contests"] if c["pipeline"] in HELD_TO]
    missed += compare.losses(held_to, halide_peers.METHODS)
    missed += compare.losses(contests["contests"], HELD_AGAINST)
    for line in dict.fromkeys(missed):
        report.progress(f"missed: {line}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
