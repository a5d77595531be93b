"""Layer conditions: what each stage of a group loads and stores, and which caches have it already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tilesmith.cost_models.amounts import Amount, largest, smallest, summed
from tilesmith.scheduler.analysis.access_functions import compose
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT
from tilesmith.scheduler.features.groups.transposed_reads import block_rows, looped_dims, rows_across
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read, crossing
from tilesmith.scheduler.features.traffic.cache_traffic import POINT, TILE, WHOLE, Array, Traffic, pad_bytes, state
from tilesmith.scheduler.ir.memo import once


class Layers:
    """Layer conditions of one group. `row` is the level outside of the row of the output, `one_loop` the stages that
    are computed in that row, vector by vector, if there are several."""

    def __init__(self, traffic: Traffic, row: int, one_loop: frozenset[str]) -> None:
        self.counter, self.traffic, self.registers = traffic.counter, traffic, traffic.registers
        self.row, self.one_loop = row, one_loop
        self.blocks: dict[tuple[str, int], tuple[Read, int]] = {}
        """By stage and read, which is kept: another could have its `id` after it."""
        self.parts = self._parts()
        self.again = self._again()

    def block(self, name: str, read: Read, run: Run) -> int:
        """The points of a stage that blocks of a read across rows are for, beside its vectors; 1 where there are none,
        as in one loop with others."""
        if run.lanes == 1 or run.registers or name in self.one_loop:
            return 1
        found = self.blocks.get((name, id(read)))
        if found is None:
            found = self.blocks[name, id(read)] = (read, self._block(name, read, run))
        return found[1]

    def _block(self, name: str, read: Read, run: Run) -> int:
        stages = self.counter.members.facts.stages
        reader, producer = stages[name], stages[read.producer]
        near = rows_across(reader, producer, read, run.row)
        return block_rows(reader, producer, read, near, looped_dims(self.counter, name, self.row)) if near else 1

    def of_reads(self, name: str) -> Iterator[tuple[Read, float]]:
        """The reads of a stage, and the part of them that it loads itself."""
        reads = self.counter.reads[name].reads
        return zip(reads, self.parts.get(name) or (1.0,) * len(reads), strict=True)

    def _parts(self) -> dict[str, tuple[float, ...]]:
        """Parts of the reads of the stages in the row of the output that they load themselves, where that is not all:
        what several of them read in one step is loaded once. What data says each looks up at places of its own."""
        points: dict[str, list[float]] = {}
        for name in sorted(self.one_loop):
            for read in self.counter.reads[name].reads:
                if read.producer not in self.registers and not read.looked_up:
                    points.setdefault(read.producer, []).append(read.points)
        shares = {producer: max(found) / sum(found) for producer, found in points.items() if len(found) > 1}
        if not shares:
            return {}
        return {
            name: tuple(1.0 if r.looked_up else shares.get(r.producer, 1.0) for r in self.counter.reads[name].reads)
            for name in self.one_loop
        }

    def _again(self) -> dict[str, tuple[Amount, Amount]]:
        """Bytes that every stage reads which another has read before, and what the group touches in between."""
        found = self._rows_again() if self.row < self.counter.nest.first_inter else {}
        for reads in self.traffic.outside.values():
            far = [self.counter.levels[name].compute > self.row for name, _ in reads] if len(reads) > 1 else ()
            if any(far):
                self._boxes_again(reads, found)
        return found

    def _boxes_again(self, reads: Sequence[tuple[str, Read]], found: dict[str, tuple[Amount, Amount]]) -> None:
        """Bytes that the `reads` of one array find again of boxes, added to what is `found`: of those that another
        stage, computed outside of the loop around the row of the output, has gone through as a whole before. Nothing
        is left of a box in a cache that is smaller. Where the reader goes through more beside it, half of that lies in
        between on average."""
        traffic, levels = self.traffic, self.counter.levels
        order = {name: n for n, name in enumerate(self.counter.members.names) if name in levels}
        those = sorted((r for r in reads if not (r[1].rough or r[1].looked_up)), key=lambda r: order[r[0]])
        for n, (name, read) in enumerate(those):
            if name in found:
                continue
            best: Array | None = None
            for first, its in those[:n]:
                level = levels[first].compute
                if first == name or level <= self.row or level < levels[name].compute:
                    continue
                other = traffic.array(first, its)
                if (best is None or _all(other) >= _all(best)) and self._same_place(name, read, first, its, level):
                    best = other
                    others = [m for m in order if order[first] < order[m] < order[name] and levels[m].compute == level]
                    mine = traffic.touched(level) if levels[name].compute < level else self._goes_through(name, level)
                    box = other.one(level)
                    between = summed([box, *(self._goes_through(m, level) for m in others)])
                    between = between + largest(mine - box, 0.0) * 0.5
                    size = smallest(traffic.array(name, read).moved(level), other.moved(level))
            if best is not None:
                found[name] = size, between

    def _same_place(self, name: str, read: Read, first: str, its: Read, level: int) -> bool:
        """True if two stages read an array at places that move alike with the loops from `level` on."""
        moving = [self._moving(n, r, level) for n, r in ((name, read), (first, its))]
        return moving[0] == moving[1]

    def _moving(self, name: str, read: Read, level: int) -> list[object]:
        """Dims of the output by which each dim of what is read moves with the loops from `level` on, and how fast."""
        follows, nest, found = self.counter.members.follows[name], self.counter.nest, list[object]()
        for span in read.roughly:
            moved = span if span.var is None else compose(span, follows[span.var])
            at = WHOLE if moved.var is None or not moved.known else state(nest, moved.var, level)
            outside = at == POINT or (at == TILE and nest.axes[moved.var or ""].is_cut)
            found.append((moved.var, moved.rate) if outside else None)
        return found

    def _goes_through(self, name: str, level: int) -> Amount:
        """Bytes of other groups and inputs that a stage reads in an iteration of the loop at `level`."""
        arrays: dict[str, Amount] = {}
        for read in self.counter.reads[name].reads:
            if read.producer in self.traffic.outside:
                one = self.traffic.array(name, read).one(level)
                arrays[read.producer] = largest(arrays.get(read.producer, 0.0), one)
        return summed(list(arrays.values()))

    def _rows_again(self) -> dict[str, tuple[Amount, Amount]]:
        """Bytes that every stage reads of rows which another has read before, as the loop around the row of the output
        runs, and what the group touches in between. Stages of one loop share what they load already."""
        counter, traffic = self.counter, self.traffic
        found: dict[str, tuple[Amount, Amount]] = {}
        along, everything = counter.nest.dim(self.row), len(counter.nest.loops)
        new: Amount | None = None
        for reads in traffic.outside.values():
            rows = [
                (motion.last, motion.points, name, read)
                for name, read in (reads if len(reads) > 1 else ())
                if counter.levels[name].compute <= self.row and not (read.rough or read.looked_up)
                if (motion := counter.through(name, read, along)) is not None
            ]
            if not rows:
                continue
            foremost, _, first, its = max(rows, key=lambda row: row[0])
            for last, points, name, read in rows:
                if name == first or self.one_loop.issuperset((name, first)):
                    continue
                own, other = traffic.array(name, read), traffic.array(first, its)
                size = smallest(own.moved(everything), other.moved(everything))
                new = self._row_bytes() if new is None else new
                between = traffic.touched(self.row) + new * ((foremost - last) / points)
                others, longest = found.get(name, (0.0, 0.0))
                found[name] = others + size, largest(longest, between)
        return found

    def _row_bytes(self) -> Amount:
        """Bytes of what the group reads from outside and of its output that are new in an iteration of the loop around
        the row of the output."""
        traffic, everything = self.traffic, len(self.counter.nest.loops)
        total = traffic.output.moved(everything)
        for reads in traffic.outside.values():
            total = total + reduce(largest, (traffic.array(*r).moved(everything) for r in reads))
        return total / traffic.nest.executions[self.row]

    def states(
        self, name: str, run: Run, level: int, points: Amount, rows: Amount
    ) -> tuple[tuple[Amount, ...], tuple[Amount, ...], tuple[Amount, ...]]:
        """States of a stage, of which `level` is the first of the group's loops: the working set of the stage's own
        rows, if they are a state; and the bytes loaded and the bytes stored in every state."""
        counter, nest = self.counter, self.counter.nest
        from_memory = [
            (r, part) for r, part in self.of_reads(name) if r.producer not in self.registers and not r.looked_up
        ]
        reads = [r for r, _ in from_memory]
        facts, apart = counter.members.facts.stages[name], counter.levels[name].compute >= self.row
        own = self._own_row(name, run, reads, points, rows) if apart and not facts.updates else None
        arrays = [(self.traffic.array(name, r), part) for r, part in from_memory]
        output = self.traffic.array(name, None)
        stages, line = counter.members.facts.stages, counter.members.facts.line_bytes
        everything: Amount | None = None
        if facts.updates or any(r.rough or not all(s.known for s in r.spans) for r in crossing(reads)):
            # of a box that data tells a place in only that place is read, and an update reads what it runs through once
            everything = points * sum(r.points * stages[r.producer].bytes_per_point for r in reads)
        loaded: list[Amount] = []
        stored: list[Amount] = []
        if own is not None:
            steps = sum(
                r.points * _step_bytes(stages[r.producer], r, run.row, line) / self.block(name, r, run) for r in reads
            )
            loaded.append(smallest(own[1], points * steps))
            stored.append(own[2])
        for at in range(level, len(nest.loops) + 1):
            moved = _parts_moved(arrays, at)
            if at == level and own is None and run.row is not None and not facts.updates:
                # of a box of rows only those are read for a row that it reads somewhere
                moved = smallest(moved, self._own_row(name, run, reads, points, rows)[1])
            loaded.append(moved if everything is None else smallest(moved, everything))
            stored.append(0.0 if run.registers else output.moved(at))
        least_loaded, least_stored = accumulate(loaded, smallest), accumulate(stored, smallest)
        return () if own is None else own[:1], tuple(least_loaded), tuple(least_stored)

    def places(self, name: str, points: Amount, level: int) -> tuple[tuple[Amount, ...], Amount]:
        """Bytes loaded at places that data says, for every state of the group from `level` on, and for the one in which
        none of them stay and each place is a line; and the bytes that a point may look up."""
        found = [(r, part) for r, part in self.of_reads(name) if r.looked_up and r.producer not in self.registers]
        if not found:
            return (), 0.0
        lines = points * (sum(r.points * r.apart * part for r, part in found) * self.counter.members.facts.line_bytes)
        arrays = [(self.traffic.array(name, r), part) for r, part in found]
        states = range(level, len(self.counter.nest.loops) + 1)
        moved = (_parts_moved(arrays, at) for at in states)
        table = sum((array.one(0) for array, _ in arrays), 0.0)
        return tuple(accumulate((lines, *moved), smallest)), table

    def _own_row(
        self, name: str, run: Run, reads: list[Read], points: Amount, rows: Amount
    ) -> tuple[Amount, Amount, Amount]:
        """The state in which no more than a row stays."""
        facts = self.counter.members.facts
        stage = facts.stages[name]
        length = largest(1.0, points / largest(rows, 1.0))
        out = length * bytes_apart(stage, run.row, facts.line_bytes)
        loaded: Amount = 0.0
        new: Amount = 0.0
        for of in (part for read in reads for part in _parts_of_row(facts, read, run.row)):
            elements: Amount = 1.0
            for rate, width in of.along:
                elements = elements * (rate * length + width)
            if of.apart:
                elements = length
            of_read = of.windows * (elements * of.size + of.pad)
            loaded = loaded + of_read
            new = new + of_read / self.block(name, of.read, run)
        return loaded + out, rows * new, rows * out


class _PartOfRow(NamedTuple):
    """Elements that a row of a stage reads, but for its length: in so many `windows` rows of a producer, of that
    `size`, following the row at a rate, as many more as a window has, or each at places of its own, `apart`; and `pad`
    bytes that a row takes more, by whole lines."""

    read: Read
    windows: float
    along: tuple[tuple[float, float], ...]
    apart: bool
    size: int
    pad: float


@once
def _known_parts(facts: Facts) -> dict[tuple[int, str | None], tuple[Read, list[_PartOfRow]]]:
    return {}


def _parts_of_row(facts: Facts, read: Read, row: str | None) -> list[_PartOfRow]:
    """Parts of a row of a stage that one of its reads reads; kept by identity, as reads take long to hash."""
    known, key = _known_parts(facts), (id(read), row)
    found = known.get(key)
    if found is None:
        found = known[key] = (read, [_part_of_row(facts, way, row) for way in crossing((read,))])
    return found[1]


def _part_of_row(facts: Facts, read: Read, row: str | None) -> _PartOfRow:
    producer, windows, along = facts.stages[read.producer], 1.0, []
    for dim, span in zip(producer.dims, read.roughly, strict=True):
        if not span.known:
            windows *= min(read.points, producer.extent(dim))
        elif span.var == row and span.var is not None:
            along.append((abs(float(span.rate)), float(span.width)))
        else:
            windows *= span.extent(1)
    computed = read.computed and not any(s.known and s.var == row for s in read.roughly)
    apart = computed or read.is_unknown_along(row)  # each point at places of its own
    size = _step_bytes(producer, read, row, facts.line_bytes)
    windows = min(windows, max(1.0, read.points))
    return _PartOfRow(read, windows, tuple(along), apart, size, pad_bytes(size, facts.line_bytes))


def _all(array: Array) -> float:
    """Bytes of an array that are touched at all."""
    return float(np.max(array.moved(len(array.nest.states) - 1)))


def _parts_moved(arrays: Sequence[tuple[Array, float]], level: int) -> Amount:
    """Bytes of these parts of arrays that are touched in all, counted at a level (see `Array.moved`)."""
    return summed([array.moved(level) if part == 1.0 else array.moved(level) * part for array, part in arrays])


def _step_bytes(producer: StageFacts, read: Read, row: str | None, line_bytes: int) -> int:
    """Bytes of a producer that a step along the row of its reader touches, of one of those that it reads there."""
    if row is not None:
        for dim, span in zip(producer.dims, read.roughly, strict=True):
            if span.var == row and span.known:
                return bytes_apart(producer, dim, line_bytes)
    return producer.bytes_per_point


def bytes_apart(stage: StageFacts, dim: str | None, line_bytes: int) -> int:
    """Bytes that a step along a dim of a stage touches: an element, or a line of its own where rows lie between."""
    size = stage.bytes_per_point
    near = dim is None or stage.apart.get(dim, 1) <= SMALL_EXTENT
    return size if near else max(size, line_bytes)
