"""Verdicts over measured times: how many times as long as another one takes, and whether that is above a bound.

Four figures say it: for each of the two sets of images the ratio of the least times, and the median of the ratios of
single rounds. The ratio is their median. Noise lengthens single calls, so it takes all of one contender's to move the
first; drift falls on both of a round, and leaves the second; and what a set of images happens to suit shows as sets
that differ.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.interleaved import SETS

MARGIN = 0.01
"""The distance below its bound within which a ratio is measured again as well."""


@dataclass(frozen=True)
class Verdict:
    """`figures`: those that there are; of a contender that was left out after a round a set, what those say."""

    figures: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(self.figures)

    def near(self, bound: float) -> bool:
        """True if the ratio may be above its bound, which a second measurement decides."""
        return max(self.figures) > bound or self.ratio > bound - MARGIN

    def above(self, bound: float) -> int:
        """The number of figures above the bound."""
        return sum(f > bound for f in self.figures)


def verdict(rounds: Sequence[Mapping[str, float]], mine: str, its: str) -> Verdict:
    """The verdict over the time of `mine` over that of `its`; both are in the first round of each set."""
    figures = []
    for k in range(SETS):
        both = [(r[mine], r[its]) for r in rounds[k::SETS] if mine in r and its in r]
        figures.append(min(a for a, _ in both) / min(b for _, b in both))
        figures.append(statistics.median(a / b for a, b in both))
    return Verdict(tuple(figures))


def geometric_mean(ratios: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
