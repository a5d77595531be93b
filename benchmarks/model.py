"""Rank correlation and regret of cost models: how well they tell good schedules from bad ones.

    python -m benchmarks.model [--pipelines NAME ...] [--samples 100] [--seed 0] [--json FILE] [--reuse FILE]

Random schedules of each pipeline (`sampling.py`), and the search's own, are compiled, timed in turns and predicted.
A model's figures on a pipeline: the rank correlation (Spearman) of what it predicts and what was measured, and its
regret: how much longer than the best measured schedule the one takes that the model ranks first. `--reuse` judges
samples that were measured before, for models that have changed since.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import spearmanr

from benchmarks import machine, report
from benchmarks.arguments import Arguments
from benchmarks.contest import BUILD
from benchmarks.documents import pipeline_of
from benchmarks.problem import Problem, at_estimates
from benchmarks.sampling import samples
from tilesmith.app.cli.sources import load_platform
from tilesmith.app.runtime.build import build
from tilesmith.cost_models import CostModel, Ecm, Taco2019
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule, methods
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

PIPELINES = (
    "blur", "unsharp", "harris", "interpolate", "camera_pipe", "bilateral_grid", "nl_means", "max_filter",
)  # fmt: skip
MODELS: tuple[CostModel, ...] = (Ecm(), Taco2019())
TOO_SLOW = 5.0
"""Times the best of the first calls: a schedule that takes longer is not timed again."""
BURST_MS = 8.0
ROUNDS = 5
COMPILE_S = 90.0


@dataclass
class Sample:
    """A schedule, who made it, and its fastest call."""

    schedule: Schedule
    origin: str
    best_ms: float


@dataclass(frozen=True)
class Judgement:
    """A model on one pipeline. `picked_ms` is what the schedule takes that it ranks first."""

    pipeline: str
    model: str
    samples: int
    spearman: float
    best_ms: float
    picked_ms: float

    @property
    def regret(self) -> float:
        return self.picked_ms / self.best_ms - 1


class Runner:
    """Calls libraries of one pipeline on the same arguments, in this process."""

    def __init__(self, problem: Problem) -> None:
        self.arguments = Arguments(problem)

    def call_ms(self, function: Call, threads: int) -> float:
        """Milliseconds of one call; of one thread its processor time, which other programs disturb less."""
        clock = time.perf_counter if threads > 1 else time.process_time
        start = clock()
        if function(self.arguments.pointers) != 0:
            raise RuntimeError("a library refused its arguments")
        return (clock() - start) * 1e3


def measure(name: str, count: int, seed: int, threads: int) -> list[Sample]:
    """Random schedules of a pipeline and those of the search, timed."""
    pipeline, platform = pipeline_of(name), host().model_copy(update={"threads": threads})
    candidates = [(s, "sampled") for s in samples(pipeline, platform, count, seed)]
    candidates += [(autoschedule(pipeline, platform, SearchOptions(m)).schedule, m) for m in methods()]
    candidates.append((root_schedule(pipeline, platform), "root"))
    functions, found = [], []
    for n, (schedule, origin) in enumerate(candidates):
        function = _compiled(pipeline, schedule, platform)
        if function is None:
            continue
        functions.append(function)
        found.append(Sample(schedule, origin, float("inf")))
        if n % 10 == 9:
            report.progress(f"{name}: {n + 1} of {len(candidates)} compiled")
    runner = Runner(at_estimates(pipeline))
    limit = float("inf")
    for sample, function in zip(found, functions, strict=True):
        for n in range(3):
            sample.best_ms = min(sample.best_ms, runner.call_ms(function.call, threads))
            if n > 0 and sample.best_ms > 2 * limit:  # the first call has memory that the system clears
                break
        function.release()
        limit = min(limit, TOO_SLOW * sample.best_ms)
    for _ in range(ROUNDS):
        for sample, function in zip(found, functions, strict=True):
            if sample.best_ms <= limit:
                for _ in range(int(min(50, max(3, BURST_MS / sample.best_ms)))):
                    sample.best_ms = min(sample.best_ms, runner.call_ms(function.call, threads))
                function.release()
    return found


Call = Callable[[object], int]
"""A function of the generated code: takes an array of pointers, returns its status."""


class Compiled(NamedTuple):
    """A library's function, and what gives back the memory that a call has left for the next: not all samples' fits."""

    call: Call
    release: Callable[[], object]


def _compiled(pipeline: Pipeline, schedule: Schedule, platform: CpuPlatform) -> Compiled | None:
    """The library's functions; None where it takes too long to be made."""
    try:
        source = generate(pipeline, schedule, platform)
        library = build(source, platform, BUILD / "model", timeout_s=COMPILE_S)
    except Exception as e:
        report.progress(f"{pipeline.name}: no library: {type(e).__name__}: {str(e)[:200]}")
        return None
    loaded = ctypes.CDLL(str(library.path))
    call, release = (getattr(loaded, source.entry + end) for end in ("_argv", "_release"))
    call.argtypes, call.restype = (ctypes.c_void_p,), ctypes.c_int32
    release.restype = None
    return Compiled(call, release)


def judge(name: str, found: Sequence[Sample], platform: CpuPlatform, model: CostModel) -> Judgement:
    """A model on the samples of one pipeline."""
    pipeline = pipeline_of(name)
    predicted = [float(predict(rewrite(pipeline, s.schedule), platform, model).total) for s in found]
    measured = [s.best_ms for s in found]
    picked = measured[predicted.index(min(predicted))]
    return Judgement(name, model.name, len(found), spearman(predicted, measured), min(measured), picked)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Rank correlation; 0 where all of one are equal, or there are too few to tell."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return 0.0
    return float(spearmanr(a, b).statistic)


def table(found: Sequence[Judgement]) -> str:
    """One line a model and pipeline, and for each model the median and the worst of its regrets."""
    rows = [[j.pipeline, j.model, str(j.samples), *_figures(j.spearman, j.regret, j)] for j in found]
    for model in dict.fromkeys(j.model for j in found):
        mine = [j for j in found if j.model == model]
        regrets, ranks = [j.regret for j in mine], [j.spearman for j in mine]
        rows.append(["median", model, "", *_figures(statistics.median(ranks), statistics.median(regrets))])
        rows.append(["worst", model, "", *_figures(min(ranks), max(regrets))])
    return report.table(["pipeline", "model", "samples", "Spearman", "best ms", "picked ms", "regret"], rows)


def _figures(spearman: float, regret: float, j: Judgement | None = None) -> list[str]:
    times = ["", ""] if j is None else [report.number(j.best_ms), report.number(j.picked_ms)]
    return [f"{spearman:.3f}", *times, f"{100 * regret:.1f} %"]


def as_data(found: dict[str, list[Sample]], threads: int) -> dict[str, Any]:
    return {
        "machine": machine.describe(),
        "threads": threads,
        "samples": {
            name: [{"origin": s.origin, "best_ms": s.best_ms, "schedule": to_document(s.schedule)} for s in those]
            for name, those in found.items()
        },
    }


def from_data(data: dict[str, Any]) -> dict[str, list[Sample]]:
    """The samples that `as_data` wrote."""
    return {
        name: [Sample(from_document(s["schedule"]), s["origin"], s["best_ms"]) for s in those]
        for name, those in data["samples"].items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description="Cost models against measurement.")
    parser.add_argument("--pipelines", nargs="+", default=None, metavar="NAME|FILE")
    parser.add_argument("--samples", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, default=BUILD / "model.json", metavar="FILE")
    parser.add_argument("--platform", default="host", metavar="NAME|FILE", help="what to predict for")
    parser.add_argument("--reuse", type=Path, metavar="FILE", help="samples that were measured before")
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": str(arguments.threads), "GOMP_SPINCOUNT": "20000"}
    if arguments.reuse is not None:
        data = json.loads(arguments.reuse.read_text())
        found, threads = from_data(data), data["threads"]
        found = {n: s for n, s in found.items() if arguments.pipelines is None or n in arguments.pipelines}
    else:
        found, threads = {}, arguments.threads
        for name in arguments.pipelines or PIPELINES:
            found[name] = measure(name, arguments.samples, arguments.seed, threads)
            report.write(arguments.json, as_data(found, threads))
    platform = CpuPlatform.of(load_platform(arguments.platform)).model_copy(update={"threads": threads})
    print(table([judge(name, those, platform, model) for model in MODELS for name, those in found.items()]))


if __name__ == "__main__":
    main()
