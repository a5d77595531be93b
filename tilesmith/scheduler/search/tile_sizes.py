"""Tile sizes of a group: all of them costed at once, for one order of its loops with the levels of its stages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isinf, isqrt, lcm
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tilesmith.cost_models.counts import GroupCounts, pick
from tilesmith.cost_models.interface import Breakdown, CostModel
from tilesmith.platforms import Platform
from tilesmith.records import record
from tilesmith.scheduler.features.groups.fusion_group import Effective, Members, effective
from tilesmith.scheduler.features.groups.group_counts import Levels, group_counts, in_registers
from tilesmith.scheduler.features.groups.loop_nest import Axis, Nest, axis, single
from tilesmith.scheduler.features.groups.unroll_and_jam import points_together
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder, across_rows, largest_overlaps
from tilesmith.scheduler.search.trace import Infeasible, Rejected

LISTED = 3


class Axes:
    """The candidate sizes of every dim of the output, as the innermost dim and otherwise; about so many `candidates` of
    all dims together, along memory of `least` elements, and those that are given `also` for an extent."""

    def __init__(
        self,
        members: Members,
        tiled: tuple[str, ...],
        platform: Platform,
        candidates: int = PARAMS.paper_tile_sizes,
        also: Callable[[int], Iterable[int]] = lambda extent: (),
        least: int = PARAMS.narrowest_tile_elements,
    ) -> None:
        self.members, self.tiled, self.platform = members, tiled, platform
        self.output, self.also, self.least = members.facts.stages[members.output], also, least
        lanes = max(1, platform.vector_bytes // max(1, self.output.computed_bytes))
        self.multiple = lcm(max(1, platform.line_bytes // self.output.bytes_per_point), lanes)
        self.limit = max(2, int(candidates ** (1 / len(tiled))))
        self.cache: dict[str, dict[str, Axis]] = {}

    @cached_property
    def across(self) -> Mapping[str, int]:
        """By dim the lanes of the vectors across rows that updates of the group run in."""
        return lanes_across(self.members, self.platform)

    def of(self, innermost: str) -> dict[str, Axis]:
        """One axis a dim, where `innermost` is the innermost intra-tile dim."""
        found = self.cache.get(innermost)
        if found is None:
            found, overlaps = {}, largest_overlaps(self.members)
            for dim in self.output.dims:
                extent = self.output.extent(dim)
                if dim not in self.tiled:
                    found[dim] = single(dim, extent, extent)
                else:
                    least = max(overlaps[dim], self.narrowest(dim, innermost))
                    listed = tile_sizes(extent, self.multiple_of(dim, innermost), least, self.limit)
                    multiple = self.multiple_of(dim, innermost)
                    strips = {min(-(-n // multiple) * multiple, extent) for n in self.also(extent)}
                    sizes = sorted({*listed, *strips}, reverse=True)
                    found[dim] = axis(dim, extent, sizes, self.tiled.index(dim), len(self.tiled))
            self.cache[innermost] = found
        return found

    def most_tiles(self, innermost: str) -> int:
        """The most tiles that any dim can be cut into, by its extent and the cache line alone."""
        narrowest = {d: max(self.multiple_of(d, innermost), self.narrowest(d, innermost)) for d in self.tiled}
        return max(-(-self.output.extent(d) // n) for d, n in narrowest.items())

    def multiple_of(self, dim: str, innermost: str) -> int:
        """The number that tile sizes are multiples of, but for the whole extent: lines and vectors in the innermost dim
        where it lies along memory, so that no two threads write to a line and no tile is shorter than a vector; lanes
        in one across which updates have vectors, else 1."""
        return self.multiple if self.along_memory(dim, innermost) else self.across.get(dim, 1)

    def narrowest(self, dim: str, innermost: str) -> int:
        """The smallest tile but the whole extent."""
        return self.least if self.along_memory(dim, innermost) else 1

    def along_memory(self, dim: str, innermost: str) -> bool:
        """True if the loop over `dim` is one of vectors along the rows of memory; not of partial results of threads."""
        return dim == innermost == self.output.row and self.output.name not in self.members.facts.strips


def lanes_across(members: Members, platform: Platform) -> dict[str, int]:
    """By dim of the output the lanes of the vectors across its rows: those of updates across rows, and of stages with
    updates whose rows go across those of the output."""
    found: dict[str, int] = {}
    for name in members.names:
        stage = members.facts.stages[name]
        if not stage.updates:
            continue
        lanes = max(1, platform.vector_bytes // max(1, stage.computed_bytes))
        dims = (update.scan.vectors_across(update.trips, lanes) for update in stage.updates if update.scan is not None)
        for along in (*(members.followed(name, dim) for dim in dims if dim is not None), across_rows(members, name)):
            if along is not None:
                found[along] = max(lanes, found.get(along, 1))
    return found


@lru_cache(maxsize=4096)
def tile_sizes(extent: int, multiple: int, least: int, limit: int) -> tuple[int, ...]:
    """Tile sizes worth costing, largest first: for every number of tiles the smallest size that gives it, rounded
    up to `multiple`; and the whole extent. Costs depend on the number of tiles and buffers grow with the size,
    so that the others of the same number are never better. At most about `limit` of them, evenly thinned.

    None is smaller than `least` (TACO 2019, Eq. 15) but the whole extent.
    """
    root = isqrt(extent) + 1
    sizes = {-(-extent // k) for k in range(1, root + 1)} | set(range(1, min(root, extent) + 1)) | {least}
    rounded = {-(-n // multiple) * multiple for n in sizes if n >= least}
    found = sorted({n for n in rounded if n < extent} | {extent}, reverse=True)
    if len(found) > limit:
        found = [found[n * (len(found) - 1) // (limit - 1)] for n in range(limit)]
    return tuple(found)


@record(frozen=True, slots=True)
class LoopStructure:
    """The loop structure of a group: the order of its loops and the levels of its stages, no tile sizes. `reads` has
    the stages that are computed for themselves, `levels` those of them that are not the output. `stream` and `prefetch`
    are those of the group."""

    order: LoopOrder
    choices: dict[str, Choice]
    reads: dict[str, Effective]
    levels: dict[str, Levels]
    stream: bool = False
    prefetch: int = 0

    @property
    def inside(self) -> tuple[str, ...]:
        """The intra-tile loops."""
        return self.order.intra_loops


def structure_of(members: Members, order: LoopOrder, choices: dict[str, Choice], shared: bool = True) -> LoopStructure:
    """The shape with these choices for all stages but the output. Points of unrolled loops share what they read, unless
    not even that is `shared`, as in the paper's counts."""
    levels = {name: c.levels for name, c in choices.items() if c.levels is not None}
    unrolled = order.side_by_side(members.facts.stages[members.output]) if shared else {}
    inlined = frozenset(choices) - frozenset(levels)
    computed = {name: at.compute for name, at in levels.items()}
    rows = points_together(members, order.loops, computed, inlined) if shared else {}
    return LoopStructure(order, choices, effective(members, inlined, unrolled, in_registers(levels), rows), levels)


@record(frozen=True, slots=True)
class Sized:
    """A shape with its best tile sizes, and their cost."""

    shape: LoopStructure
    sizes: dict[str, int]
    total: float

    def whole(self, output: StageFacts) -> tuple[tuple[str, int | None], ...]:
        """Tile sizes, None where they are the whole extent."""
        return tuple((d, None if size >= output.extent(d) else size) for d, size in self.sizes.items())

    def describe(self, output: StageFacts) -> str:
        """The loops and tile sizes as people read them."""
        shape, order = self.shape, self.shape.order
        tiles = ", ".join(f"{d} {'whole' if n is None else n}" for d, n in self.whole(output))
        parts = [f"loops {' '.join(order.loops)}", f"tiles {tiles or 'none'}"]
        levels = [choice.levels for choice in shape.choices.values()]
        registers = sum(found is not None and found.registers for found in levels)
        counted = {"in memory": len(levels) - registers - levels.count(None), "in registers": registers}
        counted["inline"] = levels.count(None)
        if levels:
            parts.append("members " + ", ".join(f"{n} {where}" for where, n in counted.items() if n))
        if order.rows:
            unrolled = inner(order.rows[0][0]) in order.loops[: order.unrolled]
            parts.append("rows side by side" if unrolled else "sliding some rows at a time")
        if shape.stream:
            parts.append("written past the caches")
        if shape.prefetch:
            parts.append("read ahead")
        return "; ".join(parts)


@record(frozen=True, slots=True)
class _Costed:
    """All tile sizes of a shape: what they cost, and whether their buffers fit. `picked`: the best of them, by the dim
    of the outermost loop."""

    nest: Nest
    total: NDArray[np.floating[Any]]
    fits: NDArray[np.bool_] | bool
    counts: GroupCounts
    picked: dict[str, Sized | Infeasible] = field(default_factory=dict)


class Counting(Protocol):
    """The counts of a group for its cost model."""

    @property
    def members(self) -> Members: ...

    def counts(self, shape: LoopStructure, nest: Nest, whole: bool) -> GroupCounts:
        """The counts of a shape with its tile sizes in `nest`; only for the answer as a `whole`, not to compare."""

    def key(self, shape: LoopStructure) -> Hashable:
        """Shapes of the same key have the same counts; None is like no other."""


@record(frozen=True, slots=True)
class PaperCounting:
    """Counts for the model of TACO 2019: where no stage is stored outside of the innermost inter-tile loop, the order
    of those changes nothing."""

    members: Members
    platform: Platform

    def counts(self, shape: LoopStructure, nest: Nest, whole: bool) -> GroupCounts:
        """See Counting. Loads inside the group have no price: they are counted for the answer only."""
        return group_counts(self.members, shape.reads, nest, shape.levels, self.platform.threads, whole)

    def key(self, shape: LoopStructure) -> Hashable:
        """See Counting."""
        inside = len(shape.inside)
        if any(levels.store > inside for levels in shape.levels.values()):
            return None
        return (shape.inside, *shape.levels.items())


def counted(counting: Counting, shape: LoopStructure, sizes: Mapping[str, int], whole: bool) -> GroupCounts:
    """The counts of a shape with these tile sizes; see Counting."""
    output = counting.members.facts.stages[counting.members.output]
    known = _nests(counting.members.facts)
    key = (output.name, shape.order.loops, *sizes.items())
    nest = known.get(key)
    if nest is None:
        extents = zip(output.dims, output.extents, strict=True)
        axes = {d: single(d, n, min(n, sizes.get(d, n))) for d, n in extents}
        nest = known[key] = Nest(output.name, shape.order.loops, axes)
    return counting.counts(shape, nest, whole)


def _nest_of(members: Members, loops: tuple[str, ...], axes: dict[str, Axis]) -> Nest:
    """The nest of these axes: one object for all groups of the same facts with that output and these candidates."""
    known = _nests(members.facts)
    key = (members.output, loops, *((a.dim, np.shape(a.sizes), np.asarray(a.sizes).tobytes()) for a in axes.values()))
    found = known.get(key)
    if found is None:
        found = known[key] = Nest(members.output, loops, axes)
    return found


@once
def _nests(facts: Facts) -> dict[Hashable, Nest]:
    return {}


class Sizing:
    """Finds tile sizes for one shape after the other; the same counts are made once. Costs that differ by less than
    `same` of the least are taken to be the same. `constrained`: by memory and threads, as the paper's; a model of time
    has a price for what lies beyond caches, and for threads without work."""

    def __init__(
        self,
        members: Members,
        platform: Platform,
        model: CostModel,
        axes: Axes,
        counting: Counting | None = None,
        same: float = PARAMS.paper_same_cost,
        constrained: bool = True,
    ) -> None:
        self.members, self.platform, self.model, self.axes = members, platform, model, axes
        self.counting = counting or PaperCounting(members, platform)
        self.same = same
        self.constrained = constrained
        self.known: dict[Hashable, _Costed] = {}

    def cheapest(self, shape: LoopStructure) -> Sized | Infeasible:
        """The cheapest valid tile sizes of a shape, the largest of equal ones."""
        of, outermost = self._of(shape), dim_of(shape.order.loops[-1])
        found = of.picked.get(outermost)
        if found is None:
            found = of.picked[outermost] = self._pick(shape, of, outermost)
        return found if isinstance(found, Infeasible) else Sized(shape, found.sizes, found.total)

    def _pick(self, shape: LoopStructure, of: _Costed, outermost: str) -> Sized | Infeasible:
        innermost = dim_of(shape.order.loops[shape.order.innermost])
        needed = min(self.platform.threads, self.axes.most_tiles(innermost)) if self.constrained else 1
        enough = of.nest.axes[outermost].counts >= needed
        total = np.where(of.fits & enough, of.total, np.inf)
        least = float(total.min())
        if isinf(least):
            reasons = list(_reasons(of.counts, self.platform))
            if not np.all(enough):
                reasons.append(f"fewer than {needed} iterations of the outermost loop")
            return Infeasible(f"no tile size is valid: {'; '.join(reasons)}")
        return self._at(shape, total, int(np.argmax(total <= least + self.same * abs(least))))

    def dearer(self, best: Sized, count: int) -> list[Sized]:
        """The cheapest other sizes of a shape that do not cost less than `best`, at most `count`."""
        of = self._of(best.shape)
        total = np.where(of.total >= best.total, of.total, np.inf)
        picks = np.argsort(total, axis=None, kind="stable")[: count + 1].tolist()
        found = (self._at(best.shape, total, pick) for pick in picks if np.isfinite(np.ravel(total)[pick]))
        return [sized for sized in found if sized.sizes != best.sizes][:count]

    def _at(self, shape: LoopStructure, total: NDArray[np.floating[Any]], pick: int) -> Sized:
        """The tile sizes at a position of the array of all totals."""
        of, index = self._of(shape), np.unravel_index(pick, total.shape)
        sizes = {d: int(np.ravel(of.nest.axes[d].sizes)[index[n]]) for n, d in enumerate(self.axes.tiled)}
        return Sized(shape, sizes, float(total[index]))

    def counted(self, shape: LoopStructure, sizes: Mapping[str, int], whole: bool) -> GroupCounts:
        """The counts of a shape with these tile sizes; see Counting."""
        return counted(self.counting, shape, sizes, whole)

    def _of(self, shape: LoopStructure) -> _Costed:
        key = self.counting.key(shape)
        found = None if key is None else self.known.get(key)
        if found is None:
            found = self._cost(shape)
            if key is not None:
                self.known[key] = found
        return found

    def _cost(self, shape: LoopStructure) -> _Costed:
        order = shape.order
        axes = self.axes.of(dim_of(order.loops[order.innermost]))
        nest = _nest_of(self.members, order.loops, axes)
        counts = self.counting.counts(shape, nest, False)
        fits = _fits(counts, self.platform) if self.constrained else True
        many = tuple(np.size(nest.axes[d].sizes) for d in self.axes.tiled)
        total = self.model.total(counts, self.platform) if np.any(fits) else np.inf
        return _Costed(nest, np.broadcast_to(total, many), fits, counts)


@dataclass(frozen=True)
class Tiling:
    """A shape of a group with the best tile sizes for it. Its counts, for these sizes alone and as a whole, are made
    when they are asked for."""

    sizing: Sizing = field(repr=False)
    best: Sized
    rejected: tuple[Rejected, ...] = ()

    @property
    def members(self) -> Members:
        return self.sizing.members

    @property
    def order(self) -> LoopOrder:
        return self.best.shape.order

    @property
    def choices(self) -> dict[str, Choice]:
        return self.best.shape.choices

    @cached_property
    def sizes(self) -> tuple[tuple[str, int | None], ...]:
        """Per tiled dim, None the whole extent."""
        return self.best.whole(self.members.facts.stages[self.members.output])

    @cached_property
    def counts(self) -> GroupCounts:
        return self.sizing.counted(self.best.shape, self.best.sizes, True)

    @cached_property
    def cost(self) -> Breakdown:
        return self.sizing.model.price(self.counts, self.sizing.platform)

    @property
    def total(self) -> float:
        return self.best.total

    def describe(self) -> str:
        """See Sized."""
        return self.best.describe(self.members.facts.stages[self.members.output])


def _fits(counts: GroupCounts, platform: Platform) -> NDArray[np.bool_] | bool:
    """The candidates that keep the constraints on memory of TACO 2019, 4.2: unfolded buffers fit the L2 cache, folded
    ones the last-level cache, each for one thread."""
    return (counts.unfolded_bytes <= platform.l2_bytes) & (counts.folded_bytes <= platform.llc_bytes)


def _reasons(counts: GroupCounts, platform: Platform) -> Iterator[str]:
    """The constraints that some candidates break, with the largest buffers of the one that needs least."""
    for folded, limit, cache in ((False, platform.l2_bytes, "L2"), (True, platform.llc_bytes, "last-level")):
        kept = np.asarray(counts.folded_bytes if folded else counts.unfolded_bytes)
        if (kept > limit).any():
            what = "folded" if folded else "unfolded"
            yield f"{what} buffers exceed the {cache} cache{_largest(counts, kept, folded)}"


def _largest(counts: GroupCounts, kept: NDArray[Any], folded: bool) -> str:
    """The largest buffers of the candidate that needs least, in KiB."""
    index = np.unravel_index(int(np.argmin(kept)), kept.shape)
    stages = [s for s in counts.stages if s.folded == folded]
    sizes = {s.stage: pick(s.bytes_kept, tuple(map(int, index))) if kept.ndim else float(s.bytes_kept) for s in stages}
    worst = sorted((n for n in sizes if sizes[n]), key=lambda n: -sizes[n])[:LISTED]
    listed = ", ".join(f"{n} {sizes[n] / 1024:,.0f}" for n in worst)
    return f" (at least {float(kept.min()) / 1024:,.0f} KiB: {listed}{', ...' if len(stages) > LISTED else ''})"
