"""Stages whose channels are looked up together, at places which data says: as outputs of groups that compute all
channels at once they lie side by side in memory, and a place is one load (see `lowering.channel_layout`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilesmith.scheduler.analysis.estimated_bounds import Region
from tilesmith.scheduler.analysis.stage_graph import expressions, is_plain
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.loop.ops import PAIRED_BITS
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Var, has_accesses, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage

CHANNELS = (2, 4)
"""The numbers of channels that are loaded at once: those of the operations `GatherPairs` and `GatherFours`."""


def pixels(pipeline: Pipeline, regions: Mapping[str, Region]) -> frozenset[str]:
    """The stages of `pipeline` that can lie so, at the estimates; no outputs of it, whose layout is the caller's."""
    those = {s.name for s in pipeline.stages if s.name in regions and _has_planes(s)}
    those = {name for name in those - {*pipeline.outputs} if regions[name][-1][1] in CHANNELS}
    return planes_looked_up(pipeline) & those if those else frozenset()


def planes_looked_up(pipeline: Pipeline) -> frozenset[str]:
    """The stages that have planes, however many, and are looked up at places that data says."""
    planes = {s.name for s in pipeline.stages if _has_planes(s)}
    return frozenset(n for s in pipeline.stages for n in _looked_up(s) if n in planes) if planes else frozenset()


@once
def fours(facts: Facts) -> frozenset[str]:
    """The stages of four channels: two are no more than neighbours in a row, which are loaded in pairs as planes,
    too."""
    found = frozenset(r.producer for s in facts.stages.values() for r in s.reads if r.looked_up or r.computed)
    found = frozenset(n for n in found if facts.stages[n].extents[-1:] == (max(CHANNELS),))
    return found & pixels(facts.pipeline, facts.estimates.regions) if found else found


def _has_planes(stage: Stage) -> bool:
    return (
        len(stage.dims) > 1 and stage.storage == stage.dims and is_plain(stage) and stage.types[0].bits == PAIRED_BITS
    )


def _looked_up(reader: Stage) -> Iterator[str]:
    """The producers that `reader` reads at places that data says, the last dim of which is one of its own as it
    stands."""
    for a in (a for e in expressions(reader) for a in walk(e) if isinstance(a, Access) and a.indices):
        *places, channel = a.indices
        data = any(map(has_accesses, places))
        if data and isinstance(channel, Var) and channel.name in reader.dims:
            yield a.name
