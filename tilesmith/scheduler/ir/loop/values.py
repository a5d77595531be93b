"""Values of the loop IR: registers, indices that differ from lane to lane, pointers to rows, buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tilesmith.records import record
from tilesmith.scheduler.ir.index import Index, maximum, minimum
from tilesmith.scheduler.ir.pipeline.types import ScalarType


class Pointer(str):
    """A pointer to a row, by name: of type string, so that it is told from other names wherever it is an operand."""

    __slots__ = ()


@record(frozen=True, slots=True)
class Value:
    """A scalar (`lanes` 1) or vector in a register: a name, or a literal.

    A bool vector is a mask of integers of `mask_bits` bits, 0 or -1 a lane.
    """

    type: ScalarType
    lanes: int = 1
    name: str = ""
    literal: int | float | bool | None = None
    mask_bits: int = 0

    def __hash__(self) -> int:
        return hash((self.name, self.literal))

    @property
    def lane_bits(self) -> int:
        """Bits of a lane: those of its mask, where it is one."""
        return self.mask_bits or self.type.bits


@record(frozen=True, slots=True)
class Neighbours:
    """Places side by side from `first` on, a lane each, clamped to `low` and `high` where these are known."""

    first: Index
    low: Index | None = None
    high: Index | None = None

    def extreme(self, kind: str, end: Index) -> Neighbours:
        """The lesser (`min`) or the greater (`max`) of each place and of an end."""
        low = self.low if self.low is None else (minimum if kind == "min" else maximum)(self.low, end)
        high = self.high if self.high is None else (minimum if kind == "min" else maximum)(self.high, end)
        if kind == "min":
            return Neighbours(self.first, low, end if high is None else high)
        return Neighbours(self.first, end if low is None else low, high)

    def moved(self, by: Index) -> Neighbours:
        """The places moved on."""
        ends = (None if end is None else end + by for end in (self.low, self.high))
        return Neighbours(self.first + by, *ends)


@record(frozen=True, slots=True)
class Lane:
    """An index that may differ from lane to lane: `base` + `pattern[lane]`, or `base` + `vector[lane]`, of integers.
    Both None: the same in all lanes.

    What else lowering knows of it: with `run` the vector is one of neighbours, clamped: no lane is less than the one
    before it, nor more than one above, where `room` is not negative. `most` is what no lane of a vector that is never
    negative exceeds, if known. With `near` the places that the vector says lie near each other as a rule. `clamped`:
    the places of all lanes, of those that are side by side and clamped. `turned`: the places of all lanes where none is
    clamped: they repeat or are mirrored elsewhere, and lie between the ends as well."""

    base: Index
    pattern: tuple[int, ...] | None = None
    vector: Value | None = None
    run: bool = False
    most: int | None = None
    room: Index | None = None
    near: bool = False
    clamped: Neighbours | None = None
    turned: Neighbours | None = None

    @property
    def uniform(self) -> bool:
        """True if all lanes agree."""
        return self.pattern is None and self.vector is None

    @property
    def settled(self) -> Lane:
        """The lanes, as one index where a pattern says that all agree."""
        p = self.pattern
        return Lane(self.base + p[0]) if p and len(set(p)) == 1 else self


@record(frozen=True, slots=True)
class LaneOffset:
    """One dim of an address that differs from lane to lane: (lane - origin) * stride, or (lane % ring) * stride.
    `within` clamps the lane's index."""

    lane: Lane
    stride: Index
    origin: Index
    ring: int | None = None
    within: tuple[Index, Index] | None = None


Ends: TypeAlias = tuple[Index, Index]
"""The first and the last of a range."""

Storage: TypeAlias = Literal["argument", "call", "thread"]


@dataclass(slots=True)
class Buffer:
    """Memory of an input, output, or stage (one per tuple component).

    Element (i, j, ...) is at `sum(stride[d] * (i_d - origin[d]))` from `pointer`; a dim with a ring keeps
    `i_d % ring` instead of `i_d - origin[d]`. `extent` counts its elements per dim; `unit` is the dim with
    stride 1. Where that is expected to have `channels` elements and no more, the elements of `pixels`, the dim that
    follows in memory, are expected to lie side by side; 0 expects nothing. `where` says who owns the memory: the
    caller, the call (one allocation for the whole image), or a thread (scratch). Rows, along
    `unit`, begin with `margin` elements, and there are `room` more after the last row: no points of the stage, which
    may have any value.
    """

    stage: str
    component: int
    type: ScalarType
    dims: tuple[str, ...]
    unit: int
    where: Storage
    pointer: Pointer = field(default_factory=Pointer)
    origin: list[Index] = field(default_factory=list)
    stride: list[Index] = field(default_factory=list)
    ring: list[int | None] = field(default_factory=list)
    extent: list[Index] = field(default_factory=list)
    channels: int = 0
    pixels: int = -1
    margin: int = 0
    room: int = 0


Operand: TypeAlias = Value | Index | Lane
