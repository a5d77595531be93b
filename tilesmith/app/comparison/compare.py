"""The comparison of the results of a commit with a baseline, series by series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tilesmith.app.comparison.noise import Evidence
from tilesmith.app.comparison.results import Result, Series

Status = Literal["regressed", "slower", "same", "faster", "new", "removed"]

MOVED = 1e-3
"""Relative change of predicted time below which nothing is said."""
ROUNDING = 1e-9
"""Relative difference of floats that is none: a limit of 5 % is reached by 1.05 as it is computed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A series as the commit has it (`now`) and the baseline (`before`): one of them may be missing. `evidence` is of
    interleaved runs of both; `gates` says that it decides, too."""

    series: Series
    now: Result | None
    before: Result | None
    limit: float
    evidence: Evidence | None = None
    gates: bool = False

    @property
    def change(self) -> float | None:
        """The relative change of predicted time; None where there is nothing to compare, or other units."""
        if self.now is None or self.before is None or self.now.unit != self.before.unit or self.before.predicted <= 0:
            return None
        return self.now.predicted / self.before.predicted - 1.0

    @property
    def status(self) -> Status:
        """The outcome. `regressed` fails the check: predicted time has grown by the limit or more, or measured time
        has, where it gates."""
        if self.now is None:
            return "removed"
        if self.before is None or self.change is None:
            return "new"
        if reaches(self.change, self.limit) or self.measured_regressed:
            return "regressed"
        if abs(self.change) < MOVED:
            return "same"
        return "slower" if self.change > 0 else "faster"

    @property
    def measured_regressed(self) -> bool:
        """True if the measurement gates and says that the code is slower by the limit or more."""
        return self.gates and self.evidence is not None and self.evidence.slower(self.limit)

    @property
    def measured_in_words(self) -> str:
        """The measured change with its interval, and whether noise hides the answer; empty without evidence."""
        if self.evidence is None:
            return ""
        doubt = ", too noisy to tell" if self.evidence.undecided(self.limit) else ""
        return self.evidence.in_words() + doubt

    @property
    def moved(self) -> bool:
        """True if there is something to tell."""
        told = self.evidence is not None and self.evidence.slower(self.limit)
        return self.status != "same" or told

    def in_words(self) -> str:
        """The outcome in a sentence."""
        name, change = self.series.in_words(), self.change
        if self.now is None:
            return f"{name} is in the baseline, and no document has it any more"
        if self.before is None:
            return f"{name} is new: the baseline does not have it"
        if change is None:
            return f"{name} is predicted in {self.now.unit}, the baseline in {self.before.unit}: nothing to compare"
        return f"{name}: {self.status}, {percent(change)} predicted; {self.why()}{self._accepted()}"

    def why(self) -> str:
        """The cause that is known: another document, another schedule of the same, or neither."""
        if self.now is None or self.before is None or self.now.schedule_id == self.before.schedule_id:
            return "the same schedule"
        if self.now.pipeline_id != self.before.pipeline_id:
            return "the pipeline was changed"
        return "the same pipeline has another schedule"

    def _accepted(self) -> str:
        reason = self.before.reason if self.before else None
        return f"; compared with what was accepted: {reason}" if reason else ""

    def to_document(self) -> dict[str, Any]:
        """The comparison as plain data, for JSON."""
        return {
            "pipeline": self.series.pipeline,
            "platform": self.series.platform,
            "variant": self.series.variant,
            "status": self.status,
            "change": self.change,
            "why": self.why() if self.now and self.before else None,
            "now": self.now.to_document() if self.now else None,
            "baseline": self.before.to_document() if self.before else None,
            "measured": self.evidence.to_document() if self.evidence else None,
        }


def compare(now: Iterable[Result], before: Iterable[Result], limit: float) -> tuple[Comparison, ...]:
    """Every series of either side, in order. `limit` is a share: 0.05 is 5 %."""
    mine, theirs = {r.series: r for r in now}, {r.series: r for r in before}
    return tuple(Comparison(s, mine.get(s), theirs.get(s), limit) for s in sorted({*mine, *theirs}))


def with_evidence(comparison: Comparison, evidence: Evidence | None, gates: bool) -> Comparison:
    """The comparison with what was measured."""
    return replace(comparison, evidence=evidence, gates=gates)


def regressed(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons that fail the check."""
    return tuple(c for c in comparisons if c.status == "regressed")


def reaches(change: float, limit: float) -> bool:
    """True if a relative change is growth, and of the limit or more."""
    return change > ROUNDING and change >= limit - ROUNDING


def percent(change: float) -> str:
    """A relative change with its sign, in percent."""
    return f"{100 * change:+.1f} %"
