"""The counts of any complete schedule, whoever made it: what a cost model sees of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilesmith.cost_models.counts import GroupCounts
from tilesmith.cost_models.interface import Breakdown, CostModel, combined
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels, in_registers
from tilesmith.scheduler.features.groups.loop_nest import Axis, Nest, single
from tilesmith.scheduler.features.groups.unroll_and_jam import points_together
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts, gather
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, UpdateLoops, Vector, dim_of

NO_AXES: Mapping[str, Axis] = MappingProxyType({})


def predict(plan: Plan, platform: Platform, model: CostModel) -> Breakdown:
    """The cost of a legal plan on `platform`, predicted by `model`."""
    return combined(model.price(counts, platform) for counts in counts_of(plan, platform))


def counts_of(plan: Plan, platform: Platform) -> tuple[GroupCounts, ...]:
    """The counts of every group of a legal plan, in the order that they run, at the pipeline's estimates."""
    facts, groups = gather(plan.pipeline, line_bytes=platform.line_bytes, core=platform.core), plan.schedule.groups
    past = frozenset(g.output for g in groups if g.stream)
    return tuple(counts_of_group(facts, group, platform.threads, past) for group in groups)


def counts_of_group(
    facts: Facts,
    group: Group,
    threads: int,
    past: frozenset[str] = frozenset(),
    others: Mapping[str, Axis] = NO_AXES,
) -> GroupCounts:
    """The counts of one group; outputs of others are written `past` the caches. Its tile sizes are as they are, but
    for those of `others`, dims with candidates of theirs."""
    inlined = frozenset(p.stage for p in group.placements if p.compute == INLINE)
    names = tuple(p.stage for p in group.placements)
    members = members_of(facts, group.output, (*names, group.output))
    output = facts.stages[group.output]
    sizes = {t.dim: t.size for t in group.tiles if t.size is not None}
    axes = {d: single(d, n, min(n, sizes.get(d, n))) for d, n in zip(output.dims, output.extents, strict=True)}
    nest = Nest(group.output, group.loops, {**axes, **others})
    levels = {
        p.stage: Levels(nest.positions[p.compute], nest.positions[p.store], p.storage == "registers")
        for p in group.placements
        if p.stage not in inlined
    }
    unrolled = {d: min(output.extent(d), sizes.get(d, output.extent(d))) for d in group.unroll}
    rows = points_together(members, group.loops, {name: at.compute for name, at in levels.items()}, inlined)
    reads = effective(members, inlined, unrolled, in_registers(levels), rows)
    return worked_counts(members, reads, nest, levels, threads, running_of(facts, group)._replace(past=past))


def running_of(facts: Facts, group: Group) -> Running:
    """The execution modes of a group."""
    output = facts.stages[group.output]
    looped = [dim_of(loop) for loop in group.loops if dim_of(loop) not in group.unroll]
    runs = {group.output: _run(output, group.vector, looped[0] if looped else None, group.updates)}
    for p in group.placements:
        if p.compute != INLINE:
            runs[p.stage] = _of_placement(facts.stages[p.stage], p)
    parallel = None if group.parallel is None else group.loops.index(group.parallel)
    updates = any(u.parallel is not None for u in group.updates)
    return Running(runs, parallel, updates, group.stream, group.prefetch)


def _of_placement(stage: StageFacts, p: Placement) -> Run:
    innermost = p.order[0] if p.order else stage.storage[0] if stage.storage else None
    return _run(stage, p.vector, innermost, p.updates, p.storage == "registers")


def _run(
    stage: StageFacts, vector: Vector | None, row: str | None, updates: tuple[UpdateLoops, ...], registers: bool = False
) -> Run:
    """The execution mode of a stage; of one with updates that of the update with the most iterations, unless each of
    them is a pass of its own."""
    if stage.updates:
        most = max(range(len(stage.updates)), key=lambda n: stage.updates[n].iterations)
        own = updates[most].vector if updates else None
        dim, before = own and own.dim, 1 if vector is None else vector.lanes
        if stage.passes:
            return Run(row if vector is None else vector.dim, before, before=before, updates=updates)
        return Run(dim if dim in stage.dims else row, 1 if own is None else own.lanes, before=before)
    if vector is None:
        return Run(row, 1, registers)
    return Run(vector.dim, vector.lanes, registers)
