"""Shared parts of large expressions as stages of their own: our language has no names for parts, Halide's has `let`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Expr,
    children,
    free_variables,
    map_children,
    reads_from,
)

LARGE = 2_000
"""Values of more parts than this, written out, have their shared parts taken out."""
_WORTH = 24  # parts that are smaller stay where they are

MakeStage = Callable[[Expr, tuple[str, ...]], Access]


def size(e: Expr) -> int:
    """The parts of `e` as written out, however many of them are one object."""
    sizes: dict[int, int] = {}
    for node in _children_first([e]):
        sizes[id(node)] = 1 + sum(sizes[id(c)] for c in children(node))
    return sizes[id(e)]


def taken_out(values: Sequence[Expr], own: str, make: MakeStage) -> list[Expr]:
    """*Before*: values that share objects. *After*: the same values, with reads of stages (`make` makes one of an
    expression and the variables that it uses) where large parts are shared. What reads stage `own` stays."""
    if sum(size(v) for v in values) <= LARGE:
        return list(values)
    uses = Counter(id(c) for node in _children_first(values) for c in children(node))
    done: dict[int, Expr] = {}
    sizes: dict[int, int] = {}
    kept: list[Expr] = []  # holds what is made, so that no id is used twice
    for node in _children_first(values):
        made = map_children(node, lambda c: done[id(c)])
        parts = 1 + sum(sizes[id(done[id(c)])] for c in children(node))
        if uses[id(node)] > 1 and parts > _WORTH and not reads_from(made, own):
            variables = free_variables(made)
            if len(variables) <= Limits().dims:
                made = make(made, variables)
                parts = 1 + len(made.indices)
        done[id(node)] = made
        sizes[id(made)] = parts
        kept.append(made)
    return [done[id(v)] for v in values]


def _children_first(roots: Sequence[Expr]) -> Iterator[Expr]:
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((c, False) for c in children(node) if id(c) not in seen)
