"""Pairs of terms: long integer sums of products of 16 bits add up two products an iteration, which machines multiply
and add by one instruction.

    sum(int32(a(r, y)) * int32(b(x, r)) for r in range(512))
      ->
    sum(int32(a(2 * r, y)) * int32(b(x, 2 * r)) + int32(a(2 * r + 1, y)) * int32(b(x, 2 * r + 1)) for r in range(256))
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilesmith.scheduler.analysis.short_products import short_factors
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Const,
    Expr,
    Reduce,
    RVar,
    Var,
    map_children,
    variables_of,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, rewritten
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.rewrites.fold_updates import SHORT_REDUCTION

FEWEST_TERMS = 4
"""Terms along a variable, at least: of fewer no loop is left."""


def with_paired_terms(stage: Stage) -> Stage:
    """`stage` with two terms an iteration in contractions of 16 bits, whose factors points along different dims share:
    what is put together of two terms is put together once for all of these. The stage itself where there are none.
    *Legal since* integers wrap: the order of terms does not matter. *Ignores* sums over windows that are short then,
    and written out."""
    return rewritten(stage, _paired, lambda e: e) if any(map(_variable, reductions(stage))) else stage


def _paired(e: Expr) -> Expr:
    e = map_children(e, _paired)
    r = _variable(e) if isinstance(e, Reduce) else None
    return e if r is None or not isinstance(e, Reduce) else _halved(e, r)


def _variable(e: Expr) -> RVar | None:
    """The variable of a reduction along which two terms are paired: the innermost of an even number of terms, or else
    of the most; None where it is no such contraction."""
    if not isinstance(e, Reduce) or e.op != "sum" or e.type != INT32 or e.where is not None:
        return None
    moving = [variables_of(f) for f in short_factors(e.body)]
    if len(moving) < 2 or not _is_shared(moving[0], moving[1], {r.name for r in e.domain}):
        return None
    known = [r for r in e.domain if _trips(r) >= FEWEST_TERMS and all(r.name in m for m in moving)]
    even = [r for r in known if _trips(r) % 2 == 0]
    found = even[-1] if even else max(known, key=_trips, default=None)
    if found is None:
        return None
    short = all(map(_trips, e.domain)) and prod(map(_trips, _pairs(e, found))) <= SHORT_REDUCTION
    return None if short and len(e.domain) > 1 else found


def _is_shared(a: set[str], b: set[str], loops: set[str]) -> bool:
    """True if each of two factors moves with a dim that the other does not move with."""
    return bool(a - b - loops and b - a - loops)


def _trips(r: RVar) -> int:
    """Iterations, where the range is constant; 0 where it is not."""
    return int(r.extent.value) if isinstance(r.extent, Const) and isinstance(r.lo, Const) else 0


def _pairs(e: Reduce, r: RVar) -> tuple[RVar, ...]:
    half = RVar(r.name, Const(0, INT32), Const(_trips(r) // 2, INT32))
    return tuple(half if v is r else v for v in e.domain)


def _halved(e: Reduce, r: RVar) -> Expr:
    """A reduction with two terms along a variable in each iteration, and the last one behind it where their number is
    odd."""
    assert isinstance(r.lo, Const)
    lo, count = int(r.lo.value), _trips(r)

    def at(place: Expr) -> Expr:
        return substituted(e.body, {r.name: place})

    even: Expr = Binary("*", Var(r.name), Const(2, INT32), INT32)
    first, second = (Binary("+", even, Const(lo + n, INT32), INT32) if lo + n else even for n in range(2))
    pairs = replace(e, body=Binary("+", at(first), at(second), INT32), domain=_pairs(e, r))
    if count % 2 == 0:
        return pairs
    last, others = at(Const(lo + count - 1, INT32)), tuple(v for v in e.domain if v is not r)
    return Binary("+", pairs, _paired(replace(e, body=last, domain=others)) if others else last, INT32)
