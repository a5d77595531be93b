"""Pipeline features for the search: stages, reads, boxes and arithmetic, found once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from math import inf, isinf, prod
from operator import mul
from typing import NamedTuple

from tilesmith.cost_models.operations import Operations
from tilesmith.platforms.base import LINE_BYTES
from tilesmith.platforms.core import ORDINARY, Core
from tilesmith.scheduler.analysis.access_functions import Span, compose, constant, hull, span_of, variable
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.coordinate_maps import coordinate_maps, is_mapped
from tilesmith.scheduler.analysis.dependence import free_dims, pure_dims
from tilesmith.scheduler.analysis.estimated_bounds import Bounds, Estimates, Region, estimates
from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS
from tilesmith.scheduler.analysis.linear_combinations import terms
from tilesmith.scheduler.analysis.neighbour_sums import GROUPS
from tilesmith.scheduler.analysis.periodic_indices import Order, joined, order_of
from tilesmith.scheduler.analysis.reuse import overlap_in
from tilesmith.scheduler.analysis.row_scans import RowScan, row_scan
from tilesmith.scheduler.analysis.stage_graph import StageGraph, stage_graph
from tilesmith.scheduler.features.operation_counts import (
    Typed,
    element_bytes_used,
    outside_indices,
    total,
    typed_operations,
    update_operations,
)
from tilesmith.scheduler.features.operation_counts import together as typed_together
from tilesmith.scheduler.features.reduction_loops import UNROLLED_TRIPS
from tilesmith.scheduler.ir.memo import Memo
from tilesmith.scheduler.ir.pipeline.boundary_conditions import inside
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Call, Const, Expr, InputBound, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage, Update

SHORT_ROW = 16
"""Places in a row of pixels of up to MOST_CHANNELS channels that vectors do not run along."""


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
    iteration of a loop, whether it moves there or not, and written out once for each element.
    """

    producer: str
    spans: tuple[Span, ...]
    points: float
    reuse: tuple[tuple[str, float], ...] = ()
    looked_up: bool = False
    rough: tuple[Span, ...] = ()
    skipped: float = 0.0
    bounded: bool = True
    several: tuple[tuple[tuple[Span, ...], float], ...] = ()
    computed: bool = False
    data_of: frozenset[str] = frozenset()
    floats_of: frozenset[str] = frozenset()
    beside: Beside | None = None
    apart: float = 1.0
    told: frozenset[tuple[int, str]] = frozenset()
    orders: tuple[Order, ...] = ()
    loops: float = 1.0
    evaluated: float = 0.0

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
    def roughly(self) -> tuple[Span, ...]:
        """The spans, as far as they can be told."""
        return self.rough or self.spans


@dataclass(frozen=True, slots=True)
class UpdateFacts:
    """One update at the estimates: the iterations of each of its loops (its domain's variables, then the dims that it
    runs through), and the operations of one iteration, `typed` by element type. `looked_up`: where it writes depends on
    data. `scan`: how it goes along rows of memory, if by a variable of its domain. `reads`: elements that an iteration
    loads, of the stage itself or of others; `own`: of the stage itself."""

    loops: tuple[tuple[str, int], ...]
    operations: Operations
    typed: Typed = ()
    looked_up: bool = False
    scan: RowScan | None = None
    reads: int = 0
    own: int = 0

    @property
    def iterations(self) -> int:
        return prod(n for _, n in self.loops)

    def trips(self, loop: str) -> int:
        return dict(self.loops)[loop]


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage or input: `region` is its (min, extent) per dim at the estimates, `bytes_per_point` of all its
    values in memory, `computed_bytes` those of the widest type that it computes with. `operations` are those of one
    point, updates with their share, `typed` by element type those that differ along a row of memory, and of these
    `typed_before` those of its values before updates. A slice in the dims of `pure` can be computed alone."""

    name: str
    is_input: bool
    dims: tuple[str, ...]
    storage: tuple[str, ...]
    region: Region
    bytes_per_point: int
    computed_bytes: int
    operations: Operations
    reads: tuple[Read, ...]
    pure: frozenset[str]
    updates: tuple[UpdateFacts, ...] = ()
    typed: Typed = ()
    typed_before: Typed = ()
    row: str | None = None
    """The dim that vectors run along: the fastest in memory, or the one after it where the fastest are few channels,
    which whole vectors are shuffled of. None without dims."""
    extents: tuple[int, ...] = field(init=False, repr=False, compare=False)
    apart: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """Elements from one place to the next along each dim, if the stage lies dense in memory."""
    root_points: int = field(init=False, repr=False, compare=False)
    """Points of the whole stage, each computed once (TACO 2019, Eq. 4)."""
    passes: bool = field(init=False, repr=False, compare=False)
    """Whether there are updates, and each is a pass over the stage: it visits every point once at most, at places that
    do not depend on data."""
    read_of: Mapping[str, Read] = field(init=False, repr=False, compare=False)
    """The stage's reads by producer."""
    loads: float = field(init=False, repr=False, compare=False)
    """Elements loaded for one point. What does not move with any loop of the stage (a kernel's weights) is loaded once,
    and not counted: otherwise a convolution would be trivial for having its weights in a stage."""

    def __post_init__(self) -> None:
        moving = (r.points for r in self.reads if any(s.var is not None or not s.known for s in r.spans))
        object.__setattr__(self, "extents", tuple(extent for _, extent in self.region))
        strides = accumulate(map(self.extent, self.storage), mul, initial=1)
        object.__setattr__(self, "apart", dict(zip(self.storage, strides, strict=False)))
        object.__setattr__(self, "root_points", prod(self.extents))
        once = all(u.iterations <= self.root_points and not u.looked_up for u in self.updates)
        object.__setattr__(self, "passes", bool(self.updates) and once)
        object.__setattr__(self, "read_of", {r.producer: r for r in self.reads})
        object.__setattr__(self, "loads", sum(moving))

    def extent(self, dim: str) -> int:
        return self.extents[self.dims.index(dim)]


def _row(
    storage: tuple[str, ...],
    extents: Mapping[str, int],
    reads: tuple[Read, ...] = (),
    fastest: Mapping[str, int] | None = None,
) -> str | None:
    """The dim that vectors of an image run along (see `StageFacts.row`), without updates; `fastest` has the number of
    each producer's dim that is the fastest in memory."""
    first, second = (*storage[:2], None, None)[:2]
    if first is None or second is None:
        return first
    beside = 2 <= extents[first] <= MOST_CHANNELS and extents[second] > SHORT_ROW
    return second if beside and not _sums_along(first, reads, fastest or {}) else first


def _sums_along(dim: str, reads: tuple[Read, ...], fastest: Mapping[str, int]) -> bool:
    """True if a point reads further along memory than pixels have channels, and its neighbours in the dim read beside
    it, or the next group of elements: partial results of sums along rows, as many as a vector has lanes."""
    places = (r.spans[fastest[r.producer]] for r in reads if r.producer in fastest)
    return any(s.known and s.var == dim and s.rate in (1, *GROUPS) and s.width > MOST_CHANNELS for s in places)


@dataclass(frozen=True, slots=True)
class Facts:
    """A normalised pipeline, its graph of live stages, and the facts of every live stage and input read. `partial` are
    stages that hold partial results, of a factored reduction or a separated window, `strips` those that are for
    threads. A line of the platform's memory has `line_bytes`, and its `core` these figures. `memo` has whatever
    else follows from the facts alone."""

    pipeline: Pipeline
    graph: StageGraph
    stages: dict[str, StageFacts]
    definitions: dict[str, Stage]
    estimates: Estimates
    partial: frozenset[str] = frozenset()
    strips: frozenset[str] = frozenset()
    line_bytes: int = LINE_BYTES
    core: Core = ORDINARY
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


def gather(
    pipeline: Pipeline,
    partial: frozenset[str] = frozenset(),
    strips: frozenset[str] = frozenset(),
    before: Facts | None = None,
    line_bytes: int = LINE_BYTES,
    core: Core = ORDINARY,
) -> Facts:
    """The facts of `pipeline`, which is normal, for a platform with such lines and such a core. Stages that are as they
    were `before`, and whose producers have no updates, keep the facts that they had, and the platform is the same."""
    graph = stage_graph(pipeline)
    found = {s.name: accesses(s) for s in pipeline.stages if s.name in graph.consumers}
    at = estimates(pipeline, found)
    definitions = {s.name: s for s in pipeline.stages}
    wholes = {name: _whole(definitions[name], at.regions[name]) for name in graph.stages if definitions[name].updates}
    stages = {i.name: _of_input(i, at.regions[i.name]) for i in pipeline.inputs if i.name in at.regions}
    along = {i.name: i.storage[0] for i in pipeline.inputs if i.storage}
    along |= {s.name: s.storage[0] for s in pipeline.stages if s.storage}
    fastest = {i.name: i.dims.index(i.storage[0]) for i in pipeline.inputs if i.storage}
    fastest |= {s.name: s.dims.index(s.storage[0]) for s in pipeline.stages if s.storage}
    places = _Places(coordinate_maps(definitions[name] for name in graph.stages), along, fastest)
    for name in graph.stages:
        kept = before is not None and _same(before, name, definitions[name], at, wholes)
        stages[name] = (
            before.stages[name] if before and kept else _of_stage(definitions[name], at, found[name], wholes, places)
        )
    figures = (line_bytes, core) if before is None else (before.line_bytes, before.core)
    return Facts(pipeline, graph, stages, definitions, at, partial, strips, *figures)


def _same(before: Facts, name: str, stage: Stage, at: Estimates, wholes: Mapping[str, object]) -> bool:
    """True if all that the facts of a stage follow from is as it was."""
    return (
        before.definitions.get(name) is stage
        and before.estimates.regions[name] == at.regions[name]
        and before.estimates.symbols == at.symbols
        and all(r.producer not in wholes for r in before.stages[name].reads)
    )


def _whole(stage: Stage, region: Region) -> dict[str, Span]:
    """The dims of `stage` that are not pure, each with its whole range."""
    pure = pure_dims(stage)
    return {
        d: constant(lo, lo + extent - 1) for d, (lo, extent) in zip(stage.dims, region, strict=True) if d not in pure
    }


def _of_input(image: Input, region: Region) -> StageFacts:
    size = image.type.bytes
    return StageFacts(
        image.name,
        True,
        image.dims,
        image.storage,
        region,
        size,
        size,
        Operations(),
        (),
        frozenset(image.dims),
        row=_row(image.storage, {d: extent for d, (_, extent) in zip(image.dims, region, strict=True)}),
    )


class _Places(NamedTuple):
    """Facts on places that stages say: the coordinate `maps`, and of each producer the dim `along` memory, which is its
    `fastest` by number."""

    maps: frozenset[str]
    along: Mapping[str, str]
    fastest: Mapping[str, int]


def _of_stage(
    stage: Stage, at: Estimates, found: tuple[StageAccess, ...], wholes: dict[str, dict[str, Span]], places: _Places
) -> StageFacts:
    region = at.regions[stage.name]
    extents = {d: extent for d, (_, extent) in zip(stage.dims, region, strict=True)}
    updates = tuple(_of_update(stage, u, extents, at) for u in stage.updates)
    points = prod(extents.values())
    shares = [u.iterations / points for u in updates]
    typed = typed_together([(1, typed_operations(stage, at.trips)), *_shared_out(shares, [u.typed for u in updates])])
    moving = [update_operations(u, at.trips, _along(stage, u)) for u in stage.updates]
    pure = pure_dims(stage)
    reads = _Reader(stage, extents, at, wholes, updates, places).merged(a for a in found if a.producer != stage.name)
    computed = not updates and pure.issuperset(stage.storage[:2])
    row = _row(stage.storage, extents, reads, places.fastest) if computed else next(iter(stage.storage), None)
    before = typed_operations(stage, at.trips, row)
    along = typed_together([(1, before), *_shared_out(shares, moving)])
    return StageFacts(
        stage.name,
        False,
        stage.dims,
        stage.storage,
        region,
        sum(t.bytes for t in stage.types),
        element_bytes_used(stage),
        total(typed),
        reads,
        pure,
        updates,
        along,
        before,
        row,
    )


def _along(stage: Stage, update: Update) -> str | None:
    """The variable by which an update goes along rows of memory; None where it is not one alone."""
    at = update.at[stage.dims.index(stage.storage[0])] if stage.storage else None
    return at.name if isinstance(at, Var) else None


def _shared_out(shares: list[float], typed: list[Typed]) -> list[tuple[float, Typed]]:
    """The operations of each update with how many of its iterations there are a point."""
    return list(zip(shares, typed, strict=True))


def _of_update(stage: Stage, update: Update, extents: dict[str, int], at: Estimates) -> UpdateFacts:
    loops = [(r.name, at.trips(r)) for r in update.domain]
    loops += [(d, extents[d]) for d in free_dims(stage, update)]
    typed = update_operations(update, at.trips)
    parts = (*update.values, *(() if update.where is None else (update.where,)))
    reads = {e for part in parts for e in walk(part) if isinstance(e, Access)}
    own, scan = sum(e.name == stage.name for e in reads), row_scan(stage, update)
    return UpdateFacts(tuple(loops), total(typed), typed, any(map(_has_data, update.at)), scan, len(reads), own)


def _has_data(index: Expr) -> bool:
    """True if an index is made of what is read."""
    return any(isinstance(e, Access) for e in walk(index))


class _Reader:
    """Merges the accesses of one stage to one read a producer."""

    def __init__(
        self,
        stage: Stage,
        extents: dict[str, int],
        at: Estimates,
        wholes: dict[str, dict[str, Span]],
        updates: tuple[UpdateFacts, ...],
        places: _Places,
    ) -> None:
        self.stage, self.extents, self.at, self.wholes, self.updates = stage, extents, at, wholes, updates
        self.places = places
        self.own = wholes.get(stage.name, {})

    def merged(self, found: Iterable[StageAccess]) -> tuple[Read, ...]:
        """One read a producer. Clamps are left out: what the search wants is where an index goes inside the image."""
        accesses_of: dict[str, list[StageAccess]] = {}
        for a in found:
            accesses_of.setdefault(a.producer, []).append(a)
        return tuple(self._read(producer, those) for producer, those in accesses_of.items())

    def _read(self, producer: str, those: list[StageAccess]) -> Read:
        each = [self._spans(a) for a in those]
        spans = reduce(_hulls, each)
        rough: tuple[Span, ...] = ()
        if producer in self.wholes or any(not s.known for found in each for s in found):
            rough = reduce(_hulls, map(self._rough, those, each))
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
        indices = [i for a in those for i in a.access.indices] if looked_up else []
        bounded = not any(isinstance(e, InputBound) for i in indices for e in outside_indices(i))
        points = [self._points(a) for a in those]
        several = () if all(s.known for s in spans) or looked_up else _alike(each, points)
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
        of = (frozenset(data_of), frozenset(floats_of), beside, apart, frozenset(told), orders, loops, evaluated)
        return Read(producer, spans, sum(points), reuse, looked_up, rough, skipped, bounded, several, computed, *of)

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


def _step(index: Expr, dim: str) -> tuple[int, float] | None:
    """Rate of an index along a dim, inside of a clamp, and the steps after which a remainder begins anew or a quotient
    goes on; None where it follows no line as a rule."""
    while isinstance(index, Call) and index.function == "clamp":
        index = index.args[0]
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
                period = min(period, inner[1], of / max(1, abs(inner[0])))
                total += t.coefficient.number * inner[0] if t.body.op == "%" else 0
            case _:
                return None
    return (int(total), period) if total.denominator == 1 else None


def _alike(each: list[tuple[Span, ...]], points: list[float]) -> tuple[tuple[tuple[Span, ...], float], ...]:
    """The hulls of the spans of accesses that move by the same dims, with their points; none where that is all, or not
    known of one."""
    found: dict[tuple[str | None, ...], tuple[tuple[Span, ...], float]] = {}
    for spans, n in zip(each, points, strict=True):
        key = tuple(s.var for s in spans)
        before = found.get(key)
        found[key] = (spans, n) if before is None else (_hulls(before[0], spans), before[1] + n)
    known = all(s.known for spans, _ in found.values() for s in spans)
    return tuple(found.values()) if known and len(found) > 1 else ()


def together(a: Read, b: Read) -> Read:
    """Two reads of the same producer as one."""
    spans = _hulls(a.spans, b.spans)
    rough = _hulls(a.roughly, b.roughly) if a.rough or b.rough else ()
    looked_up, skipped = a.looked_up or b.looked_up, a.skipped + b.skipped
    points, bounded, computed = a.points + b.points, a.bounded and b.bounded, a.computed or b.computed
    found = Read(a.producer, spans, points, looked_up=looked_up, rough=rough, skipped=skipped)
    of = (a.data_of | b.data_of, a.floats_of | b.floats_of)
    beside = a.beside if a.beside == b.beside else None
    apart = (a.points * a.apart + b.points * b.apart) / points
    return found._replace(
        bounded=bounded,
        computed=computed,
        data_of=of[0],
        floats_of=of[1],
        beside=beside,
        apart=apart,
        told=a.told | b.told,
        orders=joined((*a.orders, *b.orders)) if a.orders or b.orders else (),
        loops=max(a.loops, b.loops),
    )


def _hulls(a: tuple[Span, ...], b: tuple[Span, ...]) -> tuple[Span, ...]:
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
    skipped, bounded = points - executed, read.bounded and via.bounded
    found = Read(read.producer, spans, points, looked_up=looked_up, rough=rough, skipped=skipped)
    straight = [d for d, s in zip(dims, via.spans, strict=True) if s.var is not None and s.var in along]
    beside = None
    if read.beside is not None and straight == [read.beside.dim] and own[straight[0]].rate == 1:
        beside = read.beside._replace(dim=along[0])
    told = {(d, followed[name]) for d, name in read.told if name in followed}
    told |= {(d, name) for d, s in enumerate(read.roughly) for n, name in via.told if s.var == dims[n]}
    found = found._replace(
        bounded=bounded,
        computed=computed,
        data_of=data_of,
        floats_of=floats_of,
        beside=beside,
        apart=read.apart if read.looked_up else via.apart,
        told=frozenset(told),
        loops=max(read.loops, via.loops, via.executed if long else 1.0),
        orders=joined((*via.orders, *(o._replace(dim=followed[o.dim]) for o in read.orders if o.dim in followed))),
    )
    return found.at_most(box_points(spans))


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
