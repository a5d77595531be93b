"""The test of noise: is code slower than other code, by times of runs that took turns?

Both are run in rounds, one after the other in each, so that what else the machine does falls on both alike. A round has
two numbers: the median time of its calls of either. What counts is the logarithm of their ratio. Its median over all
rounds is the change; the interval around it is the exact one of the sign test (order statistics), which supposes
nothing about the noise but that rounds are alike and independent: its lower end is above the true median in less than
half a percent of all experiments, its upper end below it likewise.

Code is slower if the median ratio reaches the limit *and* the interval lies above 1. The least time is never looked at.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilesmith.app.comparison.results import Measured
from tilesmith.app.profiler.statistics import bounded, interval

CONFIDENCE = 0.99
"""Confidence of the two-sided interval: half a percent on either side."""
ROUNDS = 60
"""Rounds of an experiment. With CALLS they find 10 % among the noise of tests/comparison."""
CALLS = 9
"""Calls of either code in a round, at least."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The ratio of the times of two codes, with its interval, by `rounds` rounds; infinite ends where the rounds are
    too few for an interval."""

    ratio: float
    low: float
    high: float
    rounds: int

    def slower(self, limit: float) -> bool:
        """True if the code is slower by the limit (a share) or more, and that is not noise."""
        return self.ratio >= 1.0 + limit and self.low > 1.0

    def undecided(self, limit: float) -> bool:
        """True if the code is not slower as far as one can tell, and a slowdown of the limit cannot be excluded."""
        return not self.slower(limit) and self.high >= 1.0 + limit

    def in_words(self) -> str:
        """The ratio as a change in percent, with its interval."""
        if not math.isfinite(self.high):
            return f"{100 * (self.ratio - 1):+.1f} % measured, in too few rounds for an interval"
        low, high = (f"{100 * (x - 1):+.1f}" for x in (self.low, self.high))
        return f"{100 * (self.ratio - 1):+.1f} % measured ({low} to {high} %)"

    def to_document(self) -> dict[str, Any]:
        """The evidence as plain data, for JSON."""
        bounded = math.isfinite(self.high)
        low, high = (self.low, self.high) if bounded else (None, None)
        return {"ratio": self.ratio, "low": low, "high": high, "rounds": self.rounds, "confidence": CONFIDENCE}


def evidence(baseline_ms: Sequence[float], now_ms: Sequence[float]) -> Evidence:
    """The evidence of paired rounds: the n-th numbers are of one round. Raises ValueError where there is no
    round, or the sides do not pair."""
    logs = [math.log(now / before) for before, now in zip(baseline_ms, now_ms, strict=True)]
    low, high = interval(logs, CONFIDENCE)
    return Evidence(math.exp(statistics.median(logs)), math.exp(low), math.exp(high), len(logs))


def measured(times_ms: Sequence[float], machine: str | None = None) -> Measured:
    """The measurement that the times of calls are. The interval takes them for independent."""
    low_ms, high_ms = bounded(interval(times_ms, CONFIDENCE)) or (None, None)
    return Measured(statistics.median(times_ms), low_ms, high_ms, len(times_ms), machine)
