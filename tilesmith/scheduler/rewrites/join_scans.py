"""Scans of a chain: a stage that takes its values from a scan and goes on with another one is a single stage with the
updates of both, whose passes run block by block (see `analysis.update_sweeps`)."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.dependence import free_dims, way_through
from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Var, map_children
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, rewritten


def with_joined_scans(pipeline: Pipeline) -> Pipeline:
    """`pipeline` without stages that only another one reads, as its values, where both are scans whose passes can run
    block by block; the same values. The pipeline itself where there are none."""
    found = pipeline
    for stage in pipeline.stages:
        first = _scan_before(found, found.stage(stage.name))
        if first is not None:
            made = _joined(first, found.stage(stage.name))
            stages = (made if s.name == stage.name else s for s in found.stages if s.name != first.name)
            found = replace(found, stages=tuple(stages))
    return found


def _scan_before(pipeline: Pipeline, stage: Stage) -> Stage | None:
    """The scan that the values of `stage` are, which nothing else reads."""
    first = next((s for s in pipeline.stages if s.updates and stage.updates and _takes(stage, s)), None)
    if first is None or first.name in pipeline.outputs:
        return None
    others = (s for s in pipeline.stages if s not in (first, stage))
    if any(a.name == first.name for s in others for a in parts(s, Access)):
        return None
    if any(a.producer != stage.name for a in accesses(stage) if a.definition):
        return None  # more would be required of that
    kept = set(stage.storage[1:]).intersection(*(free_dims(first, u) for u in first.updates))
    return first if any(way_through(stage, stage.updates[0], dim) is not None for dim in kept) else None


def _takes(stage: Stage, first: Stage) -> bool:
    """True if the values of `stage` are those of `first`, point by point, which lie alike."""
    here = tuple(map(Var, stage.dims))
    values = tuple(Access(first.name, here, k, t) for k, t in enumerate(first.types))
    return values == stage.values and (first.dims, first.storage) == (stage.dims, stage.storage)


def _joined(first: Stage, stage: Stage) -> Stage:
    """The values and updates of `first`, and then the updates of `stage`."""

    def own(e: Expr) -> Expr:
        e = map_children(e, own)
        return replace(e, name=stage.name) if isinstance(e, Access) and e.name == first.name else e

    renamed = rewritten(first, own, own)
    return replace(stage, values=renamed.values, updates=(*renamed.updates, *stage.updates))
