"""Chains of dependent operations of a point of a stage, by way of the stages that are inline in it."""

from __future__ import annotations

from collections.abc import Sequence

from tilesmith.cost_models.counts import StageCounts
from tilesmith.cost_models.work import Chain
from tilesmith.scheduler.features.operations.dependence_chains import chain
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.features.work.row_dims import dims_along, same_along_row
from tilesmith.scheduler.ir.memo import once


@once
def _known_chains(facts: Facts) -> dict[object, Chain]:
    return {}


def longest_inside(group: RunningGroup, name: str) -> float:
    """The longest chain of what is inline in a stage."""
    ends, stages = chains_inside(group, name), group.facts.stages
    return max((ends[r.producer].whole for r in stages[name].reads if r.producer in ends), default=0.0)


def chain_of_point(group: RunningGroup, name: str) -> Chain:
    """The chain of a stage; of a long reduction the part of each of the points whose sums run side by side."""
    found, reads = _chain(group, name), group.reads[name]
    if reads.side_by_side == 1 or not group.has_loops(name):
        return found
    return Chain(*(cycles / reads.side_by_side for cycles in found))


def _chain(group: RunningGroup, name: str) -> Chain:
    """Cycles of the chains of operations of a point of a stage, by way of what is inline in it."""
    facts, reads = group.facts, group.reads[name]
    if facts.stages[name].updates:
        return Chain(0.0, 0.0)
    known, key = _known_chains(facts), (reads, group.running.stages[name].row, group.running.stages[name].lanes == 1)
    found = known.get(key)
    if found is None:
        found = known[key] = chains_inside(group, name)[name]
    return found


def chains_inside(group: RunningGroup, name: str) -> dict[str, Chain]:
    """The chains of the values of a stage, and of what is inline in it."""
    facts, reads = group.facts, group.reads[name]
    computed = reads.with_inlined(name)
    along, ends = dims_along(group, name, told=False), dict[str, Chain]()
    same = frozenset[str]() if group.has_loops(name) else same_along_row(group, name, group.running.stages[name])
    for stage in computed:
        if stage in same:  # computed before the row
            ends[stage] = Chain(0.0, 0.0)
            continue
        before = [ends[r.producer] for r in facts.stages[stage].reads if r.producer in ends]
        whole, after = chain(facts.definitions[stage], facts.core.latency_cycles, along[stage], facts.estimates.trips)
        inside = [(b.whole + after, b.after + after) for b in before]
        ends[stage] = Chain(*(max(ways) for ways in zip((whole, after), *inside, strict=True)))
    return ends


def chain_of_loop(group: RunningGroup, stages: Sequence[StageCounts]) -> float:
    """Chain through all stages that are computed in one step."""
    ends: dict[str, float] = {}
    for s in stages:
        if s.work is not None and s.stage in group.one_loop:
            before = (ends.get(r.producer, 0.0) for r in group.reads[s.stage].reads)
            ends[s.stage] = max(s.work.chain.whole, max(before, default=0.0) + s.work.chain.after)
    return max(ends.values(), default=0.0)
