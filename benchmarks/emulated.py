"""Losses of the method `default` on machines that are not here: against the method of the paper and every stage at
root, on AArch64 by QEMU's user mode, by what is counted rather than timed.

    python -m benchmarks.emulated [--platforms NAME ...] [--pipelines NAME ...] [--drawn N] [--seed S] [--threads 1]
                                  [--pixels N] [--limit-seconds S] [--prepare | --report] [--output DIR]

Every pipeline is scheduled for a platform, at its estimates with fewer rows, compiled, and called once in the emulator:
the instructions count, and the cycles that these and the lines that caches move take at most (`emulation.py`). Each
result is written at once: what ends early goes on where it was. Exit status 1 where a ratio is too high or a contender
fails, 3 where something is left to do.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import emulated_findings
from benchmarks.documents import drawn_name, pipeline_of
from benchmarks.emulated_findings import CONTENDERS, finding
from benchmarks.emulation import ARCHITECTURE, EmulationError, emulated, without_sve
from benchmarks.everywhere import UNFINISHED, Contenders, Job, Records, finish
from benchmarks.findings import same_code
from benchmarks.problem import at_estimates
from tilesmith import platforms
from tilesmith.app.bench.agreement import ContenderError, agreement
from tilesmith.app.profiler.tuning import has_floats
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler import pipelines

OUTPUT = Path("out/emulated")
LONG = ("vdsr",)
"""Pipelines that take the emulator minutes at any size."""
PIXELS = 1_000_000
LEAST_ROWS = 96
"""Pyramids have few rows of their own left with fewer."""


@dataclass(frozen=True)
class Emulated(Job):
    """A pipeline for a platform of the catalog, whose name `isa` is, by that platform's compiler."""

    @classmethod
    def of(cls, pipeline: str, platform: str, threads: int) -> Emulated:
        return cls(pipeline, platform, platforms.get(platform).compiler.command, threads)

    def platform(self, machine: CpuPlatform | None = None) -> CpuPlatform:
        return without_sve(CpuPlatform.of(platforms.get(self.isa))).model_copy(update={"threads": self.threads})

    def measured(self) -> CpuPlatform:
        """The same: there is none to measure."""
        return self.platform()


class Counted:
    """Counts of calls of contenders: instructions executed and lines moved. A library is known by its content, so what
    did not change is not called again."""

    def __init__(self, folder: Path) -> None:
        self._records = Records(folder / "counts.jsonl")

    def known(self, job: Emulated, contenders: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
        return self._records.get(self._key(job, contenders))

    def count(self, job: Emulated, contenders: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Calls those that could be made: their counts, and who failed or disagrees with the first one."""
        counts: dict[str, Any] = {}
        errors: dict[str, str] = {}
        problem, platform = at_estimates(pipeline_of(job.pipeline)), job.platform()
        first: list[np.ndarray] = []
        for name in dict.fromkeys(same_code(contenders).values()):
            made = contenders[name]
            try:
                found, outputs = emulated(Path(made["library"]), Path(made["runner"]), made["entry"], problem, platform)
                first = first or outputs
                agreement(first, outputs, cut=[has_floats(problem.pipeline)] * len(outputs))
            except (EmulationError, ContenderError) as e:
                errors[name] = str(e)
            else:
                counts[name] = asdict(found)
        return self._records.add(self._key(job, contenders), {**asdict(job), "counts": counts, "errors": errors})

    def _key(self, job: Emulated, contenders: Mapping[str, Mapping[str, Any]]) -> str:
        libraries = sorted((name, c.get("library")) for name, c in contenders.items())
        return json.dumps([asdict(job), libraries])


def with_fewer_rows(name: str, pixels: int) -> str:
    """The name of that pipeline at a size of about so many pixels: rows stay as long as they are, since what of them
    stays in a cache is what schedules differ in."""
    pipeline = pipeline_of(name)
    dims = {i.name: i.dims for i in pipeline.inputs} | {s.name: s.dims for s in pipeline.stages}
    extents = {
        along: max(
            (n for f, r in pipeline.estimates for d, (_, n) in zip(dims[f], r, strict=True) if d == along), default=1
        )
        for along in ("x", "y")
    }
    rows = max(LEAST_ROWS, math.ceil(pixels / extents["x"] / 32) * 32)
    return name if rows >= extents["y"] else f"{name}@{extents['x']}x{rows}"


def machines() -> list[str]:
    """The platforms of the catalog that can be emulated."""
    return [n for n in platforms.catalog_names() if platforms.get(n).triple.startswith(f"{ARCHITECTURE}-")]


def jobs(arguments: argparse.Namespace) -> list[Emulated]:
    """All jobs asked for, in an order that a run cut short has some of everything in."""
    names = [*arguments.pipelines, *(drawn_name(arguments.seed + n) for n in range(arguments.drawn))]
    sized = [with_fewer_rows(name, arguments.pixels) for name in names]
    found = [Emulated.of(*values) for values in product(sized, arguments.platforms, arguments.threads)]
    random.Random(arguments.seed).shuffle(found)
    return found


def work(asked: Sequence[Emulated], contenders: Contenders, counted: Counted, prepare_only: bool) -> Iterator[str]:
    """Does what is left of the jobs, one step at a time: yields what it is about to do."""
    for job in asked:
        told = f"{job.pipeline}, {job.isa}, threads: {job.threads}"
        if contenders.missing(job):
            yield f"making {told}"
            contenders.prepare(job)
        known = contenders.known(job)
        if not prepare_only and counted.known(job, known) is None:
            yield f"counting {told}"
            counted.count(job, known)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.emulated", description="Where `default` loses on AArch64."
    )
    shipped = [name for name in pipelines.names() if name not in LONG]
    parser.add_argument("--platforms", nargs="+", default=machines(), choices=machines(), metavar="NAME")
    parser.add_argument("--pipelines", nargs="*", default=shipped, metavar="NAME|FILE")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="so many random pipelines")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them, and of the order of all")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="to schedule for; calls have one")
    parser.add_argument("--pixels", type=int, default=PIXELS, help="of the largest image, about, by leaving out rows")
    parser.add_argument(
        "--limit-seconds", type=float, default=float("inf"), metavar="S", help="begin nothing after that"
    )
    parser.add_argument("--prepare", action="store_true", help="schedule and compile, call nothing")
    parser.add_argument("--report", action="store_true", help="what is known so far, and do nothing")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR")
    arguments = parser.parse_args()
    contenders, counted = Contenders(arguments.output, names=CONTENDERS), Counted(arguments.output)
    asked = jobs(arguments)
    done = arguments.report or finish(work(asked, contenders, counted, arguments.prepare), arguments.limit_seconds)
    if arguments.prepare:
        sys.exit(0 if done else UNFINISHED)
    found = [finding(j, j.platform(), known := contenders.known(j), counted.known(j, known)) for j in asked]
    print(emulated_findings.tables(found))
    missed = any(f.losses or f.errors for f in found)
    sys.exit(1 if missed else UNFINISHED if any(f.left for f in found) else 0)


if __name__ == "__main__":
    main()
