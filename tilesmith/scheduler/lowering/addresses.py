"""Addresses of elements of buffers: the row of memory that a place is in, and where lanes differ from it."""

from __future__ import annotations

from tilesmith.scheduler.ir.index import Index, const, maximum, modulo, multiply
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, LaneOffset, Pointer
from tilesmith.scheduler.ir.pipeline.types import INT32

NEAR = 16
"""Steps that move the pointer, not the offsets of lanes: what vectors read beside each other has the same offsets."""


def _coordinate(buffer: Buffer, d: int, at: Index) -> Index:
    ring = buffer.ring[d]
    return at - buffer.origin[d] if ring is None else modulo(at, ring)


def named(b: Builder, at: Index, hint: str) -> Index:
    """An index under a name where it is more than a sum: clamps and remainders are read once."""
    return at if all(a.kind == "sym" for a, _ in at.terms) else b.let(at, hint)


def offset_along(b: Builder, buffer: Buffer, d: int, at: Index) -> Index:
    return multiply(_coordinate(buffer, d, named(b, at, buffer.dims[d])), buffer.stride[d])


def row_of(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Pointer:
    """The row pointer that all dims but the unit dim lead to; of that only its origin is taken off here. Neighbours
    along the row, and who asks ahead for them, have the same."""

    def make() -> tuple[Pointer, Buffer]:
        offset = const(0)
        for d, lane in enumerate(lanes):
            offset = offset - buffer.origin[d] if d == buffer.unit else offset + offset_along(b, buffer, d, lane.base)
        return b.row(buffer, offset), buffer

    across = [lane.base for d, lane in enumerate(lanes) if d != buffer.unit]
    found = b.remember(b.depth, ("lanes", id(buffer), *across), make)
    assert isinstance(found, tuple)
    row: Pointer = found[0]
    return row


def pixel_row_of(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Pointer:
    """The row of interleaved pixels that the further dims lead to."""
    offset = buffer.origin[buffer.pixels].scaled(-buffer.channels)
    for d, lane in enumerate(lanes):
        if d not in (buffer.unit, buffer.pixels):
            offset = offset + offset_along(b, buffer, d, lane.base)
    return b.row(buffer, offset)


def lane_offsets(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], moving: frozenset[int], safe: bool = False, keep: bool = False
) -> tuple[Pointer, tuple[LaneOffset, ...]]:
    """The pointer to what lanes have in common, and the dims in which they differ. With `safe` lanes are clamped to
    the buffer; with `keep` they have the whole index, as they have in rings."""
    offset, gathered = const(0), []
    for d, lane in enumerate(lanes):
        stride, origin, ring = buffer.stride[d], buffer.origin[d], buffer.ring[d]
        if d in moving and (ring is not None or safe or keep):
            within = (origin, origin + buffer.extent[d] - 1) if safe and ring is None else None
            own = Lane(lane.base, lane.pattern, lane.vector)
            gathered.append(LaneOffset(own, stride, const(0) if ring is not None else origin, ring, within))
            continue
        offset = offset + offset_along(b, buffer, d, lane.base)
        if d in moving:
            gathered.append(LaneOffset(Lane(const(0), lane.pattern, lane.vector), stride, const(0), None))
    return b.row(buffer, offset), tuple(gathered)


def narrow_offsets(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], moving: frozenset[int]
) -> tuple[Pointer, tuple[LaneOffset, ...]] | None:
    """As `lane_offsets`, where vectors say the places in several rows, and the sum of the offsets of each lane has 32
    bits: a few steps move the pointer. None of what is in one row, or in a ring, and where vectors may not
    rely on that."""
    told = [(d, lanes[d]) for d in sorted(moving)]
    one_row = all(buffer.stride[d] == const(1) for d in moving)
    if one_row or not b.narrow or any(lane.vector is None or buffer.ring[d] is not None for d, lane in told):
        return None
    by = {d: lane.base.const if abs(lane.base.const) <= NEAR else 0 for d, lane in told}
    span = const(0)
    for d, _ in told:
        steps = buffer.extent[d] - 1 + abs(by[d])
        span = span + multiply(steps, maximum(buffer.stride[d], buffer.stride[d].scaled(-1)))
    if not b.grant(const(INT32.max) - span):
        return None
    offset, gathered = const(0), []
    for d, lane in enumerate(lanes):
        if d in moving:
            offset = offset + buffer.stride[d].scaled(by[d])
            own = Lane(lane.base - by[d], None, lane.vector)
            gathered.append(LaneOffset(own, buffer.stride[d], buffer.origin[d]))
        else:
            offset = offset + offset_along(b, buffer, d, lane.base)
    return b.row(buffer, offset), tuple(gathered)


def width_of(lane: Lane) -> int:
    if lane.pattern is not None:
        return len(lane.pattern)
    return 1 if lane.vector is None else lane.vector.lanes
