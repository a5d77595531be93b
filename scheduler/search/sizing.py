"""Tile sizes of a group: all of them costed at once, for one order of its loops with the levels of its stages."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import isqrt, lcm
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cost_models.counts import GroupCounts, pick
from cost_models.model import Breakdown, CostModel
from platforms.model import Platform
from scheduler.analysis.counts import Levels, group_counts, in_registers
from scheduler.analysis.facts import StageFacts
from scheduler.analysis.members import Effective, Members, effective
from scheduler.analysis.neighbours import rows_together
from scheduler.analysis.nest import Axis, Nest, axis, single
from scheduler.schedule import dim_of, inner
from scheduler.search.levels import Choice, LoopOrder
from scheduler.search.trace import Infeasible, Rejected

MAX_CANDIDATES = 20_000
SAME_COST = 1e-9
LISTED = 3
NARROWEST = 256
"""Elements along memory that a tile has at least, as in the released code of TACO 2019: the cost of short rows, whose
vectors and halos are cut off at both ends on every level of a pyramid, is none that its model knows."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """One loop order of a group with the best tile sizes for it. `sizes` per tiled dim, None the whole extent. `stream`
    and `prefetch` are those of the group."""

    members: Members
    order: LoopOrder
    sizes: tuple[tuple[str, int | None], ...]
    choices: dict[str, Choice]
    counts: GroupCounts
    cost: Breakdown
    rejected: tuple[Rejected, ...] = ()
    stream: bool = False
    prefetch: int = 0

    @property
    def total(self) -> float:
        return float(self.cost.total)

    def describe(self) -> str:
        """The loops and tile sizes as people read them."""
        return _described(self.order, self.sizes, self.choices, self.stream, self.prefetch)


class Axes:
    """The candidate sizes of every dim of the output, as the innermost dim and otherwise; about so many `candidates` of
    all dims together. `strips`: it holds partial results for threads."""

    def __init__(
        self,
        output: StageFacts,
        tiled: tuple[str, ...],
        platform: Platform,
        overlaps: dict[str, int],
        strips: bool,
        candidates: int = MAX_CANDIDATES,
    ) -> None:
        self.output, self.tiled, self.strips = output, tiled, strips
        self.overlaps = overlaps
        lanes = max(1, platform.vector_bytes // max(1, output.computed_bytes))
        self.multiple = lcm(max(1, platform.line_bytes // output.bytes_per_point), lanes)
        self.limit = max(2, int(candidates ** (1 / len(tiled))))
        self.cache: dict[str, dict[str, Axis]] = {}

    def of(self, innermost: str) -> dict[str, Axis]:
        """One axis a dim, where `innermost` is the innermost intra-tile dim."""
        found = self.cache.get(innermost)
        if found is None:
            found = {}
            for dim in self.output.dims:
                extent = self.output.extent(dim)
                if dim not in self.tiled:
                    found[dim] = axis(dim, extent, [extent], 0, len(self.tiled))
                else:
                    least = max(self.overlaps[dim], self.narrowest(dim, innermost))
                    sizes = tile_sizes(extent, self.multiple_of(dim, innermost), least, self.limit)
                    found[dim] = axis(dim, extent, sizes, self.tiled.index(dim), len(self.tiled))
            self.cache[innermost] = found
        return found

    def most_tiles(self, innermost: str) -> int:
        """The most tiles that any dim can be cut into, by its extent and the cache line alone."""
        narrowest = {d: max(self.multiple_of(d, innermost), self.narrowest(d, innermost)) for d in self.tiled}
        return max(-(-self.output.extent(d) // n) for d, n in narrowest.items())

    def multiple_of(self, dim: str, innermost: str) -> int:
        """What a tile is a multiple of: lines and vectors, of the innermost dim where it lies along memory."""
        return self.multiple if self.along_memory(dim, innermost) else 1

    def narrowest(self, dim: str, innermost: str) -> int:
        """The smallest tile but the whole extent."""
        return NARROWEST if self.along_memory(dim, innermost) else 1

    def along_memory(self, dim: str, innermost: str) -> bool:
        """Whether the loop over `dim` is one of vectors along the rows of memory."""
        return dim == innermost == self.output.storage[0] and not self.strips


def tile_sizes(extent: int, multiple: int, least: int, limit: int) -> list[int]:
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
        kept = np.unique(np.linspace(0, len(found) - 1, limit).astype(int))
        found = [found[n] for n in kept]
    return found


@dataclass(frozen=True, slots=True)
class Shape:
    """One loop order of a group with the levels of its stages: everything but the tile sizes. `reads` has the stages
    that are computed for themselves, `levels` those of them that are not the output. `stream` and `prefetch` are those
    of the group."""

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


def shape_of(members: Members, order: LoopOrder, choices: dict[str, Choice], shared: bool = True) -> Shape:
    """The shape with these choices for all stages but the output. Points of unrolled loops share what they read, unless
    not even that is `shared`, as in the paper's counts."""
    levels = {name: c.levels for name, c in choices.items() if c.levels is not None}
    unrolled = order.side_by_side(members.facts.stages[members.output]) if shared else {}
    inlined = frozenset(choices) - frozenset(levels)
    rows = rows_together(members, order.loops, {name: at.compute for name, at in levels.items()}) if shared else {}
    return Shape(order, choices, effective(members, inlined, unrolled, in_registers(levels), rows), levels)


@dataclass(frozen=True, slots=True)
class Sized:
    """A shape with its best tile sizes, and their cost."""

    shape: Shape
    sizes: dict[str, int]
    total: float

    def whole(self, output: StageFacts) -> tuple[tuple[str, int | None], ...]:
        """Tile sizes, None where they are the whole extent."""
        return tuple((d, None if size >= output.extent(d) else size) for d, size in self.sizes.items())

    def describe(self, output: StageFacts) -> str:
        shape = self.shape
        return _described(shape.order, self.whole(output), shape.choices, shape.stream, shape.prefetch)


@dataclass(frozen=True, slots=True)
class _Costed:
    """All tile sizes of a shape: what they cost, and whether their buffers fit."""

    nest: Nest
    total: NDArray[np.floating[Any]]
    fits: NDArray[np.bool_]
    reasons: tuple[str, ...]


class Counting(Protocol):
    """How the counts of a group are found that its cost model sees."""

    def counts(self, shape: Shape, nest: Nest, whole: bool) -> GroupCounts:
        """Of a shape with its tile sizes in `nest`; only for the answer as a `whole`, not to compare."""

    def key(self, shape: Shape) -> Hashable:
        """Shapes of the same key have the same counts; None is like no other."""


@dataclass(frozen=True, slots=True)
class PaperCounting:
    """What the model of TACO 2019 sees: where no stage is stored outside of the innermost inter-tile loop, the order of
    those changes nothing."""

    members: Members
    platform: Platform

    def counts(self, shape: Shape, nest: Nest, whole: bool) -> GroupCounts:
        """See Counting. Loads inside the group have no price: they are counted for the answer only."""
        return group_counts(self.members, shape.reads, nest, shape.levels, self.platform.threads, whole)

    def key(self, shape: Shape) -> Hashable:
        """See Counting."""
        inside = len(shape.inside)
        if any(levels.store > inside for levels in shape.levels.values()):
            return None
        return (shape.inside, *shape.levels.items())


class Sizing:
    """Finds tile sizes for one shape after the other; the same counts are made once. Costs that differ by less than
    `same` of the least are taken to be the same. Buffers that do not fold have `unfolded_bytes` at most, by default
    those of the L2 cache."""

    def __init__(
        self,
        members: Members,
        platform: Platform,
        model: CostModel,
        axes: Axes,
        counting: Counting | None = None,
        same: float = SAME_COST,
        unfolded_bytes: int | None = None,
    ) -> None:
        self.members, self.platform, self.model, self.axes = members, platform, model, axes
        self.counting = counting or PaperCounting(members, platform)
        self.same = same
        self.unfolded_bytes = platform.l2_bytes if unfolded_bytes is None else unfolded_bytes
        self.known: dict[Hashable, _Costed] = {}
        self.nests: dict[Hashable, Nest] = {}

    def cheapest(self, shape: Shape) -> Sized | Infeasible:
        """The cheapest valid tile sizes of a shape, the largest of equal ones."""
        of = self._of(shape)
        order = shape.order
        innermost = dim_of(order.loops[order.innermost])
        outermost = of.nest.axes[dim_of(order.loops[-1])]
        needed = min(self.platform.threads, self.axes.most_tiles(innermost))
        enough = np.asarray(outermost.counts >= needed)
        valid = of.fits & enough
        if not valid.any():
            reasons = (
                of.reasons if enough.all() else (*of.reasons, f"fewer than {needed} iterations of the outermost loop")
            )
            return Infeasible(f"no tile size is valid: {'; '.join(reasons)}")
        total = np.where(valid, of.total, np.inf)
        least = float(total.min())
        pick = int(np.argmax(total <= least + self.same * abs(least)))
        index = np.unravel_index(pick, total.shape)
        sizes = {d: int(np.ravel(of.nest.axes[d].sizes)[index[n]]) for n, d in enumerate(self.axes.tiled)}
        return Sized(shape, sizes, float(total[index]))

    def settled(self, best: Sized, rejected: tuple[Rejected, ...] = ()) -> Tiling:
        """The tiling that was found best: counted again for its sizes alone, and as a whole."""
        members, shape = self.members, best.shape
        output = members.facts.stages[members.output]
        counts = self.counted(best.shape, best.sizes, True)
        cost = self.model.price(counts, self.platform)
        sizes = best.whole(output)
        order, choices, stream, prefetch = shape.order, shape.choices, shape.stream, shape.prefetch
        return Tiling(members, order, sizes, choices, counts, cost, rejected, stream, prefetch)

    def priced(self, shape: Shape, sizes: Mapping[str, int]) -> float:
        """What a shape costs with these tile sizes."""
        return float(self.model.total(self.counted(shape, sizes, False), self.platform))

    def counted(self, shape: Shape, sizes: Mapping[str, int], whole: bool) -> GroupCounts:
        """The counts of a shape with these tile sizes; see Counting."""
        facts = self.members.facts
        known: dict[Hashable, Nest] = facts.remembered.setdefault("single nests", {})
        key = (self.members.output, shape.order.loops, *sizes.items())
        nest = known.get(key)
        if nest is None:
            output = facts.stages[self.members.output]
            extents = zip(output.dims, output.extents, strict=True)
            axes = {d: single(d, n, min(n, sizes.get(d, n))) for d, n in extents}
            nest = known[key] = Nest(output.name, shape.order.loops, axes)
        return self.counting.counts(shape, nest, whole)

    def _of(self, shape: Shape) -> _Costed:
        key = self.counting.key(shape)
        found = None if key is None else self.known.get(key)
        if found is None:
            found = self._cost(shape)
            if key is not None:
                self.known[key] = found
        return found

    def _cost(self, shape: Shape) -> _Costed:
        order = shape.order
        nest = self.nests.get(order.loops)
        if nest is None:
            axes = self.axes.of(dim_of(order.loops[order.innermost]))
            nest = self.nests[order.loops] = Nest(self.members.output, order.loops, axes)
        counts = self.counting.counts(shape, nest, False)
        fits, reasons = _fits(counts, nest, self.unfolded_bytes, self.platform)
        return _Costed(nest, np.asarray(self.model.total(counts, self.platform)), fits, reasons)


def _described(
    order: LoopOrder,
    sizes: tuple[tuple[str, int | None], ...],
    choices: Mapping[str, Choice],
    stream: bool,
    prefetch: int,
) -> str:
    tiles = ", ".join(f"{d} {'whole' if n is None else n}" for d, n in sizes)
    parts = [f"loops {' '.join(order.loops)}", f"tiles {tiles or 'none'}"]
    levels = [choice.levels for choice in choices.values()]
    registers = sum(found is not None and found.registers for found in levels)
    counted = {"in memory": len(levels) - registers - levels.count(None), "in registers": registers}
    counted["inline"] = levels.count(None)
    if levels:
        parts.append("members " + ", ".join(f"{n} {where}" for where, n in counted.items() if n))
    if order.rows:
        unrolled = inner(order.rows[0][0]) in order.loops[: order.unrolled]
        parts.append("rows side by side" if unrolled else "sliding some rows at a time")
    if stream:
        parts.append("written past the caches")
    if prefetch:
        parts.append("read ahead")
    return "; ".join(parts)


def _fits(
    counts: GroupCounts, nest: Nest, unfolded_bytes: int, platform: Platform
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which candidates keep the constraints on memory of TACO 2019, 4.2, and those that some break, with the largest
    buffers of the candidate that needs least: unfolded buffers fit the L2 cache (or what else they may be), folded ones
    the last-level cache, each for one thread."""
    shape = np.broadcast_shapes(*(np.shape(a.sizes) for a in nest.axes.values()))
    valid = np.ones(shape, dtype=bool)
    reasons = []
    unfolded = "L2" if unfolded_bytes == platform.l2_bytes else "last-level"
    for folded, limit, cache in ((False, unfolded_bytes, unfolded), (True, platform.llc_bytes, "last-level")):
        kept = np.asarray(counts.folded_bytes if folded else counts.unfolded_bytes)
        passed = kept <= limit
        valid = valid & passed
        if not passed.all():
            what = "folded" if folded else "unfolded"
            reasons.append(f"{what} buffers exceed the {cache} cache{_largest(counts, kept, folded)}")
    return valid, tuple(reasons)


def _largest(counts: GroupCounts, kept: NDArray[Any], folded: bool) -> str:
    """The largest buffers of the candidate that needs least, in KiB."""
    index = np.unravel_index(int(np.argmin(kept)), kept.shape)
    stages = [s for s in counts.stages if s.folded == folded]
    sizes = {s.stage: pick(s.bytes_kept, tuple(map(int, index))) if kept.ndim else float(s.bytes_kept) for s in stages}
    worst = sorted((n for n in sizes if sizes[n]), key=lambda n: -sizes[n])[:LISTED]
    listed = ", ".join(f"{n} {sizes[n] / 1024:,.0f}" for n in worst)
    return f" (at least {float(kept.min()) / 1024:,.0f} KiB: {listed}{', ...' if len(stages) > LISTED else ''})"
