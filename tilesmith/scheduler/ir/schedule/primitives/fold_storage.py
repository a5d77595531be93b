"""Storage folding: a buffer of the rows that are alive, used in turn."""

from __future__ import annotations

from tilesmith.scheduler.ir.schedule.primitives.forms import Flag
from tilesmith.scheduler.ir.schedule.primitives.primitive import Primitive
from tilesmith.scheduler.ir.schedule.schedule import Placement


class FoldStorage(Primitive[bool]):
    """A ring of the size of the sliding window instead of the whole region, where that is provable.

    allocate g(x, y)              allocate g(x, y % 4)
    for y.inner:            ->    for y.inner:
      produce g(x, y + 2)           produce g(x, (y + 2) % 4)
    """

    key = "fold"
    records = (Placement,)
    default = True
    always = True
    form = Flag

    def difference(self, value: bool) -> str:
        return "folded" if value else "whole"

    def allocation(self, placement: Placement, line: str) -> str:
        slides = placement.compute != placement.store and placement.storage == "memory"
        return f"{line}, folded to its window" if placement.fold and slides else line
