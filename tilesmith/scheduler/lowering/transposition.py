"""Blocks of elements, transposed in registers."""

from __future__ import annotations

from collections.abc import Sequence

from tilesmith.scheduler.features.groups.transposed_reads import SHUFFLED_BYTES
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Value


def transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of as many rows as they have lanes: in parts of registers by interleaving, then part by part."""
    lanes, size = len(rows), rows[0].type.bytes
    within = min(lanes, max(SHUFFLED_BYTES // size, 1))
    parts = lanes // within
    groups = [_interleaved(b, rows[g * within : (g + 1) * within], within) for g in range(parts)]
    found: list[Value | None] = [None] * lanes
    for column in range(within):
        for part, value in enumerate(_by_part(b, [g[column] for g in groups], within)):
            found[part * within + column] = value
    return [v for v in found if v is not None]


def columns(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of rows that each fill a part of a register, any power of two of them. Where they are more than it
    has elements, several are put into parts of one register first, so that no element leaves its part."""
    count, size = len(rows), rows[0].lanes
    if count <= size:
        flat = _interleaved(b, rows, size)
        places = (divmod(column * count, size) for column in range(size))
        return [flat[n] if count == size else _shuffled(b, flat[n], flat[n], range(at, at + count)) for n, at in places]
    lanes = min(count, b.register_lanes(rows[0].type))
    registers = []
    for first in range(0, count, lanes):
        parts = range(first, first + lanes, size)
        registers.append(_interleaved(b, [joined(b, [rows[p + n] for p in parts]) for n in range(size)], size))
    return [joined(b, same) for same in zip(*registers, strict=True)]


def joined(b: Builder, parts: Sequence[Value]) -> Value:
    """Vectors of as many lanes, a power of two of them, as one."""
    while len(parts) > 1:
        both = range(2 * parts[0].lanes)
        parts = [_shuffled(b, x, y, both) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _interleaved(b: Builder, group: Sequence[Value], within: int) -> list[Value]:
    """A power of two of vectors, of which those that are half of their number apart are interleaved, in each part of
    so many elements, as often as doubles that number."""
    lanes, half = group[0].lanes, len(group) // 2
    low = [n for part in range(0, lanes, within) for i in range(within // 2) for n in (part + i, lanes + part + i)]
    high = [n + within // 2 for n in low]
    for _ in range(len(group).bit_length() - 1):
        group = [_shuffled(b, group[i], group[i + half], picks) for i in range(half) for picks in (low, high)]
    return list(group)


def _by_part(b: Builder, values: list[Value], size: int) -> list[Value]:
    """A transposition of whole parts: vector n of the result has part n of each."""
    if len(values) == 1:
        return values
    parts = values[0].lanes // size
    picks = [[p * size + i for p in range(first, 2 * parts, 2) for i in range(size)] for first in (0, 1)]
    pairs = list(zip(values[::2], values[1::2], strict=True))
    even, odd = (_by_part(b, [_shuffled(b, x, y, p) for x, y in pairs], size) for p in picks)
    return [v for both in zip(even, odd, strict=True) for v in both]


def _shuffled(b: Builder, x: Value, y: Value, picks: Sequence[int]) -> Value:
    return b.define(ops.Shuffle(x, y, tuple(picks)), x.type, len(picks))
