"""Matching of the pattern of a rule's instance with an expression, operands that may be swapped both ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Cast, Compare, Const, Expr, Logical, Var, children
from tilesmith.scheduler.rewrites.expression_rules.equality import kind, same

Binding: TypeAlias = Mapping[str, Expr]
"""Bindings: the expressions that pattern variables stand for, by name."""

MOST_BINDINGS: Final = 32
MOST_STEPS: Final = 4096
"""Steps that a pattern of many operands that may be swapped is tried in; no place that needs more is found."""

_COMMUTATIVE = frozenset("+*&|^")
_COMMUTATIVE_CALLS = frozenset(("absd", "sat_add", "halving_add", "rounding_halving_add"))


def bindings(pattern: Expr, e: Expr) -> Iterator[Binding]:
    """The bindings with which `pattern` is `e`, but for the order of operands that may be swapped; as
    they are written first."""
    return islice(_Matcher().match(pattern, e, {}), MOST_BINDINGS)


def is_commutative(e: Expr) -> bool:
    """True if the two operands may be swapped, to the bit. A `min` of floats knows them apart, by NaN and zeros."""
    match e:
        case Binary():
            return e.op in _COMMUTATIVE
        case Compare():
            return e.op in ("==", "!=")
        case Call(function="min" | "max"):
            return not e.type.is_float
        case Call():
            return e.function in _COMMUTATIVE_CALLS
        case _:
            return isinstance(e, Logical)


class _Matcher:
    def __init__(self) -> None:
        self.steps = 0

    def match(self, pattern: Expr, e: Expr, bound: Binding) -> Iterator[Binding]:
        self.steps += 1
        if self.steps > MOST_STEPS:
            return
        if isinstance(pattern, Var):
            known = bound.get(pattern.name)
            if known is None and e.type == pattern.type:
                yield {**bound, pattern.name: e}
            elif known is not None and same(known, e):
                yield bound
        elif isinstance(pattern, Const):
            if same(pattern, e):
                yield bound
        elif kind(pattern) == kind(e) and not (isinstance(pattern, Cast) and _operand(pattern) != _operand(e)):
            parts, found = children(pattern), children(e)
            if len(parts) == len(found):
                yield from self._all(parts, found, bound)
                if is_commutative(pattern):
                    yield from self._all(parts, found[::-1], bound)

    def _all(self, patterns: Sequence[Expr], parts: Sequence[Expr], bound: Binding) -> Iterator[Binding]:
        if not patterns:
            yield bound
            return
        for first in self.match(patterns[0], parts[0], bound):
            yield from self._all(patterns[1:], parts[1:], first)


def _operand(e: Expr) -> object:
    return e.operand.type if isinstance(e, Cast) else None
