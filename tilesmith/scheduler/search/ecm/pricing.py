"""Prices of group candidates: the cost of one shape with its tile sizes, and the orders and sizes that there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from tilesmith.cost_models.counts import GroupCounts
from tilesmith.cost_models.interface import Breakdown, CostModel
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.groups.execution_mode import Running
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.loop_nest import Nest
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.features.schedule_features import running_of
from tilesmith.scheduler.features.traffic.column_walks import has_columns
from tilesmith.scheduler.features.work.simd_work import Footprints, worked_counts
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, dim_of
from tilesmith.scheduler.search.ecm.loop_structures import PAPER, Kind
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.grouping import Segment
from tilesmith.scheduler.search.taco2019.levels import LoopOrder
from tilesmith.scheduler.search.taco2019.tiling import few_iterations, orders, tiled_dims, unrolled_dims
from tilesmith.scheduler.search.tile_sizes import Axes, LoopStructure, Sized, Sizing, Tiling, counted
from tilesmith.scheduler.search.trace import Decision
from tilesmith.scheduler.search.vectorize_and_parallelize import group_of


@dataclass(frozen=True, slots=True)
class GroupCandidate:
    """A way to make one group of a segment, and what it costs by the model. Without tiles (`sized` None) it is computed
    at root, whole. `counts`, not as a whole, are those of a plan that was priced alone; `finalised` is there where
    it was worked out already."""

    segment: Segment
    total: float
    members: Members | None = None
    sized: Sized | None = None
    kind: Kind = PAPER
    counts: GroupCounts | None = field(default=None, repr=False, compare=False)
    finalised: Finalised | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> Hashable:
        """The key of the group that the plan makes: equal for plans of a segment that make the same one."""
        if self.sized is None:
            return None if self.finalised is None else self.finalised.group
        shape, sizes = self.sized.shape, self.sized.sizes
        return (self.segment, self.way, *sizes.items(), shape.stream, shape.prefetch)

    @property
    def way(self) -> Hashable:
        """The key of the plan but for its numbers: equal for plans of a segment that differ in these alone: tile sizes,
        how memory is written and asked."""
        if self.sized is None:
            return None if self.finalised is None else (self.finalised.group.loops, self.finalised.group.placements)
        return (self.sized.shape.order.loops, self.sized.shape.order.vectors, *self.sized.shape.levels.items())


@dataclass(frozen=True, slots=True)
class Finalised:
    """A plan worked out: the group, its counts and its cost; `tiling` is None where it is computed at root. `why` is
    there where something else than the search has made it."""

    group: Group
    counts: GroupCounts
    cost: Breakdown
    tiling: Tiling | None
    why: Decision | None = None


@dataclass
class Pricing:
    """Prices by one cost model for one platform; what sizes a group may have is worked out once. Groups whose facts are
    those of `before`, as they are the same there, are priced there. Without `alternatives` nothing but the best is
    asked for."""

    facts: Facts
    platform: Platform
    model: CostModel
    strict: bool
    expired: Callable[[], bool]
    sizings: dict[Segment, Sizing] = field(default_factory=dict, kw_only=True)
    countings: dict[Segment, TimedCounting] = field(default_factory=dict, kw_only=True)
    placed: dict[Hashable, Placement] = field(default_factory=dict, kw_only=True)
    before: Self | None = field(default=None, kw_only=True)
    alternatives: bool = field(default=True, kw_only=True)

    def priced(
        self, segment: Segment, members: Members, shape: LoopStructure, sizes: Mapping[str, int], kind: Kind = PAPER
    ) -> GroupCandidate:
        counts = counted(self._counting(segment, members), shape, sizes, False)
        total = float(self.model.total(counts, self.platform))
        return GroupCandidate(segment, total, members, Sized(shape, dict(sizes), total), kind, counts)

    def _counting(self, segment: Segment, members: Members) -> TimedCounting:
        if self.before is not None and members.facts is not self.facts:
            return self.before._counting(segment, members)
        found = self.countings.get(segment)
        if found is None:
            found = self.countings[segment] = TimedCounting(members, self.platform, self.strict, self.placed)
        return found

    def sizing(self, members: Members) -> Sizing:
        if self.before is not None and members.facts is not self.facts:
            return self.before.sizing(members)
        segment = Segment(members.output, members.names, members.shared)
        found = self.sizings.get(segment)
        if found is None:
            found = self.sizings[segment] = self._new_sizing(segment, members)
        return found

    def _new_sizing(self, segment: Segment, members: Members) -> Sizing:
        output = self.facts.stages[members.output]
        reads = {name: self.facts.stages[name].reads for name in members.names}
        # short rows of lines that are used up while they stay
        least = 1 if output.passes or has_columns(members, reads) else PARAMS.narrowest_tile_elements
        also = partial(_strips_of, self.platform.threads)
        axes = Axes(members, tiled_dims(output), self.platform, PARAMS.tile_sizes_per_shape, also, least)
        counting = self._counting(segment, members)
        return Sizing(members, self.platform, self.model, axes, counting, PARAMS.same_time, constrained=False)

    def orders(self, members: Members, output: StageFacts) -> Iterator[LoopOrder]:
        few = few_iterations(output)
        unrolled = unrolled_dims(members, few)
        return few_orders(orders(output, tiled_dims(output), few, unrolled))

    def strips(self, members: Members, order: LoopOrder) -> dict[str, int]:
        """A few strips for each thread along the outermost loop, of whole lines and vectors along memory; the whole
        where that is little work."""
        output, stages = self.facts.stages[members.output], self.facts.stages
        sizes = {d: output.extent(d) for d in tiled_dims(output)}
        work = sum(stages[n].root_points * (1 + stages[n].arithmetic) for n in members.names)
        if work >= self.facts.core.balance.fork_operations:
            dim = dim_of(order.loops[-1])
            multiple = self.sizing(members).axes.multiple_of(dim, dim_of(order.loops[order.innermost]))
            strip = -(-sizes[dim] // (self.platform.threads * PARAMS.strips_per_thread))
            sizes[dim] = min(-(-strip // multiple) * multiple, sizes[dim])
        return sizes


@dataclass(frozen=True, slots=True)
class TimedCounting:
    """Counts for models of time, with the execution mode of every stage. Threads share the outermost loop."""

    members: Members
    platform: Platform
    strict: bool
    placed: dict[Hashable, Placement]
    running: dict[Hashable, Running] = field(default_factory=dict)
    footprints: Footprints = field(default_factory=dict)

    def counts(self, shape: LoopStructure, nest: Nest, whole: bool) -> GroupCounts:
        """See Counting."""
        key = (shape.order, *shape.levels.items())
        running = self.running.get(key)
        if running is None:
            group = group_of(self.members, shape.order, shape.choices, self.platform, self.strict, self.placed)
            running = self.running[key] = running_of(self.members.facts, group)
        running = running._replace(stream=shape.stream, prefetch=shape.prefetch)
        threads, known = self.platform.threads, self.footprints
        return worked_counts(self.members, shape.reads, nest, shape.levels, threads, running, whole, known)

    def key(self, shape: LoopStructure) -> Hashable:
        """See Counting."""
        return (shape.inside, shape.order.loops[-1], shape.stream, shape.prefetch, *shape.levels.items())


def _strips_of(threads: int, extent: int) -> tuple[int, ...]:
    """Tile sizes of a dim that are strips of it: a few for each thread, one, short ones."""
    return (
        -(-extent // (threads * PARAMS.strips_per_thread)),
        -(-extent // threads),
        min(extent, PARAMS.short_strip_rows),
    )


def few_orders(listed: Sequence[LoopOrder]) -> Iterator[LoopOrder]:
    """The orders of a group to search: those with vectors, and of these one for each order of the intra-tile loops and
    each outermost loop: the others move nothing but the order in which tiles are visited."""
    seen: set[tuple[tuple[str, ...], str]] = set()
    vectorised = [order for order in listed if order.vectorised]
    for order in vectorised or listed:
        key = (order.intra_loops, dim_of(order.loops[-1]))
        if key not in seen:
            seen.add(key)
            yield order
