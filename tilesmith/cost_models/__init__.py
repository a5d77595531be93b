"""Counts in, cost out, with units: one file per model, one interface."""

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.counts import GroupCounts, LoadCounts, StageCounts
from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.interface import Breakdown, CostModel, StageCost, Term, combined
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.taco2019 import Taco2019
from tilesmith.cost_models.work import GroupWork, Transfer, Work

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
