"""Output fusion: the outputs that may be computed together; whether they are is for the search to say."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Joining
from tilesmith.scheduler.rewrites.fuse_outputs import MOST, alike, kept, large
from tilesmith.scheduler.rewrites.names import fresh, taken


def ways(pipeline: Pipeline) -> tuple[tuple[Joining, ...], ...]:
    """The ways to join outputs of the same dims and estimates, all that can be; `pipeline` is normal. Outputs that
    other stages read stay as they are, or, which is another way, are copied."""
    found = (together(pipeline, copied) for copied in (False, True))
    return tuple(dict.fromkeys(filter(None, found)))


def together(pipeline: Pipeline, copied: bool) -> tuple[Joining, ...]:
    """Joinings of all outputs of the same dims and estimates that can be joined, those that other stages read among
    them where they may be `copied`."""
    found: list[Joining] = []
    names = taken(pipeline)
    for outputs in alike(pipeline):
        stages = [name for name in outputs if pipeline.stage(name).dims and not pipeline.stage(name).updates]
        while len(stages) > 1 and (
            outside := (not copied and kept(pipeline, stages)) or frozenset(large(pipeline, stages))
        ):
            stages = [name for name in stages if name not in outside]
        if len(stages) > 1 and sum(len(pipeline.stage(name).values) for name in stages) <= MOST:
            joint = fresh(stages[0], "_".join(stages[1:]), names)
            found.append(Joining(tuple(stages), joint))
            names.add(joint)
    return tuple(found)
