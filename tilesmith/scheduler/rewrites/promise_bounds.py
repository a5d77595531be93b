"""Promised bounds: what is proved of the values that indices are made of stands where they are read."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.ir.pipeline.expressions import Access, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, rewritten
from tilesmith.scheduler.ir.pipeline.value_ends import ValueEnds


def promised(pipeline: Pipeline) -> Pipeline:
    """*Before*: any pipeline. *After*: where an index is made of the values of stages, places are part of it, and the
    others have the ends that are proved of them; so are these places where values are their whole parts. Again, this
    changes nothing."""
    if not any(map(_reads_by_data, pipeline.stages)):
        return pipeline
    ends = ValueEnds(pipeline.stages)
    stages = tuple(_promised(s, ends) if _reads_by_data(s) else s for s in pipeline.stages)
    stages = tuple(rewritten(s, ends.whole_parts, ends.whole_parts) for s in stages)
    return (
        replace(pipeline, stages=stages)
        if any(a is not b for a, b in zip(stages, pipeline.stages, strict=True))
        else pipeline
    )


def _promised(stage: Stage, ends: ValueEnds) -> Stage:
    found = rewritten(stage, ends.indices, ends.indices)
    at = [tuple(map(ends.index, u.at)) for u in found.updates]
    if all(a is b for new, u in zip(at, found.updates, strict=True) for a, b in zip(new, u.at, strict=True)):
        return found
    return replace(found, updates=tuple(replace(u, at=new) for u, new in zip(found.updates, at, strict=True)))


def _reads_by_data(stage: Stage) -> bool:
    if any(any(a.data) for a in accesses(stage)):
        return True
    return any(isinstance(n, Access) for u in stage.updates for e in u.at for n in walk(e))
