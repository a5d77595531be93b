"""Constant folding of integer expressions."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.expressions import Binary, Call, Cast, Const, Expr, Unary, walk
from tilesmith.scheduler.ir.pipeline.value_bounds import interval


def fold(e: Expr) -> Expr:
    """`e`, or the constant that an integer expression of constants is."""
    if isinstance(e, Const) or not e.type.is_integer or not all(_is_constant(n) for n in walk(e)):
        return e
    ends = interval(e).numeric
    return Const(int(ends[0]), e.type) if ends is not None and ends[0] == ends[1] else e


def _is_constant(e: Expr) -> bool:
    return isinstance(e, Const | Binary | Unary | Cast) or (
        isinstance(e, Call) and e.function in ("min", "max", "clamp", "abs", "absd")
    )
