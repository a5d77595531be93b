"""Decisions: levels, inlining, tiling, grouping."""

from scheduler.search.autoschedule import METHODS, SearchOptions, SearchResult, autoschedule
from scheduler.search.candidates import Candidate, pareto
from scheduler.search.final import root_schedule
from scheduler.search.trace import Decision, Infeasible, Rejected, Trace

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
