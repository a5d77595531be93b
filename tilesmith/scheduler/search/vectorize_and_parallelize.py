"""Final choices (TACO 2019, 4.4): vectors, threads, the order of a member's own loops."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilesmith.cost_models.counts import GroupCounts, LoadCounts, StageCounts
from tilesmith.cost_models.taco2019 import cost_of_values
from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.register_windows import FusedRow, is_permuted
from tilesmith.scheduler.analysis.sliding_windows import shifted_along
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.analysis.update_sweeps import sweeps
from tilesmith.scheduler.features.groups.fusion_group import Members, effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.groups.register_tiles import sums_alone
from tilesmith.scheduler.features.operations.operation_counts import Typed, together, work_apart
from tilesmith.scheduler.features.operations.register_needs import register_need
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts, gather
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import (
    INLINE,
    Group,
    Placement,
    Schedule,
    Tile,
    UpdateLoops,
    Vector,
    dim_of,
    inner,
    outer,
)
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.row_lanes import lanes_along
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder
from tilesmith.scheduler.search.taco2019.tiling import beside, few_iterations
from tilesmith.scheduler.search.tile_sizes import Tiling
from tilesmith.scheduler.search.update_loops import update_loops


def finished(
    tiling: Tiling, platform: Platform, strict: bool = False, known: dict[Hashable, Placement] | None = None
) -> Group:
    """The group that was decided. Only a loop of several tiles has threads. See `group_of`."""
    group = group_of(tiling.members, tiling.order, tiling.choices, platform, strict, known)
    folded = {s.stage: s.folded for s in tiling.counts.stages}
    placements = tuple(
        p if p.compute == INLINE or p.storage == "registers" else replace(p, fold=folded[p.stage])
        for p in group.placements
    )
    tiles = tuple(Tile(d, size) for d, size in tiling.sizes)
    several = float(dict(tiling.counts.tile_counts)[dim_of(tiling.order.loops[-1])]) > 1
    parallel = group.parallel if several else None
    return replace(
        group,
        tiles=tiles,
        parallel=parallel,
        placements=placements,
        stream=tiling.best.shape.stream,
        prefetch=tiling.best.shape.prefetch,
    )


def group_of(
    members: Members,
    order: LoopOrder,
    choices: Mapping[str, Choice],
    platform: Platform,
    strict: bool,
    known: dict[Hashable, Placement] | None = None,
) -> Group:
    """The group of a shape, without tile sizes: the innermost loop that is not unrolled is vectorised where it runs
    along memory, the outermost inter-tile loop is run by threads. Updates: see `search.update_loops`. `known`:
    placements that were worked out for other shapes, of groups of the same facts for the same platform, added to."""
    known = {} if known is None else known
    inlined, fused, size = _in_row(members, order, choices)
    vector = _vector_of_output(members, order, inlined, fused, size, platform)
    placements = []
    for name in members.names[:-1]:
        levels = choices[name].levels
        own = 0 if levels is None else size if name in fused else _computed_bytes(members, name, inlined)
        typed = () if levels is None or name in fused else _with_inlined(members.facts, name, inlined)
        lanes = vector.lanes if vector is not None and name in fused else 0
        key = (members.follows[name], order.loops, order.innermost, levels, own, typed, lanes)
        found = known.get(key)
        if found is None:
            found = known[key] = _placement(members, order, name, levels, own, typed, platform, strict)
        if levels is not None and levels.compute <= order.innermost and vector is not None:
            found = _no_wider(found, members, name, vector)
        if levels is not None and levels.registers and lanes:  # whatever dim of its own is the fastest in memory
            found = replace(found, vector=Vector(row_shifts(members)[name], lanes))
        placements.append(found)
    return Group(
        members.output,
        order.loops,
        (),
        order.loops[-1],
        vector,
        tuple(d for d in members.facts.stages[members.output].storage if inner(d) in order.loops[: order.unrolled]),
        tuple(placements),
        update_loops(members.facts, members.output, size, platform, strict),
    )


def output_vector(
    members: Members, order: LoopOrder, choices: Mapping[str, Choice], platform: Platform
) -> Vector | None:
    """The vector of the group of a shape."""
    return _vector_of_output(members, order, *_in_row(members, order, choices), platform)


def _vector_of_output(
    members: Members,
    order: LoopOrder,
    inlined: set[str],
    fused: frozenset[str],
    computed_bytes: int,
    platform: Platform,
) -> Vector | None:
    output = members.facts.stages[members.output]
    if dim_of(order.loops[order.unrolled]) != output.row:
        return None
    if order.vectors:
        one = vector_of(output, computed_bytes, platform)
        return None if one is None else Vector(one.dim, one.lanes * order.vectors)
    if fused:
        one = vector_of(output, computed_bytes, platform)
        return None if one is None else Vector(one.dim, max(one.lanes, _row_period(members, inlined, fused)))
    beside_it = prod(output.extent(dim_of(loop)) for loop in order.loops[: order.unrolled])
    registers = beside_it * _registers_of_sum(members.facts, members.output, platform)
    typed = _with_inlined(members.facts, members.output, inlined)
    return wide_vector_of(output, computed_bytes, platform, registers, typed)


def _no_wider(found: Placement, members: Members, name: str, vector: Vector) -> Placement:
    """The placement of what is computed for a vector of the group's output: rows of no more than that reads have no
    wider vectors, which would compute beyond them, or not fit them where nothing may be read there."""
    if found.vector is None or found.updates or members.followed(name, found.vector.dim) != vector.dim:
        return found
    points = vector.lanes * abs(float(members.follows[name][found.vector.dim].rate))
    lanes = found.vector.lanes
    while lanes > 2 and lanes > points:
        lanes //= 2
    return found if lanes == found.vector.lanes else replace(found, vector=Vector(found.vector.dim, lanes))


@once
def row_shifts(members: Members) -> Mapping[str, str]:
    """The stages that are read by shifts along the rows of the output, with their dims that move."""
    *stages, output = (members.facts.definitions[n] for n in members.names)
    along = members.facts.stages[members.output].row
    assert along is not None  # it has a loop over vectors
    return shifted_along(output, stages, along)


def most_row_lanes(members: Members, platform: Platform) -> int:
    """Lanes that vectors of stages in one loop may have at most, whichever these are."""
    widest = max(members.facts.stages[name].computed_bytes for name in members.names)
    return platform.vector_bytes // widest * platform.vector_unit.registers_per_value


def _row_period(members: Members, inlined: set[str], fused: frozenset[str]) -> int:
    """Points of a row after which stages in its loop are read in the same order again."""
    definitions = members.facts.definitions
    if not any(is_permuted(definitions[name]) for name in members.names):
        return 1
    row = FusedRow(row_shifts(members))
    for name in reversed(members.names[:-1]):
        if name in fused or name in inlined:
            readers = [definitions[r] for r in members.consumers[name]]
            row.add(definitions[name], readers, "inline" if name in inlined else "registers")
    return int(row.period)


def _in_row(members: Members, order: LoopOrder, choices: Mapping[str, Choice]) -> tuple[set[str], frozenset[str], int]:
    """The stages that are inline, those in the row of the output, and bytes of the widest type that this computes
    with."""
    inlined = {name for name, choice in choices.items() if choice.levels is None}
    fused = _fused(order, choices)
    return inlined, fused, max(_computed_bytes(members, name, inlined) for name in (members.output, *fused))


def _fused(order: LoopOrder, choices: Mapping[str, Choice]) -> frozenset[str]:
    """The stages that share the loop over vectors with the output: all that is computed there, where any of it is kept
    in registers."""
    levels = {name: c.levels for name, c in choices.items() if c.levels is not None}
    if not any(at.registers for at in levels.values()):
        return frozenset()
    return frozenset(name for name, at in levels.items() if at.compute == order.innermost)


def _placement(
    members: Members,
    of: LoopOrder,
    name: str,
    levels: Levels | None,
    computed_bytes: int,
    typed: Typed,
    platform: Platform,
    strict: bool,
) -> Placement:
    """The stage's own loops: the smallest stride innermost, the dim of its compute level outermost (unless a vector of
    that is computed at once, or tiles of rows: a vector of the stage's own is innermost then)."""
    if levels is None:
        return Placement(name, INLINE, INLINE)
    stage = members.facts.stages[name]
    compute, store = of.loops[levels.compute], of.loops[levels.store]
    if levels.registers:
        return Placement(name, compute, store, True, "registers", (), vector_of(stage, computed_bytes, platform))
    around = levels.compute > of.innermost
    # of a panel, whose rows are as short as tiles, vectors are a register each
    panel = stage.row is not None and compute == outer(members.followed(name, stage.row) or "")
    outermost = [d for d in stage.storage if around and members.followed(name, d) == dim_of(compute)]
    outermost = [d for d in outermost if not (panel and d == stage.row)]
    order = (*(d for d in stage.storage if d not in outermost), *outermost)
    registers = _registers_of_sum(members.facts, name, platform)
    vector = wide_vector_of(stage, computed_bytes, platform, registers, typed)
    vector = vector_of(stage, computed_bytes, platform) if panel else vector
    along = next(d for d in order if d not in beside(stage))
    if vector is not None and along != vector.dim:
        vector = None
    if vector is not None:
        others = [d for d in order if d != along]
        first = _inside_vectors(members, name, others, outermost) if around else along
        order = order if first is None else (first, *(d for d in order if d != first))
    updates = update_loops(members.facts, name, computed_bytes, platform, strict)
    return Placement(name, compute, store, True, "memory", order, vector, updates)


def _inside_vectors(members: Members, name: str, dims: Sequence[str], outermost: Sequence[str]) -> str | None:
    """The dim whose loop had better be inside of that over vectors, as most of what is computed of them is the same
    along it; None where all that is little."""
    stage = members.facts.stages[name]
    inside = [d for d in dims if d not in outermost and stage.extent(d) > 1]
    if stage.updates or not inside or stage.arithmetic < PARAMS.inside_vectors_least_operations:
        return None
    apart = work_apart(members.facts.definitions[name])
    most, dim = max((apart[d], d) for d in inside)
    return dim if most >= PARAMS.inside_vectors_least_operations else None


def _computed_bytes(members: Members, name: str, inlined: set[str]) -> int:
    """Bytes of the widest type that the stage computes with, and the stages inlined into it."""
    stages = members.facts.stages
    if not inlined:
        return stages[name].computed_bytes
    widest, pending, seen = 1, [name], {name}
    while pending:
        stage = stages[pending.pop()]
        widest = max(widest, stage.computed_bytes)
        for read in stage.reads:
            if read.producer in inlined and read.producer not in seen:
                seen.add(read.producer)
                pending.append(read.producer)
    return widest


def vector_of(stage: StageFacts, computed_bytes: int, platform: Platform) -> Vector | None:
    """The vector of a stage: as many lanes as a register of the platform has for its widest type, along the stage's
    row; shorter rows that fill part of a register are one vector each, if there are many or their values take as long.
    None of less than two lanes."""
    if stage.row is None:
        return None
    work = stage.root_points * max(1.0, stage.arithmetic)
    lanes = lanes_along(stage.extent(stage.row), work, computed_bytes, platform)
    return Vector(stage.row, lanes) if lanes else None


def wide_vector_of(
    stage: StageFacts,
    computed_bytes: int,
    platform: Platform,
    registers_of_sum: float = 0.0,
    typed: Typed = (),
) -> Vector | None:
    """The wide vector of a stage: as many lanes as a register has for what is stored, or for what most of it is
    computed in, where no value takes more registers than it may: bytes are loaded, compared, looked up and stored a
    register at a time. So are the short integers of most operations where others are inline in it: `typed` has all of
    them. Short rows have shorter vectors: what is left of them is computed point by point.

    One of long sums, a vector of which takes so many registers, has as many as there are registers for, up to what a
    value may take, in short rows too where few points are computed twice: sums side by side do not wait for each other,
    and of each row lines are read as a whole. Terms are worked out one after the other."""
    vector = vector_of(stage, computed_bytes, platform)
    if vector is None:
        return None
    short = computed_bytes if stage.updates else _short_bytes(typed, computed_bytes)
    stored = stage.value_bytes  # of several values that are live together each may take two registers
    if stage.bytes_per_point > stored and computed_bytes > 2 * stored:
        stored = 1 << (stage.bytes_per_point - 1).bit_length()
    narrow = min(stored, stage.common_bytes, short)
    most, extent = vector.lanes * platform.vector_unit.registers_per_value, stage.extent(vector.dim)
    sums = vector.lanes if not registers_of_sum else most
    while sums > vector.lanes and sums // vector.lanes - 1 + registers_of_sum > platform.vector_registers:
        sums //= 2
    lanes = max(sums, min(platform.vector_bytes // narrow, most))
    while lanes > vector.lanes and extent < PARAMS.wide_row_vectors * lanes:
        fills = narrow < 4 and 2 * lanes <= extent  # as bytes would have them in a stage of their own
        if (lanes <= sums or fills) and -extent % lanes <= PARAMS.wide_sums_again * extent:
            break
        lanes //= 2
    return vector if lanes <= vector.lanes else Vector(vector.dim, lanes)


def _with_inlined(facts: Facts, name: str, inlined: Collection[str], known: dict[str, Typed] | None = None) -> Typed:
    """The operations of a stage with those of what is inline in it, each as often as it is read. What is `known` is
    added to."""
    known = {} if known is None else known
    if name not in known:
        stage = facts.stages[name]
        reads = [r for r in stage.reads if r.producer in inlined]
        inside = [(r.executed, _with_inlined(facts, r.producer, inlined, known)) for r in reads]
        known[name] = together([(1, stage.typed), *inside]) if inside else stage.typed
    return known[name]


def _short_bytes(typed: Typed, otherwise: int) -> int:
    """The bytes of short integers that three quarters of these operations are done in, if they are."""
    counts = [(int(type_[1:]) // 8, cost_of_values(operations)) for type_, operations in typed]
    whole = sum(cost for _, cost in counts)
    within = {size: sum(cost for n, cost in counts if n <= size) for size in (1, 2)}
    return next((size for size, cost in within.items() if cost and 4 * cost >= 3 * whole), otherwise)


def _registers_of_sum(facts: Facts, name: str, platform: Platform) -> float:
    """Registers that a vector of a stage's long reduction takes, if points of other dims share nothing with it; else
    0."""
    if not sums_alone(facts, name):
        return 0.0
    stage, most = facts.definitions[name], platform.vector_registers
    return max(register_need(replace(stage, values=(e,), updates=()), {}, most) for e in reductions(stage))


def root_group(
    facts: Facts,
    name: str,
    platform: Platform,
    inlined: frozenset[str] = frozenset(),
    strict: bool = False,
) -> Group:
    """The stage alone: whole extents, its outermost loop run by threads, vectorised along memory; those of `inlined`
    that it reads are computed in it. Threads share a dim that all updates keep in place, strips of it where updates
    have vectors along it, or else each update has threads of its own, or they share the blocks of a sweep; the latter,
    too, where that dim does not come out even."""
    stage = facts.stages[name]
    here = _read_inline(facts, name, inlined)
    computed_bytes = max(facts.stages[n].computed_bytes for n in (name, *here))
    placements = tuple(Placement(p, INLINE, INLINE) for p in here)
    if not stage.dims:
        updates = update_loops(facts, name, computed_bytes, platform, strict, threads=True)
        return Group(name, (), (), None, None, (), placements, updates)
    unrolled = few_iterations(stage)
    whole = [d for d in stage.storage if d not in stage.pure]
    others = [d for d in stage.storage if d in stage.pure and d not in unrolled]
    first = [d for d in others if d == stage.row]
    looped = [*first, *whole, *(d for d in others if d not in first)]
    loops = (*(inner(d) for d in reversed(unrolled)), *map(inner, looped))
    shared = looped[-1] if len(looped) > 1 and looped[-1] in stage.pure else None
    parallel = inner(shared) if shared is not None and stage.extent(shared) > 1 else None
    registers = prod(map(stage.extent, unrolled)) * _registers_of_sum(facts, name, platform)
    vector = wide_vector_of(stage, computed_bytes, platform, registers, _with_inlined(facts, name, here))
    if shared is not None and stage.updates and stage.extent(shared) % platform.threads:  # some would wait
        updates = update_loops(facts, name, computed_bytes, platform, strict, threads=True)
        blocks = (s for s in sweeps(facts.definitions[name], updates) if s.shared)
        if any(stage.extent(shared) < stage.extent(s.dim) // s.rows for s in blocks):
            return Group(name, loops, (), None, vector, unrolled, placements, updates)
    updates = update_loops(facts, name, computed_bytes, platform, strict, threads=parallel is None)
    if shared is not None and any(u.vector is not None and u.vector.dim == shared for u in updates):
        strip = _strip_of_rows(facts, name, updates, shared, platform)
        if strip >= stage.extent(shared):  # threads would have nothing to share
            updates = update_loops(facts, name, computed_bytes, platform, strict, threads=True)
            return Group(name, loops, (), None, vector, unrolled, placements, updates)
        loops, tiles, parallel = (*loops, outer(shared)), (Tile(shared, strip),), outer(shared)
        return Group(name, loops, tiles, parallel, vector, unrolled, placements, updates)
    return Group(name, loops, (), parallel, vector, unrolled, placements, updates)


def _strip_of_rows(facts: Facts, name: str, updates: Sequence[UpdateLoops], dim: str, platform: Platform) -> int:
    """The places along `dim` of a strip for a thread: whole blocks of the updates' sweep, or vectors across rows."""
    lanes = max(u.vector.lanes for u in updates if u.vector is not None and u.vector.dim == dim)
    rows = max((s.rows for s in sweeps(facts.definitions[name], updates) if s.dim == dim), default=lanes)
    strip = -(-facts.stages[name].extent(dim) // (platform.threads * PARAMS.strips_per_thread))
    return -(-strip // rows) * rows


def _read_inline(facts: Facts, name: str, inlined: frozenset[str]) -> tuple[str, ...]:
    """The stages of `inlined` that `name` reads, itself or through others of them, in topological order."""
    found: set[str] = set()
    pending = [name]
    while pending:
        new = [p for p in facts.graph.producers[pending.pop()] if p in inlined and p not in found]
        found.update(new)
        pending += new
    return tuple(n for n in facts.graph.stages if n in found)


def root_schedule(pipeline: Pipeline, platform: Platform, strict: bool = False) -> Schedule:
    """Every stage computed once, alone, in memory: the baseline."""
    facts = gather(normalise(pipeline, strict), line_bytes=platform.line_bytes, core=platform.core)
    groups = tuple(root_group(facts, name, platform, strict=strict) for name in facts.graph.stages)
    return Schedule(facts.pipeline.name, "root", groups, strict)


def root_counts(facts: Facts, group: Group, platform: Platform) -> GroupCounts:
    """Counts of a stage at root: every point once, every producer's region once, row by row; what is inline in it as
    often as it is read."""
    name = group.output
    inlined = tuple(p.stage for p in group.placements)
    reads = effective(members_of(facts, name, (*inlined, name)), frozenset(inlined))[name]
    stage = facts.stages[name]
    loads = []
    for read in reads.reads:
        producer = facts.stages[read.producer]
        points = float(producer.root_points)
        row = producer.extent(producer.storage[0]) if producer.storage else 1
        loads.append(LoadCounts(read.producer, True, True, points, points / row, producer.bytes_per_point))
    points = float(stage.root_points)
    own = StageCounts(
        name, False, points, points, stage.operations, tuple(loads), stage.bytes_per_point, False, 0.0, 0.0
    )
    others = tuple(_inline_counts(facts.stages[n], points * reads.inlined[n]) for n in inlined)
    strips, extents = {t.dim: t.size for t in group.tiles}, dict(zip(stage.dims, stage.extents, strict=True))
    sizes: tuple[tuple[str, Any], ...] = tuple((d, float(strips.get(d) or e)) for d, e in extents.items())
    counts: tuple[tuple[str, Any], ...] = tuple((d, float(-(-e // (strips.get(d) or e)))) for d, e in extents.items())
    return GroupCounts(name, platform.threads, sizes, counts, (*others, own))


def _inline_counts(stage: StageFacts, points: float) -> StageCounts:
    size = stage.bytes_per_point
    return StageCounts(stage.name, True, points, stage.root_points, stage.operations, (), size, False, 0.0, 0.0)
