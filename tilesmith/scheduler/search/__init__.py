"""The search for schedules: methods by name (`registry`), asked a `Question` by the `driver`.

`taco2019` and `ecm` are the methods, `constraints` has what the caller fixes; what methods share is beside them."""

from tilesmith.scheduler.search.candidates import Candidate, pareto
from tilesmith.scheduler.search.driver import SearchOptions, SearchResult, autoschedule
from tilesmith.scheduler.search.registry import methods
from tilesmith.scheduler.search.trace import Decision, Infeasible, Rejected, Trace
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

__all__ = [
    "Candidate",
    "Decision",
    "Infeasible",
    "Rejected",
    "SearchOptions",
    "SearchResult",
    "Trace",
    "autoschedule",
    "methods",
    "pareto",
    "root_schedule",
]
