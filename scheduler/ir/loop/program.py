"""The loop program: what lowering makes and emission prints. Loops, boxes, allocations, stores, and
straight-line code in static single assignment over scalars and explicit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from scheduler.ir.index import Index
from scheduler.ir.pipeline.types import ScalarType


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar (`lanes` 1) or vector in a register: a name, or a literal.

    A bool vector is a mask of integers of `mask_bits` bits, 0 or -1 a lane.
    """

    type: ScalarType
    lanes: int = 1
    name: str = ""
    literal: int | float | bool | None = None
    mask_bits: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """An index that may differ from lane to lane: `base` + `pattern[lane]`, or `base` + `vector[lane]`, of integers.
    Both None: the same in all lanes. With `run` the vector is one of neighbours, clamped: no lane is less than the one
    before it, nor more than one above, where `room` is not negative. `most` is what no lane of a vector that is never
    negative exceeds, if known."""

    base: Index
    pattern: tuple[int, ...] | None = None
    vector: Value | None = None
    run: bool = False
    most: int | None = None
    room: Index | None = None

    @property
    def uniform(self) -> bool:
        """Whether all lanes agree."""
        return self.pattern is None and self.vector is None


@dataclass(slots=True)
class Buffer:
    """Memory of an input, output, or stage (one per tuple component).

    Element (i, j, ...) is at `sum(stride[d] * (i_d - origin[d]))` from `pointer`; a dim with a ring keeps
    `i_d % ring` instead of `i_d - origin[d]`. `extent` counts its elements per dim; `unit` is the dim with
    stride 1. Where that is expected to have `channels` elements and no more, the elements of `pixels`, the dim that
    follows in memory, are expected to lie side by side; 0 expects nothing. `where` says who owns the memory: the
    caller, the call (one allocation for the whole image), or a thread (scratch).
    """

    stage: str
    component: int
    type: ScalarType
    dims: tuple[str, ...]
    unit: int
    where: Literal["argument", "call", "thread", "registers"]
    pointer: str = ""
    origin: list[Index] = field(default_factory=list)
    stride: list[Index] = field(default_factory=list)
    ring: list[int | None] = field(default_factory=list)
    extent: list[Index] = field(default_factory=list)
    channels: int = 0
    pixels: int = -1


Operand: TypeAlias = Value | Index | Lane


@dataclass(frozen=True, slots=True)
class Define:
    """`result` = `op` of `args`; the emitter knows every op. `attrs` are constants of the op."""

    result: Value
    op: str
    args: tuple[Operand, ...]
    attrs: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """`result` points at the row of `buffer` at `offset` elements: what is left is the index along the unit dim."""

    result: str
    buffer: Buffer
    offset: Index


@dataclass(frozen=True, slots=True)
class Store:
    """`value` to `row[index]`; a vector to as many neighbours, or lane by lane where `scatter` says, only lanes
    with an index in `within` if there is one.

    With `stream` it is a streaming (non-temporal) store, of a whole line together with those beside it. With `before`,
    the vector of neighbours before, the vector of memory that the first of `value` belongs to is filled with the lanes
    `picks` of both, and the rest is due with the vector that follows; it streams where `apart`, how many vectors the
    block of stores begins beyond a line, is 0. Without `before` the vector is `moved` so far to the left, and is the
    `part`-th of those that the block consists of, which streams where its first begins a line.
    """

    buffer: Buffer
    row: str
    index: Index
    value: Value
    scatter: tuple[Gathered, ...] = ()
    within: tuple[Index, Index] | None = None
    stream: bool = False
    before: Value | None = None
    picks: Value | None = None
    apart: Index | None = None
    moved: Index | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class Fence:
    """Ends the work of a thread: what it wrote past the caches is there before anything that follows."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A prefetch of the cache line of `row[index]`, which need not exist. `far`: it is not needed soon. `place` is the
    row's among the `rows` that one loop walks side by side, which is `step` of them further on in the next iteration of
    the loop around: rows are asked for that the next iteration does not find in the caches."""

    row: str
    index: Index
    far: bool = False
    rows: object = None
    place: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True)
class AskEnds:
    """A prefetch for ownership of the cache lines that `row[first]` to `row[last]` begin and end in, where they do not
    have the whole of them: those are loaded before they can be stored."""

    row: str
    first: Index
    last: Index


@dataclass(frozen=True, slots=True)
class Gathered:
    """One dim of an address that differs from lane to lane: (lane - origin) * stride, or (lane % ring) * stride.
    `within` clamps the lane's index."""

    lane: Lane
    stride: Index
    origin: Index
    ring: int | None
    within: tuple[Index, Index] | None = None


def told_by_vectors(dims: Sequence[Gathered], lanes: int) -> bool:
    """Whether vectors tell where the lanes of a gather are, each of them as it is."""
    return all(g.within is None and g.lane.vector is not None and g.lane.vector.lanes == lanes for g in dims)


@dataclass(frozen=True, slots=True)
class Let:
    """An integer that does not change."""

    name: str
    value: Index


@dataclass(frozen=True, slots=True)
class Reach:
    """The call ends with TILESMITH_E_ARGUMENT where one of `low` is below the 32 bits of coordinates, one of `high`
    above, or one of `wide` beyond 64 bits."""

    low: tuple[Index, ...]
    high: tuple[Index, ...]
    wide: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Mutable:
    """An integer that `SetIndex` changes."""

    name: str
    value: Index


@dataclass(frozen=True, slots=True)
class SetIndex:
    """Gives a `Mutable` its next value."""

    name: str
    value: Index


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A mutable scalar or vector that starts with `start`."""

    result: Value
    start: Value


@dataclass(frozen=True, slots=True)
class Assign:
    """Gives an `Accumulator` its next value."""

    target: Value
    value: Value


@dataclass(frozen=True, slots=True)
class VectorSplit:
    """Cuts lo <= x < end into a part for vectors and what is left for scalars.

    Vectors start at multiples of `align` (a divisor of `lanes`), from `first` to `last` (in units of `align`);
    they cover [from_, to). Where none fits, or an index of `given` is negative, `last` < `first` and the covered part
    is empty.
    """

    first: str
    last: str
    from_: str
    to: str
    lo: Index
    end: Index
    lanes: int
    align: int
    given: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """for `var` in lo..hi (inclusive) by `step`. `skip` jumps over [from, to). `last` clamps the variable that
    the body sees, `(name, last)`: the final vector is moved back onto the row instead of running past it; with an
    empty `last` none has to be. `first` clamps it too, where the loop begins before the row. Of a `parallel` loop
    threads take some iterations at a time that follow each other."""

    var: str
    lo: Index
    hi: Index
    step: Index
    body: tuple[Statement, ...]
    parallel: bool = False
    skip: tuple[str, str] | None = None
    last: tuple[str, str] | None = None
    first: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class If:
    """`body` where every index of `nonnegative` is at least 0 and `condition` holds, else `otherwise`."""

    nonnegative: tuple[Index, ...]
    body: tuple[Statement, ...]
    condition: Value | None = None
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """A line for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Extents:
    """The extents of a buffer in memory: elements per dim, fastest first (`order` are the dims in that order)."""

    buffer: Buffer
    order: tuple[int, ...]
    extents: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Scratch:
    """Lays out the buffers that every thread has of its own; the emitter pads the rows and names the strides."""

    buffers: tuple[Extents, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Inside the threads' loop: the pointers of this thread's buffers."""

    scratch: Scratch


@dataclass(frozen=True, slots=True)
class Allocate:
    """A buffer of the whole call: of a stage that is computed at root."""

    memory: Extents


@dataclass(frozen=True, slots=True)
class Free:
    """The end of an `Allocate`."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class CopyOut:
    """The region of an output that the caller asked for, from the stage's own buffer."""

    output: Buffer
    source: Buffer


Statement: TypeAlias = (
    Define
    | Row
    | Store
    | Let
    | Reach
    | Mutable
    | SetIndex
    | Accumulator
    | Assign
    | VectorSplit
    | Loop
    | If
    | Comment
    | Scratch
    | Bind
    | Allocate
    | Free
    | CopyOut
    | Fence
    | Prefetch
    | AskEnds
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An image of the C function: an input, or one component of an output. `made_by` is the stage whose value the
    output is: another of that is asked for on the same region."""

    name: str
    c_name: str
    type: ScalarType
    dims: tuple[str, ...]
    storage: tuple[str, ...]
    output: bool
    made_by: str | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar of the C function. What is computed relies on `min` <= value <= `max` where they are not None."""

    name: str
    c_name: str
    type: ScalarType
    min: int | float | None
    max: int | float | None


@dataclass(frozen=True, slots=True)
class Program:
    """A whole C function as a loop program.

    `derived` are integers that follow from the params: `derivation` defines them, ahead of everything else.

    `bounds` computes every root box from the outputs' regions; `required` has, per image argument that the
    computation reads or writes, the box that it must contain (lo, hi per dim). `body` runs when all do.
    `estimates` are the bytes of every buffer that the schedule declares, at the estimates.
    """

    name: str
    doc: str
    method: str
    arguments: tuple[Argument, ...]
    params: tuple[Parameter, ...]
    bounds: tuple[Statement, ...]
    required: tuple[tuple[str, tuple[tuple[Index, Index], ...]], ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    estimates: tuple[tuple[str, int], ...]
    strict: bool
    line_bytes: int
    register_bytes: int
    architecture: str
    derived: tuple[Parameter, ...] = ()
    derivation: tuple[Statement, ...] = ()
