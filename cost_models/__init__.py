"""Counts in, cost out, with units: one file per model, one interface."""

from cost_models.counts import Amount, GroupCounts, LoadCounts, Operations, StageCounts
from cost_models.model import Breakdown, CostModel, StageCost, Term, combined
from cost_models.taco2019 import Taco2019

__all__ = [
    "Amount",
    "Breakdown",
    "CostModel",
    "GroupCounts",
    "LoadCounts",
    "Operations",
    "StageCost",
    "StageCounts",
    "Taco2019",
    "Term",
    "combined",
]
