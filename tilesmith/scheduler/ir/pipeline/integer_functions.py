"""Functions of integers, written out in operations that every backend has, of scalars and of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilesmith.scheduler.ir.pipeline import bit_counts
from tilesmith.scheduler.ir.pipeline.expressions import Binary, BinaryOp, Call, Cast, Const, Expr
from tilesmith.scheduler.ir.pipeline.types import TYPES, ScalarType

_DOUBLED: Final = 16
"""The most bits of integers whose products are computed in twice as many, which vectors divide and shift fast."""


def written_out(e: Call) -> Expr | None:
    """The value of `e` without the function, of its type; None where the function has no such form, or its integers
    have no type of twice their bits that vectors compute in."""
    make = _WRITTEN.get(e.function)
    return None if make is None else make(e)


def _lerp(e: Call) -> Expr | None:
    """The integer nearest to (a (M - w) + b w) / M, M = 2**n - 1 of n bits (`semantics`): M is odd, so that there are
    no ties, and the sum and half of M fit 2 n bits."""
    t, (a, b, weight) = e.type, e.args
    if not t.is_integer or t.bits > _DOUBLED:
        return None
    top, wide = (1 << t.bits) - 1, TYPES[f"{t.kind}{2 * t.bits}"]
    w = _weight(weight, t, top, wide)
    if w is None:
        return None
    total = _with("+", _with("*", Cast(a, wide), _with("-", Const(top, wide), w)), _with("*", Cast(b, wide), w))
    return Cast(_with("//", _with("+", total, Const(top // 2, wide)), Const(top, wide)), t)


def _weight(weight: Expr, t: ScalarType, top: int, wide: ScalarType) -> Expr | None:
    """The weight of a `lerp` of type `t`, from 0 to `top`, as `wide`."""
    of = weight.type
    if of.is_float:
        return Cast(Cast(_with("*", weight, Const(float(top), of)), TYPES[f"uint{t.bits}"]), wide)
    if of.kind != "uint":
        return None
    if of.bits <= t.bits:
        w: Expr = Cast(weight, wide)
        return w if of.bits == t.bits else _with("*", w, Const(top // int(of.max), wide))
    return Cast(_with("//", weight, Const(int(of.max) // top, of)), wide)


def _with(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    return Binary(op, a, b, a.type)


_WRITTEN: Final[dict[str, Callable[[Call], Expr | None]]] = {
    "lerp": _lerp,
    **dict.fromkeys(bit_counts.FUNCTIONS, bit_counts.written_out),
}
