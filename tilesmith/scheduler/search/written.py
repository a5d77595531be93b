"""Schedules that were written by hand: checked, and priced as those that a search finds."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.cost_models.interface import combined
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.ir.pass_manager import Observer
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search.candidates import candidate
from tilesmith.scheduler.search.driver import SearchOptions, SearchResult, cost_model
from tilesmith.scheduler.search.ecm.method import Default
from tilesmith.scheduler.search.trace import Trace

METHOD = "written"
"""The method that such a schedule says it is by."""


def priced(
    pipeline: Pipeline,
    schedule: Schedule,
    platform: Platform,
    options: SearchOptions | None = None,
    observer: Observer | None = None,
) -> SearchResult:
    """The schedule with its predicted cost, and a trace without decisions: they were the writer's. Of the options it
    takes the cost model and the clock.

    Raises IllegalSchedule, naming the stage and the rule; ScheduleError for a cost model that there is not.
    """
    options = options or SearchOptions()
    clock = options.now or (lambda: 0.0)
    start = clock()
    model = cost_model(options.cost_model or Default().model)
    plan = rewrite(pipeline, replace(schedule, method=METHOD), observer)
    check(plan)
    facts = gather(plan.pipeline, line_bytes=platform.line_bytes, core=platform.core)
    analysed = clock()
    groups = plan.schedule.groups
    past = frozenset(g.output for g in groups if g.stream)
    counts = [counts_of_group(facts, g, platform.threads, past) for g in groups]
    predicted = combined(model.price(c, platform) for c in counts)
    timings = {"analysis": (analysed - start) * 1e3, "search": (clock() - analysed) * 1e3}
    return SearchResult((candidate(facts, plan, counts, predicted),), Trace(METHOD, model.unit, ()), timings)
