"""The candidates of a search as people and programs read them: rank, figures, and what each decides otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilesmith.cost_models.interface import told
from tilesmith.scheduler.ir.schedule.difference import differences, in_a_line
from tilesmith.scheduler.search import Candidate, pareto


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its rank from 1. `pareto`: no other is at least as good in predicted cost, memory, recomputation
    and parallelism, and better in one. `differs`: from the first, in a line."""

    rank: int
    candidate: Candidate
    pareto: bool
    differs: str


def ranked(candidates: Sequence[Candidate]) -> tuple[Ranked, ...]:
    """The candidates in their order."""
    best = candidates[0].schedule if candidates else None
    return tuple(
        Ranked(n, c, mark, "" if best is None or n == 1 else in_a_line(differences(c.schedule, best)))
        for n, (c, mark) in enumerate(zip(candidates, pareto(candidates), strict=True), start=1)
    )


def to_document(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """The candidate as plain data, for JSON; `predicted` is in the unit of the breakdown."""
    return [
        {
            "rank": r.rank,
            "predicted": float(told(r.candidate.predicted.total)),
            "memory_bytes": r.candidate.memory_bytes,
            "recompute": round(r.candidate.recompute, 6),
            "parallelism": r.candidate.parallelism,
            "pareto": r.pareto,
            "differs": r.differs,
        }
        for r in ranked(candidates)
    ]
