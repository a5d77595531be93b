"""Proofs of the conditions of rules, by bounds of values."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import Access, Compare, Const, Expr, Logical, Reduce, Unary, Var, walk
from tilesmith.scheduler.ir.pipeline.semantics import Array, constant
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval, hull, interval, leaf_interval
from tilesmith.scheduler.ir.pipeline.value_bounds import Leaf as LeafOfValue
from tilesmith.scheduler.rewrites.expression_rules.conditions import Condition, DoesNotRead, Holds, IsConstant
from tilesmith.scheduler.rewrites.expression_rules.equality import same
from tilesmith.scheduler.rewrites.expression_rules.matching import Binding

_UNKNOWN: Final = (-inf, inf)


class Bounds:
    """Bounds of the parts of one expression, each worked out once. Loops of reductions have the values of their ranges,
    dims any of their type."""

    def __init__(self, root: Expr) -> None:
        self.root = root  # parts are known by identity: they have to stay
        self.known: dict[int, Interval] = {}
        self.kept: list[Expr] = []
        self._loops: dict[str, Interval] | None = None

    def of(self, e: Expr) -> Interval:
        """An interval of the value of `e`, which is the expression, a part of it, or made of such."""
        if id(e) not in self.known:
            self.kept.append(e)
            interval(e, self._leaf, self.known)
        return self.known[id(e)]

    def _leaf(self, leaf: LeafOfValue) -> Interval:
        if isinstance(leaf, Var):
            return self.loops.get(leaf.name, _of_type(leaf.type))
        found = leaf_interval(leaf)
        return found if found.numeric is not None else _of_type(leaf.type)

    @property
    def loops(self) -> Mapping[str, Interval]:
        """The values of the loop variables of the reductions in the expression."""
        if self._loops is None:
            self._loops = {}
            for r in (r for n in walk(self.root) if isinstance(n, Reduce) for r in n.domain):
                here = Interval(INT32.min, INT32.max)
                if isinstance(r.lo, Const) and isinstance(r.extent, Const):
                    here = Interval(r.lo.value, r.lo.value + max(r.extent.value, 1) - 1)
                self._loops[r.name] = hull((here, self._loops.get(r.name, here)))
        return self._loops


def proved(condition: Condition, binding: Binding, bounds: Bounds) -> bool:
    """True if the condition is known to hold."""
    match condition:
        case IsConstant():
            return isinstance(binding[condition.variable], Const) == condition.constant
        case DoesNotRead():
            read = walk(binding[condition.variable])
            return not any(isinstance(n, Access) and n.name == condition.name for n in read)
        case Holds():
            return _known(condition.e, binding, bounds) is True


def _known(e: Expr, binding: Binding, bounds: Bounds) -> bool | None:
    """The value of a condition, where it is known."""
    if all(isinstance(binding[n.name], Const) for n in walk(e) if isinstance(n, Var)):
        return bool(evaluate(e, lambda leaf: _constant(leaf, binding)))
    match e:
        case Compare():
            return _compared(e, binding, bounds)
        case Logical():
            left, right = _known(e.left, binding, bounds), _known(e.right, binding, bounds)
            decisive = e.op == "or"
            if decisive in (left, right):
                return decisive
            return None if None in (left, right) else not decisive
        case Unary(op="not"):
            operand = _known(e.operand, binding, bounds)
            return None if operand is None else not operand
        case _:
            return None


def _constant(leaf: Leaf, binding: Binding) -> Array:
    assert isinstance(leaf, Var)
    value = binding[leaf.name]
    assert isinstance(value, Const)
    return constant(value.value, value.type)


def _compared(e: Compare, binding: Binding, bounds: Bounds) -> bool | None:
    if isinstance(e.left, Var) and isinstance(e.right, Var) and not e.left.type.is_float:  # a NaN is not itself
        a, b = binding[e.left.name], binding[e.right.name]
        if same(a, b):
            return e.op in ("<=", "==", ">=")
    (low, high), (lowest, highest) = (_ends(side, binding, bounds) for side in (e.left, e.right))
    if e.left.type.is_float and _UNKNOWN in ((low, high), (lowest, highest)):
        return None  # it may be NaN
    match e.op:
        case "<":
            return True if high < lowest else False if low >= highest else None
        case "<=":
            return True if high <= lowest else False if low > highest else None
        case ">":
            return True if low > highest else False if high <= lowest else None
        case ">=":
            return True if low >= highest else False if high < lowest else None
    apart = high < lowest or highest < low
    equal = low == high == lowest == highest
    return None if not (apart or equal) else equal == (e.op == "==")


def _ends(e: Expr, binding: Binding, bounds: Bounds) -> tuple[int | float, int | float]:
    """Numbers that the value of an expression of pattern variables is between."""

    def leaf(leaf: LeafOfValue) -> Interval:
        return bounds.of(binding[leaf.name]) if isinstance(leaf, Var) else leaf_interval(leaf)

    found, whole = interval(e, leaf), _of_type(e.type)
    low, high = (end if isinstance(end, int | float) else limit for end, limit in
                 ((found.lo, whole.lo), (found.hi, whole.hi)))  # fmt: skip
    return (low if isinstance(low, int | float) else -inf, high if isinstance(high, int | float) else inf)


def _of_type(type: ScalarType) -> Interval:
    return Interval(None, None) if type.is_float else Interval(type.min, type.max)
