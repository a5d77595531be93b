"""Factorisation of exponentials: weights that are exponentials of a sum over several loops are products, a factor a
loop, where that makes a window separable.

    f(x, y) = sum(a(x + i, y + j) * exp(-float32(i * i + j * j) / s) for i, for j)
      ->
    f(x, y) = sum(a(x + i, y + j) * (exp(-float32(i * i) / s) * exp(-float32(j * j) / s)) for i, for j)

A sum over a window of n x n points whose weights are one factor a row times one a column takes 2 n products instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce

from tilesmith.scheduler.analysis.separability import windows
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Reduce,
    RVar,
    Unary,
    Var,
    map_children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval, Leaf, interval, leaf_interval

LARGEST_EXPONENTS = {32: 80, 64: 700}
"""Exponents of floats of so many bits of which neither a factor nor its inverse overflows or loses bits."""
LARGEST_EXACT = {32: 1 << 24, 64: 1 << 53}
"""Integers up to which floats of so many bits have all."""


def factored(stage: Stage) -> Stage:
    """`stage` with exponentials in its sums as products of one for each set of loops that terms of the exponent have in
    common, if windows of it can be split then that could not before, else itself. *Legal when* floats are relaxed, and
    no factor overflows or vanishes. *Ignores* exponents that read data. Again, this changes nothing."""
    if not any(
        e.op == "sum" and len(e.domain) > 1 and any(map(_is_exponential, walk(e.body))) for e in reductions(stage)
    ):
        return stage
    ranges: dict[str, Interval] = {}

    def rewrite(e: Expr) -> Expr:
        if isinstance(e, Access):
            return e
        if isinstance(e, Reduce):
            ranges.update((r.name, found) for r in e.domain if (found := _range(r)) is not None)
        e = map_children(e, rewrite)
        return _product(e, ranges) if isinstance(e, Call) and _is_exponential(e) else e

    found = replace(stage, values=tuple(map(rewrite, stage.values)))
    return found if len(windows(found)) > len(windows(stage)) else stage


def _is_exponential(e: Expr) -> bool:
    return isinstance(e, Call) and e.function == "exp"


def _range(r: RVar) -> Interval | None:
    if not (isinstance(r.lo, Const) and isinstance(r.extent, Const)):
        return None
    return Interval(int(r.lo.value), int(r.lo.value) + int(r.extent.value) - 1)


def _product(e: Call, ranges: Mapping[str, Interval]) -> Expr:
    """An exponential as a product of several, or itself."""
    (exponent,) = e.args
    if any(isinstance(n, Access | Reduce) or (isinstance(n, Var) and n.name not in ranges) for n in walk(exponent)):
        return e

    def leaf(node: Leaf) -> Interval:
        return ranges[node.name] if isinstance(node, Var) else leaf_interval(node)

    def within(part: Expr, most: int) -> bool:
        ends = interval(part, leaf).numeric
        return ends is not None and -most <= ends[0] and ends[1] <= most

    parts = _apart(_terms(exponent, lambda part, type: within(part, LARGEST_EXACT[type.bits])))
    if len(parts) < 2 or not all(within(part, LARGEST_EXPONENTS[e.type.bits]) for part in parts):
        return e
    factors: list[Expr] = [Call("exp", (part,), e.type) for part in parts]
    return reduce(lambda a, b: Binary("*", a, b, e.type), factors)


def _apart(terms: Iterable[Expr]) -> list[Expr]:
    """The sums of the terms that have variables in common; those without any are part of the first."""
    parts: list[tuple[set[str], Expr]] = []
    fixed: list[Expr] = []
    for term in terms:
        names, total = variables_of(term), term
        if not names:
            fixed.append(term)
            continue
        for known in [p for p in parts if p[0] & names]:
            parts.remove(known)
            names, total = names | known[0], _sum(known[1], total)
        parts.append((names, total))
    sums = [total for _, total in parts]
    return [reduce(_sum, fixed, sums[0]), *sums[1:]] if sums else []


def _sum(a: Expr, b: Expr) -> Expr:
    return Binary("+", a, b, a.type)


def _terms(e: Expr, is_exact: Callable[[Expr, ScalarType], bool]) -> Iterator[Expr]:
    """The terms of a sum, with what all of it is multiplied with, divided by and converted to. A sum of integers is one
    of floats where all of it `is_exact` as these."""
    match e:
        case Unary(op="-", operand=inside):
            yield from (replace(e, operand=term) for term in _terms(inside, is_exact))
        case Binary(op="+", left=left, right=right):
            yield from _terms(left, is_exact)
            yield from _terms(right, is_exact)
        case Binary(op="-", left=left, right=right):
            yield from _terms(left, is_exact)
            yield from (Unary("-", term, e.type) for term in _terms(right, is_exact))
        case Binary(op="*" | "/", left=left, right=right) if not variables_of(right):
            yield from (replace(e, left=term) for term in _terms(left, is_exact))
        case Binary(op="*", left=left, right=right) if not variables_of(left):
            yield from (replace(e, right=term) for term in _terms(right, is_exact))
        case Cast(operand=inside, type=type) if type.is_float and inside.type.is_integer:
            terms = list(_terms(inside, is_exact))
            exact = all(is_exact(term, type) for term in (inside, *terms))
            yield from (replace(e, operand=term) for term in (terms if exact else [inside]))
        case _:
            yield e
