"""Predicted against measured time of pipelines of many kinds: how many predictions are within twice the time.

    python -m benchmarks.predictions [--pipelines NAME ...] [--isa NAME ...] [--threads 1 2] [--json FILE]

Each pipeline (`predicted_pipelines.py`, or files) is scheduled for this machine as it was measured on first use,
compiled, and called on random data; the best of its calls counts, of one thread by processor time. A prediction that
says of itself what it is unsure of is counted apart. Exit status 1 where fewer than nine in ten of the others are
within twice.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import builds, report
from benchmarks.contest import BUILD
from benchmarks.documents import pipeline_of
from benchmarks.model import Runner
from benchmarks.predicted_pipelines import documents
from benchmarks.problem import at_estimates
from tilesmith.app.runtime.build import build
from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

WITHIN = 2.0
WANTED = 0.9
"""The share of predictions that are sure and within WITHIN of the time."""
BURST_S = 0.25
CALLS = 50
COMPILE_S = 200.0


@dataclass(frozen=True)
class Prediction:
    """The prediction for a pipeline in a build, and what its fastest call took."""

    pipeline: str
    isa: str
    threads: int
    predicted_ms: float
    measured_ms: float
    unsure: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured_ms / self.predicted_ms

    @property
    def near(self) -> bool:
        return 1 / WITHIN <= self.ratio <= WITHIN


def predictions(names: Sequence[str] | None, isa: str, threads: int) -> list[Prediction]:
    """All pipelines, or those named, in one build."""
    platform, found = builds.machine_of(isa, "gcc", threads), []
    for name in names or documents():
        document = documents().get(name)
        pipeline = pipeline_of(name) if document is None else load(document)
        found.append(_of(name, pipeline, isa, platform))
        report.progress(f"{name}, {isa}, {threads} threads: {found[-1].ratio:.2f}")
    return found


def _of(name: str, pipeline: Pipeline, isa: str, platform: CpuPlatform) -> Prediction:
    compiled = compile_pipeline(pipeline, platform)
    library = ctypes.CDLL(str(build(compiled.source, platform, BUILD / "predictions", timeout_s=COMPILE_S).path))
    call = getattr(library, f"{compiled.source.entry}_argv")
    call.argtypes, call.restype = (ctypes.c_void_p,), ctypes.c_int32
    runner, best, calls, start = Runner(at_estimates(pipeline)), float("inf"), 0, time.monotonic()
    while calls < 3 or (calls < CALLS and time.monotonic() < start + BURST_S):
        best, calls = min(best, runner.call_ms(call, platform.threads)), calls + 1
    predicted = compiled.predicted
    return Prediction(name, isa, platform.threads, float(predicted.total) / 1e3, best, predicted.unsure)


def table(found: Sequence[Prediction]) -> str:
    """A line a prediction, then how many are near, of those that are sure and of all."""
    rows = [
        [p.pipeline, p.isa, str(p.threads), *map(report.number, (p.predicted_ms, p.measured_ms)), f"{p.ratio:.2f}",
         "" if p.near else "far", " ".join(p.unsure)]
        for p in found
    ]  # fmt: skip
    heads = ["pipeline", "isa", "threads", "predicted ms", "measured ms", "ratio", "", "unsure"]
    sure = [p for p in found if not p.unsure]
    counts = [
        f"within {WITHIN:g} times: {sum(p.near for p in those)} of {len(those)} {which}"
        for which, those in (("that are sure", sure), ("in all", found))
    ]
    return "\n".join([report.table(heads, rows), "", *counts])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description="Predictions against time.")
    parser.add_argument("--pipelines", nargs="+", default=None, metavar="NAME|FILE")
    parser.add_argument("--isa", nargs="+", default=[builds.instruction_sets()[0]], metavar="NAME")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--json", type=Path, default=BUILD / "predictions.json", metavar="FILE")
    arguments = parser.parse_args()
    found: list[Prediction] = []
    for threads in arguments.threads:
        os.environ |= {"OMP_NUM_THREADS": str(threads), "GOMP_SPINCOUNT": "20000"}
        for isa in arguments.isa:
            found += predictions(arguments.pipelines, isa, threads)
    report.write(arguments.json, {"predictions": [asdict(p) for p in found]})
    print(table(found))
    sure = [p.near for p in found if not p.unsure]
    return int(sum(sure) < WANTED * len(sure))


if __name__ == "__main__":
    raise SystemExit(main())
