"""Index overflow check: the coordinates that a region needs have to stay within 32 bits, and so has the arithmetic of
indices.

The language computes an index in int32, which wraps; intervals are exact. Where these agree, sums, differences and
products may even wrap on the way: the end result decides. Other operations (`//`, `%`, `min`, comparisons) have to
get what is exact, so their operands are held to 32 bits as the boxes are.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.bounds_inference import Box, Interval, domain_intervals, interval_of, variables
from tilesmith.scheduler.ir.index import Index, Terms
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline import value_bounds as values
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    RVar,
    Unary,
    Var,
    children,
)
from tilesmith.scheduler.ir.pipeline.float_bounds import place_interval
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import INT32, INT64

_MODULAR = ("+", "-", "*")


def reach(stage: Stage, box: Box) -> tuple[list[Interval], tuple[Index, ...]]:
    """The intervals that have to lie within int32 when `stage` is computed on `box` (normalised, settled): the box,
    the operands in its indices, and the domains around them. And the ends of 64-bit operands."""
    env = variables(stage, box)
    found = list(box)
    wide: list[Index] = []
    for e, domain in _operands(stage):
        ends = interval_of(e, {**env, **domain_intervals(domain, env)})
        if e.type == INT32:
            found.append(ends)
        else:
            wide += [x for x in ends if not x.is_const]
    for domain in _domains(stage):
        inner = domain_intervals(domain, env)
        found += [inner[r.name] for r in domain if not (isinstance(r.lo, Const) and isinstance(r.extent, Const))]
    return found, tuple(wide)


class Held:
    """Ends that have been held to int32 already."""

    def __init__(self) -> None:
        self._low: dict[Terms, int] = {(): INT32.min}
        self._high: dict[Terms, int] = {(): INT32.max}

    def add(self, intervals: Iterable[Interval]) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
        """The lower and upper ends of `intervals` that are further out than any before; from now on these are held."""
        low, high = {}, {}
        for lo, hi in intervals:
            if lo.const < self._low.get(lo.terms, lo.const + 1):
                self._low[lo.terms], low[lo.terms] = lo.const, lo
            if hi.const > self._high.get(hi.terms, hi.const - 1):
                self._high[hi.terms], high[hi.terms] = hi.const, hi
        return tuple(low.values()), tuple(high.values())


@once
def _operands(stage: Stage) -> tuple[tuple[Expr, tuple[RVar, ...]], ...]:
    found = _Operands()
    for a in accesses(stage):
        for index in a.access.indices:
            found.collect(index, a.reductions)
    for update in stage.updates:
        for index in update.at:
            found.collect(index, update.domain)
    return tuple(found.listed)


@once
def _domains(stage: Stage) -> tuple[tuple[RVar, ...], ...]:
    around = [a.reductions for a in accesses(stage)] + [u.domain for u in stage.updates]
    return tuple(d for d in dict.fromkeys(around) if d)


class _Operands:
    """The operands that have to get what is exact, with the variables around them, as they are found in indices."""

    def __init__(self) -> None:
        self.listed: dict[tuple[Expr, tuple[RVar, ...]], None] = {}
        self.seen: set[tuple[int, tuple[RVar, ...]]] = set()
        self.intervals: dict[int, values.Interval] = {}

    def collect(self, e: Expr, domain: tuple[RVar, ...]) -> None:
        """Adds those of a part of an index, once of parts that are one object."""
        if isinstance(e, Access | Const | Var) or (id(e), domain) in self.seen:
            return
        self.seen.add((id(e), domain))
        if isinstance(e, Reduce):
            self.collect(e.body, (*domain, *e.domain))
            return
        modular = isinstance(e, Unary) or (isinstance(e, Binary) and e.op in _MODULAR)
        for child in children(e):
            if not modular and self._may_leave(child):
                self.listed[child, domain] = None
            self.collect(child, domain)

    def _may_leave(self, e: Expr) -> bool:
        """True if `e` is arithmetic of places that may leave int32. Data whose bounds cannot be proved wraps by
        itself."""
        grows = isinstance(e, Unary) or (isinstance(e, Binary) and e.op in (*_MODULAR, "<<", "**"))
        grows = grows or (isinstance(e, Call) and e.function in ("abs", "absd"))
        return grows and e.type in (INT32, INT64) and place_interval(e, self.intervals).bounded
