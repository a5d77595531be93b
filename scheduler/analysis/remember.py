"""Remembers facts about stages and pipelines for as long as they are asked for often."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import TypeVar

from scheduler.lang.pipeline import Pipeline, Stage

Fact = TypeVar("Fact")
KEPT = 2048
PIPELINES = 16
"""Pipelines that a function remembers at once, the last ones: they are whole trees, with what is made of them."""


def once_per_stage(function: Callable[[Stage], Fact]) -> Callable[[Stage], Fact]:
    """`function` with a memory of its last results. Stages are recognised by identity: comparing or hashing a
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


class OfPipelines:
    """Pipelines that were made of others, by whatever else they depend on. A pipeline is recognised by identity, so
    that what is known of the stages of the one made is found again, too."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Hashable], tuple[Pipeline, Pipeline]] = {}
        self._changing = Lock()

    def get(self, pipeline: Pipeline, key: Hashable, make: Callable[[], Pipeline]) -> Pipeline:
        """What `make` returns, or has returned for this pipeline and key."""
        entry = self._known.get((id(pipeline), key))
        if entry is not None and entry[0] is pipeline:
            return entry[1]
        made = make()
        with self._changing:
            if len(self._known) >= PIPELINES:
                del self._known[next(iter(self._known))]  # the oldest
            self._known[id(pipeline), key] = (pipeline, made)
        return made
