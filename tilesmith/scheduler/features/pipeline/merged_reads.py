"""Merging of the accesses of a stage to one read a producer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from math import inf, isinf, prod
from typing import NamedTuple

from tilesmith.scheduler.analysis.access_functions import Span, compose, constant, hull, span_of, variable
from tilesmith.scheduler.analysis.accesses import StageAccess
from tilesmith.scheduler.analysis.coordinate_maps import is_mapped
from tilesmith.scheduler.analysis.estimated_bounds import Bounds, Estimates
from tilesmith.scheduler.analysis.linear_combinations import terms
from tilesmith.scheduler.analysis.periodic_indices import joined, order_of
from tilesmith.scheduler.analysis.reuse import overlap_in
from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.features.operations.operation_counts import (
    outside_indices,
)
from tilesmith.scheduler.features.operations.reduction_loops import UNROLLED_TRIPS
from tilesmith.scheduler.features.pipeline.reads import Beside, Read, alike, hulls, joined_offsets, offsets_of
from tilesmith.scheduler.features.pipeline.update_facts import UpdateFacts
from tilesmith.scheduler.ir.memo import once_a_form
from tilesmith.scheduler.ir.pipeline.boundary_conditions import inside
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Call, Const, Expr, InputBound, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

SHORT_ROW = 16
"""Places in a row of pixels of up to MOST_CHANNELS channels that vectors do not run along."""


class Places(NamedTuple):
    """Facts on places that stages say: the coordinate `maps`, and of each producer the dim `along` memory, which is its
    `fastest` by number."""

    maps: frozenset[str]
    along: Mapping[str, str]
    fastest: Mapping[str, int]


class ReadMerger:
    """Merges the accesses of one stage to one read a producer."""

    def __init__(
        self,
        stage: Stage,
        extents: dict[str, int],
        at: Estimates,
        wholes: dict[str, dict[str, Span]],
        updates: tuple[UpdateFacts, ...],
        places: Places,
    ) -> None:
        self.stage, self.extents, self.at, self.wholes, self.updates = stage, extents, at, wholes, updates
        self.places = places
        self.own = wholes.get(stage.name, {})

    def merged(self, found: Iterable[StageAccess]) -> tuple[Read, ...]:
        """One read a producer. Clamps are left out: what the search wants is where an index goes inside the image."""
        accesses_of: dict[str, list[StageAccess]] = {}
        for a in _by_place(found):
            accesses_of.setdefault(a.producer, []).append(a)
        if not self._is_of_form(accesses_of):
            return tuple(self._read(producer, those) for producer, those in accesses_of.items())
        key = (*map(self.at.dims.__getitem__, accesses_of), *(extent > 1 for extent in self.extents.values()))
        known = _known_reads(self.stage)
        if key not in known:
            known[key] = tuple(self._read(producer, those) for producer, those in accesses_of.items())
        return tuple([r._replace(producer=name) for r, name in zip(known[key], accesses_of, strict=True)])

    def _is_of_form(self, accesses_of: Mapping[str, list[StageAccess]]) -> bool:
        """True if the reads of the stage follow from its form, the dims of its producers, and which of its own have
        several points."""
        if self.stage.updates or self.own or not self.wholes.keys().isdisjoint(accesses_of):
            return False
        for those in accesses_of.values():
            for a in those:
                if a.reductions or any(a.data) or not all(s.known for s in a.spans):
                    return False
        return not parts(self.stage, InputBound)

    def _read(self, producer: str, those: list[StageAccess]) -> Read:
        each = [self._spans(a) for a in those]
        spans = reduce(hulls, each)
        rough: tuple[Span, ...] = ()
        if producer in self.wholes or any(not s.known for found in each for s in found):
            rough = reduce(hulls, map(self._rough, those, each))
        along_memory = self.stage.storage[:1]
        data_of, floats_of, told = set[str](), set[str](), set[tuple[int, str]]()
        for a, found in zip(those, each, strict=True):
            for d, (s, data, index) in enumerate(zip(found, a.data, a.access.indices, strict=True)):
                said = _variables(index, lambda e: isinstance(e, Access)) if data else set()
                floats = _variables(index, lambda e: e.type.is_float) if s.var is None else set()
                if said and is_mapped(index, self.places.maps):
                    floats |= said
                else:
                    data_of |= said
                floats_of |= floats
                told |= {(d, name) for name in said | floats}
        looked_up, computed = not data_of.isdisjoint(along_memory), not floats_of.isdisjoint(along_memory)
        indices = [i for a in those for i in a.access.indices] if data_of else []
        bounded = not any(isinstance(e, InputBound) for i in indices for e in outside_indices(i))
        points = [self._points(a) for a in those]
        several = () if all(s.known for s in spans) or looked_up else alike(zip(each, points, strict=True))
        skipped = sum(n * (1 - a.share * self._again(a)) for n, a in zip(points, those, strict=True))
        reuse = self._reuse(spans, those)
        beside = self._beside(producer, those) if along_memory else None
        if beside is not None and not rough and isinf(beside.period):  # the spans say it
            beside = None
        apart = self._apart(producer, those, points) if looked_up else 1.0
        orders = joined(
            order_of(inside(index, producer), s.var)
            for a, found in zip(those, each, strict=True)
            for index, s in zip(a.access.indices, found, strict=True)
        )
        loops = max(map(self._loops, those))
        evaluated = sum(max(n, self._iterations(a)) for n, a in zip(points, those, strict=True))
        straight = not (data_of or floats_of or rough or self.own) and all(a.definition == 0 for a in those)
        offsets = joined_offsets(each, map(offsets_of, each, points)) if straight else frozenset()
        moved_by = frozenset(n for a, found in zip(those, each, strict=True) for n in self._unknown(a, found))
        of = (frozenset(data_of), frozenset(floats_of), beside, apart, frozenset(told), orders, loops, evaluated)
        read = Read(producer, spans, sum(points), reuse, looked_up, rough, skipped, bounded, several, computed, *of)
        return read._replace(offsets=offsets, moved_by=moved_by)

    def _unknown(self, a: StageAccess, spans: tuple[Span, ...]) -> frozenset[str]:
        """The stage's dims that indices are made of whose spans are not known."""
        used = (names for names, span in zip(a.used, spans, strict=True) if not span.known)
        return frozenset[str]().union(*used) & frozenset(self.stage.dims)

    def _apart(self, producer: str, those: list[StageAccess], points: list[float]) -> float:
        """The share of the points of accesses that are read beside no other in memory."""
        found: dict[object, float] = {}
        along = self.places.along.get(producer)
        for a, n in zip(those, points, strict=True):
            dims = zip(self.at.dims[producer], a.access.indices, strict=True)
            terms_of = ((dim, terms(inside(index, producer))) for dim, index in dims)
            line = tuple(
                frozenset(t for t in of if dim != along or not isinstance(t.body, Const)) for dim, of in terms_of
            )
            found[line] = max(n, found.get(line, 0.0))
        return sum(found.values()) / sum(points)

    def _beside(self, producer: str, those: list[StageAccess]) -> Beside | None:
        """Reads of neighbours along memory; None where they move in several dims, or not all alike."""
        along, found = self.stage.storage[0], set[tuple[str, int]]()
        period = inf
        for a in those:
            for dim, index in zip(self.at.dims[producer], a.access.indices, strict=True):
                moved = _step(inside(index, producer), along)
                if moved is None:
                    return None
                period = min(period, moved[1])
                found |= {(dim, moved[0])} if moved[0] else set()
        return Beside(along, *found.pop(), period) if len(found) == 1 and period >= SHORT_ROW else None

    def _spans(self, a: StageAccess) -> tuple[Span, ...]:
        """Spans in the stage's pure dims; those of the producer's dims that are not pure are all of these."""
        spans = tuple(s._replace(clamps=()) if s.clamps else s for s in a.spans)
        if self.own:
            spans = tuple(compose(s, self.own[s.var]) if s.var in self.own else s for s in spans)
        if any(not s.known for s in spans):
            spans = tuple(s if s.known else self._ranged(a, d) for d, s in enumerate(spans))
        if any(a.data):
            spans = tuple(map(_within, spans, self.at.regions[a.producer]))
        whole = self.wholes.get(a.producer)
        if whole:
            dims = self.at.dims[a.producer]
            spans = tuple(whole.get(d, s) for d, s in zip(dims, spans, strict=True))
        return spans

    def _rough(self, a: StageAccess, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """`spans` with indices of several dims as ones of the longest, the others anywhere in their range, and with the
        places that are read in dims of the producer that are not pure."""
        regions = dict(zip(self.stage.dims, self.at.regions[self.stage.name], strict=True))
        whole = self.wholes.get(a.producer, {})
        found = []
        for d, (dim, span) in enumerate(zip(self.at.dims[a.producer], spans, strict=True)):
            here = a.used[d] & regions.keys()
            if dim not in whole and (span.known or not here):
                found.append(span)
                continue
            env = {n: constant(lo, lo + extent - 1) for n, (lo, extent) in regions.items()} | self.own
            longest = max(sorted(here), key=self.extents.__getitem__, default=None)
            if longest is not None and longest not in self.own:
                env[longest] = variable(longest)
            for r in a.reductions:
                lo, extent = self.at.range_of(r)
                env[r.name] = constant(lo, lo + extent - 1)
            place = span_of(inside(a.access.indices[d], a.producer), env)._replace(clamps=())
            found.append(span if span.known and not place.known else place)
        return tuple(found)

    def _ranged(self, a: StageAccess, d: int) -> Span:
        """The span of an index within bounds known at run time, of a reduction or of a clamp: their estimates. Of an
        input it is where the index goes inside the image, whatever its boundary."""
        index = self.at.with_sizes(inside(a.access.indices[d], a.producer))
        if index is a.access.indices[d] and not a.reductions:
            return a.spans[d]
        env = {name: variable(name) for name in self.stage.dims} | self.own
        for r in a.reductions:
            lo, extent = self.at.range_of(r)
            env[r.name] = constant(lo, lo + extent - 1)
        span = span_of(index, env)
        return span._replace(clamps=()) if span.clamps else span

    def _points(self, a: StageAccess) -> float:
        around = [r for r in a.reductions if any(r.name in used for used in a.used)]
        points = float(prod(map(self.at.trips, around)))
        if a.definition == 0:
            return points
        loops = dict(self.updates[a.definition - 1].loops)
        for d, extent in self.extents.items():
            if d not in loops:
                points /= extent  # the update runs once for all points along the dim
        return points

    def _loops(self, a: StageAccess) -> float:
        """The iterations of the update that an access is of, one after the other, at each point that it writes."""
        return float(prod(map(self.at.trips, self.stage.updates[a.definition - 1].domain))) if a.definition else 1.0

    def _iterations(self, a: StageAccess) -> float:
        """The iterations of the reductions around an access, where these are too many to be written out."""
        trips = float(prod(map(self.at.trips, a.reductions)))
        return trips if trips > UNROLLED_TRIPS and not a.definition else 0.0

    def _again(self, a: StageAccess) -> float:
        """The number of times that an access reads each place: once in all iterations of innermost loops of an update
        that do not differ in it, if vectors do not either, and else in each."""
        domain = list(self.stage.updates[a.definition - 1].domain) if a.definition else []
        used = frozenset[str]().union(*a.used)
        if not used.intersection(self.stage.storage[:1]):
            while domain and domain[0].name not in used:
                del domain[0]
        return float(prod(self.at.trips(r) for r in domain if r.name not in used))

    def _reuse(self, spans: tuple[Span, ...], those: list[StageAccess]) -> tuple[tuple[str, float], ...]:
        """The loops in which neighbouring iterations read the same. Dims that are not pure are loops of the values, and
        of the updates that run through them; there, and along the domains, an access is looked at by itself."""
        found: dict[str, float] = {}
        for dim, extent in self.extents.items():
            if extent > 1 and dim not in self.own:
                found[dim] = overlap_in(spans, dim)
        for n in sorted({a.definition for a in those}) if self.stage.updates else ():
            here = [a for a in those if a.definition == n]
            loops = self.updates[n - 1].loops if n else tuple(self.extents.items())
            for loop, trips in loops:
                if trips > 1 and (loop in self.own or loop not in self.extents):
                    found[loop] = max(found.get(loop, 0.0), self._along(here, loop))
        return tuple((loop, amount) for loop, amount in found.items() if amount > 0)

    def _along(self, those: list[StageAccess], loop: str) -> float:
        """Overlap in `loop`, all other loops held: FULL where no place that is read moves with it."""
        whole = self.wholes.get(those[0].producer, {})
        env = {name: constant(0, 0) for a in those for name in (*self.stage.dims, *(r.name for r in a.reductions))}
        env[loop] = variable(loop)
        spans: list[Span] = []
        for d, dim in enumerate(self.at.dims[those[0].producer]):
            if dim not in whole:
                here = [span_of(inside(a.access.indices[d], a.producer), env)._replace(clamps=()) for a in those]
                spans.append(reduce(hull, here))
        return overlap_in(tuple(spans), loop)


@once_a_form
def _known_reads(stage: Stage) -> dict[tuple[object, ...], tuple[Read, ...]]:
    return {}


def _within(place: Span, bounds: Bounds) -> Span:
    """A place that no loop tells, where the producer has any: clamps of what data says may be further out."""
    if place.lo is None or place.hi is None or place.var is not None:
        return place
    first, last = bounds[0], bounds[0] + bounds[1] - 1
    return constant(*(min(max(int(end), first), last) for end in (place.lo, place.hi)))


def _variables(index: Expr, counts: Callable[[Expr], bool]) -> set[str]:
    """The variables in those parts of an index that count, as data or as floats: neighbours along others are at places
    that a step tells."""
    return {e.name for part in walk(index) if counts(part) for e in walk(part) if isinstance(e, Var)}


def _by_place(found: Iterable[StageAccess]) -> Iterable[StageAccess]:
    """Accesses, those to several components of one point as one: points have the bytes and the operations of all."""
    first: dict[object, StageAccess] = {}
    found = list(found)
    if not any(a.component for a in found):
        return found
    for a in found:
        place = (a.producer, a.definition, a.access.indices, a.reductions)
        before = first.get(place)
        first[place] = a if before is None else before._replace(share=min(1.0, before.share + a.share))
    return first.values()


def _step(index: Expr, dim: str) -> tuple[int, float] | None:
    """Rate of an index along a dim, inside of a clamp, and the steps after which a remainder begins anew or a quotient
    goes on; None where it follows no line as a rule."""
    while isinstance(index, Call) and index.function in ("clamp", "min", "max"):
        moving = [p for p in index.args if any(isinstance(e, Var) and e.name == dim for e in walk(p))]
        if index.function != "clamp" and len(moving) != 1:
            break
        index = index.args[0] if index.function == "clamp" else moving[0]
    match index:
        case Var(name=name) | Binary(op="+" | "-", left=Var(name=name), right=Const()):  # as most of them
            return int(name == dim), inf
    total, period = Fraction(0), inf
    for t in terms(index):
        if not any(isinstance(e, Var) and e.name == dim for e in walk(t.body)):
            continue
        match t.body:
            case _ if t.coefficient.factors:
                return None
            case Var():
                total += t.coefficient.number
            case Binary(op="%" | "//", left=left, right=Const(value=of)) if of > 0:
                inner = _step(left, dim)
                if inner is None:
                    return None
                period = min(period, inner[1], of / abs(inner[0]) if inner[0] else inf)
                total += t.coefficient.number * inner[0] if t.body.op == "%" else 0
            case _:
                return None
    return (int(total), period) if total.denominator == 1 else None
