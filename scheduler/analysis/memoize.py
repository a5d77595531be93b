"""Caches of facts about stages, for as long as they are asked for often."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from scheduler.ir.pipeline.pipeline import Stage

Fact = TypeVar("Fact")
KEPT = 2048


def once_per_stage(function: Callable[[Stage], Fact]) -> Callable[[Stage], Fact]:
    """`function` with a cache of its last results. Stages are recognised by identity: comparing or hashing a
    whole expression tree would cost more than most facts."""
    known: dict[int, tuple[Stage, Fact]] = {}

    @wraps(function)
    def remembered(stage: Stage) -> Fact:
        entry = known.get(id(stage))
        if entry is not None and entry[0] is stage:
            return entry[1]
        if len(known) >= KEPT:
            known.clear()
        fact = function(stage)
        known[id(stage)] = (stage, fact)
        return fact

    return remembered
