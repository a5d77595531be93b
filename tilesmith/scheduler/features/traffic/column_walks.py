"""Columns: rows of images that a loop walks across, an element of each, or a vector of each of a long reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from tilesmith.cost_models.amounts import Amount, chosen, largest
from tilesmith.cost_models.work import Column, SideBySide
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import Effective, Members
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT, Counter
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.features.pipeline.reads import Read, crossing
from tilesmith.scheduler.ir.memo import once


def columns(
    counter: Counter, reads: Effective, run: Run, points: Amount, rows: Amount, block: Callable[[Read], int]
) -> tuple[Column, ...]:
    """The columns of what a stage reads, of so many `points` in so many `rows`: across those of what comes from outside
    of its group, of which blocks are touched at once, and along those of all that long reductions go through."""
    found = []
    for read, bytes_apart, rate in _across(counter.members, reads.reads, run.row):
        length = largest(1.0, points / largest(rows, 1.0))
        found.append(Column(bytes_apart * max(1.0, rate), length * min(1.0, rate), points * read.points / block(read)))
    for producer, apart, terms, vectors in _summed(counter, reads.reads, run):
        beyond = apart > max(SMALL_EXTENT, run.lanes)  # else rows are read in the order of memory
        size, local = producer.bytes_per_point, counter.members.is_local(producer.name)
        found.append(Column(apart * size, chosen(beyond, terms, 1.0), points * chosen(beyond, vectors, 0.0), local))
    return tuple(found)


def walks_columns(counter: Counter, reads: Effective, run: Run) -> bool:
    """True if there are any `columns`, whatever the sizes of tiles."""
    ways = (_across(counter.members, reads.reads, run.row), _summed(counter, reads.reads, run))
    return any(True for found in ways for _ in found)


def side_by_side(members: Members, reads: Effective, run: Run) -> SideBySide | None:
    """The rows of memory that a step of the group's output loads from outside of it and stores, where it stores several
    at once, of each of its values. Interleaved channels are one row."""
    known = _known_side_by_side(members.facts)
    key = (members.output, reads, run, tuple(members.is_local(r.producer) for r in reads.reads))
    if key not in known:
        known[key] = _find_side_by_side(members, reads, run)
    return known[key]


@once
def _known_side_by_side(facts: Facts) -> dict[object, SideBySide | None]:
    return {}


def _find_side_by_side(members: Members, reads: Effective, run: Run) -> SideBySide | None:
    output, apart = members.facts.stages[members.output], reads.apart
    sizes = tuple(t.bytes for t in members.facts.definitions[members.output].types)
    own = ((d, 0, apart.get(d, 1)) for d in slower(output, [run.row]))
    together = [(d, first, n) for d, first, n in own if n > 1]
    if run.lanes == 1 or run.row is None or not together:
        return None
    stored = [at for size in sizes for at in _offsets(output, size, together)]
    loaded: list[int] = []
    for read in crossing(reads.reads):
        spans = dict(zip(members.facts.stages[read.producer].dims, read.roughly, strict=True))
        if members.is_local(read.producer) or read.looked_up or not all(s.known for s in spans.values()):
            continue
        along = [d for d, s in spans.items() if s.var == run.row]
        if along:
            producer = members.facts.stages[read.producer]
            rows = ((d, spans[d]) for d in slower(producer, along))
            extents = [(d, int(s.lo or 0), s.extent(apart.get(s.var or "", 1))) for d, s in rows]
            if prod(n for _, _, n in extents) <= read.points * len(stored) / len(
                sizes
            ):  # else they are not all of a box
                loaded += _offsets(producer, producer.bytes_per_point, extents)
    return SideBySide(tuple(loaded), tuple(stored), sizes)


def slower(stage: StageFacts, row: Sequence[str | None]) -> list[str]:
    """The dims of a stage that are slower in memory than those of its row."""
    first = max((n for n, d in enumerate(stage.storage) if d in row), default=-1)
    return [d for d in stage.storage[first + 1 :] if d not in row]


def _offsets(stage: StageFacts, size: int, rows: Sequence[tuple[str, int, int]]) -> list[int]:
    """Bytes from the first row of a stage, with elements of that `size`, to rows of it: so many neighbours in each dim,
    from one on."""
    steps = [[(first + k) * stage.apart.get(d, 1) * size for k in range(n)] for d, first, n in rows]
    return [sum(at) for at in product(*steps)]


def has_columns(members: Members, reads: Mapping[str, tuple[Read, ...]]) -> bool:
    """True if any stage of the group has columns in what it reads, along its own rows."""
    stages = ((read, members.facts.stages[name]) for name, read in reads.items())
    walked = ((read, stage) for read, stage in stages if stage.passes or not stage.updates)
    return any(True for read, stage in walked for _ in _across(members, read, stage.row))


def _across(members: Members, reads: tuple[Read, ...], row: str | None) -> Iterator[tuple[Read, int, float]]:
    """The reads that cross rows of an image as the loop over `row` runs, with the bytes from one row to the next, and
    the rows that a step moves on."""
    outside = (r for r in reads if not (r.looked_up or members.is_local(r.producer))) if row is not None else ()
    for read in crossing(outside):
        producer = members.facts.stages[read.producer]
        for dim, span in zip(producer.dims, read.roughly, strict=True):
            if span.var == row and span.known and span.rate and producer.apart[dim] > SMALL_EXTENT:
                yield read, producer.apart[dim] * producer.bytes_per_point, abs(float(span.rate))


def _summed(counter: Counter, reads: tuple[Read, ...], run: Run) -> Iterator[tuple[StageFacts, Amount, float, float]]:
    """Walks of vector reads over the rows of a producer that a reduction goes through: the producer, the elements from
    one row to the next, the number of rows, and how often a point comes to another one."""
    for read in crossing(reads) if run.row is not None else ():
        spans = read.roughly
        if read.looked_up or not all(s.known for s in spans) or not any(s.var == run.row for s in spans):
            continue
        producer = counter.members.facts.stages[read.producer]
        for dim, span in zip(producer.dims, spans, strict=True):
            if span.var is None and span.extent(1) > SMALL_EXTENT and producer.apart[dim] > SMALL_EXTENT:
                terms, together = float(span.extent(1)), read.points / prod(s.extent(1) for s in spans)
                yield producer, counter.apart(read.producer, dim), terms, together * terms / run.lanes
