"""Room at the ends of rows: memory of our own has some elements more than the points of a stage, so that a row shorter
than a vector is one vector, and vectors that start at multiples of something cover rows that do not.

Lanes beyond a row read what is there, and write what nobody reads. All operations are defined for all values, and an
index that data says is in bounds whatever the data are: only how far places move along the row has to be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import Index, const, sym
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
from tilesmith.scheduler.ir.schedule.schedule import Group, Vector
from tilesmith.scheduler.lowering.index_vectorization import Axis

VECTORS_OF_ROOM = 2
"""Vectors that rows have room for at both ends: rows of every other point move two elements a lane."""


def give_room(b: Builder, buffer: Buffer, vector: Vector | None, lanes: int) -> None:
    """Room in a new buffer of a stage that `vector` computes, where that is along its rows; vectors have `lanes` at
    most. Rows begin as far into a line as they would without."""
    if vector is not None and buffer.dims[buffer.unit] == vector.dim and b.register_lanes(buffer.type) > 1:
        line = max(b.line_bytes // buffer.type.bytes, 1)
        buffer.room = -(-VECTORS_OF_ROOM * lanes // line) * line


def widest(group: Group) -> int:
    """The lanes of the widest vector of a group."""
    vectors = (group.vector, *(p.vector for p in group.placements))
    return max((v.lanes for v in vectors if v is not None), default=1)


def begins_rows(buffers: Iterable[Buffer], vector: Vector, box: Box) -> bool:
    """Whether the rows of a box begin where rows of the buffers do, with room for a vector at both ends: before them
    there is nothing, and after them what is stored later, if anything."""
    for x in buffers:
        first, _ = box[x.unit]
        if x.dims[x.unit] != vector.dim or x.room < vector.lanes or x.origin[x.unit] + x.room != first:
            return False
    return True


def stays_in_room(b: Builder, axis: Axis, body: Sequence[Statement]) -> bool:
    """Whether all that the body of a loop over vectors along `axis` touches beyond the ends of a row is room, where the
    vector lies beyond them by less than its lanes."""
    return _Reach(b, axis).block(body)


class _Reach:
    """What moves with the vector, and whether all of it stays in room."""

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
                return s.within is None and self._stays(s.row, s.index)
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
                return False
            case _:
                return not any(isinstance(x, Pointer) for x in operands_of(op))

    def _stays(self, row: Pointer, at: Index) -> bool:
        """Whether a place of a row stays in its room, where the vector is moved by less than its lanes."""
        of_row, rate = self.rates.get(row, 0), self._rate(at)
        if rate is None:
            return False
        reach = -(-abs(of_row + rate) * self.axis.lanes // self.axis.align)
        return reach == 0 or reach <= self.b.buffers[row].room

    def _rate(self, at: Index) -> int | None:
        """Elements that a place moves by, with `q`; None where it does in another way."""
        rate = at.coefficient(self.axis.q)
        return None if self._moves(at - sym(self.axis.q).scaled(rate)) else rate
