"""Room beyond rows: memory of our own goes on after its last row, and rows are no shorter than a vector, so that a row
of fewer points is one vector; where vectors start at multiples of something, there are margins between rows, for those
that begin before a row and for those that end after it.

Lanes beyond a row read what is there, and write what nobody reads. All operations are defined for all values, and an
index that data says is in bounds whatever the data are: only how far places move along the row has to be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import Index, const, maximum, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Assign,
    Define,
    If,
    Let,
    Loop,
    Prefetch,
    RowPointer,
    Statement,
    Store,
)
from tilesmith.scheduler.ir.loop.traversal import operands_of, walk
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Group, Vector
from tilesmith.scheduler.lowering.index_vectorization import Axis

VECTORS_OF_ROOM = 2
"""Vectors that there is room for after the last row: rows of every other point move two elements a lane."""


def aligned(stages: Iterable[Stage], inlined: Set[str]) -> frozenset[str]:
    """The stages that read others at a part of their own rate along their rows, those inlined in them included, and
    what they read: vectors start at multiples of something there."""
    slow: dict[str, bool] = {}
    reads: dict[str, set[str]] = {}
    for s in stages:
        spans = (span for a in accesses(s) for span in a.spans if span.known and span.var in s.storage[:1])
        read = {a.producer for a in accesses(s)}
        through = read.intersection(inlined)
        slow[s.name] = any(span.rate.denominator > 1 for span in spans) or any(slow[name] for name in through)
        reads[s.name] = read.union(*(reads[name] for name in through))
    return frozenset(name for s, of in reads.items() if slow[s] for name in (s, *of))


def give_room(b: Builder, buffer: Buffer, vector: Vector | None, lanes: int, margin: bool) -> None:
    """Room after a new buffer of a stage that `vector` computes along its rows, where vectors have `lanes` at most, and
    the `margin` that it is to have: a line, so that rows begin as far into one as they would without."""
    if vector is not None and buffer.dims[buffer.unit] == vector.dim and b.register_lanes(buffer.type) > 1:
        buffer.room = VECTORS_OF_ROOM * lanes
        buffer.margin = b.line_bytes // buffer.type.bytes if margin else 0


def with_room(buffer: Buffer, size: Index, vector: Vector | None) -> Index:
    """The elements of a row of so many points: no fewer than a vector."""
    return size if not buffer.room or vector is None else maximum(size, const(vector.lanes)) + buffer.margin


def widest(group: Group) -> int:
    """The lanes of the widest vector of a group."""
    vectors = (group.vector, *(p.vector for p in group.placements))
    return max((v.lanes for v in vectors if v is not None), default=1)


def begins_rows(buffers: Iterable[Buffer], vector: Vector, box: Box) -> bool:
    """True if the rows of a box begin where rows of the buffers do, which are no shorter than a vector: before them
    there is nothing, and after them what is stored later, if anything."""
    for x in buffers:
        first, _ = box[x.unit]
        if x.dims[x.unit] != vector.dim or not x.room or x.origin[x.unit] + x.margin != first:
            return False
    return True


def stays_in_room(b: Builder, axis: Axis, body: Sequence[Statement]) -> bool:
    """True if all that the body of a loop over vectors along `axis` touches beyond the ends of a row is room, where the
    vector lies beyond them by less than its lanes."""
    return _Reach(b, axis).block(body)


class _Reach:
    """Values that move with the vector, and whether all of them stay in room."""

    def __init__(self, b: Builder, axis: Axis) -> None:
        self.b = b
        self.axis = axis
        self.moving = {axis.q}  # what differs from vector to vector
        self.rates: dict[Pointer, int] = {}  # elements that rows move by, with the vector
        self.located = False  # a value is made of where the vector is
        self.looked_up = False  # data say where to read

    def block(self, body: Sequence[Statement]) -> bool:
        return all(map(self._statement, walk(tuple(body)))) and not (self.located and self.looked_up)

    def _moves(self, *indices: Index) -> bool:
        return any(not self.moving.isdisjoint(x.symbols()) for x in indices)

    def _statement(self, s: Statement) -> bool:
        match s:
            case Define():
                return self._operation(s.op)
            case Let():
                self.moving |= {s.name} if self._moves(s.value) else set()
                return True
            case RowPointer():
                rate = self._rate(s.offset)
                self.rates[s.result] = rate or 0
                return rate is not None
            case Store():
                return s.within is None and 2 * (self.axis.align - 1) <= s.buffer.margin  # of this row and the next
            case Loop() | If() | Accumulator() | Assign() | Prefetch():
                return True  # neither bounds nor conditions are made of where the vector is
            case _:
                return False

    def _operation(self, op: ops.Operation) -> bool:
        match op:
            case ops.Load():
                return self._stays(op.row, op.at)
            case ops.Gather():
                self.looked_up |= any(x.lane.vector is not None for x in op.offsets)
                return self._stays(op.row, const(0))  # what else of a place moves is in a ring
            case ops.Lookup():
                self.looked_up = True
                return not self._moves(*op.whole) and self._stays(op.row, const(0))
            case ops.Lanes() | ops.FromIndex():
                self.located |= self._moves(op.at)
                return True
            case ops.ToIndex():
                self.looked_up = True
                return True
            case _:
                return not any(isinstance(x, Pointer) for x in operands_of(op))

    def _stays(self, row: Pointer, at: Index) -> bool:
        """True if a place of a row stays in its room, where the vector is moved by less than its lanes."""
        of_row, rate = self.rates.get(row, 0), self._rate(at)
        if rate is None:
            return False
        rate, align = rate + of_row, self.axis.align
        if rate == 0:
            return True
        buffer = self.b.buffers[row]
        before, after = (-(-abs(rate) * points // align) for points in (align - 1, self.axis.lanes))
        return rate > 0 and before <= buffer.margin and after <= buffer.room

    def _rate(self, at: Index) -> int | None:
        """Elements that a place moves by, with `q`; None where it does in another way."""
        rate = at.coefficient(self.axis.q)
        return None if self._moves(at - sym(self.axis.q).scaled(rate)) else rate
