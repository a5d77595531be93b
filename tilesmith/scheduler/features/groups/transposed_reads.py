"""Reads across rows of memory, of stages that have several points in the dim that goes along these: blocks of both are
transposed in registers (see `lowering.transposed_reads`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT, Counter
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read

SHUFFLED_BYTES = 16
"""Bytes of the parts of registers in which lanes change places for one instruction; of each row a block has as many."""


def looped_dims(counter: Counter, name: str, row: int) -> frozenset[str]:
    """The dims of a stage through which loops of its own run, inside of the level that it is computed at; of the output
    inside of the inter-tile loops. `row` is the level outside of the row of the output."""
    members, nest = counter.members, counter.nest
    level = nest.first_inter if name == members.output else max(counter.levels[name].compute, row)
    follows = ((d, members.follows[name][d].var) for d in members.facts.stages[name].dims)
    return frozenset(d for d, var in follows if var is None or nest.intra(var) < level)


def block_rows(
    reader: StageFacts, producer: StageFacts, read: Read, near: Sequence[str], looped: Collection[str]
) -> int:
    """The points of `reader` beside its vectors that a block of what it reads across rows of `producer` is for, of the
    dims `near` (see `rows_across`); 1 where it has no loop that goes along the rows."""
    rows = SHUFFLED_BYTES // producer.bytes_per_point
    for dim in near:
        span = read.roughly[producer.dims.index(dim)]
        if span.known and abs(span.rate) == 1 and span.var in looped and reader.extent(str(span.var)) >= rows:
            return max(1, rows)
    return 1


def rows_across(reader: StageFacts, producer: StageFacts, read: Read, row: str | None) -> tuple[str, ...]:
    """The dims of `producer` that lie side by side in memory, where `reader`, of which vectors are along `row`, reads
    across its rows; none where it does not."""
    if row is None or reader.updates or read.looked_up or read.computed or not producer.storage:
        return ()
    across = [d for d, s in zip(producer.dims, read.roughly, strict=True) if s.var == row and s.known]
    if len(across) != 1 or producer.apart[across[0]] <= SMALL_EXTENT:
        return ()
    pixels = 2 <= producer.extent(producer.storage[0]) <= MOST_CHANNELS
    near = producer.storage[: 2 if pixels else 1]
    return () if across[0] in near else near
