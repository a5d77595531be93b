"""The pipeline that a schedule is about: its reductions factored, its boundaries and short updates written out."""

from __future__ import annotations

from scheduler.analysis.normalise import normalise
from scheduler.factors import factored
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Schedule


def prepared(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: a checked pipeline. *After*: the stages that the groups of `schedule` name; the same values.

    Raises IllegalSchedule where the schedule has a factor that cannot be.
    """
    return normalise(factored(pipeline, schedule.factors, schedule.strict), schedule.strict)
