"""Counts of a schedule for cost models, which never see the pipeline.

Every amount is a number, or a NumPy array with one number a candidate (of tile sizes), so that one call
prices all candidates at once. Points are elements of a stage's grid; bytes are bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from numpy import ndarray

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import GroupWork, Work

T = TypeVar("T")


def pick(amount: Amount, index: tuple[int, ...]) -> float:
    """The number of one candidate; an axis of length 1 has the same for all."""
    if not isinstance(amount, ndarray):
        return float(amount)
    return float(amount[tuple(min(i, n - 1) for i, n in zip(index, amount.shape, strict=True))])


def picked(value: T, index: tuple[int, ...]) -> T:
    """`value` with every array in it and its tuples, however deep, replaced by the number of one candidate."""
    found: Any = value
    if isinstance(value, ndarray):
        found = pick(value, index)
    elif isinstance(value, tuple):
        parts = [picked(v, index) for v in value]
        found = value._make(parts) if hasattr(value, "_make") else tuple(parts)
    result: T = found
    return result


class LoadCounts(NamedTuple):
    """Loads of one stage from one producer, over the whole group.

    Counted once an iteration of the reader's store level: what is read again within it is taken to be kept.
    `points` are elements, `runs` contiguous rows of them. `streamed`: the reader's inner loop walks the rows,
    so that a prefetcher can follow. `external`: the producer is an input or the output of another group,
    not a buffer of this one.
    """

    producer: str
    external: bool
    streamed: bool
    points: Amount
    runs: Amount
    bytes_per_point: int


class StageCounts(NamedTuple):
    """One stage of a group, all tiles together.

    `points` are the evaluations (for an inlined stage those in its readers), `root_points` those of the
    stage computed once, alone. `buffer_bytes` is the box of one iteration of the store level, for one
    thread, and `folded_bytes` the ring that is left where it is `folded`; both 0 for the output and for
    inlined stages. `operations` are those of one point. `work` says how it is run, for models of time.
    """

    stage: str
    inlined: bool
    points: Amount
    root_points: float
    operations: Operations
    loads: tuple[LoadCounts, ...]
    bytes_per_point: int
    folded: bool
    buffer_bytes: Amount
    folded_bytes: Amount
    work: Work | None = None

    @property
    def bytes_kept(self) -> Amount:
        """Bytes of the buffer as it is allocated."""
        return self.folded_bytes if self.folded else self.buffer_bytes


class GroupCounts(NamedTuple):
    """A group: its stages, and per dim of its output the tile size and the number of tiles (rounded up)."""

    output: str
    threads: int
    tile_sizes: tuple[tuple[str, Amount], ...]
    tile_counts: tuple[tuple[str, Amount], ...]
    stages: tuple[StageCounts, ...]
    work: GroupWork | None = None

    def at(self, index: tuple[int, ...]) -> GroupCounts:
        """The counts of one candidate: plain numbers."""
        return picked(self, index)

    @property
    def unfolded_bytes(self) -> Amount:
        """Bytes of all buffers that are not folded, for one thread."""
        return sum((s.buffer_bytes for s in self.stages if not s.folded), 0.0)

    @property
    def folded_bytes(self) -> Amount:
        """Bytes of all buffers that are folded, for one thread."""
        return sum((s.folded_bytes for s in self.stages if s.folded), 0.0)
