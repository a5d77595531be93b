"""Cache traffic of a group: footprints of loop nests, for layer conditions.

All candidate tiles at once, a product of one factor a dim of the output, as in `features.groups.group_counts`.
Footprints are boxes, in bytes of whole lines; neighbours share a line half of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from typing import NamedTuple

from tilesmith.cost_models.amounts import Amount, largest, smallest, summed
from tilesmith.records import record
from tilesmith.scheduler.analysis.access_functions import Span, compose
from tilesmith.scheduler.features.groups.fusion_group import Follows, Members
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT, Counter, by_dim, later_tiles
from tilesmith.scheduler.features.groups.incremental_footprint import ONE, Motion, slides
from tilesmith.scheduler.features.groups.loop_nest import Axis, Line, Nest
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read, crossing
from tilesmith.scheduler.ir.memo import once

POINT, TILE, WHOLE = range(3)
"""Extents of a loop nest in one dim of the output: both loops of the dim are outside of it; the intra-tile one is
inside; both are."""


class _Factor(NamedTuple):
    """The factor of one dim of the output in the bytes of an array, for a nest at POINT, TILE and WHOLE: `total` is
    what all executions of the nest touch, each for itself; `one` what one of them does. None stands for 1."""

    total: tuple[Amount | None, Amount | None, Amount | None]
    one: tuple[Amount | None, Amount | None, Amount | None]


class Array:
    """An array as one stage touches it. `rest` are the bytes of what follows no loop, `kept` those of its buffer. What
    is asked of it at a level is known from then on."""

    def __init__(self, rest: float, factors: tuple[_Factor, ...], kept: Amount | None, nest: NestStates) -> None:
        self.rest, self.factors, self.kept, self.nest = rest, factors, kept, nest
        self.known_moved: dict[int, Amount] = {}
        self.known_one: dict[int, Amount] = {}

    def moved(self, level: int) -> Amount:
        """Bytes that are touched in all, what is touched twice in one run of the loops inside `level` counted once. A
        buffer is the same memory again and again."""
        found = self.known_moved.get(level)
        if found is None:
            found = self.rest
            for factor, state in zip(self.factors, self.nest.states[level], strict=True):
                total = factor.total[state]
                if total is not None:
                    found = found * total
            if self.kept is not None:
                found = smallest(found, self.kept * self.nest.executions[level])
            self.known_moved[level] = found
        return found

    def one(self, level: int) -> Amount:
        """Bytes that one run of the loops inside `level` touches."""
        found = self.known_one.get(level)
        if found is None:
            found = self.rest
            for factor, state in zip(self.factors, self.nest.states[level], strict=True):
                one = factor.one[state]
                if one is not None:
                    found = found * one
            if self.kept is not None:
                found = smallest(found, self.kept)
            self.known_one[level] = found
        return found


class Ways(Array):
    """An array that one stage goes through in `several` ways, as a matrix that is multiplied by itself transposed: as
    much as all of them touch, and no more than the `whole` of it in each run."""

    def __init__(self, several: tuple[Array, ...], whole: float, nest: NestStates) -> None:
        super().__init__(0.0, (), None, nest)
        self.several, self.whole = several, whole

    def moved(self, level: int) -> Amount:
        """Bytes that are touched in all (`Array.moved`)."""
        return smallest(
            summed([array.moved(level) for array in self.several]), self.whole * self.nest.executions[level]
        )

    def one(self, level: int) -> Amount:
        """Bytes that one run of the loops inside `level` touches."""
        return smallest(summed([array.one(level) for array in self.several]), self.whole)


class NestStates:
    """Nests at every level: the extent of the loops inside it in every dim of the output (`states`), and how often they
    are run (`executions`)."""

    def __init__(self, nest: Nest) -> None:
        self.states: list[tuple[int, ...]] = []
        self.executions: list[Amount] = []
        for level in range(len(nest.loops) + 1):
            runs: Amount = 1.0
            self.states.append(tuple(state(nest, dim, level) for dim in nest.axes))
            for axis, at in zip(nest.axes.values(), self.states[-1], strict=True):
                if at != WHOLE:
                    runs = runs * (float(axis.extent) if at == POINT else axis.counts)
            self.executions.append(runs)


def state(nest: Nest, dim: str, level: int) -> int:
    """The extent of the loops inside `level` in a dim of the output."""
    return POINT if nest.intra(dim) >= level else TILE if nest.inter(dim) >= level else WHOLE


class Traffic:
    """Footprints of the arrays of one group. `registers` are stages that have no memory."""

    def __init__(self, counter: Counter, registers: frozenset[str]) -> None:
        self.counter, self.registers = counter, registers
        known = counter.known
        if "states" not in known:
            known["states"] = NestStates(counter.nest)
        self.nest: NestStates = known["states"]
        self.known_touched: dict[int, Amount] = {}
        members = counter.members
        self.output = self.array(members.output, None)
        self.buffers: dict[str, tuple[int, int, Array]] = {}
        """Arrays that the group makes, by name, with the levels from which on they are read and made."""
        self.read: dict[str, list[tuple[int, Array, Amount | None]]] = {}
        """Arrays that several stages may read, by name: the level of each reader, and the most bytes of it in all."""
        self.outside: dict[str, list[tuple[str, Read]]] = {}
        """Reads of each array that the group does not make, by whom."""
        for name, reads in counter.reads.items():
            compute = counter.levels[name].compute
            for read in reads.reads:
                producer = read.producer
                if producer in registers:
                    continue
                if not members.is_local(producer):
                    self.outside.setdefault(producer, []).append((name, read))
                else:
                    if producer not in self.buffers:
                        made_at = counter.levels[producer].compute
                        self.buffers[producer] = (compute, made_at, self.array(producer, None))
                    least, made_at, array = self.buffers[producer]
                    self.buffers[producer] = (min(compute, least), made_at, array)
                most = self._bytes(name, read) if read.rough else None
                self.read.setdefault(producer, []).append((compute, self.array(name, read), most))

    def _bytes(self, name: str, read: Read) -> Amount:
        """Bytes that all points of a stage read of one producer, each for itself."""
        size = self.counter.members.facts.stages[read.producer].bytes_per_point
        return self.counter.stage(name, False, False).points * (read.points * size)

    def touched(self, level: int) -> Amount:
        """Bytes that one iteration of the loop at `level` touches, all stages inside together."""
        found = self.known_touched.get(level)
        if found is None:
            found = self.known_touched[level] = self._touched(level)
        return found

    def _touched(self, level: int) -> Amount:
        made = self.output.one(level)
        others: Amount = 0.0
        for name, arrays in self.read.items():
            computed, made_at, buffer = self.buffers.get(name, (inf, inf, self.output))
            size = buffer.one(level) if made_at <= level and computed <= level else None
            for compute, array, most in arrays:
                if compute <= level:
                    one = array.one(level)
                    if most is not None:  # of a box that data tells a place in no more than that place
                        one = smallest(one, most / self.nest.executions[level])
                    size = one if size is None else largest(size, one)
            if size is not None and made_at <= level:
                made = made + size
            elif size is not None:
                others = others + size
        return made + others

    def array(self, name: str, read: Read | None) -> Array:
        """An array as stage `name` touches it: what it reads, or its own, which it writes."""
        array = name if read is None else read.producer
        key = ("array", array, id(read), self.counter.keys[name], self.counter.made.get(array))
        found: Array | None = self.counter.known.get(key)
        if found is None:
            found = self.counter.known[key] = self._found(name, array, read)
        return found

    def _found(self, name: str, array: str, read: Read | None) -> Array:
        if read is not None and read.several and not self.counter.members.is_local(array):
            those = tuple(crossing((read,)))
            if len(those) > 1:
                producer = self.counter.members.facts.stages[array]
                whole = prod(producer.extent(d) for d in producer.dims) * producer.bytes_per_point
                return Ways(tuple(self._found(name, array, way) for way in those), float(whole), self.nest)
        counter, output = self.counter, self.counter.members.output
        shape = _shape(counter.members, name, array, read)
        store = counter.levels[name].store
        factors = []
        for axis in counter.nest.axes.values():
            dim, lines = axis.dim, shape.lines.get(axis.dim, ())
            sliding = name != output and counter.nest.intra(dim) < store
            if lines:
                motion = counter.motions[name][dim] if read is None else counter.through(name, read, dim)
                if motion is None and read is not None and read.moved_by and len(lines) == 1:
                    motion = slides(lines[0])  # along the longest dim that an index is made of
                pad = shape.pad if dim == shape.along else 0.0
                later = counter.later(name, dim, read)
                factors.append(self._factor(axis, lines, shape.windows[dim], motion, pad, later))
            else:
                point = None if sliding else float(axis.extent)
                factors.append(_Factor((point, axis.counts * 1.0, None), (None, None, None)))
        local = counter.members.is_local(array) and array != output
        return Array(shape.rest, tuple(factors), counter.kept(array) if local else None, self.nest)

    def _factor(
        self,
        axis: Axis,
        lines: tuple[Line, ...],
        window: float,
        motion: Motion | None,
        pad: float,
        later: Motion | None,
    ) -> _Factor:
        """`pad`: elements that a row has more, by whole lines. `later`: what is new in a tile to those before it. An
        iteration touches what is new in it, or read for that: of a window that slides, and of stages that are computed
        for it; all of the window where nobody knows the `motion`. Most stages of a group move in one of few ways, so
        that many arrays share it."""
        at_once = window
        if motion is not None and len(lines) == 1:
            at_once = min(window, motion.last - motion.first + 1)
        key = ("factor", axis.dim, lines, window, motion, pad, later, at_once)
        found: _Factor | None = self.counter.known.get(key)
        if found is None:
            total = self._total(axis, lines, window, motion or ONE, pad, later)
            full, _, whole = self.counter.extents(axis, lines)
            found = self.counter.known[key] = _Factor(total, (at_once + pad, full + pad, whole + pad))
        return found

    def _total(
        self, axis: Axis, lines: tuple[Line, ...], window: float, motion: Motion, pad: float, later: Motion | None
    ) -> tuple[Amount, Amount, Amount]:
        full, last, whole = self.counter.extents(axis, lines)
        new = window * axis.counts + (axis.extent - axis.counts) * motion.points
        if pad:
            new, full, last, whole = new + pad * axis.extent, full + pad, last + pad, whole + pad
        tiles = (axis.counts - 1) * full + last
        if later is not None and len(lines) == 1:
            tiles = full + later_tiles(axis, lines[0], later) + pad * (axis.counts - 1)
        return new, tiles, whole


@record(frozen=True, slots=True)
class _Shape:
    """The shape of an array, which does not depend on loops and tiles: the `lines` of its dims by the dim of the output
    that they follow, and their `windows`; the bytes of the `rest`; along the dim of the output `along`, rows are `pad`
    elements longer, by whole lines."""

    lines: Mapping[str, tuple[Line, ...]]
    windows: Mapping[str, float]
    rest: float
    along: str | None
    pad: float


@once
def _shapes(facts: Facts) -> dict[tuple[Follows, str, int], tuple[Read | None, _Shape]]:
    return {}


def _shape(members: Members, name: str, array: str, read: Read | None) -> _Shape:
    known = _shapes(members.facts)
    key = (members.follows[name], array, id(read))
    found = known.get(key)
    if found is None:
        found = known[key] = (read, _find_shape(members, name, array, read))
    return found[1]


def _find_shape(members: Members, name: str, array: str, read: Read | None) -> _Shape:
    producer, own = members.facts.stages[array], members.follows[name]
    spans: Mapping[str, Span] = own
    if read is not None:
        moved = (s if s.var is None else compose(s, own[s.var]) for s in read.roughly)
        spans = dict(zip(producer.dims, moved, strict=True))
    run = _run(producer)
    lines, free = by_dim(members, spans, producer)
    size, rest, along, pad = producer.bytes_per_point, float(free * producer.bytes_per_point), None, 0.0
    if run is not None:
        before = producer.storage[: producer.storage.index(run)]
        small = size * prod(_together(spans[d]) for d in before)
        if spans[run].known and spans[run].var is not None:
            along, pad = spans[run].var, pad_bytes(small, members.facts.line_bytes) / small
        else:  # whole rows, or one element of them
            row = small * (spans[run].extent(1) if spans[run].known else producer.extent(run))
            rest *= (row + pad_bytes(size, members.facts.line_bytes)) / row
    windows = {dim: float(prod(line.window() for line in here)) for dim, here in lines.items()}
    return _Shape(lines, windows, rest, along, pad)


def _together(span: Span) -> int:
    """Elements of a small dim that are read together."""
    return span.extent(1) if span.known and span.var is None else 1


def _run(stage: StageFacts) -> str | None:
    """The dim along which elements are neighbours in memory: the first that is not a small one."""
    for dim in stage.storage:
        if stage.extent(dim) > SMALL_EXTENT:
            return dim
    return stage.storage[-1] if stage.storage else None


def pad_bytes(size: int, line_bytes: int) -> float:
    """Bytes that a row of elements of `size` has more on average, by whole lines."""
    return float(max(0, line_bytes - size))
