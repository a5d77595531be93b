"""Evaluation of expressions whose leaves are known, by `semantics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeGuard

import numpy as np

from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    Select,
    Unary,
    Var,
    children,
)
from tilesmith.scheduler.ir.pipeline.semantics import Array

Leaf: TypeAlias = Var | ParamRef | InputBound | Access | Reduce
"""Expressions that have no value without an environment."""
Operation: TypeAlias = Const | Binary | Unary | Compare | Logical | Select | Call | Cast
"""Expressions whose value follows from those of their direct subexpressions."""


def is_operation(e: Expr) -> TypeGuard[Operation]:
    """True for an operation."""
    return isinstance(e, Const | Binary | Unary | Compare | Logical | Select | Call | Cast)


def evaluate(e: Expr, leaf: Callable[[Leaf], Array]) -> Array:
    """The value of `e`, where `leaf` gives those of variables, params, bounds, accesses, and reductions. Does not
    recurse."""
    known: dict[int, Array] = {}
    for node in reversed(list(_computed(e))):
        if id(node) in known:
            continue
        if isinstance(node, Var | ParamRef | InputBound | Access | Reduce):
            known[id(node)] = leaf(node)
        else:
            known[id(node)] = operation(node, [known[id(part)] for part in children(node)])
    return known[id(e)]


def _computed(e: Expr) -> list[Expr]:
    """`e` and what its value is computed from, down to the leaves, parents first."""
    stack, order = [e], list[Expr]()
    while stack:
        node = stack.pop()
        order.append(node)
        if not isinstance(node, Access | Reduce):
            stack.extend(children(node))
    return order


def operation(e: Operation, parts: Sequence[Array]) -> Array:
    """The value of `e` where those of its `children` are `parts`."""
    match e:
        case Const():
            return semantics.constant(e.value, e.type)
        case Binary():
            return semantics.binary(e.op, parts[0], parts[1], e.type)
        case Unary():
            return semantics.unary(e.op, parts[0], e.type)
        case Compare():
            return semantics.compare(e.op, parts[0], parts[1])
        case Logical():
            return np.asarray((np.logical_and if e.op == "and" else np.logical_or)(parts[0], parts[1]))
        case Select():
            return np.where(parts[0], parts[1], parts[2])
        case Call():
            return semantics.call(e.function, tuple(parts), tuple(a.type for a in e.args), e.type)
        case Cast():
            return semantics.convert(parts[0], e.operand.type, e.type, e.saturate)
