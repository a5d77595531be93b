"""Lane divergence: lanes of a vector that differ in what they compute are evaluated class by class, and shuffled
together.

Of `select(x % 2 == 0, a(x // 2), b(x // 2))` the even lanes are a vector of a's neighbours and the odd lanes one of
b's. Of `f(x // 2)` each lane of half a vector stands for two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import and_, eq, ge, gt, le, lt, ne, or_

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Broadcast, ResizeMask, Shuffle
from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    Unary,
    Var,
    children,
)
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, INT64
from tilesmith.scheduler.lowering import interleaved_channels
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.index_vectorization import Frame, Places
from tilesmith.scheduler.lowering.residue_splitting import ask

Lanes = tuple[int, ...]
_COMPARE = {"<": lt, "<=": le, "==": eq, "!=": ne, ">=": ge, ">": gt}
_JOINED = {"and": and_, "or": or_, "==": eq, "!=": ne}


def truths(ev: Places, condition: Expr, frame: Frame) -> tuple[bool, ...] | None:
    """The lanes in which an index makes `condition` true, where they are the same in every vector; of one lane, in
    all."""
    match condition:
        case Compare(left=left, right=right) if left.type in (INT32, INT64):
            a, b = ev.lane(left, frame), ev.lane(right, frame)
            if a.vector is not None or b.vector is not None:
                return None
            difference, n = a.base - b.base, max(_width(a), _width(b))
            if not difference.is_const:
                _ask(ev, difference)
                return None
            base = difference.const
            own, other = a.pattern or (0,) * n, b.pattern or (0,) * n
            return tuple(_COMPARE[condition.op](base + p, q) for p, q in zip(own, other, strict=True))
        case Logical(op="and" | "or") | Compare(op="==" | "!=", left=Compare() | Logical() | Unary()):
            first, second = truths(ev, condition.left, frame), truths(ev, condition.right, frame)
            if first is None or second is None:
                return None
            n = max(len(first), len(second))
            both = zip(_repeated(first, n), _repeated(second, n), strict=True)
            return tuple(_JOINED[condition.op](p, q) for p, q in both)
        case Unary(op="not"):
            inside = truths(ev, condition.operand, frame)
            return None if inside is None else tuple(not p for p in inside)
    return None


def _ask(ev: Places, undecided: Index) -> None:
    if ev.axis is not None and ev.axis.splits:
        ask(ev.builder, undecided, ev.axis.depth)


def _width(lane: Lane) -> int:
    return 1 if lane.pattern is None else len(lane.pattern)


def _repeated(known: tuple[bool, ...], n: int) -> tuple[bool, ...]:
    return known * n if len(known) == 1 else known


def picked(ev: Places, index: Expr, frame: Frame) -> Lanes | None:
    """The number that `index` is in each lane, where that is the same in every vector; of one lane, in all."""
    if index.type not in (INT32, INT64):
        return None
    lane = ev.lane(index, frame)
    if lane.vector is not None:
        return None
    if not lane.base.is_const:
        _ask(ev, lane.base)
        return None
    return tuple(lane.base.const + p for p in lane.pattern or (0,))


def chosen(ev: Places, known: Sequence[int], choices: Sequence[Expr], frame: Frame) -> Value:
    """The value whose lane j is the choice known[j]. Choices are computed in their own lanes alone where that brings
    the elements that they read together."""
    used, n = sorted(set(known)), len(known)
    if len(used) == 1:
        return ev.value(choices[used[0]], frame)
    sides = [choices[c] for c in used]
    classes = [tuple(j for j in range(n) if known[j] == c) for c in used]
    size = len(classes[0])
    apart = sides[0].type != BOOL and size > 1 and size & (size - 1) == 0 and all(len(c) == size for c in classes)
    if apart and sum(_gain(ev, e, frame, c) for e, c in zip(sides, classes, strict=True)) > 0:
        parts = [ev.value(e, restricted(ev, frame, c)) for e, c in zip(sides, classes, strict=True)]
        places = [(used.index(k), classes[used.index(k)].index(j)) for j, k in enumerate(known)]
        return together(ev.builder, parts, places, size)
    parts = [ev.value(e, frame) for e in sides]
    return together(ev.builder, parts, [(used.index(k), j) for j, k in enumerate(known)], n)


def _gain(ev: Places, e: Expr, frame: Frame, picks: Lanes) -> int:
    """The number of reads of `e` that become reads of neighbours if only the lanes `picks` are computed."""
    gain = 0
    for access in _accesses(e):
        for index in access.indices:
            pattern = ev.lane(index, frame).pattern
            if pattern is not None:
                gain += _neighbours(tuple(pattern[j] for j in picks)) - _neighbours(pattern)
    return gain


def _accesses(e: Expr) -> Iterator[Access]:
    """Reads outside of reductions, whose variables have no values here."""
    if isinstance(e, Reduce):
        return
    if isinstance(e, Access):
        yield e
    for child in children(e):
        yield from _accesses(child)


def _neighbours(pattern: Lanes) -> bool:
    return pattern == tuple(range(pattern[0], pattern[0] + len(pattern)))


def restricted(ev: Places, frame: Frame, picks: Lanes) -> Frame:
    """The frame of the lanes `picks` alone."""
    return ev.frame({name: _restricted(ev, lane, picks) for name, lane in frame.env.items()})


def _restricted(ev: Places, lane: Lane, picks: Lanes) -> Lane:
    if lane.vector is not None:
        v = lane.vector
        return Lane(lane.base, None, ev.builder.define(Shuffle(v, v, picks), v.type, len(picks), hint="at"))
    if lane.pattern is None:
        return lane
    return Lane(lane.base, tuple(lane.pattern[j] for j in picks)).settled


def classes_of(lanes: Sequence[Lane]) -> list[tuple[Lane, ...]] | None:
    """Indices of which every k-th lane makes a vector of neighbours: those vectors, for the first k lanes.
    None where the lanes are neighbours, or no such vectors."""
    if any(lane.vector is not None for lane in lanes):
        return None
    moving = [lane.pattern for lane in lanes if lane.pattern is not None]
    if not moving or all(_neighbours(p) for p in moving):
        return None
    n, k = len(moving[0]), 2
    while n // k >= 2:
        if all(_neighbours(p[r::k]) or len(set(p[r::k])) == 1 for p in moving for r in range(k)):
            return [
                tuple(lane if lane.pattern is None else Lane(lane.base, lane.pattern[r::k]).settled for lane in lanes)
                for r in range(k)
            ]
        k *= 2
    return None


def is_one_vector(value: Expr, lanes: Mapping[str, Lane], sources: Sources) -> bool:
    """True if what an inlined stage at `lanes` reads is one vector of memory as it stands, which classes would pick
    apart: in blocks of 8, (i, u), read at (x % 8, x // 8), 8 * u + i is x. The others are within as many elements."""
    n = max(len(lane.pattern or ()) for lane in lanes.values())
    places = _places_read(value, {d: lane.pattern or (0,) * n for d, lane in lanes.items()}, n, sources)
    moving = [at for at in places if at is None or len(set(at)) > 1]
    together = [at is not None and max(at) - min(at) < n for at in moving]
    return all(together) and any(at is not None and len(set(at)) == n for at in moving)


def _places_read(e: Expr, env: Mapping[str, Lanes], n: int, sources: Sources) -> Iterator[Lanes | None]:
    """The elements that each read of `e` takes, lane by lane, but for what all lanes add; None where they may lie
    anywhere."""
    if isinstance(e, Access):
        at = [_pattern(i, env, n) for i in e.indices]
        known = [p for p in at if p is not None]
        inside = sources.inlined.get(e.name)
        if len(known) < len(at):
            yield None
        elif inside is not None:
            value = inside.values[e.component]
            yield from _places_read(value, dict(zip(inside.dims, known, strict=True)), n, sources)
        else:
            unit = sources.buffers[(e.name, e.component)].unit
            across = any(len(set(p)) > 1 for d, p in enumerate(known) if d != unit)
            yield None if across or not known else known[unit]
        return
    for child in children(e):
        yield from _places_read(child, env, n, sources)


def _pattern(e: Expr, env: Mapping[str, Lanes], n: int) -> Lanes | None:
    """The steps of an index from lane to lane, where nothing is clamped; None where they are not known."""
    match e:
        case Var():
            return env.get(e.name, (0,) * n)
        case Binary(op="+" | "-", left=a, right=b):
            p, q = _pattern(a, env, n), _pattern(b, env, n)
            if p is None or q is None:
                return None
            return tuple(x + y if e.op == "+" else x - y for x, y in zip(p, q, strict=True))
        case Binary(op="*", left=a, right=Const(value=k)) | Binary(op="*", left=Const(value=k), right=a):
            p = _pattern(a, env, n)
            return None if p is None else tuple(int(k) * x for x in p)
        case Call(function="clamp"):
            return _pattern(before_clamp(e), env, n)
    parts = [_pattern(child, env, n) for child in children(e)]
    still = not isinstance(e, Access) and all(p is not None and len(set(p)) == 1 for p in parts)
    return (0,) * n if still else None


def spread(ev: Places, parts: Sequence[Value], n: int) -> Value:
    """The vector of `n` lanes of which every k-th belongs to one of the k `parts`."""
    distinct = list(dict.fromkeys(parts))
    k = len(parts)
    return together(ev.builder, distinct, [(distinct.index(parts[j % k]), j // k) for j in range(n)], n // k)


def together(b: Builder, parts: Sequence[Value], picks: Sequence[tuple[int, int]], lanes: int) -> Value:
    """A vector of the lanes `picks`, (part, lane), of parts that all have `lanes`, or are scalars."""
    if len(parts) == 1 and parts[0].lanes == 1:
        return parts[0]
    type_ = parts[0].type
    mask = max((p.mask_bits for p in parts), default=0) or 8 if type_ == BOOL else 0

    def fitted(p: Value) -> Value:
        if p.lanes > 1 and p.mask_bits == mask:
            return p
        return b.define(Broadcast(p) if p.lanes == 1 else ResizeMask(p), type_, lanes, mask_bits=mask)

    def shuffled(pair: Sequence[Value], wanted: Lanes) -> Value:
        return interleaved_channels.shuffled(b, pair[0], pair[-1], wanted)

    vectors, size, places = [fitted(p) for p in parts], lanes, list(picks)
    while len(vectors) > 2:  # shuffles are of two
        vectors = [shuffled(vectors[n : n + 2], tuple(range(2 * size))) for n in range(0, len(vectors), 2)]
        places = [(part // 2, part % 2 * size + lane) for part, lane in places]
        size *= 2
    return shuffled(vectors, tuple(part * size + lane for part, lane in places))
