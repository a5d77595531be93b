"""Topological order of names, producers first, ties by name."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Set
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter


def in_order(needs: Mapping[str, Set[str]]) -> list[str]:
    """The names, each after those that it needs; those on cycles, and what needs them, are left out."""
    sorter = TopologicalSorter(needs)
    with suppress(CycleError):  # what is on none is ordered all the same
        sorter.prepare()
    order: list[str] = []
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    while ready:
        order.append(heapq.heappop(ready))
        sorter.done(order[-1])
        for name in sorter.get_ready():
            heapq.heappush(ready, name)
    return order
