"""Correlated terms of indices: `x - x % 128` is one step of 128, not two numbers that have nothing to do with each
other; written as `x // 128 * 128` its bounds are exact, and its access function is known."""

from __future__ import annotations

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Const, Expr, Unary, map_children
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, rewritten
from tilesmith.scheduler.ir.pipeline.types import INT32

_Term = tuple[int, Expr]


def with_joined_terms(stage: Stage) -> Stage:
    """`stage`, where sums in indices with `a` and `-(a % k)` have `a // k * k` in place of both, and those with `a % k`
    and `a // k * k` have `a`; k is a positive number."""
    return rewritten(stage, _inside, _inside) if any(map(_is_remainder, parts(stage, Binary))) else stage


def _inside(e: Expr) -> Expr:
    return map_children(e, _index if isinstance(e, Access) else _inside)


def _index(e: Expr) -> Expr:
    e = map_children(e, _index)
    if not (isinstance(e, Binary) and e.op in "+-" and e.type == INT32):
        return e
    terms = _terms(e, 1)
    found = _joined(terms)
    return e if found is None else _total(found)


def _joined(terms: list[_Term]) -> list[_Term] | None:
    """The sum with a pair of terms joined; None where none of them go together."""
    for n, (sign, t) in enumerate(terms):
        if not _is_remainder(t):
            continue
        assert isinstance(t, Binary)
        whole: Expr = Binary("*", Binary("//", t.left, t.right, INT32), t.right, INT32)
        rest = terms[:n] + terms[n + 1 :]
        parts = [(-sign * s, p) for s, p in _terms(t.left, 1)]
        instead: _Term = (-sign, whole)
        left = _without(rest, parts)
        if left is None:
            left, instead = _without(rest, [(sign, whole)]), (sign, t.left)
        if left is not None:
            total = [*left, instead]
            return _joined(total) or total
    return None


def _without(terms: list[_Term], parts: list[_Term]) -> list[_Term] | None:
    left = list(terms)
    for p in parts:
        if p not in left:
            return None
        left.remove(p)
    return left


def _terms(e: Expr, sign: int) -> list[_Term]:
    if isinstance(e, Binary) and e.op in "+-" and e.type == INT32:
        return [*_terms(e.left, sign), *_terms(e.right, sign if e.op == "+" else -sign)]
    if isinstance(e, Unary) and e.op == "-" and e.type == INT32:
        return _terms(e.operand, -sign)
    return [(sign, e)]


def _total(terms: list[_Term]) -> Expr:
    terms = sorted(terms, key=lambda t: -t[0])
    sign, total = terms[0]
    total = total if sign > 0 else Unary("-", total, INT32)
    for sign, t in terms[1:]:
        total = Binary("+" if sign > 0 else "-", total, t, INT32)
    return total


def _is_remainder(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "%" and isinstance(e.right, Const) and e.right.value > 0
