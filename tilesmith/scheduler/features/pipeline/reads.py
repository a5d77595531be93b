"""Reads: what a stage reads of one producer, all its accesses together, and how reads are put together through what
is inline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import inf
from operator import add
from typing import NamedTuple, TypeAlias

from tilesmith.scheduler.analysis.access_functions import Rational, Span, compose, hull
from tilesmith.scheduler.analysis.periodic_indices import Order, joined

Way: TypeAlias = tuple[tuple[Span, ...], float]
"""The spans of accesses that move by the same dims, and their points."""

Offsets: TypeAlias = frozenset[tuple[int, ...]]
"""The different elements that one point reads, from where the lines are that its spans follow; empty where these are
not known."""

MOST_OFFSETS = 1024
"""Offsets that are told one by one, at most, and pairs of them that are added: of more a box bounds the number."""


class Beside(NamedTuple):
    """Neighbours along a dim of a stage that read along `of` its producer alone, each a `step` from the one before: but
    for every `period`th, where a remainder or a quotient goes on."""

    dim: str
    of: str
    step: int = 1
    period: float = inf


class Read(NamedTuple):
    """Accesses of one stage to one producer, all together.

    `spans` has one span per dim of the producer, in the stage's own pure dims; not known where the accesses do not
    move together. A dim that is not pure stands for all of itself: of the reader, whose updates run through the
    whole of it, and of the producer, which is computed on the whole of it. `points` counts the different elements
    read for one point of the stage, at most (of updates their share of a point). `reuse` has the loops of the stage
    in which two neighbouring iterations read the same, with the overlap: its dims, and the variables of its updates.
    `looked_up`: where is read depends on data, for neighbours in memory on others. `rough` has the places that are
    read, if these are not what `spans` say: those in a producer's dims that are not pure, and where a span is not known
    an index of several dims as one of the longest of these, the others where they may be. `skipped` are those of the
    points that no single point reads, since a `mux` picks others. `bounded`: the places that data says have ends that
    the document says. `several`: where accesses go along memory by different dims, the spans and points of those that
    go alike. `computed`: where is read depends on floats that follow no line, for neighbours in memory on others.
    `data_of` and `floats_of` have the dims by which places that depend on data and on floats differ, along memory or
    not: whoever computes the stage inline may go along another. `beside`: how neighbours along memory read, whatever
    else the places depend on that the dim does not change. `apart`: of points where data says the share that lie beside
    no other in memory. `told`: the numbers of the producer's dims in which data or floats tell the place, each with a
    dim by which these differ. `orders` are those of indices that are not of neighbours, each along one dim. `loops`:
    iterations of loops inside of a point that share nothing of what they read; those that do not differ in a place read
    it again, and `skipped` is less than 0. `evaluated`: how often one point would compute the producer inline: in each
    iteration of a loop, whether it moves there or not, and written out once for each element. `offsets` has the
    elements of one point, however many points share them. `moved_by`: the dims that indices are made of whose spans are
    not known.
    """

    producer: str
    spans: tuple[Span, ...]
    points: float
    reuse: tuple[tuple[str, float], ...] = ()
    looked_up: bool = False
    rough: tuple[Span, ...] = ()
    skipped: float = 0.0
    bounded: bool = True
    several: tuple[Way, ...] = ()
    computed: bool = False
    data_of: frozenset[str] = frozenset()
    floats_of: frozenset[str] = frozenset()
    beside: Beside | None = None
    apart: float = 1.0
    told: frozenset[tuple[int, str]] = frozenset()
    orders: tuple[Order, ...] = ()
    loops: float = 1.0
    evaluated: float = 0.0
    offsets: Offsets = frozenset()
    moved_by: frozenset[str] = frozenset()

    @property
    def moving(self) -> frozenset[str]:
        """All dims by which the places differ."""
        known = {s.var for s in self.roughly if s.var is not None}
        return self.data_of | self.floats_of | self.moved_by | known

    def is_unknown_along(self, row: str | None) -> bool:
        """True if nobody knows how far apart neighbours along `row` read: by it, and by no span of it."""
        return row in self.moved_by and all(s.var != row for s in self.roughly)

    @property
    def executed(self) -> float:
        """Elements that one point reads."""
        return self.points - self.skipped

    def at_most(self, points: float) -> Read:
        """The read of no more than so many points at once: of each of the iterations that share nothing so many."""
        if self.points <= points:
            return self
        return self._replace(points=points, skipped=points - min(self.executed, points * self.loops))

    def shared(self, points: float) -> Read:
        """The read of no more than so many points of each of several points that share it."""
        if self.points <= points or self.loops == 1.0:
            return self.at_most(points)
        return self._replace(points=points, skipped=self.skipped * points / self.points)

    @property
    def ways(self) -> tuple[Way, ...]:
        """The spans and points of accesses that move by the same dims."""
        return self.several or ((self.spans, self.points),)

    @property
    def distinct(self) -> float:
        """Elements of one point, at most: its offsets, or the box around them."""
        return float(len(self.offsets)) or box_points(self.spans)

    @property
    def roughly(self) -> tuple[Span, ...]:
        """The spans, as far as they can be told."""
        return self.rough or self.spans


def each_way(reads: Iterable[Read]) -> Iterator[Read]:
    """The reads, those in `several` ways as one each."""
    for read in reads:
        if not read.several:
            yield read
            continue
        part = 1 - read.executed / sum(points for _, points in read.several)
        for spans, points in read.several:
            yield read._replace(
                spans=spans, rough=(), points=points, skipped=points * part, several=(), moved_by=frozenset()
            )


def crossing(reads: Iterable[Read]) -> Iterator[Read]:
    """The reads, those whose ways go along different dims as one each: a way that stays at one place of a dim that
    another goes along, as a channel of all, is within that one."""
    for read in reads:
        if not read.several:
            yield read
            continue
        ways = list(each_way((read,)))
        found = [r for r in ways if not any(_is_within(r, other) for other in ways)]
        yield from found if len(found) > 1 else (read,)


def _is_within(read: Read, other: Read) -> bool:
    pairs = zip(read.spans, other.spans, strict=True)
    return read is not other and all(s.var is None or s[:2] == t[:2] for s, t in pairs)


def together(a: Read, b: Read) -> Read:
    """Two reads of the same producer as one."""
    spans, points, looked_up = hulls(a.spans, b.spans), a.points + b.points, a.looked_up or b.looked_up
    return Read(
        a.producer,
        spans,
        points,
        looked_up=looked_up,
        rough=hulls(a.roughly, b.roughly) if a.rough or b.rough else (),
        skipped=a.skipped + b.skipped,
        bounded=a.bounded and b.bounded,
        several=() if looked_up or all(s.known for s in spans) else alike((*a.ways, *b.ways)),
        computed=a.computed or b.computed,
        data_of=a.data_of | b.data_of,
        floats_of=a.floats_of | b.floats_of,
        beside=a.beside if a.beside == b.beside else None,
        apart=(a.points * a.apart + b.points * b.apart) / points,
        told=a.told | b.told,
        orders=joined((*a.orders, *b.orders)) if a.orders or b.orders else (),
        loops=max(a.loops, b.loops),
        offsets=joined_offsets((a.spans, b.spans), (a.offsets, b.offsets)),
        moved_by=a.moved_by | b.moved_by,
    )


def alike(ways: Iterable[Way]) -> tuple[Way, ...]:
    """The hulls of the spans of accesses along the same lines, with their points; none where that is all, or not known
    of one."""
    found: dict[tuple[tuple[str | None, Rational], ...], Way] = {}
    for spans, n in ways:
        key = tuple((s.var, s.rate) for s in spans)
        before = found.get(key)
        found[key] = (spans, n) if before is None else (hulls(before[0], spans), before[1] + n)
    known = all(s.known for spans, _ in found.values() for s in spans)
    return tuple(found.values()) if known and len(found) > 1 else ()


def hulls(a: tuple[Span, ...], b: tuple[Span, ...]) -> tuple[Span, ...]:
    return tuple(s if s == t else hull(s, t) for s, t in zip(a, b, strict=True))


def inlined_read(read: Read, via: Read, dims: tuple[str, ...], along: tuple[str, ...], long: bool = False) -> Read:
    """The accesses of a stage to `read.producer` through `via.producer` (with `dims`), which it computes inline and
    whose own read `read` is. Distinct positions: at most the product, and at most the box. The stage itself goes
    `along` the dim that is fastest in memory, if it has any. Evaluations that are `long` are loops each, which share
    nothing."""
    own = dict(zip(dims, via.spans, strict=True))
    spans = composed(read.spans, own)
    points, executed = read.points * via.points, read.executed * via.executed
    rough: tuple[Span, ...] = ()
    if read.rough or via.rough:
        rough = composed(read.roughly, dict(zip(dims, via.roughly, strict=True)))
    moves = any(s.var is not None or not s.known for s in read.roughly)  # else it is read at one place, wherever via is
    followed = {d: s.var for d, s in zip(dims, via.roughly, strict=True) if s.var is not None}
    data_of, floats_of = (
        frozenset(followed[d] for d in here if d in followed) | (before if moves else frozenset())
        for here, before in ((read.data_of, via.data_of), (read.floats_of, via.floats_of))
    )
    looked_up, computed = not data_of.isdisjoint(along), not floats_of.isdisjoint(along)
    moved_by = {d for name in read.moved_by for d in _dims_of(own[name], via)}
    moved_by |= {d for s in read.spans if s.var is not None for d in _dims_of(own[s.var], via) if not own[s.var].known}
    straight = [d for d, s in zip(dims, via.spans, strict=True) if s.var is not None and s.var in along]
    beside = None
    if read.beside is not None and straight == [read.beside.dim] and own[straight[0]].rate == 1:
        beside = read.beside._replace(dim=along[0])
    told = {(d, followed[name]) for d, name in read.told if name in followed}
    told |= {(d, name) for d, s in enumerate(read.roughly) for n, name in via.told if s.var == dims[n]}
    several: tuple[Way, ...] = ()
    if not (looked_up or all(s.known for s in spans)):
        through = [(dict(zip(dims, s, strict=True)), n) for s, n in via.ways]
        several = alike((composed(s, by), m * n) for by, n in through for s, m in read.ways)
    found = Read(
        read.producer,
        spans,
        points,
        looked_up=looked_up,
        rough=rough,
        skipped=points - executed,
        bounded=read.bounded and via.bounded,
        several=several,
        computed=computed,
        data_of=data_of,
        floats_of=floats_of,
        beside=beside,
        apart=read.apart if read.looked_up else via.apart,
        told=frozenset(told),
        loops=max(read.loops, via.loops, via.executed if long else 1.0),
        orders=joined((*via.orders, *(o._replace(dim=followed[o.dim]) for o in read.orders if o.dim in followed))),
        offsets=_offsets_through(read, via, dims),
        moved_by=frozenset(moved_by),
    )
    return found.at_most(found.distinct)


def _dims_of(span: Span, read: Read) -> frozenset[str]:
    """The dims by which a dim that a stage reads moves, of which `span` is one of the read's."""
    if span.known:
        return frozenset(() if span.var is None else (span.var,))
    return read.moved_by


def composed(spans: tuple[Span, ...], own: dict[str, Span]) -> tuple[Span, ...]:
    """`spans`, in the variables of a stage, in the variables that the stage's dims follow by `own`."""
    return tuple(s if s.var is None else compose(s, own[s.var]) for s in spans)


def box_points(spans: tuple[Span, ...]) -> float:
    """Elements of the box that one iteration reads; infinite where that is not known."""
    points = 1.0
    for s in spans:
        if not s.known:
            return float("inf")
        points *= s.extent(1)
    return points


def offsets_of(spans: tuple[Span, ...], points: float) -> Offsets:
    """The offsets of an access of so many points: those of a box that it reads all of."""
    if not all(s.known and type(s.rate) is type(s.lo) is type(s.hi) is int for s in spans):
        return frozenset()
    if box_points(spans) != points or points > MOST_OFFSETS:
        return frozenset()
    return frozenset(product(*(range(int(s.lo or 0), int(s.hi or 0) + 1) for s in spans)))


def joined_offsets(spans: Sequence[tuple[Span, ...]], offsets: Iterable[Offsets]) -> Offsets:
    """The offsets of accesses, with the spans and the offsets of each, where they follow the same lines."""
    found, lines = list(offsets), {tuple((s.var, s.rate) for s in of) for of in spans}
    if len(lines) > 1 or not all(found):
        return frozenset()
    together = found[0].union(*found[1:])
    return together if len(together) <= MOST_OFFSETS else frozenset()


def moved_offsets(offsets: Offsets, steps: Iterable[tuple[int, ...]]) -> Offsets:
    """The offsets from each of some places, which are `steps` apart."""
    steps = list(steps)
    if len(offsets) * len(steps) > MOST_OFFSETS:
        return frozenset()
    return frozenset(tuple(map(add, offset, step)) for offset in offsets for step in steps)


def _offsets_through(read: Read, via: Read, dims: tuple[str, ...]) -> Offsets:
    """The offsets of a read by each of the points of the stage, with `dims`, that has it."""
    if not read.offsets:
        return frozenset()
    lines = [(None if s.var is None else dims.index(s.var), int(s.rate)) for s in read.spans]
    steps = {tuple(0 if n is None else rate * of[n] for n, rate in lines) for of in via.offsets}
    return moved_offsets(read.offsets, steps)
