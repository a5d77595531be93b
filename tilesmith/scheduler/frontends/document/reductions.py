"""Reductions written inline: `sum(e for r in range(lo, end) if p)` and its like."""

from __future__ import annotations

import ast
from typing import Final

from tilesmith.scheduler.frontends.document.operators import conjoin
from tilesmith.scheduler.frontends.document.parser import Frame, frames
from tilesmith.scheduler.frontends.document.typing_context import Context, Value
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    ReduceOp,
    RVar,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.type_promotion import convert
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32

REDUCE: Final[dict[str, ReduceOp]] = {
    "sum": "sum", "product": "product", "min": "min", "max": "max", "any": "any", "all": "all",
    "argmin": "argmin", "argmax": "argmax",
}  # fmt: skip


def reduce(b: Context, loops: ast.GeneratorExp, op: ReduceOp, frame: Frame | None) -> tuple[Expr, ...] | None:
    """The reduction: one expression, or each component of an argmin or argmax."""
    domain = _domain(b, loops, frame)
    tests = [test for loop in loops.generators for test in loop.ifs]
    where = [t for test in tests if (t := b.boolean(test, b.single(test))) is not None]
    body = b.settle(loops.elt, b.single(loops.elt))
    if domain is None or body is None or len(where) < len(tests):
        return None
    if (op in ("any", "all")) != (body.type == BOOL):
        wanted = "a bool" if op in ("any", "all") else "a number"
        b.problem("type_error", f"{op}() needs {wanted}, not {body.type}.", loops.elt)
        return None
    condition = conjoin(where) if where else None
    if op not in ("argmin", "argmax"):
        return (Reduce(op, body, domain, condition, 0, body.type),)
    types = [INT32] * len(domain) + [body.type]
    return tuple(Reduce(op, body, domain, condition, k, t) for k, t in enumerate(types))


def _domain(b: Context, loops: ast.GeneratorExp, frame: Frame | None) -> tuple[RVar, ...] | None:
    if len(loops.generators) > b.limits.domain_variables:
        b.problem("limit_exceeded", f"A reduction has at most {b.limits.domain_variables} loops.", loops.elt)
        return None
    taken = {*b.variables, *b.names.params, *(n for f in frames(frame) for n in f.names)}
    domain: list[RVar] = []
    for loop in loops.generators:
        if not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call) or not loop.iter.args:
            return None  # reported with the syntax
        name = loop.target.id
        if name in taken:
            b.problem("shadowed_name", f"The loop variable {name!r} has a name that is taken.", loop.target)
        elif len(name) > 64:
            b.problem("bad_identifier", "A name has at most 64 characters.", loop.target)
        taken.add(name)
        ends = [bound(b, arg, b.single(arg)) for arg in loop.iter.args]
        lo, end = (Const(0, INT32), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
        extent = None if lo is None or end is None else _extent(b, loop.iter, lo, end)
        if lo is not None and extent is not None:
            domain.append(RVar(name, lo, extent))
    return tuple(domain) if len(domain) == len(loops.generators) else None


def _extent(b: Context, node: ast.expr, lo: Expr, end: Expr) -> Expr | None:
    """Number of values of range(lo, end)."""
    if isinstance(lo, Const) and isinstance(end, Const):
        extent = int(end.value) - int(lo.value)
        if extent < 1:
            b.problem("empty_range", f"range({lo.value}, {end.value}) is empty.", node)
            return None
        return b.literal(node, extent, INT32)
    if isinstance(lo, Const) and lo.value == 0:
        return end
    if isinstance(end, Binary) and end.op == "+" and to_text(end.left) == to_text(lo):
        return end.right
    return Binary("-", end, lo, INT32)


def bound(b: Context, node: ast.expr, value: Value | None) -> Expr | None:
    """An int32 made of constants, params and input bounds; constants are folded."""
    settled = b.settle(node, value)
    if settled is None:
        return None
    if not settled.type.is_integer:
        b.problem("bad_bounds", f"A bound is an integer, not {settled.type}.", node)
        return None
    for part in walk(settled):
        if isinstance(part, Var):
            reason = f"it depends on {part.name!r}"
        elif isinstance(part, Access):
            reason = f"it reads {part.name!r}"
        elif isinstance(part, Reduce) or (isinstance(part, Call) and part.function == "random"):
            reason = "it is computed from more than that"
        else:
            continue
        message = f"A bound is made of constants, params, and mins and extents of inputs, but {reason}."
        b.problem("bad_bounds", message, node, "loop over all and say 'if' which to take")
        return None
    return convert(fold(settled), INT32)
