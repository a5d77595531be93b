"""A shared machine, simulated: the times of two codes that take turns on it."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class NoisyMachine:
    """Noise of one experiment: jitter of every call (lognormal), outliers (calls that lose the processor), a neighbour
    that comes and goes, and the clock's drift, a slow walk over the rounds."""

    jitter: float = 0.08
    outliers: float = 0.10
    neighbour: float = 0.15
    drift: float = 0.01
    ms: float = 5.0

    def rounds(self, seed: int, slowdown: float, rounds: int, calls: int) -> tuple[list[float], list[float]]:
        """Medians of `calls` calls a round: of a code, and of one that takes (1 + slowdown) times as long."""
        rng = np.random.default_rng(seed)
        level, busy = 0.0, False
        found: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds):
            level += rng.normal(0, self.drift)
            order = (0, 1) if number % 2 == 0 else (1, 0)
            for side in order:
                if rng.random() < self.neighbour:
                    busy = not busy
                base = self.ms * (1 + slowdown * side) * math.exp(level) * (1.25 if busy else 1.0)
                times = base * rng.lognormal(0, self.jitter, calls)
                hit = rng.random(calls) < self.outliers
                times[hit] *= rng.uniform(1.2, 4.0, hit.sum())
                found[side].append(statistics.median(times))
        return found
