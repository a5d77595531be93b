"""Lanes of vectors along rows, by the rows' length."""

from __future__ import annotations

from tilesmith.platforms import Platform
from tilesmith.scheduler.search.params import PARAMS


def lanes_along(length: int, points: float, element_bytes: int, platform: Platform) -> int:
    """Lanes of vectors of elements of so many bytes along rows of `length`, of `points` in all: as many as a register
    has, or fewer where many rows fill part of one. 0 where rows are shorter than a vector."""
    lanes = platform.vector_bytes // max(1, element_bytes)
    if length < lanes and length.bit_count() == 1 and points >= PARAMS.short_rows * length:
        lanes = max(platform.vector_unit.narrowest_bytes // max(1, element_bytes), length)
    return 0 if lanes < 2 or length < lanes else lanes
