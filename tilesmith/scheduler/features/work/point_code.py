"""Code of a point of a stage: operations, what moves between registers and the first cache, registers that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

from tilesmith.cost_models.work import Before, Sums, Transfer, Way
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.periodic_indices import repeats_of
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.transposed_reads import looped_dims
from tilesmith.scheduler.features.operations.operation_counts import Typed, together
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction, long_sums
from tilesmith.scheduler.features.operations.register_needs import register_need
from tilesmith.scheduler.features.pipeline.flat_rows import has_flat_rows
from tilesmith.scheduler.features.pipeline.neighbour_sums import summed_producers
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.features.pipeline.streaming_stores import HELD
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.features.work import l1_transfers
from tilesmith.scheduler.features.work.row_dims import same_along_row
from tilesmith.scheduler.features.work.update_passes import inlined_in_updates, reading_updates
from tilesmith.scheduler.ir.memo import once


class Code(NamedTuple):
    """Code of a point: operations, vectors loaded and stored, and what is done before updates where that is apart."""

    operations: Typed
    loads: tuple[Transfer, ...]
    stores: tuple[Transfer, ...]
    before: Before | None = None


@once
def _register_needs(facts: Facts) -> dict[object, float]:
    return {}


@once
def _codes(facts: Facts) -> dict[object, Code]:
    return {}


def registers_needed(group: RunningGroup, name: str) -> float:
    """Registers that a point of a stage needs while it is evaluated, with what is inline in it."""
    facts, reads = group.facts, group.reads[name]
    known, most = _register_needs(facts), float(facts.core.registers.working)
    found = known.get(reads)
    if found is None:
        needs: dict[str, float] = {}
        for stage in reads.with_inlined(name):
            needs[stage] = register_need(facts.definitions[stage], needs, most)
        found = known[reads] = needs[name]
    return found


def point_code(group: RunningGroup, name: str, run: Run) -> Code:
    """Operations, loads and stores of a point."""
    members, reads = group.members, group.reads[name]
    known = _codes(members.facts)
    places = tuple((r.producer in group.registers, r.producer in members.follows) for r in reads.reads)
    alike = same_along_row(group, name, run)
    blocks = tuple(group.layers.block(name, r, run) for r in reads.reads)
    flat = _is_flat(group, name, run)
    key = (name, run, reads, places, group.layers.parts.get(name), alike, blocks, flat)
    found = known.get(key)
    if found is None:
        found = known[key] = _find_code(group, name, run, alike, flat)
    return found


def _is_flat(group: RunningGroup, name: str, run: Run) -> bool:
    """True if vectors of a stage are of all elements of a row of pixels (see `analysis.flat_rows`): where they have
    all channels, in a loop of their own."""
    members = group.members
    facts = members.facts.stages[name]
    if run.lanes == 1 or run.row is None or facts.storage[1:2] != (run.row,) or facts.row != run.row:
        return False
    if name in group.one_loop or facts.storage[0] not in looped_dims(group.counter, name, group.row):
        return False
    return has_flat_rows(members.facts, name, group.reads[name].inlined)


def _repeated(group: RunningGroup, name: str, run: Run) -> frozenset[str]:
    """The stages inline in a stage that are the same in every vector of it, and are worked out before its loops:
    those of remainders of its places."""
    stages, definitions = group.facts.stages, group.facts.definitions
    inlined, found = group.reads[name].inlined, set[str]()
    for p in inlined if run.lanes > 1 else ():
        repeats = repeats_of(definitions[p])
        if repeats is not None and run.lanes % repeats[1] == 0:
            reads = (r for n in (name, *inlined) for r in stages[n].reads if r.producer == p)
            found |= {p} if all(run.lanes % o.period == 0 for r in reads for o in r.orders) else set()
    return frozenset(found)


def _find_code(group: RunningGroup, name: str, run: Run, alike: frozenset[str], flat: bool) -> Code:
    members, reads = group.members, group.reads[name]
    stages = members.facts.stages
    facts = stages[name]
    # what is the same for a vector is a scalar for each term of a loop, and else computed before the row
    long = has_long_reduction(members.facts.definitions[name], {})
    vectors = 1 if long else run.lanes
    repeated = _repeated(group, name, run)
    executed = [
        (n / vectors if p in alike else n, stages[p].typed) for p, n in reads.executed.items() if p not in repeated
    ]
    if executed or reads.side_by_side > 1 or name in group.layers.parts:
        inlined = {p: n for p, n in reads.executed.items() if p not in repeated | alike}
        executed += done_once(members.facts, group.layers.of_reads(name), {name: 1.0, **inlined})
    typed = together([(1, facts.typed), *executed]) if executed else facts.typed
    grouped = summed_producers(members.facts, name, reads.inlined)
    loads = tuple(
        t if part == 1.0 else t._replace(times=t.times * part)
        for read, part in group.layers.of_reads(name)
        for t in l1_transfers.loads(
            members,
            read,
            run,
            group.registers,
            group.layers.block(name, read, run),
            flat,
            read.producer in grouped,
            reads.apart,
        )
    )
    stores = () if run.registers else l1_transfers.stores(facts, run, flat)
    if not facts.updates:
        return Code(typed, loads, stores)
    if facts.passes:
        if -1 not in reading_updates(group, name):  # see `_with_transfers`
            return Code(facts.typed_before, (), stores)
        of_updates = inlined_in_updates(group, name)
        own = [
            (n / vectors if p in alike else n, stages[p].typed)
            for p, n in reads.executed.items()
            if p not in repeated | of_updates
        ]
        values = together([(1, facts.typed_before), *own]) if own else facts.typed_before
        return Code(values, loads, stores)
    ways: list[tuple[Way, float]]
    ways = [("gathered" if u.looked_up else "aligned", u.iterations / facts.root_points) for u in facts.updates]
    updated = tuple(Transfer(way, facts.bytes_per_point, times) for way, times in ways)
    if run.before == run.lanes or not _reads_before(group, name):
        return Code(typed, (*loads, *updated), (*stores, *updated))
    first = together([(1, facts.typed_before), *executed])
    then = together([(1, facts.typed), (-1, facts.typed_before)])
    return Code(then, updated, updated, Before(run.before, first, loads, stores))


def done_once(
    facts: Facts, reads: Iterable[tuple[Read, float]], times: Mapping[str, float]
) -> list[tuple[float, Typed]]:
    """Operations on one element that are counted for each of the readers that load it, less than none of them:
    compilers do them once, as they load it once. Readers are a stage and those inline in it, each computed so many
    `times`, and those that share its loop; of each of its `reads` the stage itself loads a part."""
    stages, found = facts.stages, list[tuple[float, Typed]]()
    for read, part in reads:
        readers = {p: n for p, n in times.items() if read.producer in stages[p].read_of and not stages[p].updates}
        asked = sum(n * stages[p].read_of[read.producer].executed for p, n in readers.items())
        if part * read.executed < asked:
            again = part * read.executed / asked - 1.0
            on_loads = ((n, stages[p].on_loads.get(read.producer)) for p, n in readers.items())
            found += [(again * n, typed) for n, typed in on_loads if typed]
    return found


def _reads_before(group: RunningGroup, name: str) -> bool:
    """True where all that a stage reads of others is read before its updates."""
    found = accesses(group.facts.definitions[name])
    return all(a.producer == name or a.definition == 0 for a in found)


def sums_held(group: RunningGroup, name: str) -> Sums | None:
    """The sums of the long reductions of points of a stage that are computed together, if there are any."""
    facts, reads = group.facts.stages[name], group.reads[name]
    if reads.side_by_side == 1 or facts.updates or not group.has_loops(name):
        return None
    definitions = group.facts.definitions
    sums = long_sums(definitions[name], {n: definitions[n] for n in reads.inlined}, reads.executed)
    terms = max((r.executed for r in reads.reads), default=0.0)
    return Sums(reads.side_by_side * max(1.0, sums), reads.side_by_side, facts.computed_bytes, terms)


def vectors_held(group: RunningGroup, name: str, run: Run, streamed: bool) -> tuple[tuple[int, float], ...]:
    """Vectors kept in registers for a stage from one step to the next, with the bytes of their elements. Of each
    row that it reads there, those from the furthest ahead of its own, computed by then, to the furthest behind. Of
    each that is written past the caches, HELD."""
    held, effective = [], group.reads[name]
    for read in effective.reads:
        if read.producer in group.registers:
            vectors, rows = 0, 1.0
            for span in read.roughly:
                if span.var == run.row and span.lo is not None and span.hi is not None:
                    vectors += max(0, ceil(span.hi / run.lanes) + ceil(-span.lo / run.lanes))
                elif span.known:
                    rows *= span.extent(1 if span.var is None else effective.apart.get(span.var, 1))
            size = group.facts.stages[read.producer].bytes_per_point
            held.append((size, vectors * min(rows, read.points * effective.side_by_side)))
    if streamed and group.one_loop:
        size = group.facts.stages[name].bytes_per_point
        held.append((size, float(HELD * effective.side_by_side)))
    return tuple(held)
