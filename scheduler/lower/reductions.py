"""Inline reductions to values: short ones written out, long ones as loops around accumulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.analysis.index import const
from scheduler.lang.expr import Const, Logical, Reduce
from scheduler.lang.types import BOOL, ScalarType
from scheduler.lower.builder import literal
from scheduler.lower.program import Accumulator, Assign, Lane, Loop, Value

if TYPE_CHECKING:
    from scheduler.lower.evaluate import Evaluator, Frame

UNROLLED_TRIPS = 64
"""Reductions of at most this many terms, all bounds constant, are written out as vectors ..."""
UNROLLED_SCALAR_TRIPS = 9
"""... and those of at most this many as scalars, which only edges are."""


def reduced(ev: Evaluator, e: Reduce, frame: Frame) -> Value:
    """The value of a reduction (or of its `component`), in the order that its terms are written in."""
    trips = 1
    for r in e.domain:
        trips *= int(r.extent.value) if isinstance(r.extent, Const) and isinstance(r.lo, Const) else 1 << 30
    most = UNROLLED_SCALAR_TRIPS if ev.axis is None else UNROLLED_TRIPS
    return _unrolled(ev, e, frame) if 0 < trips <= most else _looped(ev, e, frame)


def _unrolled(ev: Evaluator, e: Reduce, frame: Frame) -> Value:
    points = [frame]
    for r in e.domain:
        assert isinstance(r.lo, Const)
        assert isinstance(r.extent, Const)
        lo, n = int(r.lo.value), int(r.extent.value)
        points = [ev.extended(f, r.name, Lane(const(v))) for f in points for v in range(lo, lo + n)]
    state = _identity(ev, e, frame)
    for point in points:
        state = _step(ev, e, state, point)
    return _picked(e, state)


def _looped(ev: Evaluator, e: Reduce, frame: Frame) -> Value:
    """A loop nest around accumulators; the first variable is the outermost loop."""
    b = ev.builder
    lanes = _lanes(ev, e, frame)
    cells: list[Value] = []
    for start in _identity(ev, e, frame):
        bits = 32 if start.type == BOOL and lanes > 1 else 0
        cell = Value(start.type, lanes, b.fresh(e.op), None, bits)
        b.depths[cell.name] = b.depth
        b.emit(Accumulator(cell, start))
        cells.append(cell)

    def nest(n: int, inner: Frame) -> None:
        if n == len(e.domain):
            for cell in cells:  # what is made of an accumulator belongs into the innermost loop
                b.depths[cell.name] = b.depth
            for cell, new in zip(cells, _step(ev, e, list(cells), inner), strict=True):
                if new != cell:
                    b.emit(Assign(cell, new))
            return
        r = e.domain[n]
        lo, extent = ev.lane(r.lo, frame).base, ev.lane(r.extent, frame).base
        with b.scope() as body:
            var = b.fresh(r.name)
            b.ranges[var] = (lo, lo + extent - 1)
            nest(n + 1, ev.extended(inner, r.name, Lane(b.declare(var))))
        b.emit(Loop(var, lo, lo + extent - 1, const(1), tuple(body)))

    depth = b.depth
    nest(0, frame)
    b.depths.update((cell.name, depth) for cell in cells)
    # what the loop leaves behind must not be mistaken for the accumulator inside it
    left = _picked(e, cells)
    return b.define("copy", (left,), left.type, left.lanes, mask_bits=left.mask_bits, pinned=True)


def _picked(e: Reduce, state: list[Value]) -> Value:
    return state[e.component if e.op in ("argmin", "argmax") else 0]


def _lanes(ev: Evaluator, e: Reduce, frame: Frame) -> int:
    """Lanes of the result: found by evaluating one term in a scope that is thrown away."""
    if ev.axis is None:
        return 1
    b, mark, noted = ev.builder, ev.builder.mark(), list(ev.constraints)
    with b.scope():
        point = frame
        for r in e.domain:
            lo, extent = ev.lane(r.lo, frame).base, ev.lane(r.extent, frame).base
            var = b.fresh(r.name)
            b.ranges[var] = (lo, lo + extent - 1)
            point = ev.extended(point, r.name, Lane(b.declare(var)))
        values = [ev.value(e.body, point)] + ([] if e.where is None else [ev.value(e.where, point)])
    b.rollback(mark)
    ev.constraints = noted
    return max(v.lanes for v in values)


def _identity(ev: Evaluator, e: Reduce, frame: Frame) -> list[Value]:
    """Where the reduction starts: of argmin and argmax the first value of every variable, and the worst value."""
    t = e.body.type
    match e.op:
        case "sum":
            return [literal(0, t)]
        case "product":
            return [literal(1, t)]
        case "any":
            return [literal(False, BOOL)]
        case "all":
            return [literal(True, BOOL)]
        case "min" | "max":
            return [_worst(t, e.op == "min")]
    return [ev.position(ev.lane(r.lo, frame)) for r in e.domain] + [_worst(t, e.op == "argmin")]


def _worst(t: ScalarType, smallest_wins: bool) -> Value:
    if t.is_float:
        return literal(float("inf") if smallest_wins else float("-inf"), t)
    return literal(t.max if smallest_wins else t.min, t)


def _step(ev: Evaluator, e: Reduce, state: list[Value], point: Frame) -> list[Value]:
    """The state after one more term."""
    body = ev.value(e.body, point)
    where = None if e.where is None else ev.value(e.where, point)
    if where is not None and where.literal is not None:
        if not where.literal:
            return state
        where = None
    if e.op in ("argmin", "argmax"):
        better = _bool(ev, "<" if e.op == "argmin" else ">", (body, state[-1]))
        if where is not None:
            better = _bool(ev, "and", (better, where))
        fresh = [ev.position(point.env[r.name]) for r in e.domain] + [body]
        return [_chosen(ev, better, new, old) for new, old in zip(fresh, state, strict=True)]
    identity = _identity(ev, e, point)[0]
    if where is not None:
        body = _chosen(ev, where, body, identity)
    first = state[0]
    if first == identity and e.op in ("sum", "product", "any", "all"):
        return [body]
    op = {"sum": "+", "product": "*", "any": "or", "all": "and"}.get(e.op, f"call:{e.op}")
    lanes, mask = max(body.lanes, first.lanes), max(body.mask_bits, first.mask_bits)
    if e.op in ("min", "max") and lanes > 1 and e.body.type != BOOL:
        return [ev.extreme_of(op, (first, body), lanes)]
    return [ev.builder.define(op, (first, body), e.body.type, lanes, mask_bits=mask)]


def _bool(ev: Evaluator, op: str, args: tuple[Value, ...]) -> Value:
    return ev.op(op, args, Logical("and", Const(True, BOOL), Const(True, BOOL)))


def _chosen(ev: Evaluator, condition: Value, a: Value, b: Value) -> Value:
    if condition.literal is not None:
        return a if condition.literal else b
    lanes = max(condition.lanes, a.lanes, b.lanes)
    mask = max(a.mask_bits, b.mask_bits, condition.mask_bits) if a.type == BOOL and lanes > 1 else 0
    return ev.builder.define("select", (condition, a, b), a.type, lanes, mask_bits=mask)
