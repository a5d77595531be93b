"""Indices that go on in the same order again: of `x // 4 * 4 + 3 - x % 4` every four are those before, four on."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, inf, lcm
from typing import NamedTuple

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Reduce,
    Unary,
    Var,
    children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import INT32, INT64


class Steps(NamedTuple):
    """An index that is `further` at the point of a dim that is `period` points on, wherever that is. `in_order`: it
    goes one way alone from point to point."""

    period: int
    further: int
    in_order: bool


STILL = Steps(1, 0, True)
ONE = Steps(1, 1, True)


def steps_of(index: Expr, dim: str) -> Steps | None:
    """The steps of an index along a dim, inside of its clamps; None where there are none as a rule, as where data says
    the place."""
    while isinstance(index, Binary) and index.op in ("+", "-") and isinstance(index.right, Const):
        index = index.left
    if isinstance(index, Var):
        return ONE if index.name == dim else STILL
    if not any(isinstance(e, Var) and e.name == dim for e in walk(index)):
        return STILL
    match index:
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


@once
def _known_blocks(stage: Stage) -> dict[str, int]:
    return {}


def block_points(stage: Stage, dim: str) -> int:
    """The points along a dim of the blocks that a stage reads, as `f(x // 8)` and `g(x % 8)` do: points that begin with
    one are known to share what they read. 1 where there are no blocks."""
    known = _known_blocks(stage)
    if dim not in known:
        sizes = {
            int(e.right.value)
            for e in parts(stage, Binary)
            if e.op in ("//", "%") and isinstance(e.right, Const) and e.type == INT32 and dim in variables_of(e.left)
        }
        known[dim] = lcm(*sizes) if min(sizes, default=0) > 0 else 1
    return known[dim]


@once
def repeats_of(stage: Stage) -> tuple[str, float] | None:
    """The one dim that the values of a stage are made of, with the points after which they are the same again; None
    where they are made of more, or read anything."""
    names = variables_of(*stage.values)
    if len(names) != 1 or stage.updates or any(isinstance(e, Access | Reduce) for v in stage.values for e in walk(v)):
        return None
    (dim,) = names
    period, pending = 1.0, list(stage.values)
    while pending and period < inf:
        e = pending.pop()
        steps = steps_of(e, dim) if e.type in (INT32, INT64) else None
        if isinstance(e, Var):
            period = inf
        elif steps is not None and steps.further == 0:
            period = float(lcm(int(period), steps.period))
        else:
            pending += children(e)
    return dim, period


class Order(NamedTuple):
    """The points of `dim` after which places go on in the same order, infinite where they never do as a rule; True if
    that is `in_order`."""

    dim: str
    period: float
    in_order: bool


def order_of(index: Expr, dim: str | None) -> Order | None:
    """The order of an index along a dim that it follows; None where it follows none."""
    if dim is None:
        return None
    steps = steps_of(index, dim)
    return Order(dim, inf, False) if steps is None else Order(dim, steps.period, steps.in_order)


def joined(orders: Iterable[Order | None]) -> tuple[Order, ...]:
    """The order of several places together, by dim: but for those of neighbours."""
    found: dict[str, Order] = {}
    for order in orders:
        if order is not None and order.period > 1:
            before = found.get(order.dim, Order(order.dim, 1.0, True))
            both = (order.period, before.period)
            period = inf if inf in both else float(lcm(*map(int, both)))
            found[order.dim] = Order(order.dim, period, order.in_order and before.in_order)
    return tuple(found.values())


def _scaled(a: Steps | None, k: int) -> Steps | None:
    return None if a is None else Steps(a.period, a.further * k, a.in_order)


def _sum(a: Steps | None, b: Steps | None, sign: int) -> Steps | None:
    if a is None or b is None:
        return None
    period, in_order = lcm(a.period, b.period), a.in_order and b.in_order and a.further * b.further * sign >= 0
    return Steps(period, a.further * (period // a.period) + sign * b.further * (period // b.period), in_order)


def _divided(a: Steps | None, k: int, remainder: bool) -> Steps | None:
    if a is None:
        return None
    times = k // gcd(a.further, k)
    further = 0 if remainder else a.further * times // k
    return Steps(a.period * times, further, a.in_order and not remainder)


def _joined(e: Call, dim: str) -> Steps | None:
    """Between its ends a clamp is what moves."""
    parts = [steps_of(p, dim) for p in children(e)]
    moving = {p for p in parts if p != STILL}
    return moving.pop() if len(moving) == 1 else None
