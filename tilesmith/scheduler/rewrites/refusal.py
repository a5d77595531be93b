"""Refusal: the answer of a rule or a step of scheduling that does not fit the place that it was given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failure as a value: the `rule` by its name, `where` (a stage, a loop of it, or a place in it) and `why`, the
    condition that does not hold there. What refuses has changed nothing."""

    rule: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.where}: {self.why}"
