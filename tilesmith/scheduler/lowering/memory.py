"""Memory accesses: loads and stores of points and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol
from tilesmith.scheduler.features.pipeline.lookup_tables import FEWEST, MOST_PARTS
from tilesmith.scheduler.ir.index import Index, const, maximum, minimum, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import (
    LOOKUP_PART,
    Broadcast,
    Cast,
    ClampedLoad,
    EdgeGather,
    Gather,
    Load,
    LoadPair,
    Lookup,
    MonotoneGather,
    Shuffle,
    WindowGather,
)
from tilesmith.scheduler.ir.loop.program import Scatter, Store
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, Lane, Neighbours, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT16, INT32, UINT8, UINT16, ScalarType
from tilesmith.scheduler.lowering import interleaved_channels
from tilesmith.scheduler.lowering.access import Access
from tilesmith.scheduler.lowering.addresses import lane_offsets, named, narrow_offsets, pixel_row_of, row_of, width_of


def load(
    b: Builder,
    buffer: Buffer,
    lanes: tuple[Lane, ...],
    type_: ScalarType,
    pinned: bool,
    at_least: int,
    safe: bool = False,
) -> Value:
    """The elements of `buffer` at `lanes` (one per dim): a scalar where all dims are uniform; see `Access`."""
    return _loaded(b, Access(buffer, lanes, type_, pinned, at_least, safe))


def _loaded(b: Builder, access: Access) -> Value:
    buffer, lanes = access.buffer, access.lanes
    if not lanes:
        return access.defined(b, Load(buffer.pointer, const(0)))
    moving = frozenset(d for d, lane in enumerate(lanes) if not lane.uniform)
    if not moving:
        row = row_of(b, buffer, lanes)
        return access.defined(b, Load(row, named(b, access.unit.base, buffer.dims[buffer.unit])))
    found = None
    if moving == {buffer.unit} and buffer.ring[buffer.unit] is None:
        found = _along_row(b, access)
    if found is None and buffer.channels and not access.safe:
        found = _of_pixels(b, access, moving)
    return _gathered(b, access, moving) if found is None else found


def load_pair(
    b: Builder, buffer: Buffer, first: tuple[Lane, ...], second: tuple[Lane, ...], at_least: int
) -> Value | None:
    """Elements of int16 as the halves of an int32, where the second follows the first in memory; None elsewhere."""
    d = buffer.unit
    if buffer.type != INT16 or not all(lane.uniform for lane in (*first, *second)) or buffer.ring[d] is not None:
        return None
    if second[d].base - first[d].base != const(1) or (*first[:d], *first[d + 1 :]) != (*second[:d], *second[d + 1 :]):
        return None
    at = LoadPair(row_of(b, buffer, first), named(b, first[d].base, buffer.dims[d]))
    return b.define(at, INT32, 1, buffer.stage, at_least=at_least)


def _of_pixels(b: Builder, access: Access, moving: frozenset[int]) -> Value | None:
    """Elements of a row of interleaved pixels, from whole vectors; None where each is loaded by itself."""
    buffer, lanes = access.buffer, access.lanes
    start = interleaved_channels.in_flat_row(b, buffer, lanes)
    if start is not None:
        return access.defined(b, Load(pixel_row_of(b, buffer, lanes), start), width_of(access.unit))
    if access.pinned:
        return None
    channel, found = interleaved_channels.channel_of(b, buffer, lanes), None
    if channel is not None:
        found = interleaved_channels.load(b, access, pixel_row_of(b, buffer, lanes), channel)
    if found is None and moving == {buffer.unit, buffer.pixels}:
        found = interleaved_channels.across_channels(b, access, pixel_row_of(b, buffer, lanes))
    return found


def _gathered(b: Builder, access: Access, moving: frozenset[int]) -> Value:
    """Elements at places that differ from lane to lane in any way: looked up in a table, picked of vectors that have
    them where they are near each other, or gathered."""
    buffer, unit = access.buffer, access.unit
    if moving == {buffer.unit} and (found := _turned(b, access)) is not None:
        return found
    row, gathered = lane_offsets(b, buffer, access.lanes, moving, access.safe)
    width = max(map(width_of, access.lanes))
    index, origin, extent = unit.vector, buffer.origin[buffer.unit], buffer.extent[buffer.unit]
    in_row = index is not None and moving == {buffer.unit} and not access.safe
    parts = _parts(unit) if access.type == UINT8 and in_row else None
    if index is not None and parts is not None and FEWEST <= width <= b.vectors.table_lookup_bytes:
        ends = (unit.base - origin, origin + extent - parts * LOOKUP_PART - unit.base)
        return _looked_up(b, access, Lookup(row, (index,), ends, parts), width)
    if index is not None and in_row and buffer.ring[buffer.unit] is None:
        if unit.run and index.type.bits == 32 and access.type != BOOL:
            enough = extent - width if unit.room is None else minimum(extent - width, unit.room)
            return access.defined(b, MonotoneGather(row, index, enough, origin + extent - width), width)
        if unit.near and _has_windows(b, access.type, width):
            index = index if index.type.bits == 32 else b.define(Cast(index), INT32, width, hint="at")
            last = origin + extent - width - unit.base
            return access.defined(b, WindowGather(row, index, extent - width, last), width)
    if not access.safe and b.vectors.register_bytes < interleaved_channels.LONGEST_BYTES:
        narrow = narrow_offsets(b, buffer, access.lanes, moving)
        if narrow is not None:
            return access.defined(b, Gather(*narrow, narrow=True), width)
    return access.defined(b, Gather(row, gathered), width)


def _turned(b: Builder, access: Access) -> Value | None:
    """Elements of a row beyond whose ends an image repeats or is mirrored; None of any others."""
    buffer, unit = access.buffer, access.unit
    places, at = unit.turned, unit.vector
    if places is None or at is None or at.type.bits != INT32.bits or access.type == BOOL:
        return None
    assert places.low is not None
    assert places.high is not None
    dim = buffer.dims[buffer.unit]
    first, extent = (sym(bound_symbol(buffer.stage, which, dim)) for which in ("min", "extent"))
    whole = buffer.where == "argument" and (places.low, places.high) == (first, first + extent - 1)
    if buffer.ring[buffer.unit] is not None or (access.safe and not whole):
        return None
    row = row_of(b, buffer, access.lanes)
    return access.defined(b, EdgeGather(row, at, places.first, places.low, places.high), at.lanes)


def _looked_up(b: Builder, access: Access, lookup: Lookup, width: int) -> Value:
    """Elements of a table by the instruction, whose vectors may be longer than `width`."""
    (index,), whole = lookup.at, b.vectors.table_lookup_bytes
    if index.type != UINT16 and (index.type.bits > 16 or width < whole):
        index = b.define(Cast(index), UINT16, width, hint="at")
    if width < whole:  # the other lanes look up the same
        picks = tuple(n % width for n in range(whole))
        index = b.define(Shuffle(index, index, picks), UINT16, whole, hint="at")
    found = access.defined(b, replace(lookup, at=(index,)), whole)
    return found if width == whole else access.defined(b, Shuffle(found, found, tuple(range(width))), width)


def _clamped(b: Builder, access: Access, places: Neighbours) -> Value:
    """The elements at neighbours that are clamped, of those that the buffer has."""
    first, last = _ends(access.buffer)
    first = first if places.low is None else maximum(first, places.low)
    last = last if places.high is None else minimum(last, places.high)
    row = row_of(b, access.buffer, access.lanes)
    return access.defined(b, ClampedLoad(row, places.first, first, last), width_of(access.unit))


def _ends(buffer: Buffer) -> Ends:
    """The first and the last element of a row."""
    first = buffer.origin[buffer.unit]
    return first, first + buffer.extent[buffer.unit] - 1


def _has_windows(b: Builder, type_: ScalarType, lanes: int) -> bool:
    """True if places near each other are picked of two vectors faster than one by one: of registers of places that are
    wider than the narrowest, beside registers of elements, and short elements not of the longest, whose places are too
    many."""
    together = min(lanes, b.vectors.register_bytes // max(type_.bytes, INT32.bytes))
    wide = together * INT32.bytes > b.vectors.narrowest_bytes
    short = type_.bytes < interleaved_channels.PERMUTED_BYTES
    return wide and type_ != BOOL and not (short and b.vectors.register_bytes >= interleaved_channels.LONGEST_BYTES)


def _along_row(b: Builder, access: Access) -> Value | None:
    """Elements of one row, from whole vectors; None where each is loaded by itself."""
    pattern, places = access.unit.pattern, access.unit.clamped
    if pattern is not None:
        return _of_pattern(b, access, pattern)
    return None if places is None else _clamped(b, access, places)


def _of_pattern(b: Builder, access: Access, pattern: tuple[int, ...]) -> Value | None:
    """The elements `pattern` of a row, from whole vectors; None where each is loaded by itself."""
    buffer, base, safe = access.buffer, access.unit.base, access.safe
    width, least, most = len(pattern), min(pattern), max(pattern)
    first, last = _ends(buffer)
    neighbours = pattern == tuple(range(least, least + width))
    if most == least or (safe and not neighbours and most - least < width):
        at = base + least
        if safe and most == least:
            at = maximum(minimum(at, last), first)
        few = Lane(at, None if most == least else tuple(range(width)))
        lanes = (*access.lanes[: buffer.unit], few, *access.lanes[buffer.unit + 1 :])
        near = _loaded(b, replace(access, lanes=lanes))
        if width == 1:
            return near
        if most == least:
            return _in_all_lanes(b, near, width, access.pinned)
        return interleaved_channels.shuffled(b, near, near, [p - least for p in pattern], access.pinned)
    row = row_of(b, buffer, access.lanes)
    if neighbours:
        at = base + least
        return access.defined(b, ClampedLoad(row, at, first, last) if safe else Load(row, at), width)
    return None if safe else interleaved_channels.apart(b, access, row, base, pattern)


def _parts(at: Lane) -> int | None:
    """The number of parts of a table of bytes that indices reach, where they are few enough to be looked up all at
    once."""
    if at.vector is None or not at.vector.type.is_integer:
        return None
    most = at.vector.type.max if at.most is None else min(at.most, at.vector.type.max)
    parts = most // LOOKUP_PART + 1
    return parts if at.vector.type.kind == "uint" and parts <= MOST_PARTS else None


def store(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], value: Value, within: tuple[Index, Index] | None = None
) -> None:
    """Writes `value` to the elements of `buffer` at `lanes`; a scalar value goes to every lane. With `within`,
    only lanes whose index along the moving dim lies in that range are written."""
    if not lanes:
        b.emit(Store(buffer, buffer.pointer, const(0), value))
        return
    moving = frozenset(d for d, lane in enumerate(lanes) if not lane.uniform)
    width = max(width_of(lane) for lane in lanes)
    value = _in_all_lanes(b, value, width)
    unit = lanes[buffer.unit]
    if not moving:
        b.emit(Store(buffer, row_of(b, buffer, lanes), unit.base, value))
        return
    contiguous = moving == {buffer.unit} and unit.pattern == tuple(range(width)) and buffer.ring[buffer.unit] is None
    if contiguous:
        b.emit(Store(buffer, row_of(b, buffer, lanes), unit.base, value, within=within))
        return
    row, scattered = lane_offsets(b, buffer, lanes, moving, keep=within is not None)
    b.emit(Scatter(buffer, row, scattered, value, within))


def _in_all_lanes(b: Builder, value: Value, width: int, pinned: bool = False) -> Value:
    """A value, or the vector of it that has so many lanes."""
    if value.lanes >= width:
        return value
    mask = 8 if value.type == BOOL else 0
    return b.define(Broadcast(value), value.type, width, mask_bits=mask, pinned=pinned)


def place_in_row(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Index | None:
    """The place of one element in a row of memory, as `neighbours` counts; None where rows are no whole ones."""
    if buffer.ring[buffer.unit] is not None or not lanes[buffer.unit].uniform:
        return None
    if buffer.channels:
        return interleaved_channels.place(b, buffer, lanes)
    return lanes[buffer.unit].base


def neighbours(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], start: Index, count: int, at_least: int) -> Value:
    """So many elements of the row that `lanes` are in, from `start` on."""
    row = pixel_row_of(b, buffer, lanes) if buffer.channels else row_of(b, buffer, lanes)
    return b.define(Load(row, start), buffer.type, count, hint=buffer.stage, at_least=at_least)


def store_channels(
    b: Builder,
    stores: Sequence[tuple[Buffer, tuple[Lane, ...], Value]],
    within: tuple[Index, Index] | None = None,
) -> None:
    """Stores, those of all channels of the same pixels as whole vectors; with `within` each as `store` has it."""
    pixels: dict[object, dict[int, tuple[Buffer, tuple[Lane, ...], Value]]] = {}
    for buffer, lanes, value in stores:
        start = None if within is not None else interleaved_channels.in_flat_row(b, buffer, lanes)
        if start is not None:
            value = _in_all_lanes(b, value, width_of(lanes[buffer.unit]))
            b.emit(Store(buffer, pixel_row_of(b, buffer, lanes), start, value))
            continue
        channel = None if within is not None else interleaved_channels.channel_of(b, buffer, lanes)
        if channel is None or not channel.is_const or not interleaved_channels.are_neighbours(lanes[buffer.pixels]):
            store(b, buffer, lanes, value, within)
            continue
        value = _in_all_lanes(b, value, len(lanes[buffer.pixels].pattern or ()))  # a channel of all pixels, too
        others = tuple((x.base, x.pattern) for d, x in enumerate(lanes) if d != buffer.unit)
        pixels.setdefault((id(buffer), others), {})[channel.const] = (buffer, lanes, value)
    for found in pixels.values():
        buffer, lanes, _ = next(iter(found.values()))
        if len(found) < buffer.channels:
            for one in found.values():
                store(b, *one)
            continue
        row = pixel_row_of(b, buffer, lanes)
        interleaved_channels.store(b, buffer, row, lanes[buffer.pixels], [found[c][2] for c in range(buffer.channels)])
