"""Strength recovery in places: shifts and masks by constants as the products, quotients and remainders that they stand
for, which are exact of negative numbers, too: `x >> 6` is `x // 64`, `x & 63` is `x % 64`, `x & -64` is `x // 64 * 64`,
`x & 4` is `x // 4 % 2 * 4`. And choices by the lowest bit: `a(select(x % 2 == 0, x // 2 - 1, x // 2 + 1))` is
`a(x // 2 - 1 + x % 2 * 2)`.
"""

from __future__ import annotations

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    BinaryOp,
    Compare,
    Const,
    Expr,
    Select,
    has_accesses,
    map_children,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, rewritten

_OPERATORS = frozenset(("<<", ">>", "&"))


def with_quotients(stage: Stage) -> Stage:
    """`stage`, where what is made of dims, variables of reductions and numbers has no shifts by constants, and no masks
    of bits that follow each other, and where no index chooses by a remainder of 2 between places that are a constant
    apart; the stage itself where nothing changes."""
    if any(e.op in _OPERATORS for e in parts(stage, Binary)):
        stage = rewritten(stage, _inside, _inside)
    return rewritten(stage, _read, _read) if parts(stage, Select) else stage


def _inside(e: Expr) -> Expr:
    e = map_children(e, _inside)
    if not (isinstance(e, Binary) and e.op in _OPERATORS and e.type.kind == "int"):
        return e
    left, right = (e.right, e.left) if e.op == "&" and isinstance(fold(e.left), Const) else (e.left, e.right)
    number = fold(right)
    if not isinstance(number, Const) or has_accesses(left):
        return e
    n = int(number.value)
    if e.op != "&":
        return _with("*" if e.op == "<<" else "//", left, 1 << n) if 0 <= n < e.type.bits - 1 else e
    step = n & -n if n else 1
    whole, run = _with("//", left, step), n // step
    if run & (run + 1) or 0 > n == -1 << (e.type.bits - 1):
        return e
    return _with("*", whole if run < 0 else _with("%", whole, run + 1), step)


def _with(op: BinaryOp, e: Expr, n: int) -> Expr:
    if n == 1 and op != "%":
        return e
    return Binary(op, e, Const(n, e.type), e.type)


def _read(e: Expr) -> Expr:
    """`e`, where indices have sums for choices by the lowest bit."""
    return map_children(e, _place if isinstance(e, Access) else _read)


def _place(e: Expr) -> Expr:
    e = map_children(e, _place)
    match e:
        case Select(
            condition=Compare(
                op="==" | "!=" as op,
                left=Binary(op="%", right=Const(value=2)) as bit,
                right=Const(value=0 | 1 as of),
            ),
            if_true=one,
            if_false=other,
        ) if e.type.kind == "int" and bit.type == e.type:
            at_zero, at_one = (one, other) if (of == 0) == (op == "==") else (other, one)
            (place, n), (same, m) = _apart(at_zero), _apart(at_one)
            if place == same and not has_accesses(place):
                return Binary("+", at_zero, _with("*", bit, m - n), e.type)
    return e


def _apart(e: Expr) -> tuple[Expr, int]:
    """`e` without the constants that are added to it, and their sum."""
    n = 0
    while isinstance(e, Binary) and e.op in ("+", "-") and isinstance(e.right, Const):
        n += int(e.right.value) if e.op == "+" else -int(e.right.value)
        e = e.left
    return e, n
