"""Reads across rows of memory, of stages that have several points in the dim that goes along these: blocks of both are
transposed in registers (see `lowering.transposed_reads`)."""

from __future__ import annotations

from collections.abc import Collection

from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS
from tilesmith.scheduler.features.group_counts import SMALL_EXTENT, Counter
from tilesmith.scheduler.features.pipeline_features import Read, StageFacts

SHUFFLED_BYTES = 16
"""Bytes of the parts of registers in which lanes change places for one instruction; of each row a block has as many."""


def looped_dims(counter: Counter, name: str, row: int) -> frozenset[str]:
    """The dims of a stage through which loops of its own run, inside of the level that it is computed at; of the output
    inside of the inter-tile loops. `row` is the level outside of the row of the output."""
    members, nest = counter.members, counter.nest
    level = nest.first_inter if name == members.output else max(counter.levels[name].compute, row)
    follows = ((d, members.follows[name][d].var) for d in members.facts.stages[name].dims)
    return frozenset(d for d, var in follows if var is None or nest.intra(var) < level)


def block_rows(reader: StageFacts, producer: StageFacts, read: Read, row: str | None, looped: Collection[str]) -> int:
    """The points of `reader` beside its vectors, along `row`, that a block of what it reads of `producer` is for; 1
    where it does not read across rows, or has no loop that goes along them."""
    if row is None or reader.updates or read.looked_up or read.computed or not producer.storage:
        return 1
    spans = dict(zip(producer.dims, read.roughly, strict=True))
    pixels = 2 <= producer.extent(producer.storage[0]) <= MOST_CHANNELS
    near = producer.storage[: 2 if pixels else 1]
    across = [d for d, s in spans.items() if s.known and s.var == row]
    if len(across) != 1 or across[0] in near or producer.apart[across[0]] <= SMALL_EXTENT:
        return 1
    rows = SHUFFLED_BYTES // producer.bytes_per_point
    for dim in near:
        span = spans[dim]
        if span.known and abs(span.rate) == 1 and span.var in looped and reader.extent(str(span.var)) >= rows:
            return max(1, rows)
    return 1
