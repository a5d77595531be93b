"""The errors of the scheduler, one tree.

TilesmithError
  DocumentError      the caller's document or arguments are wrong; carries every problem found
  ScheduleError      no valid schedule
    IllegalSchedule    a schedule that would compute something wrong, with the reason
    FixedContradiction decisions that the caller fixed and that no schedule has together; carries every one found
    StrategyRefused    a strategy that does not fit the pipeline: the rule, the place and the reason
    NoBackend          no code is generated for platforms of that kind
  InternalError      our own fault: an invariant of ours does not hold
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document.

    `pointer` is a JSON Pointer (RFC 6901) to the place, `column` the 1-based column inside the
    expression there, if the place is an expression.
    """

    code: str
    pointer: str
    message: str
    hint: str | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = self.pointer or "/"
        if self.column is not None:
            place += f" column {self.column}"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.message} [{self.code}]{hint}"


class TilesmithError(Exception):
    """The root of everything that the scheduler raises on purpose."""

    code = "error"


MOST_PROBLEMS = 500
"""The most problems that are told of one document: nobody reads more, and each costs time."""


class DocumentError(TilesmithError):
    """The caller's document is wrong. `problems` has every problem found, in document order."""

    code = "bad_document"

    def __init__(self, problems: tuple[Problem, ...], told: str | None = None) -> None:
        """`told` has the problems in words, where more is known of their places than pointers say."""
        super().__init__(told or "\n".join(str(p) for p in problems))
        self.problems = problems


class ScheduleError(TilesmithError):
    """No valid schedule could be made."""

    code = "no_schedule"


class IllegalSchedule(ScheduleError):
    """The schedule breaks a rule of legality; the message names the stage and the rule."""

    code = "illegal_schedule"


class FixedContradiction(ScheduleError):
    """Decisions are fixed that no legal schedule has together. `problems` name them, with pointers into the fixed
    decisions."""

    code = "fixed_contradiction"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems


class StrategyRefused(ScheduleError):
    """A strategy does not fit the pipeline; the message names the rule that refused, its place and why."""

    code = "strategy_refused"


class NoBackend(ScheduleError):
    """No backend generates code for platforms of that kind; the message names the kinds that have one."""

    code = "no_backend"


class InternalError(TilesmithError):
    """An invariant of ours does not hold: a defect to report, never the caller's fault."""

    code = "internal"
