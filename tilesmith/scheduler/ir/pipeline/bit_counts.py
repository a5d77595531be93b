"""Counts of bits, written out in shifts, masks and sums: the same for every backend, of scalars and of vectors."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.expressions import Binary, BinaryOp, Call, Cast, Const, Expr, Unary
from tilesmith.scheduler.ir.pipeline.types import TYPES

FUNCTIONS = ("popcount", "count_leading_zeros", "count_trailing_zeros")
"""Functions that count bits of an integer: those set, and the zeros before the first or after the last of them, which
are all of them in 0."""


def written_out(e: Call) -> Expr:
    """A count of bits, of the type of `e`, which is that of its operand."""
    unsigned = TYPES[f"uint{e.type.bits}"]
    x: Expr = Cast(e.args[0], unsigned) if e.type != unsigned else e.args[0]
    if e.function == "popcount":
        counted = _ones(x)
    elif e.function == "count_trailing_zeros":  # ones where zeros are after the last one, and nowhere else
        counted = _ones(_with("&", Unary("~", x, unsigned), _with("-", x, Const(1, unsigned))))
    else:
        counted = _ones(Unary("~", _smeared(x), unsigned))
    return Cast(counted, e.type) if e.type != unsigned else counted


def _ones(x: Expr) -> Expr:
    """Sums of neighbouring bits, of pairs of bits, of nibbles, and of bytes by a product."""
    t = x.type
    top = (1 << t.bits) - 1
    fields = [Const(top // 3, t), Const(top // 5, t), Const(top // 17, t)]
    x = _with("-", x, _with("&", _down(x, 1), fields[0]))
    x = _with("+", _with("&", x, fields[1]), _with("&", _down(x, 2), fields[1]))
    x = _with("&", _with("+", x, _down(x, 4)), fields[2])
    return x if t.bits == 8 else _down(_with("*", x, Const(top // 255, t)), t.bits - 8)


def _smeared(x: Expr) -> Expr:
    """All bits set from the first one on."""
    shift = 1
    while shift < x.type.bits:
        x = _with("|", x, _down(x, shift))
        shift *= 2
    return x


def _with(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    return Binary(op, a, b, a.type)


def _down(x: Expr, bits: int) -> Expr:
    return _with(">>", x, Const(bits, x.type))
