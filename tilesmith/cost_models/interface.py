"""The interface of a cost model, and what it returns: a breakdown with units, not one number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import floor, isfinite, log10
from typing import Any, Protocol

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.counts import GroupCounts, pick
from tilesmith.platforms import Platform
from tilesmith.records import record

MICROSECONDS = "microseconds"
IN_CORE = "in core"
"""The term of a stage for the time that a core takes, were all data in the first level, in models that have it."""
A_CALL = 5.0
"""Microseconds: what checks, memory and threads of a call take, of which little is counted."""
COUNTS = 0.1
"""The share of a prediction from which on what puts a stage's cost in doubt does so to all of it."""
_SHORT = "The call itself takes about as long."


@record(frozen=True, slots=True)
class Term:
    """One part of a stage's cost, in the breakdown's unit."""

    name: str
    value: Amount


@record(frozen=True, slots=True)
class StageCost:
    """The cost of one stage: its terms, which add up to `total`; `unsure`: a sentence for whatever puts it in doubt."""

    stage: str
    group: str
    terms: tuple[Term, ...]
    unsure: tuple[str, ...] = ()

    @property
    def total(self) -> Amount:
        return sum((t.value for t in self.terms), 0.0)


@record(frozen=True, slots=True)
class Breakdown:
    """The predicted cost of a schedule, per stage and in all. `unit` says what the numbers are.

    The values are arrays over candidates where the counts were.
    """

    model: str
    unit: str
    stages: tuple[StageCost, ...]

    @property
    def total(self) -> Amount:
        return sum((s.total for s in self.stages), 0.0)

    @property
    def unsure(self) -> tuple[str, ...]:
        """Sentences that say why the cost may be off, those of stages that are a good part of it; none where it is
        sure. Of plain numbers only."""
        whole = float(self.total)
        short = (_SHORT,) if self.unit == MICROSECONDS and whole < A_CALL else ()
        costly = (s for s in self.stages if float(s.total) >= COUNTS * whole)
        return (*short, *dict.fromkeys(text for s in costly for text in s.unsure))

    def at(self, index: tuple[int, ...]) -> Breakdown:
        """The breakdown of one candidate: plain numbers."""
        return replace(
            self,
            stages=tuple(
                replace(s, terms=tuple(replace(t, value=pick(t.value, index)) for t in s.terms)) for s in self.stages
            ),
        )

    def to_document(self) -> dict[str, Any]:
        """The breakdown as plain data, for JSON; of plain numbers only."""
        return {
            "model": self.model,
            "unit": self.unit,
            "total": told(self.total),
            "unsure": list(self.unsure),
            "stages": [
                {
                    "stage": s.stage,
                    "group": s.group,
                    "total": told(s.total),
                    "terms": {t.name: told(t.value) for t in s.terms},
                    **({"unsure": list(s.unsure)} if s.unsure else {}),
                }
                for s in self.stages
            ],
        }

    @staticmethod
    def from_document(document: dict[str, Any]) -> Breakdown:
        """The breakdown that `to_document` wrote."""
        return Breakdown(
            document["model"],
            document["unit"],
            tuple(
                StageCost(
                    s["stage"],
                    s["group"],
                    tuple(Term(n, float(v)) for n, v in s["terms"].items()),
                    tuple(s.get("unsure", ())),
                )
                for s in document["stages"]
            ),
        )


def told(cost: Amount) -> float:
    """The cost as documents tell it, a plain number: to six digits, and to the hundredth at least. More would say
    nothing, and take most of the room of what is stored."""
    number = float(cost)
    if number and isfinite(number):
        number = round(number, max(2, 5 - floor(log10(abs(number)))))
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def combined(parts: Iterable[Breakdown]) -> Breakdown:
    """One breakdown of several groups' priced by the same model."""
    found = tuple(parts)
    return replace(found[0], stages=tuple(s for part in found for s in part.stages))


class CostModel(Protocol):
    """Prices counts for a platform. Pure: the same counts and platform give the same breakdown."""

    @property
    def name(self) -> str:
        """The model's name, as in documents."""

    @property
    def unit(self) -> str:
        """The unit of the model's numbers."""

    def price(self, counts: GroupCounts, platform: Platform) -> Breakdown:
        """The cost of a group, per stage."""

    def total(self, counts: GroupCounts, platform: Platform) -> Amount:
        """The total of what `price` returns."""
