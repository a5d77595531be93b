"""Sums of neighbours: reductions over as many elements as vectors go on by from lane to lane. Whole vectors of elements
are read and computed with, in the order of memory, and each lane of the result is the sum of a group of theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from tilesmith.scheduler.analysis.access_functions import Span, constant, span_of, variable
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.ir.pipeline.boundary_conditions import inside
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Call,
    Cast,
    Const,
    Expr,
    Reduce,
    RVar,
    Var,
    children,
    has_accesses,
    variables_of,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import ScalarType

WIDEST_BITS = 64
"""Bits of the widest elements: a sum of neighbours is one as wide as all of them together."""
FEWEST = 4
"""Lanes of the vectors that sums of neighbours are worth shorter vectors for, at least."""
GROUPS = (2, 4, 8, 16)
"""The numbers of neighbours that are summed in the order of memory."""

Fastest = Callable[[str], int | None] | None
"""Position, by the name of an image or a stage in memory, of the dim that is fastest there. None: any may be."""


def summed_variable(e: Expr, along: str, inlined: Mapping[str, Stage], fastest: Fastest) -> RVar | None:
    """The variable of a sum whose iterations read the neighbours that vectors `along` a dim step over; None of any
    other expression. Unsigned elements of 8 or 16 bits are summed in integers that hold their sum, or wrap like it."""
    if not isinstance(e, Reduce) or e.op != "sum" or e.where is not None or summed_type(e) is None:
        return None
    for r in reversed(e.domain):
        few = isinstance(r.lo, Const) and isinstance(r.extent, Const) and r.extent.value in GROUPS
        if few and _steps_over(summed(e), along, r, inlined, fastest):
            return r
    return None


def neighbours(r: RVar) -> int:
    """The number of iterations of a variable that sums neighbours."""
    assert isinstance(r.extent, Const)
    return int(r.extent.value)


def summed(e: Reduce) -> Expr:
    """The terms of a sum, before they are converted to the type of the sum."""
    return e.body.operand if isinstance(e.body, Cast) and not e.body.saturate else e.body


def is_difference(term: Expr, group: int) -> bool:
    """True of absolute differences of bytes, eight of which machines sum by the instruction that finds them."""
    return isinstance(term, Call) and term.function == "absd" and group * term.type.bits == WIDEST_BITS


def summed_type(e: Reduce) -> ScalarType | None:
    """The type of what is summed, if vectors of it can be summed in groups."""
    t = summed(e).type
    return t if t.kind == "uint" and t.bits <= 16 and e.type.is_integer else None


def total_type(e: Reduce, r: RVar) -> ScalarType | None:
    """The type of sums of neighbours, as wide as a group of them, in which the whole sum is that of `e` in its own;
    None where it does not fit."""
    t = summed(e).type
    terms = prod(int(x.extent.value) if isinstance(x.extent, Const) else 0 for x in e.domain)
    found = ScalarType("uint", min(WIDEST_BITS, t.bits * neighbours(r)))
    fits = e.type.bits <= found.bits or (terms > 0 and terms * int(t.max) <= found.max)
    return found if fits else None


def _steps_over(body: Expr, along: str, r: RVar, inlined: Mapping[str, Stage], fastest: Fastest) -> bool:
    moving = {along, r.name}
    reads, pending, seen = False, [body], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, Reduce) or (isinstance(part, Var) and part.name in moving):
            return False
        if isinstance(part, Access):
            found = [d for d, index in enumerate(part.indices) if not moving.isdisjoint(variables_of(index))]
            if not found:
                continue
            (d, *others) = found
            if (
                others
                or not _is_group(part.indices[d], part.name, along, r)
                or not _in_row(part.name, d, inlined, fastest)
            ):
                return False
            reads = True
        elif id(part) not in seen:
            seen.add(id(part))
            pending += children(part)
    return reads


def _is_group(index: Expr, image: str, along: str, r: RVar) -> bool:
    """True of an index that goes on by one with `r`, and along the dim by as many as `r` has."""
    if has_accesses(index):
        return False
    index = inside(index, image)

    def moved_by(name: str) -> Span:
        env = {n: constant(0, 0) for n in variables_of(index)}
        return span_of(index, {**env, name: variable(name)})

    steps = [(moved_by(along), neighbours(r)), (moved_by(r.name), 1)]
    return all(s.known and s.var is not None and s.rate == rate and s.width == 0 for s, rate in steps)


def _in_row(name: str, d: int, inlined: Mapping[str, Stage], fastest: Fastest) -> bool:
    """True if neighbours in the dim `d` are neighbours in memory, of stages `inlined` those of all that they read."""
    stage = inlined.get(name)
    if stage is None:
        return fastest is None or fastest(name) == d
    for a in accesses(stage):
        found = [n for n, used in enumerate(a.used) if stage.dims[d] in used]
        if not found:
            continue
        span = span_of(inside(a.access.indices[found[0]], a.producer), {n: variable(n) for n in stage.dims})
        if len(found) > 1 or not span.known or span.rate != 1 or a.reductions:
            return False
        if not _in_row(a.producer, found[0], inlined, fastest):
            return False
    return not stage.updates
