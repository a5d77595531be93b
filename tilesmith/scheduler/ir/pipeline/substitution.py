"""Substitution of variables in expressions."""

from __future__ import annotations

from collections.abc import Callable

from tilesmith.scheduler.ir.pipeline.expressions import Expr, Reduce, Var, children, map_children


def substituted(e: Expr, variables: dict[str, Expr]) -> Expr:
    """`e` with its free variables replaced, all at once. What is put in must not have a variable that a reduction
    inside of `e` binds."""
    if isinstance(e, Var):
        return variables.get(e.name, e)
    if isinstance(e, Reduce):
        variables = {n: v for n, v in variables.items() if all(n != r.name for r in e.domain)}
    return map_children(e, lambda part: substituted(part, variables)) if variables else e


def substitution(e: Expr) -> Callable[[dict[str, Expr]], Expr]:
    """Function from variables to what `substituted` makes of `e`, for many substitutions: parts that have none of those
    that change are not gone through."""
    names: dict[int, frozenset[str]] = {}

    def look(node: Expr) -> frozenset[str]:
        found = names.get(id(node))
        if found is None:
            own = (node.name,) if isinstance(node, Var) else ()
            found = names[id(node)] = frozenset(own).union(*map(look, children(node)))
        return found

    def put(node: Expr, variables: dict[str, Expr]) -> Expr:
        if names[id(node)].isdisjoint(variables):
            return node
        if isinstance(node, Var):
            return variables[node.name]
        if isinstance(node, Reduce):
            variables = {n: v for n, v in variables.items() if all(n != r.name for r in node.domain)}
        return map_children(node, lambda part: put(part, variables))

    look(e)
    return lambda variables: put(e, {n: v for n, v in variables.items() if v != Var(n)})
