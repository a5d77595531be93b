"""Reductions that are loops, and those whose terms are written out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import prod

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Const,
    Expr,
    Reduce,
    RVar,
    children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

UNROLLED_TRIPS = 64
"""Reductions of at most this many terms, all bounds constant, are written out as vectors, ..."""
CONTRACTED_TRIPS = 8
"""... those of contractions, whose operands other points read again, of at most this many, ..."""
MOST_WRITTEN = 4096
"""... if with those of reductions inside of them no more are."""


def is_written_out(e: Reduce, most: int = UNROLLED_TRIPS) -> bool:
    """True if the terms of a reduction, at most so many, are written out; those of others are a loop."""
    terms = prod(map(trips, e.domain))
    if terms > CONTRACTED_TRIPS and is_contraction(e):
        return False
    return 0 < terms <= most and terms * sum(map(_written, children(e))) <= MOST_WRITTEN


def is_contraction(e: Reduce) -> bool:
    """True if a reduction runs along one variable through two operands, as a product of matrices does: each of them
    moves with a dim that the other does not move with, so that it is read again for every point along the other's."""
    if len(e.domain) != 1:
        return False
    (r,) = e.domain
    reads = [variables_of(*a.indices) for a in walk(e) if isinstance(a, Access)]
    moving = [names - {r.name} for names in reads if r.name in names]
    return any(a - b and b - a for a, b in combinations(moving, 2))


def _written(e: Expr) -> int:
    """Terms of reductions that are written out for an expression; of a loop those of one iteration."""
    inside = sum(map(_written, children(e)))
    if not isinstance(e, Reduce):
        return inside
    terms = prod(map(trips, e.domain)) * max(1, inside)
    return terms if terms <= MOST_WRITTEN else max(1, inside)


def trips(r: RVar) -> int:
    """Iterations, where the range is constant; a great many where it is not."""
    return int(r.extent.value) if isinstance(r.extent, Const) and isinstance(r.lo, Const) else 1 << 30


def has_long_reduction(stage: Stage, inlined: Mapping[str, Stage]) -> bool:
    """True if a value of `stage`, or of a stage inlined in it, has a reduction that vectors run as a loop."""
    if long_reductions(stage) or not inlined:
        return long_reductions(stage) > 0
    reads = {a.producer for a in accesses(stage)} & inlined.keys()
    return any(has_long_reduction(inlined[name], inlined) for name in sorted(reads))


def long_sums(stage: Stage, inlined: Mapping[str, Stage], executed: Mapping[str, float]) -> float:
    """Reductions of a point of `stage` that vectors run as loops, with those of stages inlined in it, each as often as
    it is `executed` a point."""
    return long_reductions(stage) + sum(n * long_reductions(inlined[name]) for name, n in executed.items())


@once
def long_reductions(stage: Stage) -> int:
    """Reductions of a point of `stage` that vectors run as loops."""
    return sum(not is_written_out(e) for e in reductions(stage))
