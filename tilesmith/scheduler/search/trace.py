"""The trace of a search: every decision as data, for people and for the dashboard. They are not logs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tilesmith.cost_models.interface import told

Kind = Literal[
    "rewriting",
    "fixed",
    "factor",
    "separation",
    "joining",
    "packing",
    "group",
    "level",
    "inline",
    "tiling",
    "split",
    "final",
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
class Applied:
    """A step of a strategy that was made: the `rule` by its name, `where` (a stage, or the pipeline), its `arguments`
    in words, and the lines of definitions and loop nests that it changed, as they were `before` and as they are
    `after`."""

    rule: str
    where: str
    arguments: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        """The step as plain data, for JSON."""
        return {**asdict(self), "before": list(self.before), "after": list(self.after)}

    @staticmethod
    def from_document(document: dict[str, Any]) -> Applied:
        """The step that `to_document` wrote."""
        return Applied(**{**document, "before": tuple(document["before"]), "after": tuple(document["after"])})


@dataclass(frozen=True, slots=True)
class Trace:
    """The decisions in the order they were made; `unit` is that of the costs. `steps` are those of the strategy that
    made the schedule, where one did; the decisions are then of the search that it asked for."""

    method: str
    unit: str
    decisions: tuple[Decision, ...]
    steps: tuple[Applied, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The trace as plain data, for JSON."""
        return {
            "method": self.method,
            "unit": self.unit,
            **({"steps": [s.to_document() for s in self.steps]} if self.steps else {}),
            "decisions": [
                {
                    "kind": d.kind,
                    "subject": d.subject,
                    "chosen": d.chosen,
                    "reason": d.reason,
                    "source": d.source,
                    "cost": _told(d.cost),
                    "rejected": [{"choice": r.choice, "reason": r.reason, "cost": _told(r.cost)} for r in d.rejected],
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
            tuple(map(Applied.from_document, document.get("steps", ()))),
        )


def _told(cost: float | None) -> float | None:
    return None if cost is None else told(cost)
