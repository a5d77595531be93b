"""Running a strategy: the schedule that it makes of a pipeline, in the form that a search gives."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.cost_models.interface import combined
from tilesmith.platforms import Platform
from tilesmith.scheduler.errors import StrategyRefused
from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.ir.pass_manager import Observer
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.search import SearchOptions, SearchResult, Trace
from tilesmith.scheduler.search.candidates import candidate
from tilesmith.scheduler.search.deadline import Deadline
from tilesmith.scheduler.search.driver import cost_model
from tilesmith.scheduler.search.ecm.method import Default
from tilesmith.scheduler.strategies.combinators import Strategy
from tilesmith.scheduler.strategies.state import METHOD, Context, State, begin

DEFAULT = Default()


def schedule_by(
    strategy: Strategy,
    pipeline: Pipeline,
    platform: Platform,
    options: SearchOptions | None = None,
    observer: Observer | None = None,
) -> SearchResult:
    """The schedule that a strategy makes, with its steps in the trace; of the options it takes all but the method, what
    is fixed, and the number of candidates, which is one. The `observer` sees the passes that rewrite the pipeline.

    Raises StrategyRefused, with the rule, the place and the reason; ScheduleError for a cost model that there is not.
    """
    options = options or SearchOptions()
    clock = options.now or (lambda: 0.0)
    start = clock()
    deadline = Deadline(clock, start, options.deadline_ms)
    context = Context(cost_model(options.cost_model or DEFAULT.model), deadline)
    state = begin(pipeline, platform, options.strict, context, observer)
    analysed = clock()
    made = strategy(state)
    if isinstance(made, Refusal):
        raise StrategyRefused(str(made))
    timings = {"analysis": (analysed - start) * 1e3, "search": (clock() - analysed) * 1e3}
    return _result(made, timings)


def _result(state: State, timings_ms: dict[str, float]) -> SearchResult:
    groups, model = state.schedule.groups, state.context.model
    past = frozenset(g.output for g in groups if g.stream)
    counts = [counts_of_group(state.facts, g, state.platform.threads, past) for g in groups]
    predicted = combined(model.price(c, state.platform) for c in counts)
    plan = replace(state.plan, schedule=replace(state.schedule, method=METHOD))
    searched = state.searched or Trace(METHOD, model.unit, ())
    trace = replace(searched, method=METHOD, steps=state.applied)
    return SearchResult((candidate(state.facts, plan, counts, predicted),), trace, timings_ms)
