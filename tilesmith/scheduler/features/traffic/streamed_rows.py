"""Rows of an output that is written past the caches: those whose ends tear lines, and those that loads wait for."""

from __future__ import annotations

from tilesmith.cost_models.amounts import Amount
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.features.pipeline.reads import composed
from tilesmith.scheduler.features.pipeline.streaming_stores import is_behind
from tilesmith.scheduler.features.traffic.running_group import RunningGroup


def torn_rows(group: RunningGroup, facts: StageFacts, run: Run, rows: Amount) -> Amount:
    """Rows of the output whose ends are ordinary stores into lines that vectors have been written to past the
    caches: they end inside of lines, and vectors are shorter, or ends are vectors that overlap others; or clamps
    have the ends computed apart, but where stages share the loop, whose vectors are those of the lines. Those of a
    tile do not, but of outputs of the pipeline, whose rows may begin anywhere, by short vectors."""
    size = facts.bytes_per_point
    line = group.facts.line_bytes
    short = run.lanes * size < line
    if run.row is None:
        return 0.0
    whole, apart = facts.extent(facts.storage[0]) * size % line == 0, _clamped(group, facts.name)
    if whole and (not apart or group.one_loop):
        return 0.0
    if not whole and short and facts.name in group.facts.graph.outputs:
        return rows
    return rows / group.nest.axes[run.row].counts if short or apart else 0.0


def awaited_bytes(group: RunningGroup, output: StageFacts, run: Run) -> float:
    """Bytes of the output, all or none, which loads wait for: those of what lies a little behind what is written,
    but for whole pages, agree with it in the bits of an address that are compared first. A stage that is computed
    ahead of the output loads what is ahead; buffers of the group's own begin elsewhere."""
    members, found = group.members, group.reads
    if run.row is None:
        return 0.0
    for name in group.one_loop or (output.name,):
        own = members.follows[name]
        ahead = any(s.var == run.row and (s.hi or 0) > 0 for s in own.values())
        for read in () if ahead else found[name].reads:
            if members.is_local(read.producer) or read.producer in group.registers:
                continue
            producer = members.facts.stages[read.producer]
            spans = composed(read.roughly, dict(own))
            alike = producer.bytes_per_point == output.bytes_per_point
            if alike and is_behind(output, producer, spans, run.row, found[output.name].apart, members.facts):
                return float(output.root_points * output.bytes_per_point)
    return 0.0


def _clamped(group: RunningGroup, name: str) -> bool:
    """True if the ends of a stage's rows are computed apart: clamps keep inside what they read."""
    stages = (group.facts.definitions[n] for n in (name, *group.reads[name].inlined))
    return any(s.clamps and s.var == e.storage[0] for e in stages for a in accesses(e) for s in a.spans)
