"""Products of 16 bits in sums of 32: machines multiply neighbours and add them up by one instruction."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.expressions import Binary, Cast, Const, Expr
from tilesmith.scheduler.ir.pipeline.types import INT16, INT32


def terms(e: Expr) -> list[Expr]:
    """The terms that an int32 is the sum of."""
    if isinstance(e, Binary) and e.op == "+" and e.type == INT32:
        return [*terms(e.left), *terms(e.right)]
    return [e]


def short_factors(e: Expr) -> tuple[Expr, ...]:
    """Two factors of 16 bits that an int32 is the product of, or the one that it is; none where it is neither."""
    if isinstance(e, Binary) and e.op == "*" and e.type == INT32:
        both = (_short(e.left), _short(e.right))
        return tuple(x for x in both if x is not None) if None not in both else ()
    one = _short(e)
    return () if one is None else (one,)


def _short(e: Expr) -> Expr | None:
    """The value of an int32 before its conversion, if it fits 16 bits and a sign."""
    if isinstance(e, Const) and INT16.min <= e.value <= INT16.max:
        return e
    if isinstance(e, Cast) and e.type == INT32:
        t = e.operand.type
        if t.is_integer and (t.bits == 8 or t == INT16):
            return e.operand
    return None
