"""Caches of facts about stages and pipelines, for as long as they are asked for often."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

from scheduler.ir.pipeline.pipeline import Pipeline, Stage

Fact = TypeVar("Fact")
Key = TypeVarTuple("Key")
KEPT = 2048
PIPELINES = 16
"""Pipelines in a function's cache, at most: they are whole trees, with the results that were made of them."""


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


def once_per_pipeline(function: Callable[[Pipeline, *Key], Fact]) -> Callable[[Pipeline, *Key], Fact]:
    """`function` with a least-recently-used cache. Pipelines are recognised by identity, so that the facts known of
    the stages of a result are found again, too; the other arguments are compared by value."""

    @lru_cache(maxsize=PIPELINES)
    def cached(pipeline: _Identity, *key: *Key) -> Fact:
        return function(pipeline.pipeline, *key)

    @wraps(function)
    def remembered(pipeline: Pipeline, *key: *Key) -> Fact:
        return cached(_Identity(pipeline), *key)

    return remembered


class _Identity:
    """A pipeline as a key that equals no other pipeline, whatever their values."""

    __slots__ = ("pipeline",)

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.pipeline is other.pipeline

    def __hash__(self) -> int:
        return id(self.pipeline)
