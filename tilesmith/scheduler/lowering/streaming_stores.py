"""Streaming stores: vectors of neighbours that are written past the caches, as whole vectors of memory."""

from __future__ import annotations

from tilesmith.scheduler.ir.index import Index, const
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import CarriedElements, Lanes, Misalignment, VectorsIntoLine
from tilesmith.scheduler.ir.loop.program import StreamAligned, StreamLine
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT64, UINT8, ScalarType
from tilesmith.scheduler.lowering.addresses import row_of
from tilesmith.scheduler.lowering.memory import store


def streams(buffer: Buffer, lanes: tuple[Lane, ...], value: Value) -> bool:
    """True if `value` at `lanes` is a vector of neighbours in memory."""
    unit = lanes[buffer.unit]
    whole = unit.pattern == tuple(range(value.lanes)) and buffer.ring[buffer.unit] is None and value.type != BOOL
    return value.lanes > 1 and whole and all(x.uniform for d, x in enumerate(lanes) if d != buffer.unit)


def held_back(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], start: Index, width: int) -> Index:
    """Misalignment of a vector at `start` of the row: the elements between the vector of memory that it begins in and
    it. So many of each vector that `stream` is given are written with the next."""
    row, hint = row_of(b, buffer, lanes), f"{buffer.stage}_held"
    return b.as_index(b.define(CarriedElements(row, start, buffer.type, width), INT64, hint=hint))


def vectors_into_line(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], start: Index, width: int) -> Index:
    """Vectors of memory between the beginning of a line and the one that `start` of the row is in."""
    row, hint = row_of(b, buffer, lanes), f"{buffer.stage}_into_line"
    return b.as_index(b.define(VectorsIntoLine(row, start, buffer.type, width), INT64, hint=hint))


def stream(
    b: Builder,
    buffer: Buffer,
    lanes: tuple[Lane, ...],
    value: Value,
    before: Value,
    held: Index,
    apart: Index,
    within: tuple[Index, Index] | None,
) -> None:
    """Writes the neighbours `value` but `held` of them, and those of `before` that are due; only those `within` a range
    if there is one. They stream where `apart`, vectors from the beginning of a line to the first of the block of stores
    that this is one of, is 0."""
    row, unit, width = row_of(b, buffer, lanes), lanes[buffer.unit], value.lanes
    picked = ScalarType("int", value.type.bits)
    lanes_of = Lanes(const(width) - held, tuple(range(width)))
    picks = b.define(lanes_of, picked, width, hint=f"{buffer.stage}_picks")
    ends = None if within is None else (within[0] + held, within[1] + held)
    b.emit(StreamAligned(buffer, row, unit.base, value, before, picks, apart, ends))


def beyond(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Index:
    """Misalignment of the place `lanes`: the elements between the line of memory that it is in and it."""
    at, row = lanes[buffer.unit].base, row_of(b, buffer, lanes)
    type_ = UINT8 if buffer.type == BOOL else buffer.type
    return b.as_index(b.define(Misalignment(row, at, type_), INT64, hint="beyond"))


def store_past(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], value: Value, moved: Index) -> None:
    """Writes neighbours past the caches, of a vector that is `moved` to the left what others leave."""
    if streams(buffer, lanes, value):
        row = row_of(b, buffer, lanes)
        b.emit(StreamLine(buffer, row, lanes[buffer.unit].base, value, moved))
    else:
        store(b, buffer, lanes, value)
