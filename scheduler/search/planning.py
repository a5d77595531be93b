"""Plans: the ways in which the stages of one segment can be one group, priced and ranked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from cost_models.counts import GroupCounts
from cost_models.model import Breakdown, CostModel
from cost_models.taco2019 import arithmetic_cost
from platforms.model import Platform
from scheduler.analysis.facts import Facts, Read, StageFacts
from scheduler.analysis.graph import is_plain
from scheduler.analysis.members import FEW, Members, members_of
from scheduler.analysis.neighbours import ROWS_TOGETHER
from scheduler.analysis.nest import Nest
from scheduler.analysis.schedule_counts import counts_of_group, running_of
from scheduler.analysis.work import Running, circulating_bytes, worked_counts
from scheduler.schedule import Group, Placement, dim_of
from scheduler.search.final import finished, group_of, root_group
from scheduler.search.grouping import Segment, is_special
from scheduler.search.levels import LoopOrder, largest_overlaps
from scheduler.search.shapes import FUSED_FIRST, KINDS, PAPER, Kind, neighbours, shapes
from scheduler.search.sizing import Axes, Shape, Sized, Sizing, Tiling, shape_of
from scheduler.search.tiling import few_iterations, in_bands, keeps_apart, orders, side_by_side
from scheduler.search.trace import Rejected
from scheduler.search.updates import WORTH_THREADS

SIZES = 256
"""Combinations of tile sizes that are costed for one shape."""
STRIPS = 4
SHORT = 64
"""Strips that are among the tile sizes: so many a thread, with which shapes are compared, one, or so many rows."""
NEGLIGIBLE = 0.005
"""A group that takes less of the time of all is not looked into further."""
TRIES = 100
FEWEST = 4
"""Changes of single stages that are tried in a group: fewer of a large group, where each costs more time."""
PAYS = 0.995
"""A change is made that leaves at most so much of the cost: less is below what a model can tell."""
STAYS = 0.5
"""What takes so much of the last level, with all else that circulates, stays there from call to call."""
SAME = 0.01
"""Of tile sizes whose predicted times differ by no more the largest is taken."""
ROWS = (8, 4)
"""Rows that are computed side by side, where that is tried."""
FAR = 2.0
"""Where the first of these cost less than other shapes, or so many times as much, fewer rows are not tried."""
VECTORS = 16
"""Vectors of a row that is tried with others side by side, at least: the first and the last take far longer."""
AHEAD = 32
"""Bytes along a row are asked for ahead that are one part in so many of the L2 cache, where they wait: further than
memory takes to answer, and beyond the end of a page, where hardware stops."""
MOST_AHEAD = 65536
"""More is not asked for ahead: it hides no more."""
KEPT = 8
"""Plans of a segment that are kept for the best k schedules."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to make one group of a segment, and what it costs by the model. Without tiles (`sized` None) it is computed
    at root, whole. `counts`, not as a whole, are those of a plan that was priced alone."""

    segment: Segment
    total: float
    members: Members | None = None
    sized: Sized | None = None
    kind: Kind = PAPER
    counts: GroupCounts | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> Hashable:
        """The same for plans of a segment that make the same group."""
        if self.sized is None:
            return None
        shape = self.sized.shape
        return (shape.order.loops, shape.stream, shape.prefetch, *shape.levels.items(), *self.sized.sizes.items())


@dataclass(frozen=True, slots=True)
class Settled:
    """A plan worked out: the group, its counts and its cost; `tiling` is None where it is computed at root."""

    group: Group
    counts: GroupCounts
    cost: Breakdown
    tiling: Tiling | None


@dataclass
class Planner:
    """Plans segments, each once. `paper` has the tilings of the method `taco2019`, which are candidates too. Once the
    deadline has passed, a segment that is not known yet is computed at root if it is a stage alone, and cannot be
    otherwise. `planned` counts the stages of the segments that were looked at."""

    facts: Facts
    platform: Platform
    model: CostModel
    strict: bool
    expired: Callable[[], bool]
    paper: Mapping[Segment, Tiling] = field(default_factory=dict)
    known: dict[Segment, tuple[Plan, ...]] = field(default_factory=dict)
    sketches: dict[Segment, tuple[Plan, ...]] = field(default_factory=dict)
    sizings: dict[int, Sizing] = field(default_factory=dict)
    settled: dict[int, Settled] = field(default_factory=dict)
    planned: int = 0
    kinds: tuple[Kind, ...] = KINDS

    def keep_kinds(self, segments: Iterable[Segment]) -> None:
        """From now on only the kinds of shape that are the best of any of these segments are sketched."""
        best = {self._sketched(s)[0].kind for s in segments if len(s.names) > 1 and self._sketched(s)}
        self.kinds = tuple(k for k in KINDS if k in best) or KINDS

    def plans(self, segment: Segment, least: float = 0.0) -> tuple[Plan, ...]:
        """The best plans of a segment with their best tile sizes, best first; none where it cannot be one group. If it
        costs less than `least`, the first few."""
        found = self.known.get(segment)
        if found is None:
            found = self.known[segment] = self._sized(segment, self.cost(segment) >= least)
        return found

    def cost(self, segment: Segment) -> float:
        """What the best plan costs, about: one tile size a shape is tried. Infinite where there is none."""
        return next((p.total for p in self._sketched(segment)), inf)

    def computed_again(self, segment: Segment, least: float) -> Iterator[str]:
        """Stages but the output of which the plan that `cost` tells of computes more again than takes `least`."""
        plan = self._sketched(segment)[0]
        if plan.counts is None:
            return
        found = {s.stage: 1 - s.root_points / max(float(s.points), 1.0) for s in plan.counts.stages if not s.inlined}
        if max(found.values()) * plan.total <= least:
            return
        for cost in self.model.price(plan.counts, self.platform).stages:
            if cost.stage != segment.output and float(cost.total) * found[cost.stage] > least:
                yield cost.stage

    def settle(self, plan: Plan) -> Settled:
        """The plan worked out."""
        found = self.settled.get(id(plan))
        if found is None:
            found = self.settled[id(plan)] = self._settle(plan)
        return found

    def _settle(self, plan: Plan) -> Settled:
        segment = plan.segment
        if plan.sized is None or plan.members is None:
            inlined = frozenset(segment.names[:-1])
            group = root_group(self.facts, segment.output, self.platform, inlined, self.strict)
            counts = counts_of_group(self.facts, group, self.platform.threads)
            return Settled(group, counts, self.model.price(counts, self.platform), None)
        output = self.facts.stages[segment.output]
        others = (p for p in self.known.get(segment, ()) if p is not plan)
        rejected = tuple(Rejected(p.sized.describe(output), "costs more", p.total) for p in others if p.sized)
        tiling = Tiling(self._sizing(plan.members), plan.sized, rejected)
        return Settled(finished(tiling, self.platform, self.strict), tiling.counts, tiling.cost, tiling)

    def _plan(
        self, segment: Segment, members: Members, shape: Shape, sizes: Mapping[str, int], kind: Kind = PAPER
    ) -> Plan:
        counts = self._sizing(members).counted(shape, sizes, False)
        total = float(self.model.total(counts, self.platform))
        return Plan(segment, total, members, Sized(shape, dict(sizes), total), kind, counts)

    def _sizing(self, members: Members) -> Sizing:
        found = self.sizings.get(id(members))
        if found is None:
            found = self.sizings[id(members)] = self._new_sizing(members)
        return found

    def _new_sizing(self, members: Members) -> Sizing:
        output = self.facts.stages[members.output]
        strips = members.output in self.facts.strips
        axes = Axes(
            output, tiled_dims(output), self.platform, largest_overlaps(members), strips, SIZES, self._strips_of
        )
        counting = TimedCounting(members, self.platform, self.strict)
        return Sizing(members, self.platform, self.model, axes, counting, SAME, constrained=False)

    def _sketched(self, segment: Segment) -> tuple[Plan, ...]:
        """One plan a shape, in strips, best first."""
        found = self.sketches.get(segment)
        if found is None:
            self.planned += len(segment.names)
            plans = sorted(self._sketch(segment), key=lambda p: p.total)
            found = self.sketches[segment] = tuple(plans)
        return found

    def _sketch(self, segment: Segment) -> Iterator[Plan]:
        """All kinds of shape of the first order."""
        output = self.facts.stages[segment.output]
        alone = segment.shared.issuperset(segment.names[:-1])
        if is_special(output) or (alone and (self.expired() or not tiled_dims(output))):
            settled = self._settle(Plan(segment, 0.0))
            plan = Plan(segment, float(settled.cost.total))
            self.settled[id(plan)] = settled
            yield plan
        if is_special(output) or not tiled_dims(output) or (alone and self.expired()):
            return
        if self.expired():
            yield from self._papers(segment)
            return
        paper = self.paper.get(segment)
        parts = (segment.output, segment.names, segment.shared)
        members = members_of(self.facts, *parts) if paper is None else paper.members
        order = self._first_order(members, output)
        sizes = self._strips(members, order)
        for kind, shape in shapes(members, order, self.kinds, self.platform):
            yield self._plan(segment, members, shape, sizes, kind)

    def _first_order(self, members: Members, output: StageFacts) -> LoopOrder:
        """The first order in whose strips no stage with updates is computed again as a whole, if there is one."""
        orders = list(self._orders(members, output))
        stages = (self.facts.stages[n] for n in members.names[:-1])
        updated = [s for s in stages if s.updates and s.dims]
        for order in orders:
            along = dim_of(order.loops[-1])
            if all(any(members.followed(s.name, d) == along for d in s.dims) for s in updated):
                return order
        return orders[0]

    def _orders(self, members: Members, output: StageFacts) -> Iterator[LoopOrder]:
        few = few_iterations(output)
        unrolled = tuple(d for d in few if not keeps_apart(members, d))
        return few_orders(orders(output, tiled_dims(output), few, unrolled))

    def _strips_of(self, extent: int) -> tuple[int, ...]:
        """Tile sizes of a dim that are strips of it: a few for each thread, one, short ones."""
        return -(-extent // (self.platform.threads * STRIPS)), -(-extent // self.platform.threads), min(extent, SHORT)

    def _strips(self, members: Members, order: LoopOrder) -> dict[str, int]:
        """A few strips for each thread along the outermost loop; the whole where that is little work."""
        output, stages = self.facts.stages[members.output], self.facts.stages
        sizes = {d: output.extent(d) for d in tiled_dims(output)}
        work = sum(stages[n].root_points * (1 + arithmetic_cost(stages[n].operations)) for n in members.names)
        if work >= WORTH_THREADS:
            dim = dim_of(order.loops[-1])
            sizes[dim] = -(-sizes[dim] // (self.platform.threads * STRIPS))
        return sizes

    def _sized(self, segment: Segment, further: bool) -> tuple[Plan, ...]:
        """The sketches and the schedule of the paper; and `further` the best of them in other orders, changed, and with
        the best of all tile sizes."""
        plans = [*self._sketched(segment), *self._papers(segment)]
        ways = (self._reordered, self._resized, self._refined, self._past_caches, self._side_by_side, self._in_bands)
        for varied in ways:
            plans.sort(key=lambda p: p.total)
            if further and plans and not self.expired():
                plans += varied(plans[0])
        different = {p.key: p for p in sorted(plans, key=lambda p: -p.total)}  # the cheapest of equals stays
        return tuple(sorted(different.values(), key=lambda p: p.total)[:KEPT])

    def _papers(self, segment: Segment) -> Iterator[Plan]:
        """What the paper makes of the segment."""
        paper = self.paper.get(segment)
        if paper is not None:
            members, sizes = paper.members, paper.best.sizes
            shape = shape_of(members, paper.order, paper.choices)
            yield self._plan(segment, members, shape, sizes)

    def _reordered(self, plan: Plan) -> Iterator[Plan]:
        """In the other orders of the loops, where strips are too few for the threads, or of more than two dims."""
        if plan.sized is None or plan.members is None:
            return
        members, segment, shape = plan.members, plan.segment, plan.sized.shape
        output = self.facts.stages[segment.output]
        enough = output.extent(dim_of(shape.order.loops[-1])) >= self.platform.threads * STRIPS
        if enough and len(tiled_dims(output)) <= 2:
            return
        for order in self._orders(members, output):
            if order.loops == shape.order.loops:
                continue
            if self.expired():
                return
            sizes = self._strips(members, order)
            for _, other in shapes(members, order, (plan.kind,), self.platform):
                yield self._plan(segment, members, other, sizes, plan.kind)

    def _refined(self, plan: Plan) -> Iterator[Plan]:
        """One stage after the other done differently, as long as that pays."""
        if plan.sized is None or plan.members is None:
            return
        members, shape, sizes = plan.members, plan.sized.shape, plan.sized.sizes
        tries = max(FEWEST, TRIES // len(members.names))
        for name in reversed(members.names[:-1]):
            for other in neighbours(members, shape, name):
                if tries == 0 or self.expired():
                    return
                tries -= 1
                tried = self._plan(plan.segment, members, other, sizes, plan.kind)
                simpler = other.choices[name].levels is None  # without a buffer: whatever it pays
                if tried.total < plan.total * (1.0 if simpler else PAYS):
                    plan, shape = tried, other
                    yield plan

    def _side_by_side(self, plan: Plan) -> Iterator[Plan]:
        """Several rows in one loop over vectors, so that they share what they load, and what is computed for them."""
        if plan.sized is None or plan.members is None:
            return
        members, shape = plan.members, plan.sized.shape
        vector, output = self._group(members, shape).vector, self.facts.stages[plan.segment.output]
        if vector is None or output.extent(vector.dim) < VECTORS * vector.lanes:
            return
        for n in ROWS:
            order = side_by_side(members, shape.order, tiled_dims(output), n)
            # of each stage that is kept there a vector is held for each row
            if order is None or n * len(shape.levels) >= self.platform.vector_registers or self.expired():
                continue
            sizes = {**plan.sized.sizes, **dict(order.rows)}
            # a band in memory holds little of what the next one reads
            made = shapes(members, order, FUSED_FIRST, self.platform)
            found = next((m for m in made if all(at.registers for at in m[1].levels.values())), None)
            if found is None:
                return
            kind, other = found
            ahead = ahead_bytes(self.platform) if self._whole_rows(plan, Sized(other, sizes, inf)) else 0
            other = replace(other, stream=shape.stream and self._streams(members, other), prefetch=ahead)
            tried = self._plan(plan.segment, members, other, sizes, kind)
            yield tried
            if not plan.total * PAYS <= tried.total <= plan.total * FAR:
                return

    def _in_bands(self, plan: Plan) -> Iterator[Plan]:
        """What slides along rows sliding along a few rows at a time: in bands as wide as they can be shared out evenly,
        and narrower ones as long as that pays."""
        if plan.sized is None or plan.members is None:
            return
        members, shape = plan.members, plan.sized.shape
        output = self.facts.stages[plan.segment.output]
        found = in_bands(members, shape.order, shape.choices, tiled_dims(output), ROWS_TOGETHER)
        if found is None:
            return
        order, choices = found
        other = replace(shape_of(members, order, choices), stream=shape.stream)
        whole = {d: output.extent(d) for d in tiled_dims(output)}
        shared = self._sizing(members).axes.of(dim_of(order.loops[order.innermost]))[dim_of(order.loops[-1])]
        even = np.ravel(shared.sizes)[np.ravel(shared.counts) % self.platform.threads == 0]
        least = inf
        for size in even.tolist():
            sizes = {**whole, **dict(order.rows), shared.dim: size}
            tried = self._plan(plan.segment, members, other, sizes, plan.kind)
            yield tried
            if tried.total >= least:
                return
            least = tried.total

    def _past_caches(self, plan: Plan) -> Iterator[Plan]:
        """What is read asked for ahead, and the output written past the caches, one after the other."""
        if plan.sized is None or plan.members is None:
            return
        members, shape, sizes = plan.members, plan.sized.shape, plan.sized.sizes
        if not self._group(members, shape).vector:
            return
        for stream, possible in ((False, self._whole_rows(plan, plan.sized)), (True, self._streams(members, shape))):
            if possible:
                other = replace(shape, stream=True) if stream else replace(shape, prefetch=ahead_bytes(self.platform))
                tried = self._plan(plan.segment, members, other, sizes, plan.kind)
                yield tried
                if tried.total < plan.total:
                    plan, shape = tried, other

    def _group(self, members: Members, shape: Shape) -> Group:
        return group_of(members, shape.order, shape.choices, self.platform, self.strict)

    def _streams(self, members: Members, shape: Shape) -> bool:
        """Whether the output may go past the caches: vectors of it, of rows side by side whole lines."""
        output, vector = members.facts.definitions[members.output], self._group(members, shape).vector
        if vector is None or vector.dim != output.storage[0] or not is_plain(output):
            return False
        size = vector.lanes * members.facts.stages[members.output].bytes_per_point
        return self._leaves_caches(members) and (not shape.order.rows or size >= self.platform.line_bytes)

    def _whole_rows(self, plan: Plan, sized: Sized) -> bool:
        """Whether rows are read in order, as far as is known, and whole: what lies ahead of a shorter one is another
        tile's."""
        output = self.facts.stages[plan.segment.output]
        along = output.storage[0]
        for found in sized.shape.reads.values():
            for read in found.reads:
                if read.producer not in plan.segment.names and not self._in_order(read):
                    return False
        return self.platform.prefetcher and sized.sizes.get(along, output.extent(along)) >= output.extent(along)

    def _in_order(self, read: Read) -> bool:
        """Whether no long dim of what is read is gone through anew, or anywhere, for each point."""
        producer = self.facts.stages[read.producer]
        spans = zip(producer.dims, read.spans, strict=True)
        return all(producer.extent(d) <= FEW or (s.known and (s.var or s.extent(1) <= FEW)) for d, s in spans)

    def _leaves_caches(self, members: Members) -> bool:
        """Whether nobody finds the output in the caches after its group: it is too large, or the caller has it, and it
        does not stay until the next call."""
        stage, llc = self.facts.stages[members.output], self.platform.llc_bytes
        large = stage.root_points * stage.bytes_per_point > llc
        return large or (stage.name in self.facts.graph.outputs and circulating_bytes(members) > llc * STAYS)

    def _resized(self, plan: Plan) -> Iterator[Plan]:
        """With the best of all tile sizes."""
        if plan.sized is None or plan.members is None or plan.sized.shape.order.rows:
            return
        found = self._sizing(plan.members).cheapest(plan.sized.shape)
        if isinstance(found, Sized) and (not found.shape.prefetch or self._whole_rows(plan, found)):
            yield replace(plan, total=found.total, sized=found)


def ahead_bytes(platform: Platform) -> int:
    """How far along a row what it reads is asked for ahead."""
    return min(platform.l2_bytes // AHEAD, MOST_AHEAD)


def tiled_dims(output: StageFacts) -> tuple[str, ...]:
    """The dims of a group's output that are cut into tiles."""
    few = few_iterations(output)
    return tuple(d for d in output.storage if d in output.pure and d not in few)


@dataclass(frozen=True, slots=True)
class TimedCounting:
    """What models of time see: how every stage is run. Threads share the outermost loop."""

    members: Members
    platform: Platform
    strict: bool
    running: dict[Hashable, Running] = field(default_factory=dict)
    placed: dict[Hashable, Placement] = field(default_factory=dict)

    def counts(self, shape: Shape, nest: Nest, whole: bool) -> GroupCounts:
        """See Counting."""
        key = (shape.order, *shape.levels.items())
        running = self.running.get(key)
        if running is None:
            group = group_of(self.members, shape.order, shape.choices, self.platform, self.strict, self.placed)
            running = self.running[key] = running_of(self.members.facts, group)
        running = running._replace(stream=shape.stream, prefetch=shape.prefetch)
        return worked_counts(self.members, shape.reads, nest, shape.levels, self.platform.threads, running, whole)

    def key(self, shape: Shape) -> Hashable:
        """See Counting."""
        return (shape.inside, shape.order.loops[-1], shape.stream, shape.prefetch, *shape.levels.items())


def few_orders(listed: Sequence[LoopOrder]) -> Iterator[LoopOrder]:
    """Of the orders of a group those with vectors, and of these one for each order of the intra-tile loops and each
    outermost loop: the others move nothing but the order in which tiles are visited."""
    seen: set[tuple[tuple[str, ...], str]] = set()
    vectorised = [order for order in listed if order.vectorised]
    for order in vectorised or listed:
        key = (order.intra_loops, dim_of(order.loops[-1]))
        if key not in seen:
            seen.add(key)
            yield order
