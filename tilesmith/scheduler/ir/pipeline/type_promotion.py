"""The type rules of the language: what two operands become, how literals and conversions settle."""

from __future__ import annotations

import math
import struct

from tilesmith.scheduler.ir.pipeline.expressions import Cast, Const, Expr
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32, INT32, TYPES, ScalarType

Literal = int | float


def common_type(a: ScalarType, b: ScalarType) -> ScalarType | None:
    """The type of an operation on `a` and `b`; None where bool meets a number.

    Floats win over integers, the wider wins, signed wins over unsigned at the larger of the two widths.
    """
    if a is b or a == b:
        return a
    if a.kind == "bool" or b.kind == "bool":
        return None
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    return TYPES[f"int{max(a.bits, b.bits)}"]


def round_float(value: float, bits: int) -> float | None:
    """`value` rounded to a float of `bits`; None where it overflows or is no number."""
    if not math.isfinite(value):
        return None
    if bits == 64:
        return value
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return rounded


def constant(value: Literal, type: ScalarType) -> Const | None:
    """The literal `value` as a constant of `type`; None where it does not fit."""
    if type.is_float:
        try:
            rounded = round_float(float(value), type.bits)
        except OverflowError:
            return None
        return None if rounded is None else Const(rounded, type)
    if isinstance(value, float) or type.kind == "bool":
        return None
    return Const(value, type) if type.min <= value <= type.max else None


def default_type(value: Literal) -> ScalarType:
    """The type of a literal that stands alone."""
    return FLOAT32 if isinstance(value, float) else INT32


def convert(e: Expr, to: ScalarType, saturate: bool = False) -> Expr:
    """`e` as a value of `to`: itself where it has that type, a constant where it is one that fits, else a Cast."""
    if e.type == to:
        return e
    if (
        not saturate
        and isinstance(e, Const)
        and e.type != BOOL
        and not (e.type.is_float and to.is_integer)
        and (folded := constant(e.value, to)) is not None
    ):
        return folded
    return Cast(e, to, saturate)
