"""Computations of the loop IR that are not expanded yet: a box of a stage, and a row of stages that share one loop over
vectors. They are what lowering knows of a computation before it writes its loops; the pass `rows` expands them."""

from __future__ import annotations

from tilesmith.records import record
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.values import Buffer, Ends
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector


@record(frozen=True, slots=True)
class DimRange:
    """A dim, from `first` to `last`."""

    dim: str
    first: Index
    last: Index

    @property
    def ends(self) -> Ends:
        return self.first, self.last


@record(frozen=True, slots=True)
class UnrolledDim:
    """A dim to write out, expected to have so many points from `start` on; None: it begins anywhere."""

    dim: str
    extent: int
    start: int | None = None


@record(frozen=True, slots=True)
class BlockedDim:
    """A dim of which so many points are computed side by side."""

    dim: str
    points: int


@record(frozen=True, slots=True)
class RowsAhead:
    """Prefetch distance of vectors: so many rows of an image or a stage ahead, in one of its dims."""

    stage: str
    dim: int
    rows: int


@record(frozen=True, slots=True)
class Reads:
    """The memory that a computation reads, and the stages that are inlined in it, by name. Vectors prefetch so
    many bytes ahead along the rows that they read, 0 for none, and rows `ahead`."""

    buffers: tuple[Buffer, ...]
    inlined: tuple[str, ...] = ()
    prefetch: int = 0
    ahead: tuple[RowsAhead, ...] = ()


@record(frozen=True, slots=True)
class Compute:
    """The points `box` of a stage, its values and then its updates, into `buffers`. The loops are in `order`, innermost
    first, one of them over vectors. Dims of `unroll` are written out where they are as expected; of the dim `block`
    some points are computed side by side. `stream`: the vectors go past the caches."""

    stage: str
    buffers: tuple[Buffer, ...]
    box: tuple[DimRange, ...]
    order: tuple[str, ...]
    reads: Reads
    vector: Vector | None = None
    unroll: tuple[UnrolledDim, ...] = ()
    block: BlockedDim | None = None
    updates: tuple[UpdateLoops, ...] = ()
    stream: bool = False


@record(frozen=True, slots=True)
class RowStage:
    """A stage of a fused row, which moves along it in its dim number `moving`. One that has a `ring`, its box, is
    stored as well, in the row `at`: the coordinates in its other dims. The rest is in registers."""

    stage: str
    moving: int
    ring: tuple[Ends, ...] = ()
    at: tuple[Index, ...] = ()


@record(frozen=True, slots=True)
class FusedRow:
    """The points `box` of an output, in a loop over vectors along `vector.dim` that computes `stages` as well, a vector
    of each at a time. Vectors start at `anchor` and whole vectors from there; rows of rings have `room` for so many
    elements more at both ends. The other loops, in `order`, innermost first, are inside of it; dims of `unroll` are
    written out where they are as expected. In iterations that come before the first row of a dim of `waiting` only
    rings are filled. `stream`: the vectors of the output go past the caches."""

    output: str
    buffers: tuple[Buffer, ...]
    box: tuple[DimRange, ...]
    order: tuple[str, ...]
    vector: Vector
    stages: tuple[RowStage, ...]
    reads: Reads
    anchor: Index
    room: int
    unroll: tuple[UnrolledDim, ...] = ()
    waiting: tuple[str, ...] = ()
    stream: bool = False
