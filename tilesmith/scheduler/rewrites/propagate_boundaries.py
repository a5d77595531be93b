"""Propagation of repeated edges: what a stage makes of an image whose edge is repeated is the same, too, from some
place on. Readers that go far beyond it, as levels of a pyramid do, read that place: `f(x)` is `f(clamp(x, lo, hi))`.

Each level of a pyramid needs twice the margin of the next coarser one, so that of eight levels the finest are computed
on far more than the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from tilesmith.scheduler.analysis.access_functions import Span, span_of, variable
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses, range_of
from tilesmith.scheduler.analysis.bounds_inference import (
    Box,
    Interval,
    footprint,
    interval_of,
    reads,
    settled_box,
    told,
    variables,
)
from tilesmith.scheduler.analysis.estimated_bounds import symbols_of
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    BinaryOp,
    Call,
    Const,
    Expr,
    InputBound,
    RVar,
    Var,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, rewritten
from tilesmith.scheduler.ir.pipeline.types import INT32

FAR = 16
"""Readers are clamped where they would have this part of a dim's extent, or more, computed beyond its ends."""


class End(NamedTuple):
    """The place (base + more) // by."""

    base: Expr
    more: int
    by: int

    @property
    def expr(self) -> Expr:
        """The place as an index."""
        e = self.base if self.more == 0 else _sum(self.base, self.more)
        return e if self.by == 1 else Binary("//", e, Const(self.by, INT32), INT32)

    def at(self, base: int) -> int:
        """The place, where the base is this number."""
        return (base + self.more) // self.by

    def then(self, times: int, more: int, by: int) -> End:
        """The place (times * self + more) // by."""
        if times == 1:
            return End(self.base, self.more + more * self.by, self.by * by)
        return End(Binary("*", self.expr, Const(times, INT32), INT32), more, by)


Ends = tuple[End, End] | None
"""The ends of a stage in one dim, the points below and above which its values repeat; None where none are known."""


def inherited(pipeline: Pipeline) -> Pipeline:
    """*Before*: boundaries are arithmetic. *After*: what is read far beyond the ends that a stage inherits is read at
    these ends; the pipeline itself where there is nothing of the kind. Computes the same values."""
    ends: dict[str, tuple[Ends, ...]] = {}
    for s in pipeline.stages:
        ends[s.name] = _inherits(s, ends)
    if any(e is not None for found in ends.values() for e in found):
        return _clamped(pipeline, ends)
    return pipeline


# where edges are -----------------------------------------------------------------------------------------------------


def _inherits(stage: Stage, known: Mapping[str, tuple[Ends, ...]]) -> tuple[Ends, ...]:
    """The ends of `stage` in each dim: beyond them all that it reads at places that move with the dim is beyond its
    own."""
    if stage.updates:
        return (None,) * len(stage.dims)
    if not any(_may_end(a, known) for a in accesses(stage)):
        return (None,) * len(stage.dims)
    said = {name for value in stage.values for name in _said(value)}
    found: dict[str, list[tuple[End, End]]] = {d: [] for d in stage.dims if d not in said}
    for a in accesses(stage):
        inside = known.get(a.producer, (None,) * len(a.spans))
        for index, used, span, data, ends in zip(a.access.indices, a.used, a.spans, a.data, inside, strict=True):
            for dim in used & found.keys():
                own = None if data else _beyond(index, dim, span, a.reductions, ends)
                if own is not None:
                    found[dim].append(own)
                elif not data or dim in _said(index):  # places that are data are the same where the data is
                    del found[dim]
    return tuple(_together(found.get(d, [])) for d in stage.dims)


def _may_end(a: StageAccess, known: Mapping[str, tuple[Ends, ...]]) -> bool:
    """A quick look: whether what is read has ends, or is held in an image by a clamp."""
    ends = known.get(a.producer)
    return (ends is not None and ends.count(None) < len(ends)) or Call in map(type, a.access.indices)


def _together(found: list[tuple[End, End]]) -> Ends:
    """The outermost of several ends."""
    if not found:
        return None
    low, high = found[0]
    for lo, hi in found[1:]:
        if (lo.base, lo.by, hi.base, hi.by) != (low.base, low.by, high.base, high.by):
            return None  # edges of several images, or of several sizes
        low, high = low._replace(more=min(low.more, lo.more)), high._replace(more=max(high.more, hi.more))
    return low, high


def _said(e: Expr) -> set[str]:
    """The variables that an expression mentions outside of what it reads."""
    found: set[str] = set()
    parts = [e]
    while parts:
        part = parts.pop()
        if isinstance(part, Var):
            found.add(part.name)
        elif not isinstance(part, Access):
            parts += children(part)
    return found


def _beyond(index: Expr, dim: str, span: Span, reductions: tuple[RVar, ...], ends: Ends) -> Ends:
    """From where on, down and up, `index` is beyond an edge."""
    if isinstance(index, Call) and index.function == "clamp":
        index, *sides = index.args
        if not all(map(_stands, sides)):
            return None
        ends = (_end(sides[0]), _end(sides[1]))
        span = span_of(index, {dim: variable(dim)} | {r.name: range_of(r) for r in reductions})
    if ends is None or not span.known or span.var != dim or span.rate <= 0 or span.clamps:
        return None
    return _reached(span, ends)


def _reached(span: Span, ends: tuple[End, End]) -> tuple[End, End]:
    """The last v with floor(rate v + hi) no more than the lower of `ends`, the first with floor(rate v + lo) no less
    than the upper one."""
    lo, hi = span.ends
    n, m = span.rate.numerator, span.rate.denominator
    a, q = hi.numerator, hi.denominator
    low = ends[0].then(q * m, q * m - 1 - a * m, q * n)
    a, q = lo.numerator, lo.denominator
    high = ends[1].then(q * m, q * n - 1 - a * m, q * n)
    return low, high


def _stands(e: Expr) -> bool:
    """True if an index has one value throughout a call, by what inputs there are."""
    return all(isinstance(x, Const | InputBound | Binary) and x.type == INT32 for x in walk(e))


def _end(e: Expr) -> End:
    match e:
        case Binary(op="+", left=a, right=Const(value=n)):
            return _end(a).then(1, int(n), 1)
        case Binary(op="-", left=a, right=Const(value=n)):
            return _end(a).then(1, -int(n), 1)
        case Binary(op="//", left=a, right=Const(value=n)) if n > 0:
            return _end(a).then(1, 0, int(n))
    return End(e, 0, 1)


def _sum(e: Expr, n: int) -> Expr:
    op: BinaryOp = "+" if n > 0 else "-"
    return Binary(op, e, Const(abs(n), INT32), INT32)


# who reads beyond them -----------------------------------------------------------------------------------------------


def _clamped(pipeline: Pipeline, ends: Mapping[str, tuple[Ends, ...]]) -> Pipeline:
    """`pipeline` with clamps where what is needed at the estimates goes far beyond `ends`, readers first: what one of
    them is spared its producers are spared, too."""
    known = dict(pipeline.estimates)
    if not all(name in known for name in pipeline.outputs):
        return pipeline
    numbers = told(symbols_of(pipeline, known))
    clamps: dict[str, dict[tuple[str, int], tuple[End, End]]] = {}
    needed = {name: [(name, tuple((lo, lo + n - 1) for lo, n in known[name]))] for name in pipeline.outputs}
    for stage in reversed(pipeline.stages):
        asked = needed.get(stage.name)
        if asked is None:
            continue
        kept = (None,) * len(stage.dims) if _is_margin(stage) else ends[stage.name]
        inside = [_places(e, numbers) for e in kept]
        boxes = []
        for reader, box in asked:
            for d, (places, e) in enumerate(zip(inside, kept, strict=True)):
                if reader == stage.name or e is None or places is None:
                    continue
                low, high = places
                lo, hi = box[d]
                if FAR * (max(low - lo, 0) + max(hi - high, 0)) > high - low + 1 > 0:
                    clamps.setdefault(reader, {})[stage.name, d] = e
                    box = (*box[:d], (min(max(lo, low), high), max(min(hi, high), low)), *box[d + 1 :])
            boxes.append(box)
        hull = tuple((min(lo for lo, _ in side), max(hi for _, hi in side)) for side in zip(*boxes, strict=True))
        whole = settled_box(stage, tuple((const(lo), const(hi)) for lo, hi in hull), numbers)
        env = {**numbers, **variables(stage, whole)}
        for read in reads(stage):
            if read.producer != stage.name:
                box = _numbers(footprint(read, env))
                needed.setdefault(read.producer, []).append((stage.name, box))
    if not clamps:
        return pipeline
    stages = (_reading(s, clamps[s.name]) if s.name in clamps else s for s in pipeline.stages)
    return replace(pipeline, stages=tuple(stages))


def _is_margin(stage: Stage) -> bool:
    """True for a copy of an image with what lies beyond its edges: it is there for readers who need no clamps."""
    match stage.values:
        case (Access(indices=at),) if not stage.updates:
            return at != (point := tuple(map(Var, stage.dims))) and tuple(map(before_clamp, at)) == point
    return False


def _places(ends: Ends, numbers: Mapping[str, Interval]) -> tuple[int, int] | None:
    """Ends at the estimates; None where these do not tell them."""
    if ends is None:
        return None
    low, high = ends
    least, most = interval_of(low.base, numbers)[0], interval_of(high.base, numbers)[0]
    return (low.at(least.const), high.at(most.const)) if least.is_const and most.is_const else None


def _numbers(box: Box) -> tuple[tuple[int, int], ...]:
    """A box at the estimates; what these do not tell is 1."""
    return tuple((lo.value(lambda _: 1), hi.value(lambda _: 1)) for lo, hi in box)


def _reading(reader: Stage, clamps: Mapping[tuple[str, int], tuple[End, End]]) -> Stage:
    """`reader` with what it reads of other stages clamped to ends, by the stage and the dim."""

    def at(name: str, d: int, index: Expr) -> Expr:
        ends = clamps.get((name, d)) if index.type == INT32 else None
        return index if ends is None else Call("clamp", (index, ends[0].expr, ends[1].expr), INT32)

    def clamped(e: Expr) -> Expr:
        e = map_children(e, clamped)
        if not isinstance(e, Access):
            return e
        indices = tuple(at(e.name, d, i) for d, i in enumerate(e.indices))
        return e if indices == e.indices else replace(e, indices=indices)

    return rewritten(reader, clamped, clamped)
