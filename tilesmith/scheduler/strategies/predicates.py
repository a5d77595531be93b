"""Predicates: facts of a stage that say where a strategy works, as phrases: "is pointwise", "is read in a window along
y".

FACTS are the phrases, `{dim}` in one stands for a name. In a document a predicate is a phrase, or a mapping with `not`,
`and` or `or`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tilesmith.scheduler.analysis.reuse import FULL
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.ir.schedule.schedule import INLINE
from tilesmith.scheduler.strategies.state import State


class Predicate(ABC):
    """A condition of a stage of a state."""

    @abstractmethod
    def holds(self, state: State, stage: str) -> bool:
        """True if the stage is so."""

    @abstractmethod
    def to_document(self) -> Any:
        """The predicate as plain data."""

    def __invert__(self) -> Predicate:
        return Not(self)

    def __and__(self, other: Predicate) -> Predicate:
        return And((self, other))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((self, other))


@dataclass(frozen=True, slots=True)
class Fact(Predicate):
    """A fact by its phrase."""

    phrase: str
    pattern: str
    dim: str

    def holds(self, state: State, stage: str) -> bool:
        return FACTS[self.pattern](state, stage, self.dim)

    def to_document(self) -> Any:
        return self.phrase


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """The opposite of a predicate."""

    of: Predicate

    def holds(self, state: State, stage: str) -> bool:
        return not self.of.holds(state, stage)

    def to_document(self) -> Any:
        return {"not": self.of.to_document()}


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """All of some predicates."""

    of: tuple[Predicate, ...]

    def holds(self, state: State, stage: str) -> bool:
        return all(p.holds(state, stage) for p in self.of)

    def to_document(self) -> Any:
        return {"and": [p.to_document() for p in self.of]}


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """Any of some predicates."""

    of: tuple[Predicate, ...]

    def holds(self, state: State, stage: str) -> bool:
        return any(p.holds(state, stage) for p in self.of)

    def to_document(self) -> Any:
        return {"or": [p.to_document() for p in self.of]}


def where(phrase: str) -> Predicate:
    """The predicate of a phrase; DocumentError where there is none."""
    return from_document(phrase)


def from_document(document: object, place: tuple[str | int, ...] = ()) -> Predicate:
    """The predicate that plain data says; raises DocumentError, at `place`, for what is none."""
    match document:
        case str():
            return _fact(document, place)
        case {"not": part, **more} if not more:
            return Not(from_document(part, (*place, "not")))
        case {"and": [*parts], **more} if not more:
            return And(tuple(from_document(p, (*place, "and", n)) for n, p in enumerate(parts)))
        case {"or": [*parts], **more} if not more:
            return Or(tuple(from_document(p, (*place, "or", n)) for n, p in enumerate(parts)))
    hint = "a phrase such as 'is pointwise', or one of not, and, or with others"
    raise DocumentError((Problem("bad_value", pointer(*place), "this is no predicate", hint),))


def _fact(phrase: str, place: tuple[str | int, ...]) -> Fact:
    words = " ".join(phrase.split())
    for pattern in FACTS:
        found = re.fullmatch(re.escape(pattern).replace(r"\{dim\}", r"(?P<dim>[A-Za-z_][A-Za-z0-9_]{0,63})"), words)
        if found:
            return Fact(words, pattern, found.groupdict().get("dim", ""))
    near = get_close_matches(words[:100], FACTS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {'; '.join(FACTS)}"
    raise DocumentError((Problem("unknown_name", pointer(*place), f"there is no predicate '{words[:64]}'", hint),))


def _is_output(state: State, stage: str, dim: str) -> bool:
    return stage in state.graph.outputs


def _is_at_root(state: State, stage: str, dim: str) -> bool:
    return state.group(stage) is not None


def _is_inline(state: State, stage: str, dim: str) -> bool:
    return any(p.compute == INLINE for g in state.groups_with(stage) if (p := g.placement(stage)) is not None)


def _is_in_registers(state: State, stage: str, dim: str) -> bool:
    return any(p.storage == "registers" for g in state.groups_with(stage) if (p := g.placement(stage)) is not None)


def _is_pointwise(state: State, stage: str, dim: str) -> bool:
    """One value, of stages each read once a point, where the point is."""
    facts = state.facts.stages[stage]
    reads = [r for r in facts.reads if not state.facts.stages[r.producer].is_input]
    if facts.updates or not reads or len(state.definition(stage).values) > 1:
        return False
    return all(r.points <= 1 and not any(o for o in _windows(state, stage, r.producer).values()) for r in reads)


def _reads_stages(state: State, stage: str, dim: str) -> bool:
    return bool(state.graph.producers[stage])


def _has_updates(state: State, stage: str, dim: str) -> bool:
    return bool(state.definition(stage).updates)


def _reduces(state: State, stage: str, dim: str) -> bool:
    return bool(reductions(state.definition(stage)) or state.definition(stage).updates)


def _is_partial(state: State, stage: str, dim: str) -> bool:
    return stage in state.facts.partial


def _reads_window(state: State, stage: str, dim: str) -> bool:
    facts = state.facts.stages[stage]
    return any(
        amount > 0 and dim in ("", loop)
        for r in facts.reads
        for loop, amount in _windows(state, stage, r.producer).items()
    )


def _is_read_in_window(state: State, stage: str, dim: str) -> bool:
    """True if a reader, or a place where one that is inline is read, reads a window of the stage along the dim."""
    for reader in state.graph.consumers[stage]:
        if any(amount > 0 and dim in ("", loop) for loop, amount in _windows(state, reader, stage).items()):
            return True
        if _is_inline(state, reader, "") and _is_read_in_window(state, reader, dim):
            return True
    return False


def _is_read_by_one(state: State, stage: str, dim: str) -> bool:
    return len(state.graph.consumers[stage]) == 1


def _is_read_in_one_group(state: State, stage: str, dim: str) -> bool:
    return len(state.readers(stage)) == 1


def _windows(state: State, reader: str, producer: str) -> dict[str, float]:
    """The overlap of what two iterations of a reader's loop read of the producer, by loop, where the reads move with
    it."""
    read = state.facts.stages[reader].read_of.get(producer)
    return {} if read is None else {loop: amount for loop, amount in read.reuse if amount != FULL}


FACTS: dict[str, Callable[[State, str, str], bool]] = {
    "is an output": _is_output,
    "is at root": _is_at_root,
    "is inline": _is_inline,
    "is in registers": _is_in_registers,
    "is pointwise": _is_pointwise,
    "is a partial result": _is_partial,
    "has updates": _has_updates,
    "reduces": _reduces,
    "reads stages": _reads_stages,
    "reads a window": _reads_window,
    "reads a window along {dim}": _reads_window,
    "is read in a window": _is_read_in_window,
    "is read in a window along {dim}": _is_read_in_window,
    "is read by one stage": _is_read_by_one,
    "is read in one group": _is_read_in_one_group,
}
"""The phrases, with the functions of a state, a stage and a dim that tell them."""
