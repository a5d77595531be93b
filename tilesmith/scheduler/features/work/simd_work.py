"""SIMD work of a group, counted for models of time: vectors, rows, and what moves between registers (`transfers`) and
through the caches (`layers`). Beside the counts of `features.groups.group_counts`, for all candidate tiles at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf, prod
from typing import NamedTuple, TypeAlias

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.work import Column, GroupWork, Work
from tilesmith.scheduler.features.groups.circulating_bytes import circulating_bytes, share_past
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import Effective, Members
from tilesmith.scheduler.features.groups.group_counts import Counter, Levels, in_registers
from tilesmith.scheduler.features.groups.loop_nest import Nest
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.traffic.cache_traffic import Traffic
from tilesmith.scheduler.features.traffic.column_walks import columns, side_by_side, walks_columns
from tilesmith.scheduler.features.traffic.row_streams import (
    bytes_in_order,
    lines_asked,
    next_of_row,
    rows_walked,
    streams,
)
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.features.traffic.streamed_rows import awaited_bytes, torn_rows
from tilesmith.scheduler.features.work.point_code import point_code, registers_needed, sums_held, vectors_held
from tilesmith.scheduler.features.work.reused_values import values_reused
from tilesmith.scheduler.features.work.row_addresses import addresses_of_rows
from tilesmith.scheduler.features.work.row_edges import edges_of_rows
from tilesmith.scheduler.features.work.row_vectors import vectors_of_rows
from tilesmith.scheduler.features.work.stage_chains import chain_of_loop, chain_of_point
from tilesmith.scheduler.features.work.update_passes import share_of_values, update_passes
from tilesmith.scheduler.ir.memo import once

Footprints: TypeAlias = dict[tuple[Nest, int, int], tuple[Mapping[str, Effective], Mapping[str, Levels], Traffic]]
"""Footprints of one group by its nest, its reads and its levels; these by identity."""


def worked_counts(
    members: Members,
    reads: Mapping[str, Effective],
    nest: Nest,
    levels: Mapping[str, Levels],
    threads: int,
    running: Running,
    whole: bool = True,
    known: Footprints | None = None,
) -> GroupCounts:
    """The counts of a group (see `features.groups.group_counts.group_counts`) with its work, as models of time need it.
    `running` has the output and all stages of `levels`. If not as a `whole`, loads and the stages that are inline are
    counted as part of the work only. The footprints that are `known` of the group are added to."""
    traffic = _traffic(members, reads, nest, levels, {} if known is None else known)
    counts = traffic.counter.group(threads, local_loads=False, whole=whole)
    group = RunningGroup(traffic, running)
    stages = tuple(s if s.inlined else _of_stage(group, s) for s in counts.stages)
    return counts._replace(stages=stages, work=_of_group(group, stages))


def _traffic(
    members: Members, reads: Mapping[str, Effective], nest: Nest, levels: Mapping[str, Levels], known: Footprints
) -> Traffic:
    """The footprints of a group, for whatever else of its running differs."""
    key = (nest, id(reads), id(levels))
    found = known.get(key)
    if found is None:
        traffic = Traffic(Counter(members, reads, nest, levels), in_registers(levels))
        found = known[key] = reads, levels, traffic
    return found[2]


def _of_group(group: RunningGroup, stages: Sequence[StageCounts]) -> GroupWork:
    """The work of the whole group."""
    nest = group.nest
    parallel: Amount = 1.0
    if group.running.parallel is not None:
        axis = nest.axes[nest.dim(group.running.parallel)]
        inter = nest.inter(axis.dim) == group.running.parallel
        parallel = axis.extent / axis.sizes if inter else axis.sizes * 1.0
    elif group.running.updates_parallel:
        parallel = inf
    tiles: Amount = 1.0
    for axis in nest.axes.values():
        tiles = tiles * axis.counts
    first = min(s.work.level for s in stages if s.work is not None)
    working = (*(0.0,) * first, *map(group.traffic.touched, range(first, len(nest.loops) + 1)))
    members = group.members
    past = share_past(members, group.running.past)
    circulating, chained = circulating_bytes(members), chain_of_loop(group, stages)
    return GroupWork(parallel, tiles, circulating, group.running.prefetch, working, past, chained)


def _of_stage(group: RunningGroup, counts: StageCounts) -> StageCounts:
    """The counts of a stage that is not inline, with its work."""
    counter, name = group.counter, counts.stage
    run = group.running.stages[name]
    made = tuple((counter.made.get(r.producer), r.producer in group.registers) for r in counter.reads[name].reads)
    streamed = group.running.stream and name == counter.members.output
    key = ("work", counter.keys[name], run, group.row, streamed, made, group.layers.parts.get(name))
    found: StageCounts | None = counter.known.get(key)
    if found is None:
        found = counts._replace(loads=(), work=_work(group, name, run, counts.points, streamed))
        counter.known[key] = found
    if group.running.prefetch and found.work is not None:
        found = found._replace(work=_asking(group, name, run, counts.points, found.work))
    if name in group.layers.again and found.work is not None:
        found = found._replace(work=found.work._replace(again=group.layers.again[name]))
    return found._replace(loads=counts.loads) if counts.loads else found


def _work(group: RunningGroup, name: str, run: Run, points: Amount, streamed: bool) -> Work:
    points = points * _told_apart(group, name) * _moved_back(group, name)
    rows, steps, singles = vectors_of_rows(group, name, run, points)
    still = _still_of(group, name, run, streamed)
    level = min(group.row, group.nest.first_inter) if name == group.members.output else group.level(name)
    working, loaded, stored = group.layers.states(name, run, level, points, rows)
    looked_up, table = group.layers.places(name, points, level)
    facts, reads = group.facts.stages[name], group.reads[name]
    passes = update_passes(group, name, run) if facts.passes else ()
    computed = share_of_values(group, name, run) if facts.passes else 1.0
    across: tuple[Column, ...] = ()
    if still.has_columns:
        across = columns(group.counter, reads, run, points, rows, lambda r: group.layers.block(name, r, run))
    elif any(p.gathered for p in passes):
        across = columns(group.counter, reads, run, points, rows, lambda r: 1)
    return still.work._replace(
        rows=rows * computed,
        steps=steps * computed,
        singles=singles * computed,
        working=working,
        loaded=loaded,
        stored=(0.0,) * len(stored) if streamed else stored,
        run_bytes=bytes_in_order(group, name, run, points, rows, still.work.next),
        torn=torn_rows(group, facts, run, rows) if streamed else 0.0,
        awaited_bytes=awaited_bytes(group, facts, run) if streamed else 0.0,
        level=level,
        looked_up=looked_up,
        table=table,
        columns=across,
        passes=passes,
    )


class _Still(NamedTuple):
    """The work of a stage but for its amounts, which are all that the sizes of tiles change; and whether it has columns
    of a value."""

    work: Work
    has_columns: bool


@once
def _known_still(facts: Facts) -> dict[Hashable, _Still]:
    return {}


def _still_of(group: RunningGroup, name: str, run: Run, streamed: bool) -> _Still:
    """See _Still: found once for all nests and groups in which nothing of it is otherwise."""
    members, reads = group.members, group.reads[name]
    known = _known_still(group.facts)
    key = (
        reads,
        run,
        streamed,
        name == members.output and not group.running.stream,
        group.nest.loops,
        group.levels[name].compute,
        group.row,
        name in group.one_loop,
        group.is_fused(name),
        group.layers.parts.get(name),
        tuple([s.var for s in members.follows[name].values()]),
        tuple([(r.producer in group.registers, r.producer in members.follows) for r in reads.reads]),
    )
    found = known.get(key)
    if found is None:
        found = known[key] = _find_still(group, name, run, streamed)
    return found


def _find_still(group: RunningGroup, name: str, run: Run, streamed: bool) -> _Still:
    facts, reads, is_output = group.facts.stages[name], group.reads[name], name == group.members.output
    typed, loads, stores, before = point_code(group, name, run)
    if streamed and group.one_loop:  # a vector of memory is put together of two
        loads = (*loads, *(t._replace(way="shuffled", stride=1) for t in stores))
    work = Work(
        group.is_fused(name) or is_output,
        run.lanes,
        typed,
        loads,
        stores,
        *(0.0, 0.0, 0.0, (), (), (), 0.0),
        next=next_of_row(group, name, run),
        streamed_bytes=float(facts.root_points * facts.bytes_per_point) if streamed else 0.0,
        held=vectors_held(group, name, run, streamed),
        streams=streams(group, name, run),
        chain=chain_of_point(group, name),
        before=before,
        together=side_by_side(group.members, reads, run) if is_output and not facts.updates else None,
        needs=registers_needed(group, name),
        walked=rows_walked(group, name, run),
        sums=sums_held(group, name),
        reused=values_reused(group, name, run),
        edges=edges_of_rows(group, name, run),
        addresses=addresses_of_rows(group, name, run),
    )
    return _Still(work, not facts.updates and walks_columns(group.counter, reads, run))


def _told_apart(group: RunningGroup, name: str) -> float:
    """The points of a stage in registers that the code of several points of the output computes, over those that these
    need (see `fusion_group.told_apart`)."""
    if name not in group.registers:
        return 1.0
    follows, together = group.members.follows[name], group.reads[group.members.output].apart
    spans = ((n, follows[d]) for d, n in group.reads[name].apart.items())
    return prod(n / s.extent(together[s.var]) for n, s in spans if s.var is not None)


def _moved_back(group: RunningGroup, name: str) -> Amount:
    """The points of an output that tiles of several points side by side compute, over those that there are: the last
    tile is moved back to end with its dim."""
    again: Amount = 1.0
    if name == group.members.output and not group.facts.stages[name].updates:
        for axis in (group.nest.axes[d] for d in group.reads[name].apart):
            again = again * (axis.counts * axis.sizes / axis.extent)
    return again


def _asking(group: RunningGroup, name: str, run: Run, points: Amount, work: Work) -> Work:
    """The work of a stage that asks ahead for what it reads."""
    run_bytes = bytes_in_order(group, name, run, points, work.rows, work.next, ahead=True)
    return work._replace(run_bytes=run_bytes, asked=lines_asked(group, name, run))
