"""The pipeline that a schedule is about: its reductions factored, its boundaries and short updates written out, its
windows separated, its outputs joined."""

from __future__ import annotations

from scheduler.analysis.normalise import normalise
from scheduler.analysis.remember import once_per_pipeline
from scheduler.factors import factored
from scheduler.joinings import joined
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Factor, Joining, Schedule, Separation
from scheduler.separations import separated


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
