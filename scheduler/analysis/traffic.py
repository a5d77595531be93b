"""What moves through the caches as the stages of a group run: footprints of loop nests, for layer conditions.

All candidate tiles at once, a product of one factor a dim of the output, as in `analysis.counts`. Footprints are boxes,
in bytes of whole lines; neighbours share a line half of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from cost_models.amounts import Amount, largest, smallest
from scheduler.analysis.counts import SMALL_EXTENT, Counter, by_dim
from scheduler.analysis.facts import Read, StageFacts
from scheduler.analysis.members import Members
from scheduler.analysis.motion import ONE, Motion
from scheduler.analysis.nest import Axis, Line
from scheduler.analysis.spans import Span, compose

LINE = 64
"""Bytes of a line of memory: the same on all platforms of today."""

POINT, TILE, WHOLE = range(3)
"""How far out a loop nest is, for one dim of the output: both of its loops are outside; the intra-tile one is inside;
both are."""


@dataclass(frozen=True, slots=True)
class _Factor:
    """What one dim of the output contributes to the bytes of an array, for a nest at POINT, TILE and WHOLE: `total` is
    what all executions of the nest touch, each for itself; `one` what one of them does. None stands for 1."""

    total: tuple[Amount | None, Amount | None, Amount | None]
    one: tuple[Amount | None, Amount | None, Amount | None]


@dataclass(frozen=True, slots=True)
class Array:
    """An array as one stage touches it. `rest` are the bytes of what follows no loop, `kept` those of its buffer."""

    rest: float
    factors: tuple[_Factor, ...]
    kept: Amount | None

    def moved(self, states: tuple[int, ...], executions: Amount) -> Amount:
        """Bytes that are touched in all, what is touched twice in one execution of a nest at `states` counted once. A
        buffer is the same memory again and again."""
        size: Amount = self.rest
        for factor, state in zip(self.factors, states, strict=True):
            total = factor.total[state]
            if total is not None:
                size = size * total
        return size if self.kept is None else smallest(size, self.kept * executions)

    def one(self, states: tuple[int, ...]) -> Amount:
        """Bytes that one execution touches."""
        size: Amount = self.rest
        for factor, state in zip(self.factors, states, strict=True):
            one = factor.one[state]
            if one is not None:
                size = size * one
        return size


class Traffic:
    """Footprints of the arrays of one group. `registers` are stages that have no memory."""

    def __init__(self, counter: Counter, registers: frozenset[str]) -> None:
        self.counter, self.registers = counter, registers
        self.axes = tuple(counter.nest.axes.values())
        self.arrays: dict[tuple[str, str], Array] = {}
        self.everything: list[tuple[int, str, Array]] = []
        self.known_touched: dict[int, Amount] = {}
        self.known_states: dict[int, tuple[int, ...]] = {}
        self.known_executions: dict[int, Amount] = {}

    def states(self, level: int) -> tuple[int, ...]:
        """How far out the loops inside `level` are, for every dim of the output."""
        found = self.known_states.get(level)
        if found is None:
            nest = self.counter.nest
            found = tuple(
                POINT if nest.intra(a.dim) >= level else TILE if nest.inter(a.dim) >= level else WHOLE
                for a in self.axes
            )
            self.known_states[level] = found
        return found

    def state(self, dim: str, level: int) -> int:
        """The same of one dim."""
        nest = self.counter.nest
        return POINT if nest.intra(dim) >= level else TILE if nest.inter(dim) >= level else WHOLE

    def executions(self, level: int) -> Amount:
        """How often the loops inside `level` are run."""
        found = self.known_executions.get(level)
        if found is None:
            found = 1.0
            for axis, state in zip(self.axes, self.states(level), strict=True):
                if state != WHOLE:
                    found = found * (float(axis.extent) if state == POINT else axis.counts)
            self.known_executions[level] = found
        return found

    def touched(self, level: int) -> Amount:
        """Bytes that one iteration of the loop at `level` touches, all stages inside together."""
        found = self.known_touched.get(level)
        if found is None:
            found = self.known_touched[level] = self._touched(level)
        return found

    def _touched(self, level: int) -> Amount:
        states, total = self.states(level), self._all()[0][2].one(self.states(level))
        outside: dict[str, Amount] = {}
        seen: set[str] = set()
        for compute, name, array in self._all()[1:]:
            if compute > level or name in seen:
                continue
            size = array.one(states)
            if array.kept is None:  # several stages may read it
                outside[name] = largest(outside[name], size) if name in outside else size
            else:
                seen.add(name)
                total = total + smallest(size, array.kept)
        return total + sum(outside.values(), 0.0)

    def _all(self) -> list[tuple[int, str, Array]]:
        """Every array with the level that its reader is computed at, and its name; the output first."""
        if not self.everything:
            counter, members = self.counter, self.counter.members
            found = [(0, members.output, self.array(members.output, members.output, None))]
            for name, reads in counter.reads.items():
                compute = counter.levels[name].compute
                for read in reads.reads:
                    if not members.is_local(read.producer):
                        found.append((compute, read.producer, self.array(name, read.producer, read)))
                    elif read.producer not in self.registers:
                        found.append((compute, read.producer, self.array(read.producer, read.producer, None)))
            self.everything = found
        return self.everything

    def array(self, name: str, array: str, read: Read | None) -> Array:
        """An array as stage `name` touches it: reads, or writes where `read` is None."""
        found = self.arrays.get((name, array))
        if found is None:
            found = self.arrays[name, array] = self._found(name, array, read)
        return found

    def _found(self, name: str, array: str, read: Read | None) -> Array:
        counter, output = self.counter, self.counter.members.output
        shape = _shape(counter.members, name, array, read)
        store = counter.levels[name].store
        factors = []
        for axis in self.axes:
            dim, lines = axis.dim, shape.lines.get(axis.dim, ())
            sliding = name != output and counter.nest.intra(dim) < store
            motion = ONE
            if lines and read is not None:
                motion = counter.through(name, read, dim) or ONE
            elif lines:
                motion = counter.motion(name, dim)
            if lines:
                pad = shape.pad if dim == shape.along else 0.0
                factors.append(self._factor(axis, lines, shape.windows[dim], motion, pad))
            else:
                point = None if sliding else float(axis.extent)
                factors.append(_Factor((point, axis.counts * 1.0, None), (None, None, None)))
        local = counter.members.is_local(array) and array != output
        return Array(shape.rest, tuple(factors), counter.kept(array) if local else None)

    def _factor(self, axis: Axis, lines: tuple[Line, ...], window: float, motion: Motion, pad: float) -> _Factor:
        """`pad`: elements that a row has more, by whole lines."""
        full, last, whole = self.counter.extents(axis, lines)
        new = window * axis.counts + (axis.extent - axis.counts) * motion.points
        if pad:
            new, full, last, whole = new + pad * axis.extent, full + pad, last + pad, whole + pad
        return _Factor((new, (axis.counts - 1) * full + last, whole), (window + pad, full, whole))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What of an array does not depend on loops and tiles: the `lines` of its dims by the dim of the output that they
    follow, and their `windows`; the bytes of the `rest`; along the dim of the output `along`, rows are `pad` elements
    longer, by whole lines."""

    lines: Mapping[str, tuple[Line, ...]]
    windows: Mapping[str, float]
    rest: float
    along: str | None
    pad: float


def _shape(members: Members, name: str, array: str, read: Read | None) -> _Shape:
    known: dict[tuple[str, str, int], tuple[Read | None, _Shape]] = members.remembered.setdefault("shapes", {})
    found = known.get((name, array, id(read)))
    if found is None:
        found = known[name, array, id(read)] = (read, _find_shape(members, name, array, read))
    return found[1]


def _find_shape(members: Members, name: str, array: str, read: Read | None) -> _Shape:
    producer, own = members.facts.stages[array], members.follows[name]
    spans = own
    if read is not None:
        moved = (s if s.var is None else compose(s, own[s.var]) for s in read.roughly)
        spans = dict(zip(producer.dims, moved, strict=True))
    run = _run(producer)
    dims, free = by_dim(spans, producer)
    size, rest, along, pad = producer.bytes_per_point, float(free * producer.bytes_per_point), None, 0.0
    if run is not None:
        before = producer.storage[: producer.storage.index(run)]
        small = size * prod(_together(spans[d]) for d in before)
        if spans[run].known and spans[run].var is not None:
            along, pad = spans[run].var, pad_bytes(small) / small
        else:  # whole rows, or one element of them
            row = small * (spans[run].extent(1) if spans[run].known else producer.extent(run))
            rest *= (row + pad_bytes(size)) / row
    lines = {dim: tuple(members.line(s) for s in here) for dim, here in dims.items()}
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


def pad_bytes(size: int) -> float:
    """Bytes that a row of elements of `size` has more on average, by whole lines."""
    return float(max(0, LINE - size))
