"""Counts in, cost out, with units: one file per model, one interface."""

from cost_models.amounts import Amount
from cost_models.counts import GroupCounts, LoadCounts, StageCounts
from cost_models.ecm import Ecm
from cost_models.interface import Breakdown, CostModel, StageCost, Term, combined
from cost_models.operations import Operations
from cost_models.taco2019 import Taco2019
from cost_models.work import GroupWork, Transfer, Work

__all__ = [
    "Amount",
    "Breakdown",
    "CostModel",
    "Ecm",
    "GroupCounts",
    "GroupWork",
    "LoadCounts",
    "Operations",
    "StageCost",
    "StageCounts",
    "Taco2019",
    "Term",
    "Transfer",
    "Work",
    "combined",
]
