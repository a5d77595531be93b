"""Operations of the loop IR: what a definition computes. Each is compared by value, and has no effect; its operands are
values, indices and pointers to rows, everything else of it is constant.

Scalars among the operands of a vector operation stand for all lanes. Semantics of operators and functions are those of
`tilesmith.scheduler.ir.pipeline.semantics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tilesmith.records import record
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.values import LaneOffset, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import ScalarType

PART_BYTES = 16
"""Bytes of the parts of longer registers within which machines pack and permute by one instruction."""

# element by element ------------------------------------------------------------

UnaryOperator: TypeAlias = Literal["-", "~", "not"]
BinaryOperator: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
Comparison: TypeAlias = Literal["<", "<=", "==", "!=", ">=", ">"]


@record(frozen=True, slots=True)
class Unary:
    """`op` of a value: of bools `not`, of numbers the others."""

    op: UnaryOperator
    a: Value


@record(frozen=True, slots=True)
class Binary:
    """`a op b`, both of the result's type but the count of a shift; of bools `&`, `|` and `^` only."""

    op: BinaryOperator
    a: Value
    b: Value


@record(frozen=True, slots=True)
class Compare:
    """`a op b`, of values of one type; the result is a bool."""

    op: Comparison
    a: Value
    b: Value


@record(frozen=True, slots=True)
class Logical:
    """`a and b`, `a or b`, of bools; both are evaluated."""

    op: Literal["and", "or"]
    a: Value
    b: Value


@record(frozen=True, slots=True)
class Select:
    """`a` where the condition holds, else `b`."""

    condition: Value
    a: Value
    b: Value


@record(frozen=True, slots=True)
class Call:
    """A built-in function of the pipeline language."""

    function: str
    args: tuple[Value, ...]


@record(frozen=True, slots=True)
class FusedProduct:
    """`a b + c` of floats: one instruction where there is one, in this order of sums."""

    a: Value
    b: Value
    c: Value


# conversions ------------------------------------------------------------


@record(frozen=True, slots=True)
class Cast:
    """The value as the result's type: integers wrap, or go to the nearest one where `saturate`; floats are truncated,
    saturate, and NaN is 0."""

    a: Value
    saturate: bool = False


@record(frozen=True, slots=True)
class Truncate:
    """Floats whose integer part fits the result's type, as integers of no more bits."""

    a: Value


@record(frozen=True, slots=True)
class Narrow:
    """The lanes of two vectors of integers, or of masks, as half as wide: their low halves, or, of integers with a
    sign that `saturate`, the nearest values of the result's type. In order, or `by_parts`: in each part of PART_BYTES
    first those of that part of `a`, then those of `b`."""

    a: Value
    b: Value
    saturate: bool = False
    by_parts: bool = False


@record(frozen=True, slots=True)
class WidenPart:
    """Integers at place `part` of each group of neighbouring ones, a group as wide as an element of the result,
    converted to the type of the result."""

    a: Value
    part: int


@record(frozen=True, slots=True)
class WidenLanes:
    """The lanes `picks` of a vector of integers, converted to the type of the result, which is as long as the vector.
    Each comes from the part of PART_BYTES that it goes to."""

    a: Value
    picks: tuple[int, ...]


@record(frozen=True, slots=True)
class ResizeMask:
    """A mask of elements of another size."""

    a: Value


@record(frozen=True, slots=True)
class Broadcast:
    """A scalar in all lanes."""

    a: Value


@record(frozen=True, slots=True)
class Copy:
    """The value itself, under another name: what it holds now, where it is an accumulator. A vector that is `held` is
    in a register from here on: compilers do not load it again."""

    a: Value
    held: bool = False


# across lanes ------------------------------------------------------------


@record(frozen=True, slots=True)
class Shuffle:
    """The lanes `picks` of two vectors of one type, the lanes of the second numbered after those of the first."""

    a: Value
    b: Value
    picks: tuple[int, ...]


@record(frozen=True, slots=True)
class DotPairs:
    """Sums of two neighbouring products of int16 in int32. A scalar `b` of 32 bits has the factors of every pair."""

    a: Value
    b: Value


@record(frozen=True, slots=True)
class SumNeighbours:
    """Sums of two, four or eight neighbouring absolute differences of unsigned integers, each as wide as all of these
    together; where `b` is 0, of the neighbours themselves."""

    a: Value
    b: Value


# indices ------------------------------------------------------------


@record(frozen=True, slots=True)
class FromIndex:
    """An index as an int32."""

    at: Index


@record(frozen=True, slots=True)
class ToIndex:
    """A scalar integer as an index: the result is the symbol of its name."""

    a: Value


@record(frozen=True, slots=True)
class Lanes:
    """`at + pattern[lane]`; wraps."""

    at: Index
    pattern: tuple[int, ...]


# memory ------------------------------------------------------------


@record(frozen=True, slots=True)
class Load:
    """`row[at]`; of a vector, that and the elements after it."""

    row: Pointer
    at: Index


@record(frozen=True, slots=True)
class LoadPair:
    """`row[at]` and the element after it, each of 16 bits, as the halves of an int32, the first in the low one."""

    row: Pointer
    at: Index


@record(frozen=True, slots=True)
class ClampedLoad:
    """Clamped contiguous load: `row[at]` and the elements after it, of which `first` to `last` exist; lanes beyond have
    the nearest of these."""

    row: Pointer
    at: Index
    first: Index
    last: Index


@record(frozen=True, slots=True)
class Gather:
    """Elements at `row[sum of offsets]`, lane by lane; where that is `narrow` the sum has 32 bits with a sign."""

    row: Pointer
    offsets: tuple[LaneOffset, ...]
    narrow: bool = False


PAIRED_BITS = 32
"""Bits of elements that pairs and fours are gathered of: two are one number of the widest type that there is."""
PAIRED_LANES = 4
"""Lanes of vectors that pairs are gathered for, at least: those of half of them are a vector of two pairs."""


@record(frozen=True, slots=True)
class GatherPairs:
    """Half of the lanes of a gather, the first or the second, each followed by its right neighbour in memory; `narrow`
    as of the gather."""

    row: Pointer
    offsets: tuple[LaneOffset, ...]
    half: int
    narrow: bool = False


@record(frozen=True, slots=True)
class GatherFours:
    """Every fourth lane of a gather from `part` on, each followed by its three right neighbours in memory."""

    row: Pointer
    offsets: tuple[LaneOffset, ...]
    part: int


@record(frozen=True, slots=True)
class MonotoneGather:
    """Elements at `row[at]`, of neighbours that are clamped. The row is at least a vector long where `enough` is not
    negative; `last` is the last place where a whole vector fits."""

    row: Pointer
    at: Value
    enough: Index
    last: Index


@record(frozen=True, slots=True)
class WindowGather:
    """Elements at `row[at]`, of places that lie near each other as a rule. The row has `enough` elements more than the
    vector; `last` is the last place where a whole vector fits."""

    row: Pointer
    at: Value
    enough: Index
    last: Index


@record(frozen=True, slots=True)
class EdgeGather:
    """Elements at `row[at]`, of an image that is repeated or mirrored: neighbours from `first` on where all of these
    lie from `low` to `high`."""

    row: Pointer
    at: Value
    first: Index
    low: Index
    high: Index


LOOKUP_PART = 128
"""Elements of a part of a table that is looked up: so many fill two vectors of 64 bytes."""


@record(frozen=True, slots=True)
class Lookup:
    """Elements of a table of bytes at unsigned places, in one vector of bytes or two of 16 bits. The table has all of
    its `parts` of LOOKUP_PART elements where no index of `whole` is negative."""

    row: Pointer
    at: tuple[Value, ...]
    whole: tuple[Index, ...]
    parts: int


# alignment ------------------------------------------------------------


@record(frozen=True, slots=True)
class CarriedElements:
    """Elements between the vector of memory that `row[at]` is in and it: so many of each vector are stored with the
    next. 0 where vectors are stored as they are."""

    row: Pointer
    at: Index
    element: ScalarType
    width: int


@record(frozen=True, slots=True)
class VectorsIntoLine:
    """Vectors of memory between the beginning of a line and the one that `row[at]` is in."""

    row: Pointer
    at: Index
    element: ScalarType
    width: int


@record(frozen=True, slots=True)
class Misalignment:
    """Elements between the beginning of a line and `row[at]`, where there are streaming stores; else 0."""

    row: Pointer
    at: Index
    element: ScalarType


Loads: TypeAlias = (
    Load
    | LoadPair
    | ClampedLoad
    | Gather
    | GatherPairs
    | GatherFours
    | MonotoneGather
    | WindowGather
    | EdgeGather
    | Lookup
)
"""Operations whose result are elements of a buffer."""

Memory: TypeAlias = Loads | CarriedElements | VectorsIntoLine | Misalignment
"""Operations that have a row of a buffer."""

Operation: TypeAlias = (
    Unary
    | Binary
    | Compare
    | Logical
    | Select
    | Call
    | FusedProduct
    | Cast
    | Truncate
    | Narrow
    | WidenPart
    | WidenLanes
    | ResizeMask
    | Broadcast
    | Copy
    | Shuffle
    | DotPairs
    | SumNeighbours
    | FromIndex
    | ToIndex
    | Lanes
    | Memory
)


def told_by_vectors(offsets: Sequence[LaneOffset], lanes: int) -> bool:
    """True if vectors hold the lane offsets of a gather, each vector as it is."""
    return all(g.within is None and g.lane.vector is not None and g.lane.vector.lanes == lanes for g in offsets)
