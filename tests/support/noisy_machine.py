"""A shared machine, simulated: the times of two codes that take turns on it."""

from __future__ import annotations

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
        level = rng.normal(0, self.drift, rounds).cumsum()
        comes_or_goes = rng.random((rounds, 2)) < self.neighbour
        busy = comes_or_goes.cumsum().reshape(rounds, 2) % 2 == 1
        times = rng.lognormal(0, self.jitter, (rounds, 2, calls))
        hit = rng.random(times.shape) < self.outliers
        times[hit] *= rng.uniform(1.2, 4.0, hit.sum())
        in_turn = np.median(times, axis=2) * np.where(busy, 1.25, 1.0) * self.ms * np.exp(level)[:, None]
        in_turn[1::2] = in_turn[1::2, ::-1]  # every other round the second code begins
        return in_turn[:, 0].tolist(), (in_turn[:, 1] * (1 + slowdown)).tolist()
