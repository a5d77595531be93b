"""The flow of a search: facts, groups, levels, tiles, final choices; and the trace of what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cost_models.ecm import Ecm
from cost_models.model import Breakdown
from cost_models.taco2019 import Taco2019
from platforms import Platform
from scheduler.errors import ScheduleError
from scheduler.features.pipeline_features import gather
from scheduler.ir.pass_manager import Observer
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.ir.plan import Plan
from scheduler.ir.schedule.schedule import Schedule
from scheduler.rewrites.passes import rewrite
from scheduler.search.candidates import Candidate
from scheduler.search.constraints.constrained_search import decide
from scheduler.search.constraints.constraints import FREE, Fixed
from scheduler.search.constraints.document import check
from scheduler.search.deadline import Deadline
from scheduler.search.ecm.method import default
from scheduler.search.initial_rewrites import rewriting_explained
from scheduler.search.rfactor_choice import factor_reductions
from scheduler.search.taco2019.method import taco2019
from scheduler.search.trace import Trace

METHODS = ("default", "taco2019")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search. `now` is a clock in seconds (the scheduler reads none itself): with it timings are reported,
    and `deadline_ms` from the start of the search is kept; without it there is no deadline. `top`: how many candidates
    to keep, at most. `fixed`: what the caller has decided."""

    method: str = "default"
    strict: bool = False
    deadline_ms: float | None = None
    now: Callable[[], float] | None = None
    top: int = 1
    fixed: Fixed = FREE


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search, with its reasons. `candidates` are the best schedules that were found, the best first;
    `trace` tells of that one. `timings_ms` has `analysis` and `search`."""

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

    Raises ScheduleError for a method that there is not, and for fixed decisions where the method takes none;
    DocumentError where these name what the pipeline has not, FixedContradiction where no schedule has them all.
    """
    options = options or SearchOptions()
    if options.method not in METHODS:
        raise ScheduleError(f"there is no method '{options.method}'; methods: {', '.join(METHODS)}")
    if options.fixed and options.method == "taco2019":
        raise ScheduleError("the method 'taco2019' takes no fixed decisions: it decides what its paper does")
    clock = options.now or (lambda: 0.0)
    start = clock()
    plan = rewrite(pipeline, Schedule(pipeline.name, options.method, (), options.strict), observer)
    if options.fixed:
        check(options.fixed, plan.pipeline)
    factored = factor_reductions(plan, gather(plan.pipeline), platform)
    analysed = clock()

    deadline = Deadline(clock, start, options.deadline_ms)
    if options.method == "taco2019":
        candidates, trace = taco2019(factored, platform, Taco2019(), deadline)
    elif options.fixed:
        candidates, trace = decide(factored, platform, Ecm(), deadline, options.top, options.fixed)
    else:
        candidates, trace = default(factored, platform, Ecm(), deadline, options.top)
    trace = replace(trace, decisions=(*rewriting_explained(plan), *trace.decisions))
    timings = {"analysis": (analysed - start) * 1e3, "search": (clock() - analysed) * 1e3}
    return SearchResult(candidates, trace, timings)
