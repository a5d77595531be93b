"""Lanes of vectors along rows, by the rows' length."""

from __future__ import annotations

from tilesmith.platforms import Platform
from tilesmith.scheduler.search.params import PARAMS


def lanes_along(length: int, points: float, element_bytes: int, platform: Platform) -> int:
    """Lanes of vectors of elements of so many bytes along rows of `length`, of `points` in all: as many as a register
    has, or fewer where many rows fill part of one: as many as these have room for. 0 where rows are shorter."""
    lanes = platform.vector_bytes // max(1, element_bytes)
    if 0 < length < lanes and points >= PARAMS.short_rows * length:
        lanes = max(platform.vector_unit.narrowest_bytes // max(1, element_bytes), 1 << (length.bit_length() - 1))
    return 0 if lanes < 2 or length < lanes else lanes
