"""Memory of an interpreted loop program: one array a buffer, without padding. Every access is held to its rules: it
stays inside of its buffer, and no two iterations of a parallel loop touch an element that one of them writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilesmith.scheduler.ir.loop.values import Pointer, Value

Array: TypeAlias = NDArray[Any]


class MemoryFault(Exception):
    """An access that leaves its buffer, or that races with another iteration of a parallel loop."""


@dataclass(slots=True)
class Block:
    """The memory of a buffer. `writers` and `readers` are the iterations of the open parallel loop that did so last."""

    name: str
    elements: Array
    writers: Array | None = None
    readers: Array | None = None


class Memory:
    """The blocks that `pointers` point into, each with the place of its first element. `iteration` is that of the open
    parallel loop; races are looked for within one, but for what is `ordered`."""

    def __init__(self) -> None:
        self.pointers: dict[str, tuple[Block, int]] = {}
        self.iteration: int | None = None
        self.ordered = False

    def watch(self) -> None:
        """A parallel loop begins: nobody has touched anything."""
        for block, _ in self.pointers.values():
            block.writers = np.full(block.elements.size, -1)
            block.readers = np.full(block.elements.size, -1)

    def access(self, row: Pointer, at: Array) -> tuple[Block, Array]:
        """The block and the elements of it that are `at` places of a row. Raises MemoryFault."""
        block, start = self.pointers[row]
        places = np.asarray(at) + start
        if places.size and (places.min() < 0 or places.max() >= block.elements.size):
            wrong = places[(places < 0) | (places >= block.elements.size)]
            raise MemoryFault(f"'{block.name}' has {block.elements.size} elements, and is accessed at {wrong[0]}")
        return block, places

    def load(self, r: Value, row: Pointer, at: Array) -> Array:
        """The elements of a row at some places, as a value `r`. Raises MemoryFault."""
        block, places = self.access(row, at)
        if self.iteration is not None and block.writers is not None and block.readers is not None:
            self._require_own(block, places, block.writers)
            block.readers[places] = self.iteration
        found = block.elements[places]
        return found != 0 if r.type.kind == "bool" else found

    def write(self, row: Pointer, at: Array, value: Array) -> None:
        """Writes elements to some places of a row. Raises MemoryFault."""
        block, places = self.access(row, at)
        if self.iteration is not None and block.writers is not None and block.readers is not None:
            self._require_own(block, places, block.writers)
            self._require_own(block, places, block.readers)
            block.writers[places] = self.iteration
        block.elements[places] = value

    def _require_own(self, block: Block, places: Array, who: Array) -> None:
        others = places[(who[places] != -1) & (who[places] != self.iteration)]
        if others.size and not self.ordered:
            raise MemoryFault(f"race: two iterations of the parallel loop touch element {others[0]} of '{block.name}'")
