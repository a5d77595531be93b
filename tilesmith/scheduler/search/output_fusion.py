"""Output fusion: the outputs that may be computed together; whether they are is for the search to say."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Joining
from tilesmith.scheduler.rewrites.fuse_outputs import MOST, alike, elsewhere, large
from tilesmith.scheduler.rewrites.names import fresh, taken


def together(pipeline: Pipeline) -> tuple[Joining, ...]:
    """Joinings of all outputs of the same dims and estimates that can be joined; `pipeline` is normal."""
    found: list[Joining] = []
    names = taken(pipeline)
    for outputs in alike(pipeline):
        stages = [name for name in outputs if pipeline.stage(name).dims and not pipeline.stage(name).updates]
        while len(stages) > 1 and (outside := elsewhere(pipeline, stages) or large(pipeline, stages)):
            stages = [name for name in stages if name not in outside]
        if len(stages) > 1 and sum(len(pipeline.stage(name).values) for name in stages) <= MOST:
            joint = fresh(stages[0], "_".join(stages[1:]), names)
            found.append(Joining(tuple(stages), joint))
            names.add(joint)
    return tuple(found)
