"""Reads within a boundary: what a stage makes of the places of an image that it reads, where that is the same for all
of them. A copy of the image may have it instead, as a margin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tilesmith.scheduler.analysis.access_functions import span_of, variable
from tilesmith.scheduler.analysis.accesses import accesses, range_of
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Select, Var, children, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Stage
from tilesmith.scheduler.ir.pipeline.types import INT32


class BoundedRead(NamedTuple):
    """A read with its boundary: its value at a point of the dims of what is read, and the point, which may be beyond
    the edges."""

    value: Expr
    indices: tuple[Expr, ...]


def bounded_reads(stage: Stage, operand: Input | Stage, dim: str) -> Mapping[Expr, BoundedRead]:
    """All that the values of a stage read of an operand at places that move with one of its dims, by the expression
    that says the boundary. None unless it has one value, all have the same boundary, and they are at places whose ends
    are known."""
    if isinstance(operand, Stage) and len(operand.values) > 1:
        return {}
    places: dict[Access, tuple[Expr, ...]] = {}
    for a in accesses(stage):
        if a.producer != operand.name or a.definition or not any(dim in used for used in a.used):
            continue
        env = {d: variable(d) for d in stage.dims} | {r.name: range_of(r) for r in a.reductions}
        places[a.access] = tuple(map(before_clamp, a.access.indices))
        if any(a.data) or not all(span_of(i, env).known for i in places[a.access]):
            return {}
    if all(access.indices == point for access, point in places.items()):
        return {}
    found: dict[Expr, BoundedRead | None] = {}

    def collect(e: Expr) -> None:
        if isinstance(e, Access) and e in places:
            found[e] = _bounded(e, places[e], operand.dims)
            return
        if isinstance(e, Select) and isinstance(e.if_true, Access) and e.if_true in places:
            whole = _bounded(e, places[e.if_true], operand.dims)
            if whole is not None:
                found[e] = whole
                return
        for part in children(e):
            collect(part)

    for value in stage.values:
        collect(value)
    known = {e: read for e, read in found.items() if read is not None}
    return known if len(known) == len(found) and len({read.value for read in known.values()}) == 1 else {}


def bounded_read(e: Expr, access: Access, dims: tuple[str, ...]) -> BoundedRead | None:
    """The function of a place that an expression is, made of the element there and of what is the same everywhere; the
    place may be beyond the edges. None of one that depends on more. `dims` are those of what is read."""
    return _bounded(e, tuple(map(before_clamp, access.indices)), dims)


def _bounded(e: Expr, point: tuple[Expr, ...], dims: tuple[str, ...]) -> BoundedRead | None:
    moving = [(i, d) for i, d in zip(point, dims, strict=True) if any(isinstance(n, Var) for n in walk(i))]
    dim_of = {i: Var(d) for i, d in moving if i.type == INT32}
    return None if len(dim_of) < len(moving) or not _said(e, dim_of) else BoundedRead(_at(e, dim_of), point)


def _said(e: Expr, dim_of: Mapping[Expr, Var]) -> bool:
    """True if no variable is in `e` but within these indices."""
    return e in dim_of or (not isinstance(e, Var) and all(_said(part, dim_of) for part in children(e)))


def _at(e: Expr, dim_of: Mapping[Expr, Var]) -> Expr:
    return dim_of.get(e) or map_children(e, lambda part: _at(part, dim_of))
