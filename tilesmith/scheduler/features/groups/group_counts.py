"""Counts of a group: points computed, elements and rows loaded, bytes kept, for all candidate tiles at once.

Every dim of a stage moves with at most one dim of the output, so that counts are products of one factor a
dim of the output, each an array over that dim's candidates only. A factor adds up the dim's tiles: the full
ones, and the last one for what it is.

Exact for windows that shift or stride by whole numbers; where a chain samples up and down again, a box may be
counted one element too large in a dim, and rows that alternate in number are counted as their mean.
A stage that slides from tile to tile is counted as such, its producers as if it did not (the method never
makes such levels).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.counts import GroupCounts, LoadCounts, StageCounts
from tilesmith.scheduler.analysis.access_functions import Span, compose
from tilesmith.scheduler.features.groups.fusion_group import Effective, Follows, Members
from tilesmith.scheduler.features.groups.incremental_footprint import ONE, Motion, hulled, slides
from tilesmith.scheduler.features.groups.loop_nest import Axis, Line, Nest
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.ir.memo import once

SMALL_EXTENT = 16
"""Positions of a small dim, at most; elements that are so far apart are picked from whole vectors in the C, or put into
them."""


class Levels(NamedTuple):
    """Compute level and store level of a stage: positions in the loops of the group, 0 the innermost. In `registers`
    its window along the row rotates, and no memory holds it."""

    compute: int
    store: int
    registers: bool = False


def in_registers(levels: Mapping[str, Levels]) -> frozenset[str]:
    """The stages whose windows rotate in registers."""
    return frozenset(name for name, at in levels.items() if at.registers)


class Counter:
    """Counts for one group and one nest; see `group_counts`. What follows for a stage from its levels, its reads, its
    motion and the dims that it follows alone is `known` for all shapes and groups that share the nest; `keys` numbers
    these of every stage."""

    def __init__(self, members: Members, reads: Mapping[str, Effective], nest: Nest, levels: Mapping[str, Levels]):
        self.members, self.reads, self.nest = members, reads, nest
        self.levels = {**levels, members.output: Levels(0, nest.first_inter)}
        self.motions = motions(members, reads, nest, levels)
        self.known: dict[Hashable, Any] = members.kept(nest)
        self.made: dict[str, int] = {}
        """Numbers of the buffers, by stage of the group: of all that a buffer follows from."""
        for name, at in self.levels.items():
            own = ("made", name, at, members.follows[name], name in members.unfolded)
            self.made[name] = self.known.setdefault(own, len(self.known))
        self.kept_along = {d: tuple(n for n, at in levels.items() if at.store > nest.inter(d)) for d in nest.axes}
        """The stages that are kept from tile to tile along each dim of the output."""
        self.keys: dict[str, int] = {}
        for name, found in reads.items():
            later = (self.later(name, d) for d, kept in self.kept_along.items() if kept)
            key = (name, found, self.made[name], *self.motions[name].values(), *later)
            self.keys[name] = self.known.setdefault(key, len(self.known))

    def group(self, threads: int, local_loads: bool, whole: bool = True) -> GroupCounts:
        """The counts of all stages; see `group_counts`. If not as a `whole`, then without loads, and without the stages
        that are inline."""
        members, axes = self.members, self.nest.axes.values()
        found = {name: self.stage(name, local_loads, whole) for name in self.reads}
        names = members.names if whole else tuple(found)
        inlined = self._inlined_points(found) if whole else {}
        return GroupCounts(
            members.output,
            threads,
            tuple((a.dim, a.sizes * 1.0) for a in axes),
            tuple((a.dim, a.counts * 1.0) for a in axes),
            tuple(found[n] if n in found else self._inlined(n, inlined.get(n, 0.0)) for n in names),
        )

    def stage(self, name: str, local_loads: bool, with_loads: bool = True) -> StageCounts:
        key = ("stage", self.keys[name])
        found: StageCounts | None = self.known.get(key)
        if found is None:
            found = self.known[key] = self._stage(name)
        if not with_loads:
            return found
        reads = [r for r in self.reads[name].reads if local_loads or not self.members.is_local(r.producer)]
        return found._replace(loads=tuple([self._load(name, read) for read in reads]))

    def _stage(self, name: str) -> StageCounts:
        facts = self.members.facts.stages[name]
        is_output = name == self.members.output
        points = float(facts.root_points) if is_output else self._computed(name)
        folded, kept, ring = (False, 0.0, 0.0) if is_output else self.buffer(name)
        return StageCounts(
            name, False, points, facts.root_points, facts.operations, (), facts.bytes_per_point, folded, kept, ring
        )

    def _inlined_points(self, found: Mapping[str, StageCounts]) -> dict[str, Amount]:
        """Evaluations of the inlined stages: one or more for every point of their readers."""
        points: dict[str, Amount] = {}
        for reader, reads in self.reads.items():
            for name, times in reads.inlined.items():
                points[name] = points.get(name, 0.0) + found[reader].points * times
        return points

    def _inlined(self, name: str, points: Amount) -> StageCounts:
        facts = self.members.facts.stages[name]
        size = facts.bytes_per_point
        return StageCounts(name, True, points, facts.root_points, facts.operations, (), size, False, 0.0, 0.0)

    def _computed(self, name: str) -> Amount:
        """Points of a stage in all: each once an iteration of its store level (TACO 2019, Eq. 3)."""
        dims, free = self.by_dim(name)
        points: Amount = float(free)
        for axis in self.nest.axes.values():
            motion, later = self.motions[name][axis.dim], self.later(name, axis.dim)
            points = points * self._factor(name, axis, dims.get(axis.dim, ()), motion, later)
        return points

    def _factor(self, name: str, axis: Axis, lines: tuple[Line, ...], motion: Motion, later: Motion | None) -> Amount:
        """The factor of one dim of the output: extents along it, added up over the iterations of its loops that are not
        inside the store level of `name`. `motion` is what is new in an iteration, `later` in a later tile."""
        store = self.levels[name].store
        fixed, tiled = self.nest.intra(axis.dim) >= store, self.nest.inter(axis.dim) >= store
        if not lines:
            return float(axis.extent) if fixed else (axis.counts * 1.0 if tiled else 1.0)
        if not tiled:
            return self.extents(axis, lines)[2]
        if fixed:
            most = lines[0].most if len(lines) == 1 else prod(n.most for n in lines)
            first = float(_product(lines, 1))
            return first * axis.counts + (axis.extent - axis.counts) * min(motion.points, most)
        full, last, _ = self.extents(axis, lines)
        if later is not None and len(lines) == 1:
            return full + later_tiles(axis, lines[0], later)
        return (axis.counts - 1.0) * full + last

    def later(self, name: str, dim: str, read: Read | None = None) -> Motion | None:
        """The part of a stage, or of its reads, that the first iteration of a tile finds new after the tiles before it
        along `dim`; None where nothing is kept from tile to tile."""
        kept = self.kept_along[dim]
        if not kept:
            return None
        motion = self._later(name, dim, kept)
        return motion if read is None else self.members.through(name, read, motion, dim)

    def _later(self, name: str, dim: str, kept: Collection[str]) -> Motion:
        span = self.members.follows[name].along.get(dim)
        if name == self.members.output or span is None:
            return ONE
        if name in kept:
            return slides(self.members.line(span))
        readers = [(n, r) for n, found in self.reads.items() for r in found.reads if r.producer == name]
        return hulled(self.later(n, dim, r) for n, r in readers) or ONE

    def by_dim(self, name: str) -> tuple[dict[str, tuple[Line, ...]], int]:
        """The dims of a stage of the group by the output dim that they follow; see `by_dim`."""
        members, own = self.members, self.members.follows[name]
        known = _dims(members.facts)
        found = known.get((name, own))
        if found is None:
            found = known[name, own] = by_dim(members, own, members.facts.stages[name])
        return found

    def extents(self, axis: Axis, lines: Sequence[Line]) -> tuple[Amount, Amount, float]:
        """Elements that a tile, the last tile and all of a dim of the output touch, in all dims that follow it."""
        full, last, whole = self._extents(axis, lines[0])
        for row in lines[1:]:
            more = self._extents(axis, row)
            full, last, whole = full * more[0], last * more[1], whole * more[2]
        return full, last, whole

    def _extents(self, axis: Axis, row: Line) -> tuple[Amount, Amount, float]:
        key = ("extents", axis.dim, *row)
        found: tuple[Amount, Amount, float] | None = self.known.get(key)
        if found is None:
            whole = float(row.extent(axis.extent))
            found = self.known[key] = (row.extent(axis.sizes) * 1.0, row.extent(axis.last) * 1.0, whole)
        return found

    def through(self, reader: str, read: Read, dim: str) -> Motion | None:
        """The motion of a stage's reads with the intra-tile loop of `dim`."""
        return self.members.through(reader, read, self.motions[reader][dim], dim)

    def _load(self, name: str, read: Read) -> LoadCounts:
        """Loads of `name` from one producer: its footprint, once an iteration of the store level of `name`."""
        external = not self.members.is_local(read.producer)
        key = ("load", self.keys[name], id(read), external)
        found: LoadCounts | None = self.known.get(key)
        if found is None:
            found = self.known[key] = self._find_load(name, read, external)
        return found

    def _find_load(self, name: str, read: Read, external: bool) -> LoadCounts:
        producer = self.members.facts.stages[read.producer]
        own = self.members.follows[name]
        moved = tuple(s if s.var is None else compose(s, own[s.var]) for s in read.spans)
        spans = dict(zip(producer.dims, moved, strict=True))
        run = _run_dims(producer)
        streamed = self._streams(name, read, producer, run)
        dims, free = by_dim(self.members, spans, producer)
        rows = {d: s for d, s in spans.items() if d not in run}
        row_dims, row_free = by_dim(self.members, rows, producer)
        points: Amount = float(free)
        runs: Amount = float(row_free)
        for axis in self.nest.axes.values():
            along = dims.get(axis.dim, ())
            motion = self.through(name, read, axis.dim) or ONE
            later = self.later(name, axis.dim, read)
            factor = self._factor(name, axis, along, motion, later)
            points = points * factor
            across = row_dims.get(axis.dim, ())
            runs = runs * (factor if across == along else self._factor(name, axis, across, motion, later))
        return LoadCounts(read.producer, external, streamed, points, runs, producer.bytes_per_point)

    def _streams(self, name: str, read: Read, producer: StageFacts, run: frozenset[str]) -> bool:
        """True if the inner loop of `name` walks the rows of the producer: so it does where the box that is computed
        at once has an extent in the dim that the rows follow."""
        level = self.levels[name].compute
        own = self.members.follows[name]
        walked = False
        for dim, span in zip(producer.dims, read.spans, strict=True):
            if dim not in run or producer.extent(dim) <= SMALL_EXTENT:
                continue
            followed = None if span.var is None else own[span.var].var
            if followed is None:
                walked = True
            elif name == self.members.output:
                walked = walked or not any(
                    self.nest.axes[self.nest.dim(n)].extent > SMALL_EXTENT for n in range(self.nest.intra(followed))
                )
            else:
                walked = walked or self.nest.intra(followed) < level
        return walked

    def _extent(self, name: str, axis: Axis, lines: tuple[Line, ...], folded: bool) -> Amount:
        """Extents along one dim of the output of what is kept for one iteration of the store level of `name`; `folded`:
        what one iteration of the loop that slides needs, along that loop."""
        if not lines:
            return 1.0
        levels = self.levels[name]
        intra, inter = self.nest.intra(axis.dim), self.nest.inter(axis.dim)
        if intra >= levels.store or (folded and intra == self._sliding(name)):
            return float(_windows(lines))
        if inter >= levels.store or (folded and inter == self._sliding(name)):
            return self.extents(axis, lines)[0]
        return self.extents(axis, lines)[2]

    def apart(self, name: str, dim: str) -> Amount:
        """Elements from one place to the next along a dim of a stage, as it lies in memory: of the group's own buffers,
        as far as they are kept."""
        facts = self.members.facts.stages[name]
        if not self.members.is_local(name):
            return float(facts.apart[dim])
        found: Amount = 1.0
        folded = self.buffer(name)[0]
        for before in facts.storage[: facts.storage.index(dim)]:
            dims, free = by_dim(self.members, {before: self.members.follows[name][before]}, facts)
            for along, lines in dims.items():
                found = found * self._extent(name, self.nest.axes[along], lines, folded)
            found = found * float(free)
        return found

    def _sliding(self, name: str) -> int:
        """Position of the loop that slides, and that a ring folds along: the outermost one inside the store level."""
        return self.levels[name].store - 1

    def kept(self, name: str) -> Amount:
        """Bytes of the buffer of a stage of the group as it is allocated."""
        folded, whole, ring = self.buffer(name)
        return ring if folded else whole

    def buffer(self, name: str) -> tuple[bool, Amount, Amount]:
        """Storage of a stage's buffer: true if it folds, its bytes unfolded (TACO 2019, Eq. 1) and folded (Eq. 9)."""
        key = ("buffer", self.made[name])
        found: tuple[bool, Amount, Amount] | None = self.known.get(key)
        if found is None:
            found = self.known[key] = self._buffer(name)
        return found

    def _buffer(self, name: str) -> tuple[bool, Amount, Amount]:
        facts = self.members.facts.stages[name]
        levels = self.levels[name]
        dims, free = self.by_dim(name)
        kept: Amount = float(free * facts.bytes_per_point)
        ring: Amount = kept
        for axis in self.nest.axes.values():
            lines = dims.get(axis.dim, ())
            kept = kept * self._extent(name, axis, lines, False)
            ring = ring * self._extent(name, axis, lines, True)
        sliding = self._sliding(name)
        slides = levels.compute <= sliding < self.nest.first_inter or levels.compute == sliding < len(self.nest.loops)
        folds = slides and bool(dims.get(self.nest.dim(sliding)))
        if levels.registers:
            return False, 0.0, 0.0
        if name in self.members.unfolded:
            return False, kept, kept
        return folds, kept, ring


@once
def _dims(facts: Facts) -> dict[tuple[str, Follows], tuple[dict[str, tuple[Line, ...]], int]]:
    return {}


@once
def _known_motions(members: Members) -> dict[Hashable, tuple[object, object, dict[str, dict[str, Motion]]]]:
    return {}


def motions(
    members: Members, reads: Mapping[str, Effective], nest: Nest, levels: Mapping[str, Levels]
) -> dict[str, dict[str, Motion]]:
    """The motion of every stage of `levels`, and of the output, with the intra-tile loop of each dim of the output.
    Tile sizes change nothing of it."""
    known = _known_motions(members)
    key = (id(reads), id(levels), nest.loops)
    if key not in known:
        known[key] = (reads, levels, _find_motions(members, reads, nest, levels))
    return known[key][2]


def _find_motions(
    members: Members, reads: Mapping[str, Effective], nest: Nest, levels: Mapping[str, Levels]
) -> dict[str, dict[str, Motion]]:
    readers: dict[str, list[tuple[str, Read]]] = {}
    for name, effective in reads.items():
        for read in effective.reads:
            if members.is_local(read.producer):
                readers.setdefault(read.producer, []).append((name, read))
    found = {members.output: dict.fromkeys(nest.axes, ONE)}
    for name in reversed(members.names):
        if name in levels:
            own = found[name] = {}
            for dim in nest.axes:
                span = members.follows[name].along.get(dim)
                if span is None:
                    own[dim] = ONE
                elif nest.intra(dim) < levels[name].store:
                    own[dim] = slides(members.line(span))
                else:
                    each = (
                        members.through(reader, read, found[reader][dim], dim) for reader, read in readers.get(name, ())
                    )
                    own[dim] = hulled(each) or ONE
    return found


def group_counts(
    members: Members,
    reads: Mapping[str, Effective],
    nest: Nest,
    levels: Mapping[str, Levels],
    threads: int,
    local_loads: bool = True,
) -> GroupCounts:
    """The counts of a group. `levels` has every member that is computed for itself but the output; the others
    are inlined (`reads` says into what). Without `local_loads` only loads from outside the group are counted."""
    return Counter(members, reads, nest, levels).group(threads, local_loads)


def by_dim(members: Members, spans: Mapping[str, Span], stage: StageFacts) -> tuple[dict[str, tuple[Line, ...]], int]:
    """The spans, in integers, by the output dim that they follow, and the elements of the dims that follow none."""
    moving: dict[str, tuple[Line, ...]] = {}
    free = 1
    for dim, span in spans.items():
        if span.var is not None and span.known:
            moving[span.var] = (*moving.get(span.var, ()), members.line(span, stage.extent(dim)))
        elif span.known:
            free *= span.extent(1)
        else:
            free *= stage.extent(dim)
    return moving, free


def later_tiles(axis: Axis, line: Line, motion: Motion) -> Amount:
    """Elements along one dim that are new in the tiles after the first, of which `motion` has those of an iteration."""
    return (axis.counts - 1.0) * (motion.points - line.rate) + line.rate * (axis.extent - axis.sizes)


def _run_dims(stage: StageFacts) -> frozenset[str]:
    """The dims that make a contiguous row: the fastest in memory, together with the next where it is a small one
    that is read whole (interleaved channels)."""
    run: list[str] = []
    for dim in stage.storage:
        run.append(dim)
        if stage.extent(dim) > SMALL_EXTENT:
            break
    return frozenset(run)


def _product(lines: Sequence[Line], points: int) -> int:
    size = 1
    for row in lines:
        size *= int(row.extent(points))
    return size


def _windows(lines: Sequence[Line]) -> int:
    size = 1
    for row in lines:
        size *= row.window()
    return size
