"""The pipeline that a schedule is about: its reductions factored, its boundaries and short updates written out, its
windows separated, its outputs joined."""

from __future__ import annotations

from scheduler.analysis.normalise import normalise
from scheduler.factors import factored
from scheduler.joinings import joined
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Schedule
from scheduler.separations import separated


def prepared(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: a checked pipeline. *After*: the stages that the groups of `schedule` name; the same values.

    Raises IllegalSchedule where the schedule has a factor, a separation or a joining that cannot be.
    """
    pipeline = normalise(factored(pipeline, schedule.factors, schedule.strict), schedule.strict)
    if schedule.separations:
        pipeline = normalise(separated(pipeline, schedule.separations, schedule.strict), schedule.strict)
    if schedule.joinings:
        pipeline = normalise(joined(pipeline, schedule.joinings), schedule.strict)
    return pipeline
