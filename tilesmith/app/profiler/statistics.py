"""Statistics of measured times. Times have no known distribution: the figures are of ranks alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Times:
    """The least of some times, their median, and the interval in which the true median is with a confidence of
    CONFIDENCE; None where they are too few to tell. All in the unit of the times."""

    minimum: float
    median: float
    interval: tuple[float, float] | None


def summary(times: Sequence[float]) -> Times:
    """The figures of at least one time."""
    return Times(min(times), statistics.median(times), bounded(interval(times, CONFIDENCE)))


def interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval that holds the median of what `values` are drawn from: exact, by order statistics. Infinite ends
    where they are too few."""
    from scipy.stats import quantile_test  # takes long to import

    found = quantile_test(values, q=0.0, p=0.5).confidence_interval(confidence)
    low, high = float(found.low), float(found.high)
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def bounded(interval: tuple[float, float]) -> tuple[float, float] | None:
    """An interval with two ends; None of one without."""
    return interval if all(map(math.isfinite, interval)) else None
