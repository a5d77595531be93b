"""Equality of expressions to the bit, where 0.0 and -0.0 are two constants, and what expressions that match have in
common."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import Any, Final, TypeAlias

from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    Unary,
    children,
)
from tilesmith.scheduler.ir.pipeline.types import ScalarType

Kind: TypeAlias = tuple[type, str, ScalarType]


_OPERATION: Final[dict[type, Callable[[Any], str]]] = {
    **dict.fromkeys((Binary, Unary, Compare, Logical, Reduce), lambda e: e.op),
    Call: lambda e: e.function,
    Cast: lambda e: "sat" if e.saturate else "",
}


def kind(e: Expr) -> Kind:
    """The class of `e`, its operation, and its type."""
    operation = _OPERATION.get(type(e))
    return type(e), "" if operation is None else operation(e), e.type


def same(a: Expr, b: Expr) -> bool:
    """True if both are the same expression. Does not recurse."""
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        parts, others = children(a), children(b)
        if len(parts) != len(others) or kind(a) != kind(b) or _details(a) != _details(b):
            return False
        stack.extend(zip(parts, others, strict=True))
    return True


def _details(e: Expr) -> object:
    """The rest of an expression, beside its `kind` and its direct subexpressions."""
    match e:
        case Const():
            return e.value, copysign(1, e.value)
        case Access():
            return e.name, e.component
        case Reduce():
            return e.component, tuple(r.name for r in e.domain), e.where is None
        case _:
            return None if children(e) else e
