"""Decisions: levels, inlining, tiling, grouping."""

from scheduler.search.autoschedule import METHODS, SearchOptions, SearchResult, autoschedule
from scheduler.search.final import root_schedule
from scheduler.search.trace import Decision, Infeasible, Rejected, Trace

__all__ = [
    "METHODS",
    "Decision",
    "Infeasible",
    "Rejected",
    "SearchOptions",
    "SearchResult",
    "Trace",
    "autoschedule",
    "root_schedule",
]
