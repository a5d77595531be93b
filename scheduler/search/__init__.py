"""Decisions: levels, inlining, tiling, grouping."""

from scheduler.search.candidates import Candidate, pareto
from scheduler.search.driver import SearchOptions, SearchResult, autoschedule
from scheduler.search.registry import methods
from scheduler.search.trace import Decision, Infeasible, Rejected, Trace
from scheduler.search.vectorize_and_parallelize import root_schedule

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
