"""Padding of a pipeline's own buffers: the distances of their rows and planes, as `ts_pitch` of the C has them."""

from __future__ import annotations

from collections.abc import Callable

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.program import Extents


def pitch(row_bytes: int, line_bytes: int, crowded_bytes: int) -> int:
    """Bytes from one row of so many to the next, or from plane to plane: whole lines, never near a multiple of 4 KiB,
    nor a multiple of `crowded_bytes`, from which a pair of lines leads away: caches ask for both lines of a pair."""
    found = -(-row_bytes // line_bytes) * line_bytes
    if found < 2048:
        return found
    found += max(0, 384 - (found + 128) % 4096)
    return found + (0 if found % crowded_bytes else 2 * line_bytes)


def buffer_bytes(memory: Extents, number: Callable[[Index], int], line_bytes: int, crowded_bytes: int) -> int:
    """Bytes of a buffer whose extents are such numbers, its padding and its room included."""
    buffer = memory.buffer
    found = buffer.type.bytes
    for n, extent in enumerate(memory.extents, 1):
        found *= number(extent)
        if n < len(memory.extents) and (n > 1 or not buffer.channels):
            found = pitch(found, line_bytes, crowded_bytes)
    return found + buffer.room * buffer.type.bytes
