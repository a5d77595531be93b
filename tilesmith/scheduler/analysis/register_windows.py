"""Fused rows: the elements that stages sharing one loop over vectors hold in registers, and those computed again where
they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log2
from typing import Literal, NamedTuple

from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.periodic_indices import order_of
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.boundary_conditions import inside
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

MOST_ELEMENTS = 256
"""Elements of a stage's row that are held at once, at most."""
MOST_PLACES = 100
"""Points where stages are computed, or loaded, at their readers while clamps are active: at most so many for all stages
together, ..."""
DEEPEST = 40
"""... and at most so deep in one another."""

How = Literal["inline", "registers", "memory"]
"""The storage of a stage that is computed in the row: one in memory has its vectors in registers all the same."""


@dataclass(slots=True)
class FusedRow:
    """A row whose stages share one loop over vectors; they are added from the output backwards. `shifted` has the
    stages that are read by shifts along it, with their dims that move.

    While the output's vector is computed, its readers ask for elements of a stage from one place to another, `asked`:
    its own vector is as far ahead as the last, and vectors are held back to the first. Beside whole vectors, at the
    ends of a row where clamps are active, what is read through these is no plain shift. It is loaded or computed where
    it is read, at so many `places`, and so is all that this reads, so `deep` in one another. Of what is inline
    `periods` has the points after which it is read in the same order again; vectors, which have `most_lanes`, must be a
    multiple of the `period` of all others.
    """

    shifted: Mapping[str, str]
    most_lanes: float = inf
    period: float = 1.0
    asked: dict[str, tuple[float, float]] = field(default_factory=dict)
    places: dict[str, float] = field(default_factory=dict)
    deep: dict[str, int] = field(default_factory=dict)
    periods: dict[str, float] = field(default_factory=dict)
    together: float = 0.0

    def add(self, stage: Stage, readers: Iterable[Stage], how: How) -> str | None:
        """Why `stage` cannot be computed in the row; only if it can is it taken for one that is."""
        least = most = places = 0.0
        deep = 0
        dim = self.shifted.get(stage.name)
        d = None if dim is None else stage.dims.index(dim)
        period = 1.0
        for reader in readers:
            reads = _reads(reader).get(stage.name)
            if reads is None:
                continue
            again = self.places.get(reader.name, 0.0) * reads.elements
            if d is not None:
                ahead = self.asked.get(reader.name, (0.0, 0.0))
                least, most = min(least, ahead[0] + reads.first[d]), max(most, ahead[1] + reads.last[d])
                again += reads.clamped[d]
                period = max(period, reads.period[d], self.periods.get(reader.name, 1.0))
            if again:
                places += again
                deep = max(deep, 1 + self.deep.get(reader.name, 0))
        if how != "inline" and (period == inf or period > self.most_lanes):
            return f"'{stage.name}' is read in another order in each vector"
        if how != "inline" and most - least > MOST_ELEMENTS:
            return f"{most - least:g} elements of each row would be held at once, more than {MOST_ELEMENTS}"
        if self.together + places > MOST_PLACES:
            return f"at the ends of rows it would be computed at more than {MOST_PLACES} places"
        if deep > DEEPEST:
            return f"at the ends of rows more than {DEEPEST} stages would be computed inside of one another"
        self.asked[stage.name] = (least, most) if how == "inline" else (most, most)
        if how == "inline":
            self.periods[stage.name] = period
        else:
            self.period = max(self.period, period)
        if how != "memory":
            self.places[stage.name], self.deep[stage.name] = places, deep
        self.together += places
        return None


class _Reads(NamedTuple):
    """Reads of a stage from a producer: `elements` for a point, at most; by the producer's dims the `first` and the
    `last` place, as far as these are known, from its own on, and how many elements are read through a clamp there."""

    elements: float
    first: tuple[float, ...]
    last: tuple[float, ...]
    clamped: tuple[float, ...]
    period: tuple[float, ...]


@once
def is_permuted(stage: Stage) -> bool:
    """True if some stage is read in another order than a row has."""
    return any(period > 1 for reads in _reads(stage).values() for period in reads.period)


@once
def _reads(stage: Stage) -> dict[str, _Reads]:
    found: dict[str, list[StageAccess]] = {}
    for a in accesses(stage):
        found.setdefault(a.producer, []).append(a)
    return {producer: _together(those) for producer, those in found.items()}


def _together(those: Sequence[StageAccess]) -> _Reads:
    times = list(map(_times, those))
    dims = list(zip(*(a.spans for a in those), strict=True))
    return _Reads(
        sum(times),
        tuple(min((float(s.lo) for s in spans if s.lo is not None), default=inf) for spans in dims),
        tuple(max((float(s.hi) for s in spans if s.hi is not None), default=-inf) for spans in dims),
        tuple(sum(n for n, s in zip(times, spans, strict=True) if s.clamps) for spans in dims),
        tuple(max(_period(a, d) for a in those) for d in range(len(dims))),
    )


def _period(a: StageAccess, d: int) -> float:
    order = order_of(inside(a.access.indices[d], a.producer), a.spans[d].var)
    return 1.0 if order is None else order.period if log2(order.period).is_integer() else inf


def _times(a: StageAccess) -> float:
    """Number of elements that an access reads for a point, at most."""
    times = 1.0
    for r in a.reductions:
        times *= max(1, int(getattr(r.extent, "value", 1)))
    return times
