"""Constant folding of integer expressions."""

from __future__ import annotations

from typing import Never

import numpy as np

from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate, is_operation
from tilesmith.scheduler.ir.pipeline.expressions import Cast, Const, Expr, map_children, walk


def fold(e: Expr) -> Expr:
    """`e`, or the constant that an integer expression of constants is, floats among them."""
    if isinstance(e, Const) or not e.type.is_integer or not all(map(is_operation, walk(e))):
        return e
    with np.errstate(all="ignore"):
        return Const(int(evaluate(e, _no_leaf)), e.type)


def integer(e: Expr) -> int | None:
    """The value of an integer expression that is a constant, or made of constants."""
    found = fold(e)
    return int(found.value) if isinstance(found, Const) else None


def folded(e: Expr) -> Expr:
    """`e`, where integers that constant floats are rounded to are constants."""
    return fold(e) if is_rounding(e) and isinstance(fold(e), Const) else map_children(e, folded)


def is_power_of_two(n: int) -> bool:
    """True of 1, 2, 4, 8, ..."""
    return n > 0 and n & (n - 1) == 0


def is_rounding(e: Expr) -> bool:
    """True of a conversion of a float to an integer."""
    return isinstance(e, Cast) and e.type.is_integer and e.operand.type.is_float


def _no_leaf(leaf: Leaf) -> Never:
    raise AssertionError(leaf)
