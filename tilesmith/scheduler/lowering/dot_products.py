"""Sums of products of 16 bits in 32: machines multiply neighbours and add them up by one instruction.

Of `a * b + c * d` the vectors of `a` and `c` are put together alternately, and so are those of `b` and `d`, or, where
these are the same in all lanes, both are halves of one number, which is loaded as one if they are neighbours in memory.
"""

from __future__ import annotations

from tilesmith.scheduler.analysis.short_products import short_factors, terms
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import literal
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Expr
from tilesmith.scheduler.ir.pipeline.types import INT16, INT32, UINT16, UINT32
from tilesmith.scheduler.lowering.evaluation import Evaluation
from tilesmith.scheduler.lowering.index_vectorization import Frame

Product = tuple[Value, Value, Expr | None]
"""Two factors, the second the same in all lanes where one is, and the expression of that."""


def sum_of_products(ev: Evaluation, e: Binary, frame: Frame) -> Value | None:
    """The sum `e` of int32, where it has two products of vectors of at most 16 bits or more: integers wrap, so that the
    order of terms does not matter."""
    if ev.axis is None or e.type != INT32 or not ev.builder.vectors.pairwise_products:
        return None
    factors = [(t, short_factors(t)) for t in terms(e)]
    if sum(len(f) == 2 for _, f in factors) < 2:
        return None
    products: list[Product] = []
    alone: list[tuple[Expr, Value | None]] = []
    for term, parts in factors:
        values = [(ev.convert(ev.value(p, frame), INT16), p) for p in parts]
        values.sort(key=lambda v: v[0].lanes == 1)
        if len(values) == 2 and values[0][0].lanes > 1:
            products.append((values[0][0], *values[1]))
        else:
            alone.append((term, values[0][0] if len(values) == 1 else None))
    if len(products) < 2:
        return None
    if len(products) % 2:
        short = next((n for n, (_, v) in enumerate(alone) if v is not None and v.lanes == 1), None)
        if short is None:
            last = products.pop()
            value = ev.op(ops.Binary("*", ev.convert(last[0], INT32), ev.convert(last[1], INT32)), e)
            rest = [value]
        else:
            value_of = alone.pop(short)[1]
            assert value_of is not None
            products.append((literal(1, INT16), value_of, None))
            rest = []
    else:
        rest = []
    sums = [_two(ev, frame, a, b) for a, b in zip(products[::2], products[1::2], strict=True)]
    sums += [*rest, *(ev.value(term, frame) for term, _ in alone)]
    total = sums[0]
    for s in sums[1:]:
        total = ev.op(ops.Binary("+", total, s), e)
    return total


def _two(ev: Evaluation, frame: Frame, first: Product, second: Product) -> Value:
    """first[0] * first[1] + second[0] * second[1]."""
    b, lanes = ev.builder, max(v.lanes for p in (first, second) for v in p[:2])
    if first[1].lanes > 1 or second[1].lanes > 1:
        by = _alternating(ev, first[1], second[1], lanes)
    elif (pair := ev.pair(first[2], second[2], frame)) is not None:
        by = pair
    else:
        low, high = (b.define(ops.Cast(ev.convert(p[1], UINT16)), UINT32) for p in (first, second))
        high = b.define(ops.Binary("<<", high, literal(16, UINT32)), UINT32)
        by = ev.convert(b.define(ops.Binary("|", low, high), UINT32), INT32)
    return b.define(ops.DotPairs(_alternating(ev, first[0], second[0], lanes), by), INT32, lanes, hint="madd")


def _alternating(ev: Evaluation, even: Value, odd: Value, lanes: int) -> Value:
    b = ev.builder
    both = [v if v.lanes > 1 else b.define(ops.Broadcast(v), INT16, lanes) for v in (even, odd)]
    picks = tuple(n // 2 + n % 2 * lanes for n in range(2 * lanes))
    return b.define(ops.Shuffle(both[0], both[1], picks), INT16, 2 * lanes, hint="both")
