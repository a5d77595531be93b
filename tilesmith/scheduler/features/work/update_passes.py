"""Passes: updates of a stage that each go over it, tile by tile, and the work of each."""

from __future__ import annotations

from collections.abc import Collection
from math import inf, prod

from tilesmith.cost_models.amounts import Amount, ceiling, chosen, largest, smallest
from tilesmith.cost_models.work import Pass
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.dependence import default_order, steady_parts, written_box
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.row_scans import paired_scans
from tilesmith.scheduler.analysis.update_sweeps import planes, sweeps
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.operations.dependence_chains import carried_by, chain_of
from tilesmith.scheduler.features.operations.operation_counts import joining_operations, together, update_operations
from tilesmith.scheduler.features.pipeline.flat_rows import flat_update
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.features.traffic.cache_traffic import POINT, WHOLE, state
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.features.work import l1_transfers
from tilesmith.scheduler.features.work.stage_chains import longest_inside
from tilesmith.scheduler.ir.pipeline.pipeline import Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector


def update_passes(group: RunningGroup, name: str, run: Run) -> tuple[Pass, ...]:
    """The updates of a stage that each pass over it, tile by tile: what a tile has of the stage is touched before
    the next pass comes to it."""
    facts = group.facts
    stage, definition = facts.stages[name], facts.definitions[name]
    own = group.traffic.output if name == group.members.output else group.traffic.array(name, None)
    working, computed = own.one(group.level(name)), _computed_again(group, name)
    found = []
    every = run.updates or tuple(UpdateLoops(default_order(definition, update)) for update in definition.updates)
    paired = paired_scans(definition, every)
    swept = {n: s for s in sweeps(definition, every) for n in s.updates}
    around = planes(definition, every)
    if around:
        working = smallest(working, float(stage.apart[around[0]] * stage.bytes_per_point))
    for n, (update, known, loops) in enumerate(zip(definition.updates, stage.updates, every, strict=True)):
        vector = loops.vector
        lanes = 1 if vector is None else vector.lanes
        across = known.scan is not None and vector is not None and vector.dim in known.scan.across
        latency = carried_by(definition, update, loops, known.trips, facts.core.latency_cycles)
        times, joined = known.iterations * computed, along_recurrence(definition, update, loops)
        rows, vectors, alone = (0.0, 1.0, 0.0) if vector is None else _vectors_of_pass(group, name, vector, across)
        if joined is not None:  # rows begin and end with narrower vectors
            rows = 1.0 / known.trips(joined.loop)
            vectors += 2.0 * rows
        steps, singles, size = times * vectors, times * alone, stage.bytes_per_point
        apart = float(stage.apart[vector.dim] * size) if across and vector is not None else 0.0
        transposed = (2 - (n in paired) - (n - 1 in paired)) if across else 0
        touched, instead = working, n == 0 and bool(written_box(definition, update, loops.loops))
        if instead:  # of the values, which are what comes and goes: only what it wrote it finds
            touched = working / max((known.trips(r.name) for r in update.domain), default=inf)
        elif n - 1 in paired:  # a block of rows
            touched = apart * lanes
        elif n in swept and (n == 0 or n > swept[n].first):
            touched = float(stage.apart[swept[n].dim] * size * swept[n].held)
        gathered = 0.0 if vector is None or across else _gathered(group, name, n, run._replace(row=vector.dim))
        steady = {
            e: float(prod(known.trips(loop) for loop in inside))
            for e, inside in steady_parts(definition, update, loops.loops).items()
        }
        typed = known.typed
        if vector is not None or steady:  # vectors do what differs along them, and what functions are made of
            row = None if vector is None else vector.dim
            typed = update_operations(update, facts.estimates.trips, row, steady)
        of = (lanes, typed, known.reads, gathered, size, across, transposed, latency)
        begun = times * rows * _begun(group, name, update, loops)
        each = Pass(*of, begun, steps, singles, times * size, touched, apart, instead=instead)
        if joined is not None:
            each = each._replace(joined=joining_operations(joined))
        found.append(_with_transfers(group, name, n, _with_inlined(group, name, n, each), run, vector))
    return tuple(found)


def share_of_values(group: RunningGroup, name: str, run: Run) -> float:
    """The part of a stage's points whose values are computed: not of those that its first update writes instead."""
    stage, definition = group.facts.stages[name], group.facts.definitions[name]
    if not definition.updates:
        return 1.0
    update = definition.updates[0]
    loops = run.updates[0].loops if run.updates else default_order(definition, update)
    box = written_box(definition, update, loops)
    if not box:
        return 1.0
    return 1.0 - prod(min(1.0, stage.updates[0].trips(r.name) / stage.extent(d)) for d, (r, _) in box.items())


def _with_inlined(group: RunningGroup, name: str, n: int, own: Pass) -> Pass:
    """A pass with the operations of what is inline in updates alone, of that of a point its share."""
    inlined = inlined_in_updates(group, name)
    reading = reading_updates(group, name, inlined if -1 in reading_updates(group, name) else None)
    executed, stages = group.reads[name].executed, group.facts.stages
    others = together((times, stages[p].typed) for p, times in executed.items() if p in inlined)
    if n not in reading or not others:
        return own
    return own._replace(operations=together([(1, own.operations), (_share(group, name, reading), others)]))


def _with_transfers(group: RunningGroup, name: str, n: int, own: Pass, run: Run, vector: Vector | None) -> Pass:
    """A pass with what it loads of others, of that of a point its share; where values read others, it counts as theirs.
    A scan along rows has blocks of it transposed."""
    facts, reading = group.facts, reading_updates(group, name)
    update = facts.definitions[name].updates[n]
    whole, after = chain_of(update.values, facts.core.latency_cycles, trips=facts.estimates.trips)
    if n not in reading or -1 in reading:
        return own._replace(latency=whole)
    along = run._replace(row=None if vector is None else vector.dim, lanes=own.lanes)

    def block(read: Read) -> int:
        dims = zip(facts.stages[read.producer].dims, read.roughly, strict=True)
        moving = [d for d, s in dims if s.var == along.row]
        return own.lanes if own.across and moving and facts.stages[read.producer].storage[0] not in moving else 1

    members, registers, share = group.members, group.registers, _share(group, name, reading)
    moved = (t for r in group.reads[name].reads for t in l1_transfers.loads(members, r, along, registers, block(r)))
    return own._replace(
        loads=facts.stages[name].updates[n].own,
        gathered=0.0,
        transfers=tuple(t._replace(times=t.times * share) for t in moved),
        latency=max(whole, longest_inside(group, name) + after),
    )


def _share(group: RunningGroup, name: str, updates: Collection[int]) -> float:
    """The points of a stage for each iteration of these updates, which share what is of a point."""
    stage = group.facts.stages[name]
    return stage.root_points / sum(stage.updates[n].iterations for n in updates)


def inlined_in_updates(group: RunningGroup, name: str) -> frozenset[str]:
    """The stages inline in a stage that its updates compute, and its values do not."""
    inlined = group.reads[name].inlined
    values = {a.producer for a in accesses(group.facts.definitions[name]) if a.definition == 0 and a.producer != name}
    for p in inlined:  # readers before what they read
        if p in values:
            values.update(group.facts.graph.producers[p])
    return frozenset(inlined) - values


def reading_updates(group: RunningGroup, name: str, producers: Collection[str] | None = None) -> set[int]:
    """The updates of a stage that read others, or any of these, the first of which is 0; -1 are its values."""
    found = accesses(group.facts.definitions[name])
    return {a.definition - 1 for a in found if a.producer != name and (producers is None or a.producer in producers)}


def _begun(group: RunningGroup, name: str, update: Update, loops: UpdateLoops) -> float:
    """Beginnings of the loop over the vectors of an update, for each of their rows: none where another loop is
    inside of it, one for all channels of a flat row."""
    if loops.vector is None or loops.loops[:1] == (loops.vector.dim,):
        return 0.0 if loops.vector is None else 1.0
    facts = group.facts
    pixels = flat_update(facts, name, update)
    flat = pixels is not None and pixels.place == loops.vector.dim and loops.loops[:2] == (*pixels,)
    return 1.0 / facts.stages[name].extent(loops.loops[0]) if flat else 0.0


def _vectors_of_pass(group: RunningGroup, name: str, vector: Vector, across: bool) -> tuple[Amount, Amount, Amount]:
    """The rows and the vectors of an update for each of its iterations, and the part of these that run alone: of
    rows that vectors run `across` those beyond whole blocks, of a row along memory those of one shorter than a
    vector."""
    members, nest, lanes = group.members, group.nest, vector.lanes
    span = members.follows[name].get(vector.dim)
    if span is None:
        return 0.0, 1.0 / lanes, 0.0
    if span.var is None or not span.known:
        length: Amount = float(members.facts.stages[name].extent(vector.dim))
    else:
        axis = nest.axes[span.var]
        line, around = members.line(span), state(nest, axis.dim, group.level(name))
        length = line.window() if around == POINT else line.extent(axis.extent if around == WHOLE else axis.sizes) * 1.0
    whole = -ceiling(-length / lanes) if across else chosen(length < lanes, 0.0, ceiling(length / lanes))
    return 1.0 / length, whole / length, largest(0.0, 1.0 - whole * lanes / length)


def _gathered(group: RunningGroup, name: str, update: int, run: Run) -> float:
    """Elements that an iteration of an update, the first of which is 0, loads of others each lane at a place of its
    own. Those of a point are shared out among the updates that read others."""
    stage, reading = group.facts.stages[name], reading_updates(group, name)
    if update not in reading or -1 in reading:
        return 0.0
    times = sum(
        t.times
        for read in group.reads[name].reads
        for t in l1_transfers.loads(group.members, read, run, group.registers, 1)
        if t.way in ("gathered", "alone")
    )
    return times * stage.root_points / sum(stage.updates[n].iterations for n in reading)


def _computed_again(group: RunningGroup, name: str) -> Amount:
    """The times that each point of a stage is computed."""
    points = group.counter.stage(name, False, False).points
    return points / float(group.facts.stages[name].root_points)
