"""Order of a recurrence's terms: what the step before has just computed is added last, so that the next step waits for
one multiplication with addition, and all else is computed meanwhile. So it is with the least of integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import is_

from tilesmith.scheduler.analysis.linear_combinations import difference, is_sum
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Unary,
    Var,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update

EXTREMES = ("min", "max")
_FEWEST = 3
"""Terms that have an order: of two, each waits for one operation."""

Lag = tuple[int, ...]
"""Steps back to where a value was written, of each loop of an update, the outermost first."""


def latest_last(stage: Stage, strict: bool = False) -> Stage:
    """`stage` with the sums of floats in its updates in the order in which their terms are known: first those that no
    step before it computes, then those of earlier steps, the latest last. It stands on the left: of `u*v + w*z`
    compilers fuse the product on the left with the addition. Sums stay as they are if `strict`; the terms of `min` and
    `max` of integers are in that order in any case. The stage itself where nothing changes."""
    updates = tuple(_ordered(stage.name, u, strict) if u.domain else u for u in stage.updates)
    return stage if all(map(is_, updates, stage.updates)) else replace(stage, updates=updates)


def _ordered(name: str, update: Update, strict: bool) -> Update:
    def lag(term: Expr) -> Lag | None:
        found = [_lag(update, n) for n in walk(term) if isinstance(n, Access) and n.name == name]
        return min((f for f in found if f is not None and any(f)), default=None)

    def rewrite(e: Expr) -> Expr:
        if isinstance(e, Call) and e.function in EXTREMES and e.type.is_integer:
            terms = [*_terms(e, e.function)]
            lags = [lag(t) for t in terms]
            if len(terms) < _FEWEST or not any(lags):
                return map_children(e, rewrite)
            order = sorted(range(len(terms)), key=lambda n: (lags[n] is not None, tuple(-k for k in lags[n] or ())))
            return reduce(lambda a, b: replace(e, args=(a, b)), [rewrite(terms[n]) for n in order])
        if strict or not (is_sum(e) and e.type.is_float):
            return map_children(e, rewrite)
        signed = list(_signed(e))
        lags = [lag(t) for _, t in signed]
        if len(signed) < 2 or not any(lags):
            return map_children(e, rewrite)
        parts = [(negative, rewrite(t), at) for (negative, t), at in zip(signed, lags, strict=True)]
        found = _summed(parts)
        return e if found is None or found == e else found

    values = tuple(map(rewrite, update.values))
    return update if values == update.values else replace(update, values=values)


def _terms(e: Expr, function: str) -> Iterator[Expr]:
    """Arguments of which `min` or `max` is taken, left to right."""
    if isinstance(e, Call) and e.function == function:
        for part in e.args:
            yield from _terms(part, function)
    else:
        yield e


def _signed(e: Expr, negative: bool = False) -> Iterator[tuple[bool, Expr]]:
    """The terms of a sum, left to right, and whether each is subtracted. What a number is subtracted times is added
    times its opposite."""
    if is_sum(e):
        yield from _signed(e.left, negative)
        yield from _signed(e.right, negative != (e.op == "-"))
        return
    match e:
        case Binary(op="*", left=Const(value=number) as left) if negative:
            yield False, replace(e, left=replace(left, value=-number))
        case Binary(op="*", right=Const(value=number) as right) if negative:
            yield False, replace(e, right=replace(right, value=-number))
        case Unary(op="-", operand=operand):
            yield from _signed(operand, not negative)
        case _:
            yield negative, e


def _summed(parts: list[tuple[bool, Expr, Lag | None]]) -> Expr | None:
    """The sum, by the lags of its terms; None where it would begin with a term that is subtracted. Of terms that are
    known at the same time the order is one that stays the same if it is put in order again."""
    free = sorted((p for p in parts if p[2] is None), key=lambda p: p[0])
    carried = [p for p in parts if p[0] and p[2]] + [p for p in reversed(parts) if not p[0] and p[2]]
    carried.sort(key=lambda p: p[2] or (), reverse=True)
    (negative, total, _), *rest = free + carried
    if negative:
        return None
    for n, (negative, term, _) in enumerate(rest, 1):
        if negative:
            total = Binary("-", total, term, total.type)
        elif n < len(free):
            total = Binary("+", total, term, total.type)
        else:
            total = Binary("+", term, total, total.type)
    return total


def _lag(update: Update, read: Access) -> Lag | None:
    """The steps between the point that the update writes and one that it reads; None where they are not the same at
    every point."""
    steps = dict.fromkeys((r.name for r in reversed(update.domain)), 0)
    for place, index in zip(update.at, read.indices, strict=True):
        by = difference(place, index)
        moved = [n.name for n in walk(place) if isinstance(n, Var) and n.name in steps]
        if by is None or (by and not moved):
            return None
        for name in moved:
            steps[name] += abs(by)
    return tuple(steps.values())
