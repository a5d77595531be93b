"""The loop IR: what lowering makes, passes rewrite and backends print. Loops, boxes, allocations, stores, and
straight-line code in static single assignment over scalars and explicit vectors."""

from __future__ import annotations

from typing import TypeAlias

from tilesmith.records import record
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow
from tilesmith.scheduler.ir.loop.ops import Operation
from tilesmith.scheduler.ir.loop.signature import Argument, Parameter, Table
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, LaneOffset, Pointer, Value

# definitions ------------------------------------------------------------


@record(frozen=True, slots=True)
class Define:
    """`result` = the value of an operation."""

    result: Value
    op: Operation


@record(frozen=True, slots=True)
class RowPointer:
    """`result` points at the row of `buffer` at `offset` elements: what is left is the index along the unit dim."""

    result: Pointer
    buffer: Buffer
    offset: Index


@record(frozen=True, slots=True)
class Let:
    """An integer that does not change."""

    name: str
    value: Index


@record(frozen=True, slots=True)
class MutableIndex:
    """An integer that `AssignIndex` changes."""

    name: str
    value: Index


@record(frozen=True, slots=True)
class AssignIndex:
    """The next value of a `MutableIndex`."""

    name: str
    value: Index


@record(frozen=True, slots=True)
class Accumulator:
    """A mutable scalar or vector that starts with `start`."""

    result: Value
    start: Value


@record(frozen=True, slots=True)
class Assign:
    """The next value of an `Accumulator`."""

    target: Value
    value: Value


# memory ------------------------------------------------------------


@record(frozen=True, slots=True)
class Store:
    """`value` to `row[index]`; a vector to as many neighbours, only to those `within` a range of indices if there is
    one."""

    buffer: Buffer
    row: Pointer
    index: Index
    value: Value
    within: Ends | None = None


@record(frozen=True, slots=True)
class Scatter:
    """The lanes of `value` to places of their own, only lanes whose index in the first dim is `within` a range if there
    is one."""

    buffer: Buffer
    row: Pointer
    offsets: tuple[LaneOffset, ...]
    value: Value
    within: Ends | None = None


@record(frozen=True, slots=True)
class StreamAligned:
    """A streaming (non-temporal) store of a whole vector of memory, the one that the first of `value` belongs to: of
    the lanes `picks` of the vector of neighbours `before` and of `value`; the rest is due with the vector that follows.
    It streams where `apart`, how many vectors the block of stores begins beyond a line, is 0. Only elements `within` a
    range are written if there is one."""

    buffer: Buffer
    row: Pointer
    index: Index
    value: Value
    before: Value
    picks: Value
    apart: Index
    within: Ends | None = None


@record(frozen=True, slots=True)
class StreamLine:
    """A streaming (non-temporal) store of a vector that is the `part`-th of those that a block consists of, which
    streams where its first begins a line. The vector is `moved` so far to the left: what the others leave of it is
    written."""

    buffer: Buffer
    row: Pointer
    index: Index
    value: Value
    moved: Index
    part: int = 0


@record(frozen=True, slots=True)
class Fence:
    """The end of the work of a thread: what it streamed is there before anything that follows."""


@record(frozen=True, slots=True)
class Prefetch:
    """A prefetch of the cache line of `row[index]`, which need not exist. `far`: it is not needed soon. `place` is the
    row's among those of the same number `rows`, which one loop walks side by side, and which are `step` of them further
    on in the next iteration of the loop around: rows are asked for that the next iteration does not find in the
    caches."""

    row: Pointer
    index: Index
    far: bool = False
    rows: int = 0
    place: int = 0
    step: int = 1


@record(frozen=True, slots=True)
class PrefetchEnds:
    """A prefetch for ownership of the cache lines that `row[first]` to `row[last]` begin and end in, where they do not
    have the whole of them: those are loaded before they can be stored."""

    row: Pointer
    first: Index
    last: Index


# control ------------------------------------------------------------


@record(frozen=True, slots=True)
class OverflowGuard:
    """The call ends with TILESMITH_E_ARGUMENT where one of `low` is below the 32 bits of coordinates, one of `high`
    above, or one of `wide` beyond 64 bits."""

    low: tuple[Index, ...]
    high: tuple[Index, ...]
    wide: tuple[Index, ...] = ()


@record(frozen=True, slots=True)
class PeelVectors:
    """Loop peeling: cuts lo <= x < end into a part for vectors and what is left for scalars.

    Vectors start at multiples of `align` (a divisor of `lanes`), from `first` to `last` (in units of `align`);
    they cover [from_, to); `from_` is empty where nothing asks for it. Where none fits, or an index of `given` is
    negative, `last` < `first` and the covered part is empty.
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


@record(frozen=True, slots=True)
class ClampedIndex:
    """The variable of a loop as its body sees it, no less than `first` and no more than `last` where these are: the
    final vector is moved back onto the row instead of running past it."""

    name: str
    first: Index | None = None
    last: Index | None = None


@record(frozen=True, slots=True)
class Loop:
    """for `var` in lo..hi (inclusive) by `step`. `skip` jumps over [from, to). Of a `parallel` loop threads take some
    iterations at a time that follow each other. One that runs `once` has mostly one iteration."""

    var: str
    lo: Index
    hi: Index
    step: Index
    body: Body
    parallel: bool = False
    once: bool = False
    skip: Ends | None = None
    seen: ClampedIndex | None = None
    comment: str = ""


@record(frozen=True, slots=True)
class PeeledLoop:
    """A loop with peeled ends: `body` for `var` in lo..hi (inclusive), but for `skip`, [from, to), in place of which
    `middle` runs, once, even if it skips nothing; lo <= from <= to <= hi + 1. It has the careful code of a row's ends
    once, and between them the loop whose iterations need no care."""

    var: str
    lo: Index
    hi: Index
    skip: Ends
    body: Body
    middle: Body
    comment: str = ""


@record(frozen=True, slots=True)
class Apart:
    """A block that takes little of the time: a backend may make it a function of its own. `seldom`: most calls do
    without it."""

    body: Body
    seldom: bool = False


@record(frozen=True, slots=True)
class Ordered:
    """The end of the body of a parallel loop, of which the iterations run one after the other, in their order."""

    body: Body


@record(frozen=True, slots=True)
class Function:
    """A block that `Invoke` runs: the loops of groups that are alike. Each says what the integers `symbols`, the memory
    of `buffers` and the layouts `scratch` of threads' buffers are in it, which have no extents of their own; other
    names mean what they do where it stands, outside of all blocks. No two of its buffers share memory."""

    name: str
    symbols: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: Body
    scratch: tuple[Scratch, ...] = ()
    comment: str = ""


@record(frozen=True, slots=True)
class Invoke:
    """The block of a `Function`, with `symbols`, `buffers` and layouts in the order in which it has them."""

    function: str
    symbols: tuple[Index, ...]
    buffers: tuple[Buffer, ...]
    scratch: tuple[Scratch, ...] = ()


@record(frozen=True, slots=True)
class If:
    """`body` where every index of `nonnegative` is at least 0 and `condition` holds, else `otherwise`."""

    nonnegative: tuple[Index, ...]
    body: Body
    condition: Value | None = None
    otherwise: Body = ()


@record(frozen=True, slots=True)
class Comment:
    """A line for the reader."""

    text: str


# allocation ------------------------------------------------------------


@record(frozen=True, slots=True)
class Extents:
    """The extents of a buffer in memory: elements per dim, fastest first (`order` are the dims in that order)."""

    buffer: Buffer
    order: tuple[int, ...]
    extents: tuple[Index, ...]


@record(frozen=True, slots=True)
class Scratch:
    """The layout of the buffers that every thread has of its own; it defines their strides."""

    name: str
    buffers: tuple[Extents, ...]


@record(frozen=True, slots=True)
class Bind:
    """The pointers of this thread's buffers, inside of the threads' loop."""

    scratch: Scratch


@record(frozen=True, slots=True)
class Allocate:
    """A buffer of the whole call, of a stage that is computed at root; it defines its strides. Where the image `place`
    has just its points, that may be its memory, and nothing is copied there."""

    memory: Extents
    place: Buffer | None = None


@record(frozen=True, slots=True)
class Free:
    """The end of an `Allocate`."""

    buffer: Buffer


@record(frozen=True, slots=True)
class CopyOut:
    """The region of an output that the caller asked for, from the stage's own buffer."""

    output: Buffer
    source: Buffer


Stores: TypeAlias = Store | Scatter | StreamAligned | StreamLine

Statement: TypeAlias = (
    Define
    | RowPointer
    | Let
    | MutableIndex
    | AssignIndex
    | Accumulator
    | Assign
    | Store
    | Scatter
    | StreamAligned
    | StreamLine
    | Fence
    | Prefetch
    | PrefetchEnds
    | OverflowGuard
    | PeelVectors
    | Loop
    | PeeledLoop
    | Apart
    | Ordered
    | If
    | Function
    | Invoke
    | Comment
    | Scratch
    | Bind
    | Allocate
    | Free
    | CopyOut
    | Compute
    | FusedRow
)

Body: TypeAlias = tuple[Statement, ...]


# the whole ------------------------------------------------------------


AVX512_BYTES = 64
"""Bytes of the registers of x86-64 that come with registers for masks."""


@record(frozen=True, slots=True)
class Program:
    """A whole C function as a loop program.

    `buffers` are the memory of the arguments. `derived` are integers that follow from the params: `derivation` defines
    them, ahead of everything else.

    `bounds` computes every root box from the outputs' regions; `required` has, per image argument that the
    computation reads or writes, the box that it must contain (lo, hi per dim). `body` runs when all do.
    `estimates` are the bytes of every buffer that the schedule declares, at the estimates.

    Of the machine it has the `architecture`, bytes of a line and of a vector register, vectors that a loop may carry
    from one iteration to the next, bytes of the smallest element that one instruction takes from any lane, and the
    distance at whose multiples rows crowd the sets of the first cache.
    """

    name: str
    doc: str
    method: str
    arguments: tuple[Argument, ...]
    params: tuple[Parameter, ...]
    buffers: tuple[Buffer, ...]
    bounds: Body
    required: tuple[tuple[str, tuple[tuple[Index, Index], ...]], ...]
    body: Body
    estimates: tuple[tuple[str, int], ...]
    strict: bool
    line_bytes: int
    register_bytes: int
    carried_vectors: int
    permuted_bytes: int
    crowded_bytes: int
    architecture: str
    derived: tuple[Parameter, ...] = ()
    derivation: Body = ()
    tables: tuple[Table, ...] = ()

    @property
    def masks_are_bits(self) -> bool:
        """True if masks of vectors have registers of their own, a bit for each lane, on such a machine (AVX-512)."""
        return self.architecture == "x86_64" and self.register_bytes == AVX512_BYTES
