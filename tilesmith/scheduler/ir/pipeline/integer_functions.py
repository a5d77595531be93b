"""Functions of integers, written out in operations that every backend has, of scalars and of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilesmith.scheduler.ir.pipeline import bit_counts
from tilesmith.scheduler.ir.pipeline.expressions import Binary, BinaryOp, Call, Cast, Const, Expr
from tilesmith.scheduler.ir.pipeline.types import TYPES, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import interval

_DOUBLED: Final = 32
"""The most bits of integers that have a type of twice as many, in which their products are exact."""


def written_out(e: Call) -> Expr | None:
    """The value of `e` without the function, of its type; None where the function has no such form, or its integers
    have no type of twice their bits."""
    make = _WRITTEN.get(e.function)
    return None if make is None else make(e)


def _lerp(e: Call) -> Expr | None:
    """The integer nearest to (a (M - w) + b w) / M, M = 2**n - 1 of n bits (`semantics`): M is odd, so that there are
    no ties. Integers with a sign are moved up to begin at 0, which moves what lies between them as far.

    With x = h 2**n + l, that is h M + (h + l), the quotient x // M is h, and 1 more where h + l + 1 reaches 2**n:
    (x + h + 1) >> n. The sum, half of M, h and 1 fit 2 n bits."""
    t, (a, b, weight) = e.type, e.args
    if not t.is_integer or t.bits > _DOUBLED:
        return None
    own, wide, top = TYPES[f"uint{t.bits}"], TYPES[f"uint{2 * t.bits}"], (1 << t.bits) - 1
    w = _weight(weight, own, top)
    if w is None:
        return None
    rest = _with("-", Const(top, own), w)
    total = _with("+", _product(_from_zero(a), rest, wide), _product(_from_zero(b), w, wide))
    x = _with("+", total, Const(top // 2, wide))
    carried = _with("+", _with("+", x, _with(">>", x, Const(t.bits, wide))), Const(1, wide))
    found = Cast(_with(">>", carried, Const(t.bits, wide)), own)
    return found if t == own else Cast(_with("^", found, Const(1 << (t.bits - 1), own)), t)


def _from_zero(a: Expr) -> Expr:
    """An integer less the least of its type, without a sign."""
    own = TYPES[f"uint{a.type.bits}"]
    return a if a.type == own else _with("^", Cast(a, own), Const(1 << (own.bits - 1), own))


def _weight(weight: Expr, own: ScalarType, top: int) -> Expr | None:
    """The weight of a `lerp`, from 0 to `top`, the greatest of the type `own`."""
    of = weight.type
    if of.is_float:
        wide = of if own.bits <= 16 else TYPES["float64"]
        taken = weight if of == wide else Cast(weight, wide)
        return Cast(_with("*", taken, Const(float(top), wide)), own)
    if of.kind != "uint" or of.bits > _DOUBLED:
        return None
    if of.bits <= own.bits:
        return weight if of == own else _with("*", Cast(weight, own), Const(top // int(of.max), own))
    return Cast(_with("//", weight, Const(int(of.max) // top, of)), own)


def _mul_shift_right(e: Call) -> Expr | None:
    """The product in twice the bits, shifted. From n on what is left of it fits its type of n bits."""
    t, (a, b, count) = e.type, e.args
    ends = interval(count).numeric
    if t.bits > _DOUBLED or not (count.type.kind == "uint" or (ends is not None and ends[0] >= 0)):
        return None
    wide, counts = TYPES[f"{t.kind}{2 * t.bits}"], TYPES[f"uint{2 * t.bits}"]
    by: Expr
    if isinstance(count, Const):
        by = Const(min(int(count.value), wide.bits), counts)
    else:
        by = Cast(count, counts, saturate=True)
    fits = ends is not None and ends[0] >= t.bits
    return Cast(_with(">>", _product(a, b, wide), by), t, saturate=not fits)


def _product(a: Expr, b: Expr, wide: ScalarType) -> Expr:
    return _with("*", Cast(a, wide), Cast(b, wide))


def _with(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    return Binary(op, a, b, a.type)


_WRITTEN: Final[dict[str, Callable[[Call], Expr | None]]] = {
    "lerp": _lerp,
    "mul_shift_right": _mul_shift_right,
    **dict.fromkeys(bit_counts.FUNCTIONS, bit_counts.written_out),
}
