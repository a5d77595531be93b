"""Substitution of variables in expressions."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.expressions import Expr, Reduce, Var, map_children


def substituted(e: Expr, variables: dict[str, Expr]) -> Expr:
    """`e` with its free variables replaced, all at once. What is put in must not have a variable that a reduction
    inside of `e` binds."""
    if isinstance(e, Var):
        return variables.get(e.name, e)
    if isinstance(e, Reduce):
        variables = {n: v for n, v in variables.items() if all(n != r.name for r in e.domain)}
    return map_children(e, lambda part: substituted(part, variables)) if variables else e
