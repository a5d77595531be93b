"""Samples of a measurement in turns: which figure they make, and which of them are worth taking again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

AGREE = 0.05
"""The spread up to which turns say the same."""
TYPICAL = ("region", "gather", "window", "vector_clock", "stored.", "past.", "asked.")
"""Beginnings of the names of figures whose median counts: what two threads tell each other takes half as long while
they happen to be on one core, which no program can expect, and differences of times become larger and smaller by
what disturbs them; a ratio is no nearer to the truth where it is small, and a clock no truer where it is fast."""


class Reading(NamedTuple):
    """The least time of a turn, and the core's clock beside it; 0 where the figure does not follow that."""

    ns: float
    clock_ghz: float = 0.0


@dataclass(frozen=True, slots=True)
class Samples:
    """A figure of every turn, in nanoseconds; `cycles` the same in those of the core's clock at that moment, of figures
    that follow it. `typical`: their median counts, else their second least: a lucky turn is no figure, and a neighbour
    that takes half of a core or of a cache away makes any number of turns longer, for a second or for a tenth of one.
    """

    ns: tuple[float, ...]
    cycles: tuple[float, ...] = ()
    typical: bool = False

    @property
    def figure(self) -> float:
        """The figure that the turns make, nanoseconds."""
        return sorted(self.ns)[self._rank]

    @property
    def figure_cycles(self) -> float:
        """The figure in cycles. Needs `cycles`."""
        return sorted(self.cycles)[min(self._rank, len(self.cycles) - 1)]

    @property
    def median(self) -> float:
        """The lower median, nanoseconds."""
        return statistics.median_low(self.ns)

    @property
    def spread(self) -> float:
        """The distance of the figure from the turn below it, of a median from the nearer one beside it, as a share of
        it: turns that whatever else runs did not disturb say the same."""
        turns, at = sorted(self.ns), self._rank
        beside = (*turns[max(0, at - 1) : at], *turns[at + 1 : at + 2]) if self.typical else turns[:at]
        return min((abs(ns - self.figure) for ns in beside), default=0.0) / self.figure if self.figure > 0 else 0.0

    @property
    def _rank(self) -> int:
        return (len(self.ns) - 1) // 2 if self.typical else min(1, len(self.ns) - 1)


@dataclass(slots=True)
class Measured:
    """Every figure by name; `busy` is how many cores other programs used before, `memory_bytes` what of memory was
    walked through, `clock` the sample of the clock that cycles are counted at."""

    samples: dict[str, Samples] = field(default_factory=dict)
    compiler: str = ""
    seconds: float = 0.0
    busy: float = 0.0
    memory_bytes: float = math.inf
    clock: str = "clock"

    def add(self, said: Mapping[str, Reading]) -> None:
        """One more turn of figures."""
        for name, (ns, clock) in said.items():
            before = self.samples.get(name, Samples((), typical=name.startswith(TYPICAL)))
            own = (*before.cycles, ns * clock) if clock else before.cycles
            self.samples[name] = replace(before, ns=(*before.ns, ns), cycles=own)

    def ns(self, name: str) -> float:
        """The figure of that name, nanoseconds."""
        return self.samples[name].figure

    def cycles(self, name: str) -> float:
        """The figure of that name in cycles of the core: of what follows its clock, those of the clock beside it. Where
        cycles are counted at the clock beside vectors, what was measured at a faster one takes no longer for that."""
        samples = self.samples[name]
        own = samples.cycles and self.clock == "clock"
        return samples.figure_cycles if own else samples.figure * self.clock_ghz

    def has(self, *names: str) -> bool:
        """Presence of all of those figures, each more than nothing."""
        return all(name in self.samples and self.ns(name) > 0 for name in names)

    @property
    def clock_ghz(self) -> float:
        return 1.0 / self.ns(self.clock)

    def spread(self, *names: str) -> float:
        """The largest spread of those figures."""
        return max((self.samples[n].spread for n in names if n in self.samples), default=0.0)

    def unsure(self, names: Iterable[str], spread: float = AGREE) -> list[str]:
        """The names of the figures on which no two turns agree to that spread. A median needs no agreement."""
        return [name for name in names if not self.samples[name].typical and self.samples[name].spread > spread]
