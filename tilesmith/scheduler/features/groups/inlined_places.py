"""Places where stages that are inline are written out, in the code of one row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.operations.reduction_loops import UNROLLED_TRIPS, trips
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

INLINED_READS = 4_000
"""Inlined stages may be read at this many places in one nest of loops: more is a program nobody wants to compile."""


def inlined_places(members: Members, inlined: Collection[str]) -> int:
    """The reads of stages of `inlined` that the code of a point of each other stage writes out, at most: neighbours may
    share some."""
    places: dict[str, int] = {}
    for name in reversed(members.names[:-1]):
        if name in inlined:
            readers = ((c, written_reads(members.facts.definitions[c])[name]) for c in members.consumers[name])
            places[name] = sum(places.get(c, 1) * n for c, n in readers)
    return sum(places.values())


@once
def written_reads(stage: Stage) -> Mapping[str, int]:
    """Reads that are written out for a point, by producer: those in a loop of a long reduction count once."""
    found: dict[str, int] = {}
    for a in accesses(stage):
        terms = prod(map(trips, a.reductions))
        found[a.producer] = found.get(a.producer, 0) + (terms if terms <= UNROLLED_TRIPS else 1)
    return found
