"""Images whose channels lie side by side in memory: whole vectors, shuffled into channels and back.

The elements of a vector of pixels of `n` channels are `n` vectors of neighbours, from which every channel is picked;
channels that are stored in the same vector loop are put together again. Where vectors run, the pixels must lie
`n` elements apart: the loop says so in `given`, and elsewhere scalars do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from tilesmith.scheduler.analysis.bounds_inference import bound_symbol
from tilesmith.scheduler.analysis.flat_rows import FURTHEST_PIXELS, MOST_CHANNELS, Layouts, Pixels
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Load, Shuffle
from tilesmith.scheduler.ir.loop.program import Store
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.lowering.access import Access

MOST_LOADS = 8
"""Vectors that elements some way apart are picked from, at most."""
PERMUTED_BYTES, LONGEST_BYTES = 4, 64
"""Elements of so many bytes or more are picked from any two of the longest registers by one instruction, of as many."""
Pick = tuple[int, int]
"""A vector's number, and a lane of it."""


def expect_channels(buffer: Buffer, storage: Sequence[str], channels: int) -> None:
    """Says so of a buffer with that storage and that many elements in its fastest dim."""
    if len(storage) >= 2 and 2 <= channels <= MOST_CHANNELS:
        buffer.channels, buffer.pixels = channels, buffer.dims.index(storage[1])


def pixels_along(buffer: Buffer, vector: Vector | None) -> Pixels | None:
    """The dims of the pixels along which vectors go, where these are expected to lie side by side."""
    if vector is None or not buffer.channels or vector.dim != buffer.dims[buffer.pixels]:
        return None
    return Pixels(buffer.dims[buffer.unit], buffer.dims[buffer.pixels])


def layouts(buffers: Mapping[tuple[str, int], Buffer], channels: int) -> Layouts:
    """The pixels of the buffers that are expected to have so many channels."""

    def found(name: str) -> tuple[int, int] | None:
        buffer = buffers.get((name, 0))
        return (buffer.unit, buffer.pixels) if buffer is not None and buffer.channels == channels else None

    return found


def channel_of(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Index | None:
    """The channel of pixels near each other that `lanes` are, where the buffer is expected to have them side by side: a
    number of those that there are, or what a loop moves."""
    if not buffer.channels or b.given is None:
        return None
    channel, pixels = _expected(buffer, lanes[buffer.unit].base), lanes[buffer.pixels].pattern
    moving = [d for d, lane in enumerate(lanes) if not lane.uniform]
    if moving != [buffer.pixels] or (channel.is_const and not 0 <= channel.const < buffer.channels):
        return None
    if pixels is None or (max(pixels) - min(pixels) >= FURTHEST_PIXELS * len(pixels)):
        return None
    folded = buffer.ring[buffer.unit] is not None or buffer.ring[buffer.pixels] is not None
    return None if folded else channel


def in_flat_row(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Index | None:
    """The first of the elements `lanes` of a row of pixels, of neighbours whatever their channels, where the pixels are
    expected to lie side by side; None of others."""
    found = _flat_places(b, buffer, lanes)
    if found is None:
        return None
    base, places = found
    if places != tuple(range(places[0], places[0] + len(places))):
        return None
    _note(b, buffer)
    return base + places[0]


def _flat_places(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> tuple[Index, tuple[int, ...]] | None:
    """Places of elements that differ in pixel and channel in a row of pixels that are expected to lie side by side: the
    one that they have in common, and how far from it each is. None of others."""
    moving = [d for d, lane in enumerate(lanes) if not lane.uniform]
    if not buffer.channels or b.given is None or sorted(moving) != sorted((buffer.unit, buffer.pixels)):
        return None
    channel, pixel = lanes[buffer.unit], lanes[buffer.pixels]
    if channel.pattern is None or pixel.pattern is None or not channel.base.is_const:
        return None
    if buffer.ring[buffer.unit] is not None or buffer.ring[buffer.pixels] is not None:
        return None
    n = buffer.channels
    channels = [channel.base.const + c for c in channel.pattern]
    if not {*channels} <= {*range(n)}:
        return None
    return pixel.base.scaled(n), tuple(p * n + c for p, c in zip(pixel.pattern, channels, strict=True))


def across_channels(b: Builder, access: Access, row: Pointer) -> Value | None:
    """Elements of a row of pixels that differ in pixel and channel, as the luma of a packed 4:2:2 image does, picked
    from whole vectors; None of others, and where those would be too many."""
    flat = _flat_places(b, access.buffer, access.lanes)
    found = None if flat is None else apart(b, access, row, *flat)
    if found is not None:
        _note(b, access.buffer)
    return found


def place(b: Builder, buffer: Buffer, lanes: tuple[Lane, ...]) -> Index | None:
    """The place of one element in a row of pixels, where those are expected to lie side by side."""
    if b.given is None or buffer.ring[buffer.pixels] is not None or not lanes[buffer.pixels].uniform:
        return None
    channel = _expected(buffer, lanes[buffer.unit].base)
    if channel.is_const and not 0 <= channel.const < buffer.channels:
        return None
    _note(b, buffer)
    return lanes[buffer.pixels].base.scaled(buffer.channels) + channel


def are_neighbours(lane: Lane) -> bool:
    """True of places each of which is the next of the one before."""
    pattern = lane.pattern
    return pattern is not None and pattern == tuple(range(pattern[0], pattern[0] + len(pattern)))


def _expected(buffer: Buffer, channel: Index) -> Index:
    """A channel where the buffer has those that are expected: inside of them clamps and mirrors change nothing."""
    origin, extent = buffer.origin[buffer.unit], buffer.extent[buffer.unit]
    min_, extent_ = (sym(bound_symbol(buffer.stage, which, buffer.dims[buffer.unit])) for which in ("min", "extent"))
    ends = ((origin, 0), (min_, 0), (extent, buffer.channels), (extent_, buffer.channels))
    return channel.where({name: n for x, n in ends for name in x.symbols() if x == sym(name)})


def _note(b: Builder, buffer: Buffer) -> None:
    """Vectors run where the pixels do lie as expected, and have all their channels."""
    assert b.given is not None
    n, unit = buffer.channels, buffer.unit
    stride, origin, extent = buffer.stride[buffer.pixels], buffer.origin[unit], buffer.extent[unit]
    for x in (stride - n, const(n) - stride, origin, origin.scaled(-1), extent - n, const(n) - extent):
        if not (x.is_const and x.const >= 0) and x not in b.given:
            b.given.append(x)


def load(b: Builder, access: Access, row: Pointer, channel: Index) -> Value | None:
    """A channel of the pixels of an access, which are in the row that `row` points to: of all channels the same vectors
    are loaded, of one that a loop moves those that cover it. None where that would be too many."""
    buffer, lane = access.buffer, access.lanes[access.buffer.pixels]
    assert lane.pattern is not None
    n, width, least, most = buffer.channels, len(lane.pattern), min(lane.pattern), max(lane.pattern)
    start = (lane.base + least).scaled(n)
    if not channel.is_const:
        places = tuple((p - least) * n for p in lane.pattern)
        found = apart(b, access, row, start + channel, places)
        if found is not None:
            _note(b, buffer)
        return found
    lanes = min(width, 1 << ((most - least + 1).bit_length() - 1))
    if lanes < 2:
        return None
    _note(b, buffer)
    # whole vectors of pixels: the first, and the one that ends with the last pixel
    starts = list(dict.fromkeys((0, most - least + 1 - lanes)))
    parts = [_neighbours(b, access, row, start + k * n, channel.const, lanes) for k in starts]
    picks = [(k, p - least - starts[k]) for p in lane.pattern for k in [bisect_right(starts, p - least) - 1]]
    if len(parts) == 1 and [p for _, p in picks] == list(range(lanes)):
        return parts[0]
    return picked(b, parts, picks)


def _neighbours(b: Builder, access: Access, row: Pointer, start: Index, channel: int, width: int) -> Value:
    """A channel of the `width` pixels from element `start` of the row on."""
    n = access.buffer.channels
    group = _group(b, n, access.type, width)
    if not group:
        parts = [access.defined(b, Load(row, start + k * width), width) for k in range(n)]
        return picked(b, parts, [divmod(j * n + channel, width) for j in range(width)])
    parts = []
    for k in range(n):
        starts = (start + (k + first * n) * group for first in range(width // group))
        parts.append(_joined(b, [access.defined(b, Load(row, at), group) for at in starts]))
    pixels = _pixels_at(channel, n, group)
    places = [divmod(pixels[at] * n + channel, group)[0] for at in range(group)]
    mixed = _blended(b, parts, places)
    return shuffled(b, mixed, mixed, [at // group * group + (at % group * n + channel) % group for at in range(width)])


def _group(b: Builder, channels: int, type_: ScalarType, width: int) -> int:
    """The elements of the part of a register in which any permutation is one instruction, where channels are told apart
    by their places in these: in a group of vectors that begin so many elements apart, each holds other places of a
    channel, if their number is odd. Blending the vectors and a permutation in each part is less than permutations of
    two registers, where these are no instruction: of short elements, and of registers shorter than the longest. 0 where
    it is not so."""
    part, register = b.vectors.narrowest_bytes, b.vectors.register_bytes
    group = part // type_.bytes
    short = type_.bytes < PERMUTED_BYTES or register < LONGEST_BYTES
    whole = width % max(group, 1) == 0 and width >= 2 * group and register > part
    return group if channels % 2 and group > channels and short and whole and type_.kind != "bool" else 0


def _pixels_at(channel: int, channels: int, group: int) -> list[int]:
    """The pixel, for each place of a group, whose channel is at that place of one of its vectors."""
    found = [0] * group
    for pixel in range(group):
        found[(pixel * channels + channel) % group] = pixel
    return found


def _joined(b: Builder, parts: Sequence[Value]) -> Value:
    """Vectors of as many lanes, a power of two of them, as one."""
    while len(parts) > 1:
        both = range(2 * parts[0].lanes)
        parts = [_shuffled(b, Shuffle(x, y, tuple(both)), False) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _blended(b: Builder, vectors: Sequence[Value], places: Sequence[int]) -> Value:
    """Vectors as one: of each group of lanes the lane `n` is that of the vector `places[n]`."""
    found, lanes = vectors[0], vectors[0].lanes
    for k, vector in enumerate(vectors[1:], 1):
        picks = [at + (lanes if places[at % len(places)] == k else 0) for at in range(lanes)]
        found = _shuffled(b, Shuffle(found, vector, tuple(picks)), False)
    return found


def apart(b: Builder, access: Access, row: Pointer, base: Index, pattern: Sequence[int]) -> Value | None:
    """The elements `pattern` of a row from `base` on, picked from vectors that cover them and no other elements beyond
    the first and the last. None where those are many, or no fewer than the elements."""
    first, width = min(pattern), len(pattern)
    count = max(pattern) - first + 1
    lanes = min(1 << (count.bit_length() - 1), max(width, b.register_lanes(access.type)))
    starts = [*range(first, first + count - lanes, lanes), first + count - lanes]
    if lanes < 2 or len(starts) > max(2, min(MOST_LOADS, width - 1)):
        return None
    loads = [access.defined(b, Load(row, base + s), lanes) for s in starts]
    picks = [(k, p - starts[k]) for p in pattern for k in [bisect_right(starts, p) - 1]]
    return picked(b, loads, picks, access.pinned)


def store(b: Builder, buffer: Buffer, row: Pointer, lane: Lane, channels: Sequence[Value]) -> None:
    """Writes all channels of the pixels at `lane`."""
    assert lane.pattern is not None
    _note(b, buffer)
    n, width = buffer.channels, len(lane.pattern)
    start = (lane.base + lane.pattern[0]).scaled(n)
    group = _group(b, n, buffer.type, width)
    vectors, flats = list(channels), [divmod(at, n)[::-1] for at in range(n * width)]
    if group:
        turned = []
        for c, value in enumerate(channels):
            pixels = _pixels_at(c, n, group)
            turned.append(shuffled(b, value, value, [at // group * group + pixels[at % group] for at in range(width)]))
        vectors = [_blended(b, turned, [(k * group + at) % n for at in range(group)]) for k in range(n)]
        flats = [(at // group % n, at // group // n * group + at % group) for at in range(n * width)]
    for k in range(n):
        value = picked(b, vectors, flats[k * width : (k + 1) * width])
        b.emit(Store(buffer, row, start + k * width, value))


def picked(b: Builder, vectors: Sequence[Value], picks: Sequence[Pick], pinned: bool = False) -> Value:
    """The lanes `picks` of several vectors of as many lanes, by shuffles of two: of three the third joins what the
    first two gave; more are joined by pairs."""
    lanes = vectors[0].lanes
    if len(vectors) <= 2:
        return shuffled(b, vectors[0], vectors[-1], [part * lanes + j for part, j in picks], pinned)
    if len(vectors) == 3 and len(picks) <= lanes:
        places = [part * lanes + j if part < 2 else 0 for part, j in picks]
        first = shuffled(b, vectors[0], vectors[1], places + [0] * (lanes - len(places)), pinned)
        wanted = [n if part < 2 else lanes + j for n, (part, j) in enumerate(picks)]
        return shuffled(b, first, vectors[2], wanted, pinned)
    found: list[list[int]] = [[] for _ in range(0, len(vectors), 2)]
    again: list[Pick] = []
    for part, j in picks:
        again.append((part // 2, len(found[part // 2])))
        found[part // 2].append(part % 2 * lanes + j)
    each = max(2, 1 << (max(map(len, found)) - 1).bit_length())  # a vector has two lanes at least
    pairs = [vectors[n : n + 2] for n in range(0, len(vectors), 2)]
    joined = [
        shuffled(b, pair[0], pair[-1], places + [0] * (each - len(places)), pinned)
        for pair, places in zip(pairs, found, strict=True)
    ]
    return picked(b, joined, again, pinned)


def shuffled(b: Builder, first: Value, second: Value, picks: Sequence[int], pinned: bool = False) -> Value:
    """The lanes `picks` of two vectors of as many lanes. Short ones that fill longer registers double on the way: GCC
    has no instruction for more, and goes by way of memory."""
    size = first.lane_bits // 8
    widest, shortest = min(len(picks) * size, b.vectors.register_bytes), b.vectors.narrowest_bytes
    while widest > shortest and first.lanes * size < widest // 2:
        whole = 2 * first.lanes
        both = tuple(n % whole for n in range(max(whole, shortest // size)))
        first = second = _shuffled(b, Shuffle(first, second, both), pinned)
    return _shuffled(b, Shuffle(first, second, tuple(picks)), pinned)


def _shuffled(b: Builder, op: Shuffle, pinned: bool) -> Value:
    a = op.a
    return b.define(op, a.type, len(op.picks), hint=a.name, mask_bits=a.mask_bits, pinned=pinned)
