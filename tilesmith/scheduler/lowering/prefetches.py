"""Prefetches that a schedule asks for: how far ahead vectors ask for what they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ahead:
    """Prefetches of vectors: `distance` bytes ahead along the rows that they read, by `rows` in dims of what they read,
    nothing where there is neither, and `again`, when it comes from the second level of caches."""

    distance: int = 0
    rows: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    again: bool = False


NOTHING_AHEAD = Ahead()
