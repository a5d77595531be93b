"""The flow of a search: facts, groups, levels, tiles, final choices; and the trace of what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilesmith.cost_models import registry as cost_models
from tilesmith.cost_models.interface import Breakdown, CostModel
from tilesmith.platforms import Platform
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.ir.pass_manager import Observer
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import registry
from tilesmith.scheduler.search.candidates import Candidate
from tilesmith.scheduler.search.constraints.constraints import FREE, Fixed
from tilesmith.scheduler.search.deadline import Deadline
from tilesmith.scheduler.search.initial_rewrites import rewriting_explained
from tilesmith.scheduler.search.method import Question
from tilesmith.scheduler.search.rfactor_choice import factor_reductions
from tilesmith.scheduler.search.trace import Trace


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search. `now` is a clock in seconds (the scheduler reads none itself): with it timings are reported,
    and `deadline_ms` from the start of the search is kept; without it there is no deadline. `top`: how many candidates
    to keep, at most. `fixed`: what the caller has decided. `cost_model`: the one that decides, by name; None: the
    method's own."""

    method: str = "default"
    strict: bool = False
    deadline_ms: float | None = None
    now: Callable[[], float] | None = None
    top: int = 1
    fixed: Fixed = FREE
    cost_model: str | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search, with its reasons. `candidates` are the best schedules that were found: the one that was
    chosen, then the others in the order of what they are predicted to cost; `trace` tells of the first. `timings_ms`
    has `analysis` and `search`."""

    candidates: tuple[Candidate, ...]
    trace: Trace
    timings_ms: dict[str, float]

    @property
    def plan(self) -> Plan:
        """The pipeline as it was rewritten, with the best schedule."""
        return self.candidates[0].plan

    @property
    def schedule(self) -> Schedule:
        """The best schedule."""
        return self.plan.schedule

    @property
    def predicted(self) -> Breakdown:
        """The predicted cost of the best schedule."""
        return self.candidates[0].predicted


def autoschedule(
    pipeline: Pipeline, platform: Platform, options: SearchOptions | None = None, observer: Observer | None = None
) -> SearchResult:
    """A legal schedule of `pipeline` for `platform`, always: where no candidate is valid, or the deadline ends
    the search, stages are computed at root and the schedule says why in `degraded`. The `observer` sees the passes
    that rewrite the pipeline.

    Raises ScheduleError for a method or a cost model that there is not, and for fixed decisions or a cost model where
    the method takes none; DocumentError where these name what the pipeline has not, FixedContradiction where no
    schedule has them all.
    """
    options = options or SearchOptions()
    method = registry.method(options.method)
    if options.fixed and not method.takes_fixed:
        raise ScheduleError(f"the method '{method.name}' takes no fixed decisions: it decides everything")
    if options.cost_model and not method.takes_model:
        raise ScheduleError(f"the method '{method.name}' takes no cost model: it decides by its own")
    model = cost_model(options.cost_model or method.model)
    clock = options.now or (lambda: 0.0)
    start = clock()
    plan = rewrite(pipeline, Schedule(pipeline.name, options.method, (), options.strict), observer)
    factored = factor_reductions(
        plan, gather(plan.pipeline, line_bytes=platform.line_bytes, core=platform.core), platform
    )
    analysed = clock()
    deadline = Deadline(clock, start, options.deadline_ms)
    found = method.search(
        Question(factored.plan, factored.facts, platform, model, deadline, options.top, options.fixed)
    )
    trace = replace(found.trace, decisions=(*rewriting_explained(plan), *found.trace.decisions))
    timings = {"analysis": (analysed - start) * 1e3, "search": (clock() - analysed) * 1e3}
    best, *others = found.candidates
    ranked = sorted(others, key=lambda c: float(c.predicted.total))
    return SearchResult((best, *ranked), trace, timings)


def cost_model(name: str) -> CostModel:
    """The cost model of a search. Raises ScheduleError where there is none of that name."""
    try:
        return cost_models.cost_model(name)
    except cost_models.UnknownCostModel as error:
        raise ScheduleError(str(error)) from None
