"""Reads across rows of memory, of points computed side by side: what these read of each row is loaded as vectors of
neighbours, and blocks of as many rows as vectors have lanes are transposed in registers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS
from tilesmith.scheduler.analysis.transposed_reads import dims_along_rows
from tilesmith.scheduler.features.groups.transposed_reads import SHUFFLED_BYTES
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import BOOL
from tilesmith.scheduler.lowering.memory import neighbours, place_in_row
from tilesmith.scheduler.lowering.transposition import columns

MOST_LOADED = MOST_CHANNELS
"""Elements of blocks for each that is read, at most: one of the channels of pixels is no more than that."""

Key = tuple[int, str, int, Index, tuple[Index, ...], tuple[int, ...]]
"""The elements of a block's rows; the image or stage, and its component; where in a row, but for a number; the rows."""


def transposed_dims(
    stage: Stage, along: str, inlined: Mapping[str, Stage], buffers: Mapping[tuple[str, int], Buffer]
) -> dict[str, int]:
    """The dims of `stage` in which blocks of points read across rows, where vectors run `along` another; and the points
    of a block."""

    def rows(name: str) -> tuple[tuple[str, ...], tuple[str, ...], int] | None:
        if name in inlined:
            return inlined[name].dims, (), 1
        buffer = buffers.get((name, 0))
        if buffer is None:
            return None
        near = (buffer.unit, buffer.pixels) if buffer.channels else (buffer.unit,)
        return buffer.dims, tuple(buffer.dims[d] for d in near) if buffer.dims else (), buffer.type.bytes

    found = dims_along_rows(stage, along, inlined, rows)
    return {dim: SHUFFLED_BYTES // size for dim, size in found.items()}


@dataclass(slots=True)
class TransposedReads:
    """Reads across rows: what is evaluated first is only noted, and thrown away; then it is settled where blocks begin
    that have the places in rows which were found, and what is read there is a part of one."""

    places: dict[Key, set[int]] = field(default_factory=dict)
    starts: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    noting: bool = True

    def settle(self) -> bool:
        """Decides where blocks begin; False where there are none."""
        self.noting = False
        for key, found in self.places.items():
            size, first, last = key[0], min(found), max(found)
            starts = (*range(first, last - size + 1, size), last - size + 1)
            if last - first + 1 >= size and len(starts) * size <= MOST_LOADED * len(found):
                self.starts[key] = starts
        return bool(self.starts)

    def read(self, b: Builder, buffer: Buffer, lanes: tuple[Lane, ...], at_least: int) -> Value | None:
        """The elements at `lanes`, each in a row of its own; None of others, where no block has them, and where
        registers are less than what is loaded of a row."""
        crossed = [d for d, lane in enumerate(lanes) if not lane.uniform]
        if len(crossed) != 1 or crossed[0] == buffer.unit or buffer.type == BOOL:
            return None
        d = crossed[0]
        pattern, size, place = lanes[d].pattern, SHUFFLED_BYTES // buffer.type.bytes, place_in_row(b, buffer, lanes)
        if pattern is None or place is None or b.register_lanes(buffer.type) < size:
            return None
        rest = tuple(lane.base for n, lane in enumerate(lanes) if n not in (buffer.unit, buffer.pixels) or n == d)
        key = (size, buffer.stage, buffer.component, place - place.const, rest, pattern)
        if self.noting:
            self.places.setdefault(key, set()).add(place.const)
            return None
        starts = self.starts.get(key)
        if starts is None or not starts[0] <= place.const < starts[-1] + size:
            return None
        start = starts[bisect_right(starts, place.const) - 1]

        def make() -> list[Value]:
            rows = ((*lanes[:d], Lane(lanes[d].base + n), *lanes[d + 1 :]) for n in pattern)
            first = place + (start - place.const)
            return columns(b, [neighbours(b, buffer, row, first, size, at_least) for row in rows])

        found = b.remember(b.depth, ("transposed", key, start), make)
        assert isinstance(found, list)
        value = found[place.const - start]
        assert isinstance(value, Value)
        return value
