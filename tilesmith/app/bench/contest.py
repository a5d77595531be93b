"""Contests in one process: contenders are called in turns on the same images, and told by medians with intervals.

In a round each contender has a burst of calls, the order rotating, and the fastest is its figure: so that whatever else
the machine does falls on all of them. What is compared are ratios of the same round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import comb

import numpy as np

from tilesmith.app.bench.agreement import ContenderError, agreement

Run = Callable[[], tuple[np.ndarray, ...]]

BURST_S = 0.05
MAX_CALLS = 200
SLOW_S = 0.5
"""Seconds of a first call above which a contender has SLOW_ROUNDS rounds of one call."""
SLOW_ROUNDS = 3
CONFIDENCE = 0.95


class Absent(Exception):
    """A contender that cannot take part; the message says why."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A computation of the outputs: `run` does it once. `about` says what it is."""

    name: str
    run: Run
    about: str


@dataclass(slots=True)
class Result:
    """The milliseconds of a contender's rounds; `error` says why there are none."""

    name: str
    about: str
    rounds_ms: list[float] = field(default_factory=list)
    error: str | None = None

    @property
    def median_ms(self) -> float:
        return statistics.median(self.rounds_ms)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A contender's time over another one's: the median over the rounds, and an interval that has the true median with
    a confidence of CONFIDENCE; all rounds, where there are too few for it."""

    median: float
    low: float
    high: float


def hold(contenders: Sequence[Contender], rounds: int, cut: Sequence[bool]) -> tuple[Result, ...]:
    """The results of the contenders, in their order. The first is whom the others have to agree with; `cut` says of
    each output array that its integers are cut from floats."""
    results = tuple(Result(c.name, c.about) for c in contenders)
    alive: list[tuple[Contender, Result, int, int]] = []
    expected: tuple[np.ndarray, ...] | None = None
    for contender, result in zip(contenders, results, strict=True):
        try:
            outputs = contender.run()
            expected = expected if expected is not None else tuple(a.copy() for a in outputs)
            agreement(expected, outputs, cut=cut)
        except (ContenderError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, OSError) as error:
            result.error = " ".join(str(error).split())[:300] or type(error).__name__
            continue
        seconds = _seconds(contender.run, 1)
        slow = seconds > SLOW_S
        calls = 1 if slow else int(min(max(BURST_S / max(seconds, 1e-7), 3), MAX_CALLS))
        alive.append((contender, result, calls, min(rounds, SLOW_ROUNDS) if slow else rounds))
    for number in range(rounds):
        turn = number % max(len(alive), 1)
        for contender, result, calls, most in alive[turn:] + alive[:turn]:
            if number < most:
                result.rounds_ms.append(1e3 * _seconds(contender.run, calls))
    return results


def ratio(its: Result, mine: Result) -> Ratio:
    """The time of a contender over that of another, of the rounds that both have."""
    ratios = sorted(a / b for a, b in zip(its.rounds_ms, mine.rounds_ms, strict=False))
    skipped = _skipped(len(ratios))
    return Ratio(statistics.median(ratios), ratios[skipped], ratios[-1 - skipped])


def _skipped(count: int) -> int:
    """The number of order statistics at either end of a sample that the interval of its median leaves out: the number
    of values below a median is binomial."""
    tail, skipped = 0.0, 0
    while skipped < (count - 1) // 2:
        tail += comb(count, skipped) / 2**count
        if 2 * tail > 1 - CONFIDENCE:
            break
        skipped += 1
    return skipped


def _seconds(run: Run, calls: int) -> float:
    """Seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
