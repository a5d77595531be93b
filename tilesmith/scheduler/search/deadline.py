"""The deadline of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """`ms` after `start` (seconds of the clock `now`, which the scheduler does not read itself); None is never."""

    now: Callable[[], float]
    start: float
    ms: float | None = None

    def expired(self) -> bool:
        """True if time is up. Once it is, the best that is known is the answer."""
        return self.ms is not None and (self.now() - self.start) * 1e3 >= self.ms
