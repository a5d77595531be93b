"""Stages that are looked up at places which data says, all channels of a place: these lie side by side in memory.

Where the channels are planes, each of them is another line, and a vector of places takes as many loads for every
channel as it has lanes. Side by side the channels of a place are one load (see `pairs`).
"""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.estimated_bounds import estimates
from tilesmith.scheduler.features.pipeline.interleaved_channels import pixels, planes_looked_up
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.lowering.unit import LoweringUnit


def with_layout(unit: LoweringUnit) -> LoweringUnit:
    """*Before*: the plan's pipeline. *After*: it with its channels laid out."""
    return replace(unit, pipeline=laid_out(unit.pipeline, unit.plan.schedule))


def laid_out(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: what `schedule` is about. *After*: the same values; of outputs of groups that are looked up, the
    channels lie side by side, where there are as many at the estimates, and vectors of all of them are computed
    together."""
    together = {g.output: g for g in schedule.groups if g.unroll and g.vector is not None}
    found = {s.name: s for s in pipeline.stages if s.name in together and _whole(s, together[s.name])}
    if not found or planes_looked_up(pipeline).isdisjoint(found):
        return pipeline
    names = pixels(pipeline, estimates(pipeline).regions)
    moved = {n: replace(s, storage=(s.dims[-1], *s.dims[:-1])) for n, s in found.items() if n in names}
    return replace(pipeline, stages=tuple(moved.get(s.name, s) for s in pipeline.stages)) if moved else pipeline


def _whole(stage: Stage, group: Group) -> bool:
    """True if vectors of all channels are computed together."""
    assert group.vector is not None
    return group.unroll == stage.dims[-1:] and group.vector.dim == stage.dims[0] and not group.stream
