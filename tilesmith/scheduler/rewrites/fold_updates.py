"""Folding of updates into pure definitions, where they say no more than an expression could: a stage without them may
be inlined, kept in registers, slid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod

from tilesmith.scheduler.analysis.dependence import combination
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    BinaryOp,
    Call,
    Const,
    Expr,
    Logical,
    LogicalOp,
    Reduce,
    ReduceOp,
    RVar,
    Select,
    Var,
    has_accesses,
    map_children,
    reads_from,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.types import INT32

SHORT_REDUCTION = 64
"""Associative updates of at most so many terms become reductions, whatever they read: they are written out in
registers."""
FEW_STEPS = 16
"""Other updates of a point by itself are folded if they are at most so many, one in the other, ..."""
LARGEST_VALUE = 500
"""... and the values have at most so many parts afterwards, ..."""
MOST_PARTS = 5000
"""... or this many if no part is there more often than before."""

REDUCTIONS: dict[str, ReduceOp] = {
    "sum": "sum", "product": "product", "min": "min", "max": "max", "and": "all", "or": "any",
}  # fmt: skip
"""Operations of associative updates that an inline reduction has, too."""


def folded(stage: Stage, strict: bool = False) -> Stage:
    """`stage` with its first updates made part of its values, as far as they go; the same values, but that sums and
    products of floats, if not `strict`, may start from another end. The stage itself where nothing folds.

    What folds writes every point of the stage (`at` are its dims), and so reads no other point of it: a change of
    each point by itself, a short reduction over a constant domain, or a longer one over any domain of whose terms
    neighbouring points share some, as those of a product of matrices do (see `shares_terms`).
    """
    values, updates = stage.values, stage.updates
    while updates:
        found = _folded(stage, values, updates[0], strict)
        if found is None:
            break
        values, updates = found, updates[1:]
    return stage if updates is stage.updates else replace(stage, values=values, updates=updates)


def is_pointwise(stage: Stage, update: Update) -> bool:
    """True if `update` writes every point of `stage`, each in its own place."""
    return all(isinstance(e, Var) and e.name == d for d, e in zip(stage.dims, update.at, strict=True))


def reduction_of(stage: Stage, update: Update) -> tuple[str, tuple[Reduce, ...]] | None:
    """The operation of a pointwise associative update and, a component each, the reduction of the terms that it joins
    to what is there; None of any other update. With it the update is f(x) = op(f(x), reduction)."""
    found = combination(stage, update) if is_pointwise(stage, update) else None
    if found is None or found.op not in REDUCTIONS:
        return None
    op, domain = REDUCTIONS[found.op], tuple(reversed(update.domain))
    return found.op, tuple(Reduce(op, t, domain, update.where, 0, t.type) for t in found.terms)


def joined(op: str, a: Expr, b: Expr) -> Expr:
    """`a` and `b`, of one type, joined by the operation of an associative update."""
    match op:
        case "sum" | "product":
            arithmetic: BinaryOp = "+" if op == "sum" else "*"
            return Binary(arithmetic, a, b, a.type)
        case "min" | "max":
            return Call(op, (a, b), a.type)
        case "and" | "or":
            logical: LogicalOp = "and" if op == "and" else "or"
            return Logical(logical, a, b)
        case "&":
            return Binary("&", a, b, a.type)
        case "|":
            return Binary("|", a, b, a.type)
    assert op == "^"
    return Binary("^", a, b, a.type)


def _folded(stage: Stage, values: tuple[Expr, ...], update: Update, strict: bool) -> tuple[Expr, ...] | None:
    trips = prod(_trips(r) for r in update.domain)
    if not is_pointwise(stage, update):
        return None
    found = reduction_of(stage, update) if update.domain else None
    if found is not None and (trips <= SHORT_REDUCTION or all(shares_terms(stage, t) for t in found[1])):
        op, terms = found
        starts = [_is_start(v, t.op) for v, t in zip(values, terms, strict=True)]
        if not strict or all(start or not v.type.is_float for start, v in zip(starts, values, strict=True)):
            return tuple(
                term if start else joined(op, value, term)
                for start, value, term in zip(starts, values, terms, strict=True)
            )
    return _step_by_step(stage, values, update) if trips <= FEW_STEPS else None


def shares_terms(stage: Stage, reduction: Reduce) -> bool:
    """True if points of `stage` that are neighbours along some dim read the same of something for their terms, or
    windows of it that overlap. Points side by side load that once, and keep their sums in registers meanwhile. Where
    they share nothing, the terms of a point may lie far apart in memory: an update goes through them as they lie. Nor
    where data says a place: an update looks it up once for all dims that it is the same for."""
    domain = {r.name for r in reduction.domain}
    parts = (reduction.body, *(() if reduction.where is None else (reduction.where,)))
    accesses = [n for part in parts for n in walk(part) if isinstance(n, Access)]
    if any(has_accesses(index) for read in accesses for index in read.indices):
        return False
    for read in accesses:
        indices = [variables_of(index) for index in read.indices]
        if any(names & domain for names in indices):
            apart = {d for names in indices if not names & domain for d in names}
            if not apart.issuperset(stage.dims):
                return True
    return False


def _trips(r: RVar) -> int:
    """Iterations, where the range is constant; too many where it is not."""
    return int(r.extent.value) if isinstance(r.lo, Const) and isinstance(r.extent, Const) else SHORT_REDUCTION + 1


def _is_start(value: Expr, op: ReduceOp) -> bool:
    """True if `value` is where a reduction by `op` starts from anyway."""
    if not isinstance(value, Const):
        return False
    start, number = semantics.identity(op, value.type).item(), value.value
    return str(float(number)) == str(float(start)) if value.type.is_float else number == start


def _step_by_step(stage: Stage, values: tuple[Expr, ...], update: Update) -> tuple[Expr, ...] | None:
    """Every iteration's value with that of the one before it put in: None where that grows too large."""
    parts = (*update.values, *(() if update.where is None else (update.where,)))
    if any(reads_from(r, stage.name) for e in parts for r in walk(e) if isinstance(r, Reduce)):
        return None  # the value would be computed once a term
    if update.where is None and len(_components_read(parts, stage.name)) < len(values):
        return None  # what is required must not depend on what is folded: the old value's reads would be lost
    loops = [(r.name, int(r.lo.value), _trips(r)) for r in reversed(update.domain) if isinstance(r.lo, Const)]
    own, sizes = sum(map(_parts, parts)), [_parts(v) for v in values]
    for point in product(*(range(lo, lo + extent) for _, lo, extent in loops)):
        here: dict[str, Expr] = {name: Const(n, INT32) for (name, _, _), n in zip(loops, point, strict=True)}
        most = max(LARGEST_VALUE, min(sum(sizes) + own, MOST_PARTS))
        sizes = _sizes(stage, update, sizes)
        if sum(sizes) > most:
            return None
        before = values
        rewrite = _putting_in(stage.name, before, here)
        values = tuple(rewrite(v) for v in update.values)
        if update.where is not None:
            where = rewrite(update.where)
            values = tuple(Select(where, new, old, new.type) for new, old in zip(values, before, strict=True))
    return values


def _parts(e: Expr) -> int:
    return sum(1 for _ in walk(e))


def _sizes(stage: Stage, update: Update, sizes: list[int]) -> list[int]:
    """The parts of each value after an iteration, from those before it."""

    def size(e: Expr) -> int:
        read = (n for n in walk(e) if isinstance(n, Access) and n.name == stage.name)
        return _parts(e) + sum(sizes[n.component] - 1 - len(stage.dims) for n in read)

    made = [size(v) for v in update.values]
    return (
        made if update.where is None else [1 + size(update.where) + n + old for n, old in zip(made, sizes, strict=True)]
    )


def _putting_in(name: str, values: tuple[Expr, ...], variables: dict[str, Expr]) -> Callable[[Expr], Expr]:
    """Rewrites what reads stage `name`, and `variables`."""

    def rewrite(e: Expr) -> Expr:
        if isinstance(e, Access) and e.name == name:
            return values[e.component]
        if isinstance(e, Var):
            return variables.get(e.name, e)
        return map_children(e, rewrite)

    return rewrite


def _components_read(parts: tuple[Expr, ...], name: str) -> set[int]:
    return {n.component for e in parts for n in walk(e) if isinstance(n, Access) and n.name == name}
