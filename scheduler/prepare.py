"""The pipeline that a schedule is about: its reductions factored, its boundaries and short updates written out, its
windows separated, its outputs joined."""

from __future__ import annotations

from scheduler.analysis.normalise import normalise
from scheduler.analysis.remember import OfPipelines
from scheduler.factors import factored
from scheduler.joinings import joined
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Schedule
from scheduler.separations import separated


def prepared(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: a checked pipeline. *After*: the stages that the groups of `schedule` name; the same values.

    Raises IllegalSchedule where the schedule has a factor, a separation or a joining that cannot be.
    """
    key = (schedule.factors, schedule.separations, schedule.joinings, schedule.strict)
    return _PREPARED.get(pipeline, key, lambda: _prepared(pipeline, schedule))


_PREPARED = OfPipelines()


def _prepared(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    pipeline = normalise(factored(pipeline, schedule.factors, schedule.strict), schedule.strict)
    if schedule.separations:
        pipeline = normalise(separated(pipeline, schedule.separations, schedule.strict), schedule.strict)
    if schedule.joinings:
        pipeline = normalise(joined(pipeline, schedule.joinings), schedule.strict)
    return pipeline
