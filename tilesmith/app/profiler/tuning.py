"""Measured refinement: the best candidates of a search compiled, compared and timed, and the fastest kept.

Candidates run on the same inputs, each in a child of its own. Their results are compared before anything is timed; then
they are timed in rounds, one after the other in each, so that what else the machine does falls on all alike. What goes
wrong with a candidate is a sample with an error, and costs the others nothing.
"""

from __future__ import annotations

import contextvars
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilesmith.app.profiler.statistics import Times, summary
from tilesmith.app.runtime.build import BuiltLibrary
from tilesmith.app.runtime.errors import LOST, Cancelled, WorkerError
from tilesmith.app.runtime.run import RUN_LIMITS, Array, Loaded, loaded
from tilesmith.app.runtime.sandbox import Limits
from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.ir.pipeline.arguments import Image, Region, Scalar
from tilesmith.scheduler.ir.pipeline.expressions import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

BUDGET_S = 55.0
"""Time for all of it. What is not compiled by COMPILING of it is left out; timing ends when it is over."""
COMPILING = 0.65
ROUNDS = 5
ROUND_MS = 60.0
"""A candidate runs about so long in a round, but CALLS times."""
CALLS = (3, 100)
HOPELESS = 3.0
"""Whoever takes so many times the fastest at first is not timed again."""
SAME = 1.01
"""Relative difference of times below which the candidate that the model prefers is kept."""
FLOAT_TOLERANCE = 1e-3
"""Difference of floats that counts as equal, relative to the largest magnitude: schedules add up in other orders."""

Outputs = Mapping[str, tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate: its rank from 1, what it is predicted to cost, and its C when it is wanted."""

    rank: int
    predicted: float
    source: Callable[[], CSource]


@dataclass(slots=True)
class Sample:
    """The measurement of a candidate: the times of all its calls, in milliseconds, or what went wrong."""

    rank: int
    predicted: float
    times_ms: tuple[float, ...] = ()
    compile_ms: float | None = None
    error: str | None = None

    @property
    def times(self) -> Times | None:
        return summary(self.times_ms) if self.times_ms else None

    @property
    def minimum_ms(self) -> float | None:
        return min(self.times_ms, default=None)

    @property
    def median_ms(self) -> float | None:
        return statistics.median(self.times_ms) if self.times_ms else None

    def to_document(self) -> dict[str, Any]:
        """The measurement as plain data, for JSON."""
        interval = self.times.interval if self.times is not None else None
        return {
            "rank": self.rank,
            "predicted": self.predicted,
            "minimum_ms": self.minimum_ms,
            "median_ms": self.median_ms,
            "interval_ms": None if interval is None else list(interval),
            "times": len(self.times_ms),
            "compile_ms": self.compile_ms,
            "error": self.error,
        }


class NothingRan(WorkerError):
    """None of the candidates could be compiled and run; `samples` say why."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        first = next((s.error for s in samples if s.error), "there is no candidate")
        told = "\n".join(f"candidate {s.rank}: {s.error}" for s in samples)
        super().__init__("run_failure", f"none of {len(samples)} candidates could be timed; the first: {first}", told)
        self.samples = tuple(samples)


@dataclass(frozen=True, slots=True)
class Tuned:
    """A sample for every candidate, in their order; `chosen` is the rank of the fastest. `seconds` is what it took."""

    samples: tuple[Sample, ...]
    chosen: int
    threads: int
    seconds: float

    def in_words(self) -> str:
        """The candidate that was chosen, in a line."""
        sample = next(s for s in self.samples if s.rank == self.chosen)
        timed = sum(s.error is None for s in self.samples)
        interval = sample.times.interval if sample.times is not None else None
        within = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
        return (
            f"Tuned: candidate {self.chosen} is the fastest of {timed} that were timed with {self.threads} threads: "
            f"median {sample.median_ms:.3f} ms{within}"
        )

    def to_document(self) -> dict[str, Any]:
        """The tuning as plain data, for JSON."""
        return {
            "chosen": self.chosen,
            "threads": self.threads,
            "seconds": round(self.seconds, 3),
            "samples": [s.to_document() for s in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that every candidate is called with."""

    pipeline: Pipeline
    inputs: Mapping[str, Image]
    params: Mapping[str, Scalar]
    regions: Mapping[str, Region]
    threads: int
    limits: Limits = RUN_LIMITS


@dataclass
class _Tuning:
    """The work at hand: who is still in it, with its library and its samples."""

    arguments: Arguments
    build: Callable[[CSource], BuiltLibrary]
    deadline: float
    samples: dict[int, Sample]
    libraries: dict[int, BuiltLibrary] = field(default_factory=dict)

    def failed(self, rank: int, error: str) -> None:
        self.samples[rank].error = error
        self.libraries.pop(rank, None)


def tune(
    contenders: Sequence[Contender],
    arguments: Arguments,
    build: Callable[[CSource], BuiltLibrary],
    say: Callable[[str], None] = lambda phase: None,
    budget_s: float = BUDGET_S,
) -> Tuned:
    """Compiles by `build`, runs and times the candidates, the best first, within about `budget_s` seconds. `say` is
    told what is at. Raises Cancelled where the job is, NothingRan, and what is wrong with the arguments."""
    started = time.monotonic()
    work = _Tuning(arguments, build, started + budget_s, {c.rank: Sample(c.rank, c.predicted) for c in contenders})
    say("building")
    _compile(work, contenders, started + COMPILING * budget_s)
    say("running")
    with loaded(arguments.pipeline, arguments.inputs, arguments.params, arguments.regions) as prepared:
        _compare(work, prepared)
        _time(work, prepared)
    samples = tuple(work.samples[c.rank] for c in contenders)
    chosen = fastest(samples)
    if chosen is None:
        raise NothingRan(samples)
    return Tuned(samples, chosen, arguments.threads, time.monotonic() - started)


def fastest(samples: Sequence[Sample]) -> int | None:
    """The rank of the sample with the least median; of those that are as fast, the first. As fast are those within SAME
    of it, and those whose interval the other's overlaps: the times cannot tell them apart."""
    timed = {s.rank: summary(s.times_ms) for s in samples if s.error is None and s.times_ms}
    best = min(timed.values(), key=lambda t: t.median, default=None)
    if best is None:
        return None
    return min(rank for rank, times in timed.items() if times.median <= best.median * SAME or _overlap(times, best))


def _overlap(times: Times, best: Times) -> bool:
    """True where the interval of some times begins before that of the best ends, and both are known."""
    return times.interval is not None and best.interval is not None and times.interval[0] <= best.interval[1]


def _compile(work: _Tuning, contenders: Sequence[Contender], until: float) -> None:
    """Libraries of all candidates, as many at a time as there are processors."""

    def one(contender: Contender) -> None:
        if time.monotonic() > until and contender.rank > 1:
            work.failed(contender.rank, "not tried: the time for compiling was over")
            return
        try:
            library = work.build(contender.source())
        except Cancelled:
            raise
        except TilesmithError as error:
            if error.code == LOST:
                raise
            work.failed(contender.rank, f"{error.code}: {error}")
        else:
            work.libraries[contender.rank] = library
            work.samples[contender.rank].compile_ms = round(1000 * library.seconds, 3)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
        futures = [threads.submit(contextvars.copy_context().run, one, c) for c in contenders]
        for future in futures:
            future.result()


def _compare(work: _Tuning, prepared: Loaded) -> None:
    """Every library called for its results: those that differ from what most have are out."""
    kinds: list[tuple[Outputs, list[int]]] = []
    inexact = has_floats(work.arguments.pipeline)
    for rank in sorted(work.libraries):
        result = _call(work, prepared, rank, 2, keep=True)
        if result is None:
            continue
        same = (ranks for outputs, ranks in kinds if difference(outputs, result, inexact) is None)
        found = next(same, None)
        if found is None:
            kinds.append((result, [rank]))
        else:
            found.append(rank)
    if not kinds:
        return
    agreed, right = max(kinds, key=lambda kind: (len(kind[1]), -kind[1][0]))
    for outputs, ranks in kinds:
        if ranks is not right:
            for rank in ranks:
                work.failed(
                    rank,
                    f"its result differs from that of candidate {right[0]}: {difference(agreed, outputs, inexact)}",
                )


def _time(work: _Tuning, prepared: Loaded) -> None:
    """Rounds over all that are left; after the first call of each without those that are hopeless."""
    first = {rank: min(work.samples[rank].times_ms) for rank in work.libraries}
    least = min(first.values(), default=0.0)
    for _ in range(ROUNDS):
        for rank in sorted(work.libraries):
            if time.monotonic() > work.deadline:
                return
            if first[rank] <= least * HOPELESS:
                repeat = min(max(math.ceil(ROUND_MS / first[rank]), CALLS[0]), CALLS[1])
                _call(work, prepared, rank, repeat, keep=False)


def _call(work: _Tuning, prepared: Loaded, rank: int, repeat: int, keep: bool) -> Outputs | None:
    """Calls a library, and adds its times to its sample; None where it fails."""
    sample, arguments = work.samples[rank], work.arguments
    try:
        result = prepared.call(work.libraries[rank], arguments.threads, repeat, arguments.limits, keep)
    except Cancelled:
        raise
    except TilesmithError as error:
        if error.code == LOST:
            raise
        work.failed(rank, f"{error.code}: {error}")
        return None
    sample.times_ms += tuple(round(ms, 6) for ms in result.times_ms)
    return result.outputs


def difference(expected: Outputs, got: Outputs, inexact: bool) -> str | None:
    """The first difference of two results of a pipeline; None where they agree. Floats may be off by FLOAT_TOLERANCE;
    integers that are made of floats (`inexact`) by 1, and a hundredth of them by more."""
    for name, arrays in expected.items():
        for n, (a, b) in enumerate(zip(arrays, got[name], strict=True)):
            wrong = _floats_wrong(a, b) if a.dtype.kind == "f" else _integers_wrong(a, b, inexact)
            if wrong:
                return f"{wrong:,} of {a.size:,} values of {name}{f'[{n}]' if len(arrays) > 1 else ''}"
    return None


def _floats_wrong(a: Array, b: Array) -> int:
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return int(np.count_nonzero(finite != np.isfinite(b)))
    if not finite.any():
        return 0
    scale = float(np.abs(a[finite]).max()) or 1.0
    off = np.abs(a[finite].astype(np.float64) - b[finite])
    return int(np.count_nonzero(off > FLOAT_TOLERANCE * scale))


def _integers_wrong(a: Array, b: Array, inexact: bool) -> int:
    off = np.maximum(a, b) - np.minimum(a, b) if a.dtype != np.bool_ else a != b
    wrong = int(np.count_nonzero(off > inexact))
    return 0 if inexact and wrong <= a.size // 100 else wrong


def has_floats(pipeline: Pipeline) -> bool:
    """True if anything is computed in floating point."""
    found: Iterator[bool] = (
        node.type.is_float for stage in pipeline.stages for e in expressions(stage) for node in walk(e)
    )
    return any(found)
