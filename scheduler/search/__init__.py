"""Decisions: levels, inlining, tiling, grouping."""

from scheduler.search.candidates import Candidate, pareto
from scheduler.search.driver import METHODS, SearchOptions, SearchResult, autoschedule
from scheduler.search.trace import Decision, Infeasible, Rejected, Trace
from scheduler.search.vectorize_and_parallelize import root_schedule

__all__ = [
    "METHODS",
    "Candidate",
    "Decision",
    "Infeasible",
    "Rejected",
    "SearchOptions",
    "SearchResult",
    "Trace",
    "autoschedule",
    "pareto",
    "root_schedule",
]
