"""Indices that go on in the same order again: of `x // 4 * 4 + 3 - x % 4` every four are those before, four on."""

from __future__ import annotations

from math import gcd, inf, lcm
from typing import NamedTuple

from tilesmith.scheduler.analysis.accesses import StageAccess
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Cast, Const, Expr, Unary, Var, children, walk


class Steps(NamedTuple):
    """An index that is `further` at the point of a dim that is `period` points on, wherever that is."""

    period: int
    further: int


STILL = Steps(1, 0)


def steps_of(index: Expr, dim: str) -> Steps | None:
    """The steps of an index along a dim, inside of its clamps; None where there are none as a rule, as where data says
    the place."""
    if not any(isinstance(e, Var) and e.name == dim for e in walk(index)):
        return STILL
    match index:
        case Var():
            return Steps(1, 1)
        case Unary(op="-"):
            return _scaled(steps_of(index.operand, dim), -1)
        case Binary(op="+" | "-"):
            return _sum(steps_of(index.left, dim), steps_of(index.right, dim), 1 if index.op == "+" else -1)
        case Binary(op="*", left=Const(value=k), right=e) | Binary(op="*", left=e, right=Const(value=k)):
            return _scaled(steps_of(e, dim), int(k))
        case Binary(op="//" | "%", right=Const(value=k)) if k > 0:
            return _divided(steps_of(index.left, dim), int(k), index.op == "%")
        case Call(function="clamp" | "min" | "max"):
            return _joined(index, dim)
        case Cast() if index.type.is_integer and index.operand.type.is_integer:
            return steps_of(index.operand, dim)
    return None


def order_of(a: StageAccess, d: int) -> int | float:
    """Points of the dim that index `d` of an access follows after which it goes on in the same order: 1 of neighbours
    in their own, infinite where it never does as a rule."""
    var = a.spans[d].var
    if var is None:
        return 1
    steps = steps_of(a.access.indices[d], var)
    return inf if steps is None else steps.period


def _scaled(a: Steps | None, k: int) -> Steps | None:
    return None if a is None else Steps(a.period, a.further * k)


def _sum(a: Steps | None, b: Steps | None, sign: int) -> Steps | None:
    if a is None or b is None:
        return None
    period = lcm(a.period, b.period)
    return Steps(period, a.further * (period // a.period) + sign * b.further * (period // b.period))


def _divided(a: Steps | None, k: int, remainder: bool) -> Steps | None:
    if a is None:
        return None
    times = k // gcd(a.further, k)
    return Steps(a.period * times, 0 if remainder else a.further * times // k)


def _joined(e: Call, dim: str) -> Steps | None:
    """Between its ends a clamp is what moves."""
    parts = [steps_of(p, dim) for p in children(e)]
    moving = {p for p in parts if p != STILL}
    return moving.pop() if len(moving) == 1 else None
