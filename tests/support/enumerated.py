"""Counts of a tiled loop nest by walking it point by point: slow, obvious, independent of the closed forms.

At every iteration of a stage's compute loop: what its consumers are about to compute needs a box of it; what
is already stored is not computed again. What a stage reads is counted once an iteration of its store loop.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from math import floor

from tilesmith.scheduler.features.groups.fusion_group import Effective, Members
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.pipeline.reads import Read

Point = tuple[int, ...]
Box = tuple[tuple[int, int], ...]


def points_of(box: Box) -> set[Point]:
    return set(product(*(range(lo, hi + 1) for lo, hi in box)))


def hull(points: set[Point] | list[Point]) -> Box:
    return tuple((min(axis), max(axis)) for axis in zip(*points, strict=True))


def size(box: Box) -> int:
    count = 1
    for lo, hi in box:
        count *= hi - lo + 1
    return count


@dataclass
class Found:
    """Counts of one stage. `loads` and `runs` by producer; boxes of the buffer in points."""

    points: int = 0
    loads: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    runs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    largest_box: int = 0
    largest_extents: tuple[int, ...] = ()
    largest_need: tuple[int, ...] = ()


class Walk:
    """`extents` and `tiles` are of the output's dims, `loops` its loops, innermost first."""

    def __init__(
        self,
        members: Members,
        reads: dict[str, Effective],
        loops: tuple[str, ...],
        levels: dict[str, Levels],
        tiles: dict[str, int],
    ) -> None:
        self.members, self.reads, self.loops, self.levels, self.tiles = members, reads, loops, levels, tiles
        output = members.facts.stages[members.output]
        self.extents = dict(zip(output.dims, output.extents, strict=True))
        self.found: dict[str, Found] = defaultdict(Found)
        self.stored: dict[str, set[Point]] = defaultdict(set)
        self.read: dict[tuple[str, str], set[Point]] = defaultdict(set)
        self.output_store = min((n for n, loop in enumerate(loops) if loop.endswith(".outer")), default=len(loops))

    def run(self) -> dict[str, Found]:
        self._walk(len(self.loops) - 1, {})
        if self.output_store == len(self.loops):
            self._forget(self.output_store)
        return self.found

    def _walk(self, depth: int, at: dict[str, int]) -> None:
        if depth < 0:
            point = self._output_points(at)
            self.found[self.members.output].points += len(point)
            self._note_reads(self.members.output, point)
            return
        for value in range(self._trips(self.loops[depth], at)):
            here = {**at, self.loops[depth]: value}
            self._compute(depth, here)
            self._walk(depth - 1, here)
            self._forget(depth)

    def _trips(self, loop: str, at: dict[str, int]) -> int:
        dim, kind = loop.split(".")
        extent, tile = self.extents[dim], self.tiles[dim]
        if kind == "outer":
            return -(-extent // tile)
        return min(tile, extent - at[f"{dim}.outer"] * tile) if f"{dim}.outer" in at else extent

    def _output_points(self, at: dict[str, int]) -> set[Point]:
        """Points of the output in this iteration of the loops in `at`."""
        ranges = []
        for dim, extent in self.extents.items():
            start, end = 0, extent
            if f"{dim}.outer" in at:
                start = at[f"{dim}.outer"] * self.tiles[dim]
                end = min(extent, start + self.tiles[dim])
            if f"{dim}.inner" in at:
                start += at[f"{dim}.inner"]
                end = start + 1
            ranges.append(range(start, end))
        return set(product(*ranges))

    def _compute(self, depth: int, at: dict[str, int]) -> None:
        """All stages whose compute level is the loop at `depth`, consumers' needs first."""
        fresh: dict[str, set[Point]] = {}
        for name in reversed(self.members.names[:-1]):
            if name in self.levels and self.levels[name].compute == depth:
                need = self._need(name, at, fresh)
                fresh[name] = points_of(need) - self.stored[name] if need else set()
                if need:
                    found = self.found[name]
                    found.points += len(fresh[name])
                    found.largest_need = _larger(found.largest_need, need)
                    self.stored[name] |= fresh[name]
                    self._note_reads(name, fresh[name])

    def _need(self, name: str, at: dict[str, int], fresh: dict[str, set[Point]]) -> Box | None:
        needed: set[Point] = set()
        for reader, effective in self.reads.items():
            for read in effective.reads:
                if read.producer == name:
                    points = fresh[reader] if reader in fresh else self._region(reader, at)
                    if points:
                        needed |= set(product(*self._ends(read, reader, hull(points))))
        return hull(needed) if needed else None

    def _region(self, name: str, at: dict[str, int]) -> set[Point]:
        """All of `name` that the iterations inside `at` need, however it is computed there."""
        if name == self.members.output:
            return self._output_points(at)
        need = self._need(name, at, {})
        return points_of(need) if need else set()

    def _ends(self, read: Read, reader: str, box: Box) -> list[tuple[int, int]]:
        """First and last element read of every dim of the producer when `reader` is computed on `box`."""
        dims = dict(zip(self.members.facts.stages[reader].dims, box, strict=True))
        region = self.members.facts.stages[read.producer].region
        ends = []
        for span, (lo, extent) in zip(read.spans, region, strict=True):
            if not span.known:
                ends.append((lo, lo + extent - 1))
                continue
            first, last = dims[span.var] if span.var is not None else (0, 0)
            ends.append((floor(span.rate * first + span.lo), floor(span.rate * last + span.hi)))
        return ends

    def _note_reads(self, name: str, points: set[Point]) -> None:
        if points:
            for read in self.reads[name].reads:
                self.read[name, read.producer] |= set(product(*self._ends(read, name, hull(points))))

    def _forget(self, depth: int) -> None:
        """Ends an iteration of the loop at `depth`: buffers stored there go, what was read in it is counted."""
        for name in self.members.names:
            store = self.output_store if name == self.members.output else None
            if store is None:
                store = self.levels[name].store if name in self.levels else -1
            if store != depth:
                continue
            if self.stored[name]:
                box, found = hull(self.stored[name]), self.found[name]
                found.largest_box = max(found.largest_box, size(box))
                found.largest_extents = _larger(found.largest_extents, box)
            self.stored[name] = set()
            for reader, producer in [key for key in self.read if key[0] == name]:
                box = hull(self.read.pop((reader, producer)))
                self.found[name].loads[producer] += size(box)
                self.found[name].runs[producer] += size(box[1:])


def _larger(extents: tuple[int, ...], box: Box) -> tuple[int, ...]:
    """The larger of `extents` and those of `box`, dim by dim."""
    return tuple(max(a, hi - lo + 1) for a, (lo, hi) in zip(extents or (0,) * len(box), box, strict=True))
