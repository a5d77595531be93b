"""Strength recovery in places: shifts and masks by constants as the products, quotients and remainders that they stand
for, which are exact of negative numbers, too: `x >> 6` is `x // 64`, `x & 63` is `x % 64`, `x & -64` is `x // 64 * 64`,
`x & 4` is `x // 4 % 2 * 4`.
"""

from __future__ import annotations

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, BinaryOp, Const, Expr, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, rewritten

_OPERATORS = frozenset(("<<", ">>", "&"))


def with_quotients(stage: Stage) -> Stage:
    """`stage`, where what is made of dims, variables of reductions and numbers has no shifts by constants, and no masks
    of bits that follow each other; the stage itself where nothing changes."""
    return rewritten(stage, _inside, _inside) if any(e.op in _OPERATORS for e in parts(stage, Binary)) else stage


def _inside(e: Expr) -> Expr:
    e = map_children(e, _inside)
    if not (isinstance(e, Binary) and e.op in _OPERATORS and e.type.kind == "int"):
        return e
    left, right = (e.right, e.left) if e.op == "&" and isinstance(fold(e.left), Const) else (e.left, e.right)
    number = fold(right)
    if not isinstance(number, Const) or any(isinstance(part, Access) for part in walk(left)):
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
