"""Linear combinations: sums as terms with coefficients, in the order written; and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import NamedTuple, TypeGuard

from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Cast,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Unary,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType

ONE = Fraction(1)
_LARGEST = 1 << 60


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A number times factors that are the same at every point (params, weights in a stage), sorted by their text."""

    number: Fraction = ONE
    factors: tuple[Expr, ...] = ()

    def __mul__(self, other: Coefficient) -> Coefficient:
        if self.number is ONE and not self.factors:
            return other
        if not other.factors:
            return Coefficient(self.number * other.number, self.factors)
        factors = sorted((*self.factors, *other.factors), key=to_text) if self.factors else other.factors
        return Coefficient(self.number * other.number, tuple(factors))

    def is_moderate(self, type: ScalarType) -> bool:
        """True if products with it come out right however they are put together: floats neither overflow nor vanish."""
        n, d = abs(self.number.numerator), self.number.denominator
        return not type.is_float or not n or (d <= n * _LARGEST and n <= d * _LARGEST)


ITSELF = Coefficient()
"""The coefficient of what is taken once: 1."""


class Term(NamedTuple):
    """`coefficient` times `body`."""

    coefficient: Coefficient
    body: Expr


def is_sum(e: Expr) -> TypeGuard[Binary]:
    """True if `e` adds or subtracts numbers."""
    return isinstance(e, Binary) and e.op in ("+", "-")


def terms(e: Expr) -> tuple[Term, ...]:
    """The terms of a sum, left to right: brackets are opened, coefficients multiplied out. Exact for integers, as all
    of it has one type and wraps; floats are rounded elsewhere."""
    found: list[Term] = []
    pending = [(e, ITSELF)]
    while pending:
        t = term(*pending.pop())
        if is_sum(t.body):
            right = t.coefficient if t.body.op == "+" else _negative(t.coefficient)
            pending += ((t.body.right, right), (t.body.left, t.coefficient))
        else:
            found.append(t)
    return tuple(found)


def term(e: Expr, scale: Coefficient = ITSELF) -> Term:
    """`scale` times `e`, with the coefficients of `e` in the scale: what is left is no product with one."""
    while True:
        match e:
            case Unary(op="-", operand=operand):
                e, scale = operand, _negative(scale)
            case Binary(op="/", left=left, right=Const(value=value)) if value and isfinite(value):
                e, scale = left, scale * Coefficient(ONE / Fraction(value))
            case Binary(op="<<", left=left, right=Const(value=count)) if not isinstance(left, Const):
                e, scale = left, scale * Coefficient(Fraction(1 << int(count)))
            case Binary(op="*", left=left, right=right):
                by, rest = coefficient(left), right
                if by is None:
                    by, rest = coefficient(right), left
                if by is None or isinstance(rest, Const):
                    return Term(scale, e)
                e, scale = rest, scale * by
            case _:
                return Term(scale, e)


def _negative(c: Coefficient) -> Coefficient:
    return Coefficient(-c.number, c.factors)


def coefficient(e: Expr) -> Coefficient | None:
    """`e` as a coefficient; None where it depends on a dim or on a variable of a reduction."""
    match e:
        case Const(value=value):
            return _times(value) if isfinite(value) else Coefficient(ONE, (e,))
        case Var():
            return None
        case ParamRef() | InputBound():
            return Coefficient(ONE, (e,))
        case Binary(op="*", left=left, right=right):
            a, b = coefficient(left), coefficient(right)
            return None if a is None or b is None else a * b
        case Cast(operand=operand, type=type) if type.is_float and isinstance(c := fold(operand), Const):
            return coefficient(number(Fraction(c.value), type)) if isfinite(c.value) else Coefficient(ONE, (e,))
        case Access(indices=indices):
            if any(isinstance(i.left if isinstance(i, Binary) else i, Var) for i in indices):  # as of most
                return None
            if all(isinstance(i, Const) for i in indices):
                return Coefficient(ONE, (e,))
    return None if any(isinstance(n, Var) for n in walk(e)) else Coefficient(ONE, (e,))


@lru_cache(maxsize=4096)
def _times(value: float) -> Coefficient:
    return Coefficient(Fraction(value))


def difference(a: Expr, b: Expr) -> int | None:
    """`a - b` of two indices, where it is a number."""
    number, found = 0, dict[Expr, int]()
    for scale, body in terms(Binary("-", a, b, INT32)):
        if scale.factors or scale.number.denominator != 1:
            return None
        n = int(scale.number)
        if isinstance(body, Const):
            number += n * int(body.value)
        else:
            found[body] = found.get(body, 0) + n
    return None if any(found.values()) else number


def combined(found: Iterable[Term], type: ScalarType) -> Expr:
    """The sum of terms, at least one, of `type`: those with equal coefficients are added up first, so that each is
    multiplied once. Begins with what is added, where there is such a thing."""
    groups: dict[tuple[Fraction, tuple[Expr, ...]], list[tuple[bool, Expr]]] = {}
    for t in found:
        key = (abs(t.coefficient.number), t.coefficient.factors)
        groups.setdefault(key, []).append((t.coefficient.number < 0, t.body))
    parts = []
    for (number, factors), bodies in groups.items():
        minus = all(negative for negative, _ in bodies)
        ordered = sorted(bodies, key=lambda b: b[0] != minus)
        inner: Expr = ordered[0][1]
        for negative, body in ordered[1:]:
            inner = Binary("-" if negative != minus else "+", inner, body, type)
        parts.append((minus, scaled(inner, Coefficient(number, factors))))
    parts.sort(key=lambda p: p[0])
    minus, total = parts[0]
    if minus:
        total = Unary("-", total, type)
    for minus, part in parts[1:]:
        total = Binary("-" if minus else "+", total, part, type)
    return total


def scaled(e: Expr, by: Coefficient) -> Expr:
    """`e` times a coefficient."""
    factors: Sequence[Expr] = by.factors if by.number == 1 else (*by.factors, number(by.number, e.type))
    if not factors:
        return e
    scale = factors[0]
    for f in factors[1:]:
        scale = Binary("*", scale, f, e.type)
    return Binary("*", e, scale, e.type)


def number(q: Fraction, type: ScalarType) -> Const:
    """`q` as a literal: an integer wraps, a float is rounded."""
    value = int(q) if type.is_integer else float(q)
    return Const(semantics.constant(value, type).item(), type)
