"""Padding of buffers: distances of rows and planes, and the bytes that a buffer takes with them."""

from __future__ import annotations

from tilesmith.platforms import load
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.padding import buffer_bytes, pitch
from tilesmith.scheduler.ir.loop.program import Extents
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT16


def bytes_of(memory: Buffer, *extents: int) -> int:
    order = tuple(range(len(extents)))
    return buffer_bytes(Extents(memory, order, tuple(map(const, extents))), lambda x: x.const, 64, 2048)


def test_planes_of_whole_pages_lie_apart() -> None:
    assert pitch(1280, 64, 2048) == 1280
    assert pitch(480 * 1280, 64, 2048) == 480 * 1280 + 256
    assert pitch(2560 * 4, 64, 2048) == 2560 * 4 + 128
    paths = Buffer("path", 0, INT16, ("x", "y", "d"), 0, "thread", room=64)
    assert bytes_of(paths, 640, 480, 24) == (480 * 1280 + 256) * 24 + 128
    assert bytes_of(paths, 640) == 1280 + 128


def test_channels_of_pixels_lie_dense() -> None:
    pixels = Buffer("f", 0, FLOAT32, ("c", "x", "y"), 0, "call", channels=3, pixels=1)
    assert bytes_of(pixels, 3, 85, 4) == 1024 * 4  # rows of 1020 bytes, in whole lines


def test_rows_are_crowded_where_the_ways_hold_fewer_than_prefetchers_follow() -> None:
    """In 32 KB 16 rows 2048 bytes apart share all lines of the sets that they reach, in 64 KB 32 do."""
    for name, apart in (("i7-6700", 2048), ("cortex-a73", 4096)):
        machine = load(name)
        assert machine.caches[0].crowded_bytes(machine.core.prefetch.rows) == apart
        assert (
            machine.caches[0].size_bytes // apart
            < machine.core.prefetch.rows
            <= machine.caches[0].size_bytes // apart * 2
        )
