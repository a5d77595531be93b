"""Values that take turns: each is tested, but not each with each of what has nothing to do with it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle


def in_turn(values: Iterable[object], *others: Iterable[object]) -> list[tuple[object, ...]]:
    """Each of `values`, with the next of each of the others: these begin again where they end."""
    return list(zip(values, *map(cycle, others), strict=False))
