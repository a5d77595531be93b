"""Constants in expressions that are rewritten: operations on them folded, and what stands around them as the language
writes it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from tilesmith.scheduler.ir.pipeline.evaluation import is_operation, operation
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Reduce,
    Var,
    children,
    map_children,
)
from tilesmith.scheduler.ir.pipeline.semantics import constant

_INEXACT = frozenset(("exp", "log", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "tanh", "random"))
"""Functions that compiled code computes by itself: another bit in the last place may be right."""


def folded(e: Expr) -> Expr:
    """The constant that an operation on constants is; `e` itself where it is none, or no finite number, or where
    compiled code may round it otherwise."""
    parts = [p for p in children(e) if isinstance(p, Const)]
    if not is_operation(e) or isinstance(e, Const) or len(parts) < len(children(e)):
        return e
    if (isinstance(e, Call) and e.function in _INEXACT) or (isinstance(e, Binary) and e.op == "**" and e.type.is_float):
        return e
    value = operation(e, [constant(p.value, p.type) for p in parts]).item()
    return Const(value, e.type) if isfinite(value) else e


def settled(e: Expr) -> Expr:
    """`e` as the language writes it where a part is a constant: a conversion of one is one, and the count of a shift is
    from 0 to the width, less one."""
    if isinstance(e, Cast):
        return folded(e)
    if not (isinstance(e, Binary) and e.op in ("<<", ">>") and isinstance(e.right, Const)):
        return e
    count, last = int(e.right.value), e.type.bits - 1
    if 0 <= count <= last:
        return e
    if count < 0:
        return settled(
            Binary("<<" if e.op == ">>" else ">>", e.left, Const(min(-count, last + 1), e.right.type), e.type)
        )
    whole = Binary(e.op, e.left, Const(last, e.right.type), e.type)
    return Binary(e.op, whole, Const(1, e.right.type), e.type)


def put(e: Expr, variables: Mapping[str, Expr]) -> Expr:
    """`e` with its free variables replaced, all at once, and what becomes constant folded. What is put in must not have
    a variable that a reduction inside of `e` binds."""
    if isinstance(e, Var):
        return variables.get(e.name, e)
    if isinstance(e, Reduce):
        variables = {n: v for n, v in variables.items() if all(n != r.name for r in e.domain)}
    new = map_children(e, lambda part: put(part, variables))
    return new if new is e else settled(folded(new))
