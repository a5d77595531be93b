"""Predicted times of a state's loop nests, with what is open as it is, by the cost model of its context."""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.ir.schedule.schedule import Group
from tilesmith.scheduler.strategies.state import State


def cost(state: State) -> float:
    """The predicted time of the state's schedule."""
    return sum(prices(state, state.schedule.groups))


def prices(state: State, groups: Iterable[Group]) -> list[float]:
    """The predicted times of groups that the state has, or could have in the place of its own."""
    past = frozenset(g.output for g in state.schedule.groups if g.stream)
    model, threads = state.context.model, state.platform.threads
    return [
        float(model.total(counts_of_group(state.facts, group, threads, past - {group.output}), state.platform))
        for group in groups
    ]
