"""The outcome of a check: what was compared, and what has no schedule."""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.app.cli.ci.status import ERROR, FINE, REGRESSED
from tilesmith.app.cli.report import BadDocument
from tilesmith.app.comparison.compare import Comparison, regressed
from tilesmith.scheduler.errors import TilesmithError


@dataclass(frozen=True, slots=True)
class Invalid:
    """A document that has no schedule, with the reason."""

    source: str
    platform: str
    error: TilesmithError

    def lines(self) -> list[str]:
        """The problems, each with its place."""
        if isinstance(self.error, BadDocument):
            return [f"{p.pointer or '/'}: {p.message}" for p in self.error.problems]
        return str(self.error).splitlines()


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a check. `kind` is None where the reference has no results."""

    ref: str
    kind: str | None
    limit: float
    comparisons: tuple[Comparison, ...]
    invalid: tuple[Invalid, ...]

    @property
    def exit_status(self) -> int:
        """The exit status: an error says more than a regression."""
        if self.invalid:
            return ERROR
        return REGRESSED if regressed(self.comparisons) else FINE
