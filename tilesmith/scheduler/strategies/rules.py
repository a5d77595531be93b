"""All rules by name: those that are registered, and the algebra of expressions."""

from __future__ import annotations

from tilesmith.scheduler.strategies import steps
from tilesmith.scheduler.strategies.registry import RULES, Rule
from tilesmith.scheduler.strategies.steps.expressions import NAMES, built_in

_REGISTERED = steps  # importing them has made the rules


def names() -> tuple[str, ...]:
    """The names of all rules: of schedules and pipelines first, then of expressions, each sorted."""
    return (*sorted(RULES), *sorted(NAMES))


def rule(name: str) -> Rule:
    """The rule of that name; KeyError where there is none."""
    return RULES[name] if name in RULES else built_in(name)
