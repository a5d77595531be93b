"""The states of a job and the ways between them.

queued ----> running ----> succeeded
  |  ^          |  \\----> failed
  |  |          |  \\----> cancelled
  |  '----------'            (its service was stopped or lost: it will be started again)
  |----> cancelled
  '----> expired             (nobody started it in time)
"""

from __future__ import annotations

from typing import Literal, get_args

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
STATES: tuple[State, ...] = get_args(State)

TRANSITIONS: dict[State, frozenset[State]] = {
    "queued": frozenset({"running", "cancelled", "expired"}),
    "running": frozenset({"succeeded", "failed", "cancelled", "queued"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "expired": frozenset(),
}
FINISHED: frozenset[State] = frozenset(s for s, ways in TRANSITIONS.items() if not ways)


class WrongTransition(Exception):
    """A change of state that no job may make: a defect of ours."""


def check(before: State, after: State) -> None:
    """Raises WrongTransition where there is no way from one state to the other."""
    if after not in TRANSITIONS[before]:
        raise WrongTransition(f"a job cannot go from {before} to {after}")
