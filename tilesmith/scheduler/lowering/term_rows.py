"""Rows that long reductions come to, from which each takes a vector, and which of them are asked for ahead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilesmith.platforms.core import Pages
from tilesmith.scheduler.analysis.access_functions import span_of, variable
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.features.operations.reduction_loops import trips
from tilesmith.scheduler.ir.pipeline.pipeline import Stage


@dataclass(frozen=True, slots=True)
class TermRows:
    """The rows of a `producer` that a reduction comes to, `count` of them: the outermost `variable` of its domain moves
    on by so many `rows` in the dim of that number, and `inside` is the innermost one that comes to another row."""

    producer: str
    dim: int
    rows: int
    variable: str
    inside: str
    count: int

    def are_late(self, stride_bytes: float, pages: Pages) -> bool:
        """True if the rows of an iteration of the outermost loop begin a page or more after those of the one before,
        where rows of that dim are `stride_bytes` apart, and all are in more pages than the TLB finds at once. What
        fetches ahead by itself stops at the end of a page."""
        found = pages.tlb[0].entries if pages.tlb else 0
        return abs(self.rows) * stride_bytes >= pages.page_bytes and self.count > found


def rows_of_terms(stage: Stage, along: str, inlined: Mapping[str, Stage]) -> tuple[TermRows, ...]:
    """The rows of reductions over several variables in the value of a stage whose vectors run `along` a dim, those of
    stages that are inline in it among them. Of one variable the next terms are near enough for a core to see them."""
    found: dict[TermRows, None] = {}
    for a in accesses(stage):
        moving = [d for d, used in enumerate(a.used) if along in used]
        if a.definition or any(a.data) or len(moving) != 1:
            continue
        within = inlined.get(a.producer)
        if within is not None:
            found |= dict.fromkeys(rows_of_terms(within, within.dims[moving[0]], inlined))
        elif (rows := _rows(a, moving[0])) is not None:
            found[rows] = None
    return tuple(found)


def _rows(a: StageAccess, row: int) -> TermRows | None:
    """The rows of an access, whose vectors lie along the dim `row`."""
    counts = {r.name: trips(r) for r in a.reductions}
    across = [n for n in counts if any(n in used for d, used in enumerate(a.used) if d != row)]
    if len(counts) < 2 or across[:1] != [*counts][:1]:
        return None
    outermost = across[0]
    moved = [d for d, used in enumerate(a.used) if outermost in used]
    span = span_of(a.access.indices[moved[0]], {n: variable(n) for n in a.used[moved[0]]})
    if len(moved) > 1 or moved[0] == row or span.var != outermost or int(span.rate) != span.rate:
        return None
    return TermRows(a.producer, moved[0], int(span.rate), outermost, across[-1], prod(counts[n] for n in across))
