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
    return Times(min(times), statistics.median(times), _interval(times))


def _interval(times: Sequence[float]) -> tuple[float, float] | None:
    from scipy.stats import quantile_test  # takes long to import

    found = quantile_test(times, p=0.5).confidence_interval(CONFIDENCE)
    low, high = float(found.low), float(found.high)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
