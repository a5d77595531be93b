"""Rules over reductions, and the folding of constants: what has loops, or operations of any kind, no pattern says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite, prod
from typing import Final

from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Const,
    Expr,
    Reduce,
    RVar,
    Select,
    variables_of,
)
from tilesmith.scheduler.ir.pipeline.semantics import identity
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.rewrites.expression_rules.constants import folded, put
from tilesmith.scheduler.rewrites.expression_rules.equality import Kind, same
from tilesmith.scheduler.rewrites.expression_rules.proofs import Bounds
from tilesmith.scheduler.rewrites.expression_rules.rule import NOT_EXACT, Exactness, Example, RuleText
from tilesmith.scheduler.rewrites.fold_updates import REDUCTIONS, joined

MOST_TERMS: Final = 64
"""Terms that a reduction may be written out in."""
_JOINED_BY: Final = {op: update for update, op in REDUCTIONS.items()}


@dataclass(frozen=True, slots=True)
class ComputedRule:
    """A rule whose result is computed: of the expression, or why there is none."""

    text: RuleText
    result: Callable[[Expr], Expr | str]
    kinds: Collection[Kind] | None = None

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def exact(self) -> Exactness:
        return self.text.exact

    def rewritten(self, e: Expr, bounds: Bounds, strict: bool) -> Expr | str:
        """`e` rewritten, or why not."""
        if strict and self.exact != "exact" and e.type.is_float:
            return NOT_EXACT[self.exact]
        return self.result(e)


def _rule(name: str, drawing: str, result: Callable[[Expr], Expr | str], exact: Exactness = "rounding") -> ComputedRule:
    before, after = (side.strip() for side in drawing.split("->"))
    return ComputedRule(RuleText(name, before, after, exact, (), Example(before, after)), result)


def _fold(e: Expr) -> Expr | str:
    return "it is no operation on constants that has one" if (constant := folded(e)) is e else constant


def _factor_out(e: Expr) -> Expr | str:
    """sum(k * a) -> k * sum(a), where k is no variable's."""
    if not (isinstance(e, Reduce) and e.op == "sum" and isinstance(e.body, Binary) and e.body.op == "*"):
        return "it is no sum of products"
    for factor, rest in ((e.body.left, e.body.right), (e.body.right, e.body.left)):
        if not variables_of(factor) & {r.name for r in e.domain}:
            return Binary("*", factor, replace(e, body=rest), e.type)
    return "both factors depend on the loops of the sum"


def _factor_in(e: Expr) -> Expr | str:
    """k * sum(a) -> sum(k * a)."""
    if isinstance(e, Binary) and e.op == "*":
        for factor, total in ((e.left, e.right), (e.right, e.left)):
            if isinstance(total, Reduce) and total.op == "sum":
                if variables_of(factor) & {r.name for r in total.domain}:
                    return "the factor has a variable of the name of a loop"
                return replace(total, body=Binary("*", factor, total.body, e.type))
    return "it is no product with a sum"


def _split(e: Expr) -> Expr | str:
    """sum(a + b) -> sum(a) + sum(b)."""
    if not (isinstance(e, Reduce) and e.op == "sum" and isinstance(e.body, Binary) and e.body.op in ("+", "-")):
        return "it is no sum of sums or differences"
    return Binary(e.body.op, replace(e, body=e.body.left), replace(e, body=e.body.right), e.type)


def _join(e: Expr) -> Expr | str:
    """sum(a) + sum(b) -> sum(a + b), over the same loops."""
    match e:
        case Binary(op="+" | "-" as op, left=Reduce(op="sum") as a, right=Reduce(op="sum") as b):
            if not same(replace(a, body=a.body), replace(b, body=a.body)):
                return "the two sums have other loops"
            return replace(a, body=Binary(op, a.body, b.body, e.type))
    return "it is no sum or difference of two sums"


def _interchange(e: Expr) -> Expr | str:
    """The outermost loop becomes the innermost."""
    if not isinstance(e, Reduce) or len(e.domain) < 2:
        return "it is no reduction with two loops"
    if e.op in ("argmin", "argmax"):
        return "which of equals comes first depends on the order"
    return replace(e, domain=(*e.domain[1:], e.domain[0]))


def _unroll(e: Expr) -> Expr | str:
    """The terms one by one, in the order of the loops."""
    if not isinstance(e, Reduce) or e.op not in _JOINED_BY:
        return "it is no reduction that an operator says"
    points = _points(e.domain)
    if points is None:
        return f"its loops are not of 1 to {MOST_TERMS} constant points"
    nothing = identity(e.op, e.type).item()
    if e.where is not None and not isfinite(nothing):
        return "a term that the condition leaves out has no value that can be written"
    terms = [_term(e, point, nothing) for point in points]
    whole = terms[0]
    for term in terms[1:]:
        whole = joined(_JOINED_BY[e.op], whole, term)
    return whole


def _points(domain: tuple[RVar, ...]) -> Iterator[dict[str, Expr]] | None:
    ranges: list[range] = []
    for r in domain:
        if not isinstance(r.lo, Const) or not isinstance(r.extent, Const):
            return None
        ranges.append(range(int(r.lo.value), int(r.lo.value + r.extent.value)))
    if not 0 < prod(map(len, ranges)) <= MOST_TERMS:
        return None
    names = [r.name for r in domain]
    return ({name: Const(n, INT32) for name, n in zip(names, point, strict=True)} for point in product(*ranges))


def _term(e: Reduce, point: Mapping[str, Expr], nothing: float) -> Expr:
    body = put(e.body, point)
    return body if e.where is None else Select(put(e.where, point), body, Const(nothing, e.type), e.type)


COMPUTED: Final = (
    _rule("fold_constants", "2 + 3 -> 5", _fold, "exact"),
    _rule("factor_out_of_sum", "sum(k * f(r) for r in range(0, 3)) -> k * sum(f(r) for r in range(0, 3))", _factor_out),
    _rule("factor_into_sum", "k * sum(f(r) for r in range(0, 3)) -> sum(k * f(r) for r in range(0, 3))", _factor_in),
    _rule(
        "split_sum",
        "sum(f(r) + g(r) for r in range(0, 3)) -> sum(f(r) for r in range(0, 3)) + sum(g(r) for r in range(0, 3))",
        _split,
    ),
    _rule(
        "join_sums",
        "sum(f(r) for r in range(0, 3)) + sum(g(r) for r in range(0, 3)) -> sum(f(r) + g(r) for r in range(0, 3))",
        _join,
    ),
    _rule(
        "interchange_loops",
        "sum(f(r, s) for r in range(0, 3) for s in range(0, 2))"
        " -> sum(f(r, s) for s in range(0, 2) for r in range(0, 3))",
        _interchange,
    ),
    _rule("unroll_reduction", "sum(f(r) for r in range(0, 3)) -> f(0) + f(1) + f(2)", _unroll),
)
