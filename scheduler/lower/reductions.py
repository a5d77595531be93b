"""Inline reductions to values: short ones written out, long ones as loops around accumulators."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from scheduler.analysis.index import const
from scheduler.lang.expr import Access, Const, Expr, Logical, Reduce, RVar, children, walk
from scheduler.lang.pipeline import Stage
from scheduler.lang.types import BOOL, ScalarType
from scheduler.lower.builder import literal
from scheduler.lower.program import Accumulator, Assign, Lane, Loop, Value

if TYPE_CHECKING:
    from scheduler.lower.evaluate import Evaluator, Frame

UNROLLED_TRIPS = 64
"""Reductions of at most this many terms, all bounds constant, are written out as vectors ..."""
UNROLLED_SCALAR_TRIPS = 9
"""... and those of at most this many as scalars, which only edges are."""
WRITTEN_TERMS = 32
"""Inside the loops of longer ones, as many terms are written out."""


def reduced(ev: Evaluator, e: Reduce, frame: Frame) -> Value:
    """The value of a reduction (or of its `component`), in the order that its terms are written in."""
    return _looped(ev, e, frame) if _is_long(ev, e) else _unrolled(ev, e, frame)


def _is_long(ev: Evaluator, e: Reduce) -> bool:
    most = UNROLLED_SCALAR_TRIPS if ev.axis is None else UNROLLED_TRIPS
    return not 0 < prod(map(_trips, e.domain)) <= most


def has_long_reduction(stage: Stage) -> bool:
    """Whether a value of `stage` has a reduction that vectors run as a loop."""
    return any(
        isinstance(e, Reduce) and not 0 < prod(map(_trips, e.domain)) <= UNROLLED_TRIPS
        for v in stage.values
        for e in walk(v)
    )


def _unrolled(ev: Evaluator, e: Reduce, frame: Frame) -> Value:
    state = _identity(ev, e, frame)
    for point in _points(ev, e.domain, frame):
        state = _step(ev, e, state, point)
    return _picked(e, state)


def _points(ev: Evaluator, domain: tuple[RVar, ...], frame: Frame) -> list[Frame]:
    """A frame for every point of a constant domain, the last variable fastest."""
    points = [frame]
    for r in domain:
        assert isinstance(r.lo, Const)
        lo, n = int(r.lo.value), _trips(r)
        points = [ev.extended(f, r.name, Lane(const(v))) for f in points for v in range(lo, lo + n)]
    return points


def _looped(ev: Evaluator, e: Reduce, frame: Frame) -> Value:
    return _side_by_side(ev, e, [frame])[0]


def together(ev: Evaluator, e: Expr, frames: list[Frame]) -> None:
    """Evaluates the long reductions of `e` for all `frames` in one loop each, so that what these have in common is
    loaded once and no accumulator waits for another. `Evaluator.value` finds them done."""
    match e:
        case Reduce() if _is_long(ev, e):
            for frame, value in zip(frames, _side_by_side(ev, e, frames), strict=True):
                ev.done(e, frame, value)
        case Reduce():
            return
        case Access(name=name) if name in ev.sources.inlined:
            inside = {f.number: f for f in (ev.inlined_frame(e, frame) for frame in frames)}
            if len(inside) > 1:
                together(ev, ev.sources.inlined[name].values[e.component], list(inside.values()))
        case _:
            for child in children(e):
                together(ev, child, frames)


def _side_by_side(ev: Evaluator, e: Reduce, frames: list[Frame]) -> list[Value]:
    """Loops around accumulators, some for every frame; the first variable is the outermost loop, the last ones are
    written out."""
    b = ev.builder
    lanes = [_lanes(ev, e, frame) for frame in frames]
    cells: list[list[Value]] = []
    for frame, n in zip(frames, lanes, strict=True):
        state = []
        for start in _identity(ev, e, frame):
            bits = 32 if start.type == BOOL and n > 1 else 0
            cell = Value(start.type, n, b.fresh(e.op), None, bits)
            b.depths[cell.name] = b.depth
            b.emit(Accumulator(cell, start))
            state.append(cell)
        cells.append(state)
    loops = len(e.domain) if ev.axis is None else _loops(e, len(frames))

    def nest(n: int, inner: list[Frame]) -> None:
        if n == loops:
            for cell in (c for state in cells for c in state):
                b.depths[cell.name] = b.depth  # what is made of an accumulator belongs into the innermost loop
            for state, frame in zip(cells, inner, strict=True):
                new = list(state)
                for point in _points(ev, e.domain[n:], frame):
                    new = _step(ev, e, new, point)
                for cell, value in zip(state, new, strict=True):
                    if value != cell:
                        b.emit(Assign(cell, value))
            return
        r = e.domain[n]
        lo, extent = ev.lane(r.lo, frames[0]).base, ev.lane(r.extent, frames[0]).base
        with b.scope() as body:
            var = b.fresh(r.name)
            b.ranges[var] = (lo, lo + extent - 1)
            at = Lane(b.declare(var))
            nest(n + 1, [ev.extended(f, r.name, at) for f in inner])
        b.emit(Loop(var, lo, lo + extent - 1, const(1), tuple(body)))

    depth = b.depth
    nest(0, frames)
    b.depths.update((cell.name, depth) for state in cells for cell in state)
    # what the loop leaves behind must not be mistaken for the accumulator inside it
    left = [_picked(e, state) for state in cells]
    return [b.define("copy", (v,), v.type, v.lanes, mask_bits=v.mask_bits, pinned=True) for v in left]


def _loops(e: Reduce, frames: int) -> int:
    """How many of the variables are loops: the last ones, few and constant terms, are written out."""
    n, terms = len(e.domain), frames
    while n > 1 and 0 < _trips(e.domain[n - 1]) * terms <= WRITTEN_TERMS:
        n -= 1
        terms *= _trips(e.domain[n])
    return n


def _trips(r: RVar) -> int:
    """Iterations, where the range is constant; a great many where it is not."""
    return int(r.extent.value) if isinstance(r.extent, Const) and isinstance(r.lo, Const) else 1 << 30


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
