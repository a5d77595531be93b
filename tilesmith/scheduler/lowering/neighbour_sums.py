"""Sums of neighbours in vectors (see `analysis.neighbour_sums`): of lanes that are elements in the order of memory,
instead of lanes that lie apart."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.neighbour_sums import (
    FEWEST,
    WIDEST_BITS,
    is_difference,
    neighbours,
    summed,
    summed_variable,
    total_type,
)
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.builder import TooWide, literal
from tilesmith.scheduler.ir.loop.ops import Binary, Shuffle, SumNeighbours
from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.expressions import Call, Const, Expr, Reduce
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType
from tilesmith.scheduler.lowering.evaluation import Evaluation
from tilesmith.scheduler.lowering.index_vectorization import Frame

SUMMED = "sum of neighbours"
"""The function, none of the language, of what is summed and the number of neighbours."""


def in_groups(ev: Evaluation, e: Reduce, frame: Frame) -> tuple[Expr, Frame] | None:
    """The sum `e` as one of sums of neighbours, over its other variables, and the frame that it is evaluated in; None
    of any other reduction."""
    if ev.axis is None or ev.axis.flat or ev.exact or ev.safe or ev.shares_row:
        return None
    moving = [(name, lane) for name, lane in frame.env.items() if not lane.uniform]
    if len(moving) != 1 or moving[0][1].pattern is None:
        return None
    along, base, pattern = moving[0][0], moving[0][1].base, moving[0][1].pattern
    lanes = len(pattern)
    if pattern != tuple(range(pattern[0], pattern[0] + lanes)):
        return None
    r = summed_variable(e, along, ev.sources.inlined, lambda name: _fastest(ev, name))
    total = None if r is None else total_type(e, r)
    if r is None or total is None:
        return None
    size, first, term = neighbours(r), r.lo, summed(e)
    assert isinstance(first, Const)
    most = ev.builder.vectors.widest_bytes // (size * term.type.bytes)
    if most < FEWEST:
        return None
    if lanes > most:
        raise TooWide
    body = Call(SUMMED, (term, Const(size, INT32)), total)
    groups = [divmod(n, size) for n in range(lanes * size)]
    places = Lane(base, tuple(pattern[0] + group for group, _ in groups))
    flat = ev.extended(
        ev.frame({**frame.env, along: places}), r.name, Lane(const(int(first.value)), tuple(n for _, n in groups))
    )
    rest = tuple(x for x in e.domain if x is not r)
    return (replace(e, body=body, domain=rest, type=total) if rest else body), flat


def _fastest(ev: Evaluation, name: str) -> int | None:
    buffer = ev.sources.buffers.get((name, 0))
    return buffer.unit if buffer is not None and buffer.dims and buffer.ring[buffer.unit] is None else None


def sum_of_neighbours(ev: Evaluation, term: Expr, size: int, total: ScalarType, frame: Frame) -> Value:
    """The vector of the sums of `size` neighbours each, of what a term is there. Those that are wider together than any
    element are summed by shorter groups, and these by halves."""
    b, group = ev.builder, min(size, WIDEST_BITS // term.type.bits)
    parts = term.args if isinstance(term, Call) and is_difference(term, group) else (term,)
    a, other = sorted((*(ev.value(x, frame) for x in parts), literal(0, term.type)), key=lambda x: x.lanes == 1)[:2]
    found = b.define(SumNeighbours(a, other), total, a.lanes // group, hint="sums")
    while group < size:
        even, odd = (
            b.define(Shuffle(found, found, tuple(range(n, found.lanes, 2))), total, found.lanes // 2, hint="part")
            for n in range(2)
        )
        found, group = b.define(Binary("+", even, odd), total, even.lanes, hint="sums"), 2 * group
    return found
