"""The pipeline that a schedule is about: its reductions factored, its boundaries and short updates written out, its
windows separated, its outputs joined."""

from __future__ import annotations

from scheduler.analysis.memoize import once_per_pipeline
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.ir.schedule.schedule import Factor, Joining, Schedule, Separation
from scheduler.rewrites.fuse_outputs import joined
from scheduler.rewrites.normalize import normalise
from scheduler.rewrites.rfactor import factored
from scheduler.rewrites.split_separable import separated


def prepared(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: a checked pipeline. *After*: the stages that the groups of `schedule` name; the same values.

    Raises IllegalSchedule where the schedule has a factor, a separation or a joining that cannot be.
    """
    return _prepared(pipeline, schedule.factors, schedule.separations, schedule.joinings, schedule.strict)


@once_per_pipeline
def _prepared(
    pipeline: Pipeline,
    factors: tuple[Factor, ...],
    separations: tuple[Separation, ...],
    joinings: tuple[Joining, ...],
    strict: bool,
) -> Pipeline:
    pipeline = normalise(factored(pipeline, factors, strict), strict)
    if separations:
        pipeline = normalise(separated(pipeline, separations, strict), strict)
    if joinings:
        pipeline = normalise(joined(pipeline, joinings), strict)
    return pipeline
