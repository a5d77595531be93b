"""The pipeline that a schedule is about: its reductions factored, its boundaries and short updates written out."""

from __future__ import annotations

from scheduler.analysis.normalise import normalise
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Schedule


def prepared(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    """*Before*: a checked pipeline. *After*: the stages that the groups of `schedule` name; the same values."""
    return normalise(pipeline, schedule.strict)
