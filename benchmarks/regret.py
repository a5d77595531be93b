"""Regret of the method `default`: what the schedule that it picks takes beyond the fastest of its eight best.

    python -m benchmarks.regret [--pipelines NAME ...] [--isa avx2] [--threads 1] [--rounds 6] [--json FILE]

Names are those of `benchmarks.documents`; without any it is those of the corpus that are for developing. The candidates
are those that `tilesmith schedule --tune 8` times, called in turns in one process on the same images; the fastest of
them is called in turns with the pick once more, and that counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.builds import NATIVE, machine_of
from benchmarks.contest import BUILD
from benchmarks.corpus import registry
from benchmarks.documents import pipeline_of
from benchmarks.verdicts import verdict
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.compiler import Options, decide, generate

TRIED = 8
"""Candidates that are timed."""
MEDIAN, MOST = 0.0, 0.05
"""The regret that half of the pipelines, and nine of ten, have at most."""
TIMEOUT_S = 600.0
PICK = "1"


def regret(name: str, platform: CpuPlatform, rounds: int) -> float:
    """The time of the pick over that of the fastest candidate, less 1. Which one that is a first contest tells; as the
    fastest of several is in part the luckiest, it is timed again, in twice as many rounds. Raises RuntimeError where
    they cannot be timed."""
    pipeline, libraries = pipeline_of(name), {}
    for n, c in enumerate(decide(pipeline, platform, Options(), top=TRIED).candidates, start=1):
        source = generate(pipeline, c.schedule, platform)
        libraries[str(n)] = [str(build(source, platform, BUILD / "ours", timeout_s=300).path), source.entry]
    rival = fastest(_timed(name, platform, rounds, libraries))
    if libraries[rival] == libraries[PICK]:
        return 0.0
    again = _timed(name, platform, 2 * rounds, {PICK: libraries[PICK], rival: libraries[rival]})
    return max(0.0, verdict(again, PICK, rival).ratio - 1.0)


def _timed(name: str, platform: CpuPlatform, rounds: int, libraries: Mapping[str, list[str]]) -> list[dict[str, float]]:
    """The rounds of a contest of libraries."""
    question = {"pipeline": name, "layout": "dense", "rounds": rounds, "libraries": libraries}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.interleaved"], input=json.dumps(question) + "\n", capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": str(platform.threads)}, text=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-300:]}
    if "error" in answer:
        raise RuntimeError(answer["error"])
    found: list[dict[str, float]] = answer["rounds"]
    return found


def fastest(rounds: list[dict[str, float]]) -> str:
    """The candidate that takes least beside the pick; the pick where none takes less."""
    return max(rounds[0], key=lambda name: (verdict(rounds, PICK, name).ratio, name == PICK))


def main() -> int:
    parser = argparse.ArgumentParser(description="The pick of the search against the fastest of its eight best.")
    developing = [name for name in registry.cases() if not registry.for_reports(name)]
    parser.add_argument("--pipelines", nargs="+", default=developing, metavar="NAME")
    parser.add_argument("--isa", default=NATIVE)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    platform = machine_of(arguments.isa, "gcc", arguments.threads)
    found: dict[str, float] = {}
    for name in arguments.pipelines:
        try:
            found[name] = regret(name, platform, arguments.rounds)
            report.progress(f"{name}: {found[name]:.1%}")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            report.progress(f"{name}: {error}")
    if not found:
        return 1
    values = sorted(found.values())
    half, nine = statistics.median(values), values[min(len(values) - 1, int(0.9 * len(values)))]
    worst = sorted(found.items(), key=lambda item: -item[1])[:10]
    print(report.table(["pipeline", "regret"], [[name, f"{value:.1%}"] for name, value in worst]))
    print(f"{len(values)} pipelines: median {half:.1%}, nine of ten at most {nine:.1%}")
    report.write(arguments.json, {"machine": machine.describe(), "regret": found})
    return 0 if half <= MEDIAN and nine <= MOST and len(found) == len(arguments.pipelines) else 1


if __name__ == "__main__":
    sys.exit(main())
