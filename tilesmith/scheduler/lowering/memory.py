"""Memory accesses: addresses of buffers, loads and stores of points and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tilesmith.scheduler.features.pipeline.lookup_tables import FEWEST, MOST_PARTS
from tilesmith.scheduler.ir.index import Index, const, maximum, minimum, modulo, multiply
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import (
    LOOKUP_PART,
    Broadcast,
    CarriedElements,
    Cast,
    ClampedLoad,
    Gather,
    Lanes,
    Load,
    Lookup,
    Misalignment,
    MonotoneGather,
    Shuffle,
    VectorsIntoLine,
    WindowGather,
)
from tilesmith.scheduler.ir.loop.program import Prefetch, PrefetchEnds, Scatter, Store, StreamAligned, StreamLine
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, Lane, LaneOffset, Neighbours, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, INT64, UINT8, UINT16, ScalarType
from tilesmith.scheduler.lowering import interleaved_channels
from tilesmith.scheduler.lowering.access import Access
from tilesmith.scheduler.lowering.prefetches import Ahead


def _coordinate(buffer: Buffer, d: int, at: Index) -> Index:
    ring = buffer.ring[d]
    return at - buffer.origin[d] if ring is None else modulo(at, ring)


def _named(b: Builder, at: Index, hint: str) -> Index:
    """An index under a name where it is more than a sum: clamps and remainders are read once."""
    return at if all(a.kind == "sym" for a, _ in at.terms) else b.let(at, hint)


def _row(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Pointer:
    """The row pointer that all dims but the unit dim lead to; of that only its origin is taken off here. Neighbours
    along the row, and who asks ahead for them, have the same."""

    def make() -> tuple[Pointer, Buffer]:
        offset = const(0)
        for d, lane in enumerate(lanes):
            offset = offset - buffer.origin[d] if d == buffer.unit else offset + _offset(b, buffer, d, lane.base)
        return b.row(buffer, offset), buffer

    across = [lane.base for d, lane in enumerate(lanes) if d != buffer.unit]
    found = b.remember(b.depth, ("lanes", id(buffer), *across), make)
    assert isinstance(found, tuple)
    row: Pointer = found[0]
    return row


def _offset(b: Builder, buffer: Buffer, d: int, at: Index) -> Index:
    return multiply(_coordinate(buffer, d, _named(b, at, buffer.dims[d])), buffer.stride[d])


def _apart(
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
        offset = offset + _offset(b, buffer, d, lane.base)
        if d in moving:
            gathered.append(LaneOffset(Lane(const(0), lane.pattern, lane.vector), stride, const(0), None))
    return b.row(buffer, offset), tuple(gathered)


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
        row = _row(b, buffer, lanes)
        return access.defined(b, Load(row, _named(b, access.unit.base, buffer.dims[buffer.unit])))
    found = None
    if moving == {buffer.unit} and buffer.ring[buffer.unit] is None:
        found = _along_row(b, access)
    if found is None and buffer.channels and not access.safe:
        found = _of_pixels(b, access, moving)
    return _gathered(b, access, moving) if found is None else found


def _of_pixels(b: Builder, access: Access, moving: frozenset[int]) -> Value | None:
    """Elements of a row of interleaved pixels, from whole vectors; None where each is loaded by itself."""
    buffer, lanes = access.buffer, access.lanes
    start = interleaved_channels.in_flat_row(b, buffer, lanes)
    if start is not None:
        return access.defined(b, Load(_pixels(b, buffer, lanes), start), _width(access.unit))
    if access.pinned:
        return None
    channel, found = interleaved_channels.channel_of(b, buffer, lanes), None
    if channel is not None:
        found = interleaved_channels.load(b, access, _pixels(b, buffer, lanes), channel)
    if found is None and moving == {buffer.unit, buffer.pixels}:
        found = interleaved_channels.across_channels(b, access, _pixels(b, buffer, lanes))
    return found


def _gathered(b: Builder, access: Access, moving: frozenset[int]) -> Value:
    """Elements at places that differ from lane to lane in any way: looked up in a table, picked of vectors that have
    them where they are near each other, or gathered."""
    buffer, unit = access.buffer, access.unit
    row, gathered = _apart(b, buffer, access.lanes, moving, access.safe)
    width = max(map(_width, access.lanes))
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
    return access.defined(b, Gather(row, gathered), width)


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
    row = _row(b, access.buffer, access.lanes)
    return access.defined(b, ClampedLoad(row, places.first, first, last), _width(access.unit))


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
    row = _row(b, buffer, access.lanes)
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


def _width(lane: Lane) -> int:
    if lane.pattern is not None:
        return len(lane.pattern)
    return 1 if lane.vector is None else lane.vector.lanes


def store(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], value: Value, within: tuple[Index, Index] | None = None
) -> None:
    """Writes `value` to the elements of `buffer` at `lanes`; a scalar value goes to every lane. With `within`,
    only lanes whose index along the moving dim lies in that range are written."""
    if not lanes:
        b.emit(Store(buffer, buffer.pointer, const(0), value))
        return
    moving = frozenset(d for d, lane in enumerate(lanes) if not lane.uniform)
    width = max(_width(lane) for lane in lanes)
    value = _in_all_lanes(b, value, width)
    unit = lanes[buffer.unit]
    if not moving:
        b.emit(Store(buffer, _row(b, buffer, lanes), unit.base, value))
        return
    contiguous = moving == {buffer.unit} and unit.pattern == tuple(range(width)) and buffer.ring[buffer.unit] is None
    if contiguous:
        b.emit(Store(buffer, _row(b, buffer, lanes), unit.base, value, within=within))
        return
    row, scattered = _apart(b, buffer, lanes, moving, keep=within is not None)
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
    row = _pixels(b, buffer, lanes) if buffer.channels else _row(b, buffer, lanes)
    return b.define(Load(row, start), buffer.type, count, hint=buffer.stage, at_least=at_least)


def ask_ahead(
    b: Builder, ahead: Ahead, buffer: Buffer, lanes: tuple[Lane, ...], depth: int, safe: bool = False
) -> None:
    """Asks for what vectors of an image will read further along its row, or in rows to come: every line that a vector
    spans, once for neighbours and for channels of the same pixels, the nearest of which may lie half a line apart. What
    is asked for far ahead comes to the second level of caches; from there loops of many rows ask for it again. A loop
    inside of that over vectors, whose scope has that `depth`, and that goes along the row by less than half a line,
    asks for nothing: it would ask for the same line again and again. `safe` as in `load`."""
    rows = ahead.rows.get(buffer.stage, {})
    if not lanes or not (ahead.distance or rows) or buffer.where == "thread":
        return
    found = _walked(b, buffer, lanes, safe)
    if found is None:
        return
    row, base, count, along = found
    line = max(b.line_bytes // buffer.type.bytes, 1)
    if any(2 * abs(step) < line and b.depth_of(Index(0, ((atom, 1),))) > depth for atom, step in base.terms):
        return
    far = bool(rows) or ahead.distance > b.core.prefetch.near_bytes

    def ask(first: int) -> None:
        side, place, step = _side_by_side(b, buffer, lanes, along, rows)
        at = base + (first + ahead.distance // buffer.type.bytes)
        for d, n in rows.items():
            at = at + buffer.stride[d].scaled(n)
        asked = Prefetch(row, at, far, b.number((base - base.const, *side)), place, step)
        b.emit(asked)
        if far and ahead.again:
            soon = base + (first + b.core.prefetch.again_bytes // buffer.type.bytes)
            b.emit(replace(asked, index=soon, far=False))

    for first in range(0, count, line):
        key = ("prefetch", row, base - base.const, (base.const + first + line // 2) // line)
        b.remember(b.depth, key, partial(ask, first))


def _walked(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], safe: bool
) -> tuple[Pointer, Index, int, tuple[int, ...]] | None:
    """The row of memory that a vector is of, the first of its elements, how many it spans, and the dims that go along
    the row: interleaved pixels are one with all of their channels. None where elements are in several rows or at places
    that data says."""
    unit = lanes[buffer.unit]
    moving = [d for d, lane in enumerate(lanes) if not lane.uniform]
    if unit.pattern is not None and moving in ([], [buffer.unit]):
        least = min(unit.pattern)
        return _row(b, buffer, lanes), unit.base + least, max(unit.pattern) - least + 1, (buffer.unit,)
    if safe:
        return None
    row = (buffer.unit, buffer.pixels)
    start = interleaved_channels.in_flat_row(b, buffer, lanes)
    if start is not None:
        return _pixels(b, buffer, lanes), start, _width(unit), row
    pixels = lanes[buffer.pixels].pattern if buffer.channels else None
    channel = interleaved_channels.channel_of(b, buffer, lanes)
    if channel is None or pixels is None:
        return None
    first = (lanes[buffer.pixels].base + min(pixels)).scaled(buffer.channels)
    inside = const(0) if channel.is_const else channel
    return _pixels(b, buffer, lanes), first + inside, (max(pixels) - min(pixels) + 1) * buffer.channels, row


def ask_for(b: Builder, buffer: Buffer, place: tuple[Lane, ...], count: int) -> None:
    """Asks for `count` elements of a row, from a place on, to come to the second level of caches: they are read later.
    Elements that are less than half a line are asked for with others of the line, or not at all."""
    line = max(b.line_bytes // buffer.type.bytes, 1)
    if 2 * count < line:
        return
    row, start = _row(b, buffer, place), place[buffer.unit].base
    for first in range(0, count, line):
        b.emit(Prefetch(row, start + first, True, b.number(("asked", row, start + first))))


def _side_by_side(
    b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], row: tuple[int, ...], ahead: Mapping[int, int]
) -> tuple[tuple[object, ...], int, int]:
    """The rows of a buffer, which go along the dims `row`, that differ from that of `lanes` in one dim only, the one
    whose rows are unrolled or whose loop is the innermost one around; the place of that row among them, and how many
    rows further they are in the next iteration of that loop."""
    rest = [d for d in range(len(lanes)) if d not in row]
    along = next((d for d in ahead if d not in row), None)
    if along is None:
        along = max(rest, key=lambda d: b.depth_of(lanes[d].base), default=None)
    if along is None:
        return (buffer.stage, buffer.component), 0, 1
    at = _unclamped(b, lanes[along].base)
    moving = max((c * b.steps.get(a.key, 1) for a, c in at.terms if a.kind == "sym"), key=abs, default=1)
    others = tuple(lanes[d].base for d in rest if d != along)
    side = (buffer.stage, buffer.component, along, at - at.const, others)
    return side, at.const if moving > 0 else -at.const, ahead.get(along, abs(moving))


def _unclamped(b: Builder, at: Index) -> Index:
    """An index without its clamps, where these are to what no loop inside of others moves."""
    while len(at.terms) == 1 and at.terms[0][1] == 1:
        atom = at.terms[0][0]
        if atom.key in b.values:
            at = b.values[atom.key] + at.const
            continue
        depths = [b.depth_of(x) for x in atom.args] if atom.kind in ("min", "max") else []
        if not depths or depths.count(max(depths)) > 1:
            break
        at = atom.args[depths.index(max(depths))] + at.const
    return at


def held_back(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], start: Index, width: int) -> Index:
    """Misalignment of a vector at `start` of the row: the elements between the vector of memory that it begins in and
    it. So many of each vector that `stream` is given are written with the next."""
    row, hint = _row(b, buffer, lanes), f"{buffer.stage}_held"
    return b.as_index(b.define(CarriedElements(row, start, buffer.type, width), INT64, hint=hint))


def vectors_into_line(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], start: Index, width: int) -> Index:
    """Vectors of memory between the beginning of a line and the one that `start` of the row is in."""
    row, hint = _row(b, buffer, lanes), f"{buffer.stage}_into_line"
    return b.as_index(b.define(VectorsIntoLine(row, start, buffer.type, width), INT64, hint=hint))


def ask_ends(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], first: Index, last: Index) -> None:
    """Asks for the lines that the next row begins and ends in: the next in the dim whose loop is the innermost one
    around this."""
    others = [d for d in range(len(lanes)) if d != buffer.unit]
    along = max(others, key=lambda d: b.depth_of(lanes[d].base), default=None)
    ahead = const(0) if along is None else buffer.stride[along]
    b.emit(PrefetchEnds(_row(b, buffer, lanes), first + ahead, last + ahead))


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
    row, unit, width = _row(b, buffer, lanes), lanes[buffer.unit], value.lanes
    picked = ScalarType("int", value.type.bits)
    lanes_of = Lanes(const(width) - held, tuple(range(width)))
    picks = b.define(lanes_of, picked, width, hint=f"{buffer.stage}_picks")
    ends = None if within is None else (within[0] + held, within[1] + held)
    b.emit(StreamAligned(buffer, row, unit.base, value, before, picks, apart, ends))


def streams(buffer: Buffer, lanes: tuple[Lane, ...], value: Value) -> bool:
    """True if `value` at `lanes` is a vector of neighbours in memory."""
    unit = lanes[buffer.unit]
    whole = unit.pattern == tuple(range(value.lanes)) and buffer.ring[buffer.unit] is None and value.type != BOOL
    return value.lanes > 1 and whole and all(x.uniform for d, x in enumerate(lanes) if d != buffer.unit)


def beyond(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Index:
    """Misalignment of the place `lanes`: the elements between the line of memory that it is in and it."""
    at, row = lanes[buffer.unit].base, _row(b, buffer, lanes)
    type_ = UINT8 if buffer.type == BOOL else buffer.type
    return b.as_index(b.define(Misalignment(row, at, type_), INT64, hint="beyond"))


def store_past(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], value: Value, moved: Index) -> None:
    """Writes neighbours past the caches, of a vector that is `moved` to the left what others leave."""
    if streams(buffer, lanes, value):
        row = _row(b, buffer, lanes)
        b.emit(StreamLine(buffer, row, lanes[buffer.unit].base, value, moved))
    else:
        store(b, buffer, lanes, value)


def _pixels(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Pointer:
    """The row of interleaved pixels that the further dims lead to."""
    offset = buffer.origin[buffer.pixels].scaled(-buffer.channels)
    for d, lane in enumerate(lanes):
        if d not in (buffer.unit, buffer.pixels):
            offset = offset + _offset(b, buffer, d, lane.base)
    return b.row(buffer, offset)


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
            value = _in_all_lanes(b, value, _width(lanes[buffer.unit]))
            b.emit(Store(buffer, _pixels(b, buffer, lanes), start, value))
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
        row = _pixels(b, buffer, lanes)
        interleaved_channels.store(b, buffer, row, lanes[buffer.pixels], [found[c][2] for c in range(buffer.channels)])
