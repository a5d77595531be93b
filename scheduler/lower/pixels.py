"""Stages that are looked up at places which data says, all channels of a place: these lie side by side in memory.

Where the channels are planes, each of them is another line, and a vector of places takes as many loads for every
channel as it has lanes. Side by side the channels of a place are one load (see `pairs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scheduler.analysis.graph import expressions, is_plain
from scheduler.analysis.regions import estimates
from scheduler.lang.expr import Access, Var, walk
from scheduler.lang.pipeline import Pipeline, Stage
from scheduler.lower.pairs import PAIRED_BITS
from scheduler.schedule import Group, Schedule

CHANNELS = (2, 4)
"""So many of them are loaded at once."""


def laid_out(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: what `schedule` is about. *After*: the same values; of outputs of groups that are looked up, the
    channels lie side by side, where there are as many at the estimates, and vectors of all of them are computed
    together."""
    together = {g.output: g for g in schedule.groups if g.unroll and g.vector is not None}
    found: dict[str, Stage] = {}
    for stage in pipeline.stages:
        group = together.get(stage.name)
        if group is not None and stage.name not in pipeline.outputs and _has_planes(stage, group):
            found[stage.name] = stage
    looked_up = {name for s in pipeline.stages for name in _looked_up(s)} & set(found)
    regions = estimates(pipeline).regions if looked_up else {}
    moved = {
        name: replace(stage, storage=(stage.dims[-1], *stage.dims[:-1]))
        for name, stage in found.items()
        if name in looked_up and regions[name][-1][1] in CHANNELS
    }
    return replace(pipeline, stages=tuple(moved.get(s.name, s) for s in pipeline.stages)) if moved else pipeline


def _has_planes(stage: Stage, group: Group) -> bool:
    assert group.vector is not None
    planes = len(stage.dims) > 1 and stage.storage == stage.dims and is_plain(stage)
    whole = group.unroll == stage.dims[-1:] and group.vector.dim == stage.dims[0] and not group.stream
    return planes and whole and stage.types[0].bits == PAIRED_BITS


def _looked_up(reader: Stage) -> Iterator[str]:
    """What `reader` reads at places that data says, the last dim of which is one of its own as it stands."""
    for a in (a for e in expressions(reader) for a in walk(e) if isinstance(a, Access) and a.indices):
        *places, channel = a.indices
        data = any(isinstance(part, Access) for place in places for part in walk(place))
        if data and isinstance(channel, Var) and channel.name in reader.dims:
            yield a.name
