"""Doubts about a prediction: what a stage's time depends on that neither its counts nor the platform's figures say.

A doubt is a sentence about one stage. Who shows a prediction shows them with it.
"""

from __future__ import annotations

from numpy import ndarray

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.ecm.columns import reached
from tilesmith.cost_models.ecm.machine import Machine
from tilesmith.cost_models.work import Column, Work

FEW_SETS = 0.25
"""The share of the sets of a cache from which on down lines of a column are in each other's way."""


def doubts(stage: str, work: Work, m: Machine) -> tuple[str, ...]:
    """Sentences about a stage's time on a machine."""
    found = []
    if any(o.function for _, o in work.operations):
        found.append(f"{stage} calls functions of the C library, whose time depends on their arguments.")
    if work.looked_up and _least(work.table) > m.inside[0] / 2:
        found.append(f"{stage} reads where data says, of more than the first cache holds: lines may be near or far.")
    elif not work.looked_up and any(t.way in ("gathered", "alone", "pairs") for t in work.loads):
        found.append(f"{stage} reads what does not lie side by side: vectors are put together lane by lane.")
    if any(t.way == "gathered" for t in work.stores):
        found.append(f"{stage} writes where data says, or far apart: stores may wait for each other.")
    if any(p.lanes == 1 and p.chain for p in work.passes):
        found.append(f"{stage} makes each point of the one before: what compilers keep in registers decides.")
    elif 1 in (work.lanes, *(p.lanes for p in work.passes)) or _least(work.singles) > _least(work.steps * work.lanes):
        found.append(f"{stage} is computed point by point, which compilers do in more ways than are counted.")
    transposed = (Column(p.apart, float(p.lanes), 0.0) for p in work.passes if p.across)
    if any(_least(reached(c, m.caches[0])) <= FEW_SETS for c in (*work.columns, *transposed)):
        found.append(f"{stage} walks across rows whose lines are in each other's way in the first cache.")
    return tuple(found)


def _least(amount: Amount) -> float:
    return float(amount.min()) if isinstance(amount, ndarray) else float(amount)
