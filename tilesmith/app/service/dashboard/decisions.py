"""Decisions of a search as a page shows them: by what they are about, each with what was rejected and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilesmith.scheduler.search.explain import TITLES


@dataclass(frozen=True, slots=True)
class Rejection:
    """A choice that was not made, with its cost where it was worked out."""

    choice: str
    reason: str
    cost: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision: `title` tells its kind; where the reason is from is its `source`."""

    title: str
    chosen: str
    reason: str
    source: str
    cost: float | None
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """All decisions about a stage, a group or the pipeline."""

    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def rejected(self) -> int:
        return sum(len(v.rejected) for v in self.verdicts)


def by_subject(decisions: Sequence[Mapping[str, Any]]) -> tuple[Subject, ...]:
    """The decisions of `explain` by subject, in the order in which each was first decided about."""
    found: dict[str, list[Verdict]] = {}
    for d in decisions:
        found.setdefault(d["subject"], []).append(_verdict(d))
    return tuple(Subject(name, tuple(verdicts)) for name, verdicts in found.items())


def _verdict(d: Mapping[str, Any]) -> Verdict:
    rejected = tuple(Rejection(r["choice"], r["reason"], r["cost"]) for r in d["rejected"])
    return Verdict(TITLES.get(d["kind"], d["kind"]), d["chosen"], d["reason"], d["source"], d["cost"], rejected)
