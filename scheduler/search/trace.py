"""The trace of a search: every decision as data, for people and for the dashboard. They are not logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "rewriting", "fixed", "factor", "separation", "joining", "group", "level", "inline", "tiling", "split", "final"
]


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No valid candidate, and why. A value, not an error: the search goes on with something else."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that was not taken. `cost` is None where it was not costed (not valid, or not comparable)."""

    choice: str
    reason: str
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about `subject` (a stage, a group, the pipeline), by which part of the method, and why."""

    kind: Kind
    subject: str
    chosen: str
    reason: str
    source: str
    cost: float | None = None
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The decisions in the order they were made; `unit` is that of the costs."""

    method: str
    unit: str
    decisions: tuple[Decision, ...]

    def to_document(self) -> dict[str, Any]:
        """The trace as plain data, for JSON."""
        return {
            "method": self.method,
            "unit": self.unit,
            "decisions": [
                {
                    "kind": d.kind,
                    "subject": d.subject,
                    "chosen": d.chosen,
                    "reason": d.reason,
                    "source": d.source,
                    "cost": d.cost,
                    "rejected": [{"choice": r.choice, "reason": r.reason, "cost": r.cost} for r in d.rejected],
                }
                for d in self.decisions
            ],
        }

    @staticmethod
    def from_document(document: dict[str, Any]) -> Trace:
        """The trace that `to_document` wrote."""
        return Trace(
            document["method"],
            document["unit"],
            tuple(
                Decision(**{**d, "rejected": tuple(Rejected(**r) for r in d["rejected"])})
                for d in document["decisions"]
            ),
        )
