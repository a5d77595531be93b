"""Combinators: strategies made of strategies. A strategy takes a state and a place, and gives a state or a refusal.

seq(a, b)              b on what a gave; the first refusal is the result
first(a, b)            a, or b where a refuses: left choice
try_(a)                a, or nothing; never refuses
repeat(a)              a until it refuses or changes nothing, at most so often; never refuses
at(where, a)           a at stages by their names or by a predicate; refuses where one of them does
all_(a)                a at every stage
once(a)                a at the first stage where it fits, outputs first
top_down(a)            a wherever it fits, outputs first; refuses where it fits nowhere
bottom_up(a)           the same, inputs first
normalize(a)           once(a) until it fits nowhere
together(a, b)         seq(a, b), held to legality at its end
cheapest(a, b)         the one whose schedule the cost model predicts the least time for
best(k, (a, b), then)  `then` on each of the k cheapest, and the cheapest of that

A place is a stage or the whole pipeline. A stage that a step has removed is followed to the one that took its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies.costs import cost
from tilesmith.scheduler.strategies.predicates import Predicate
from tilesmith.scheduler.strategies.state import State

MOST = 1000
"""Rounds of `repeat` and `normalize`, unless they say otherwise."""


class Strategy(Protocol):
    """A state and a stage, or None for the whole pipeline, to a state or a refusal; what refuses changes nothing."""

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal: ...


@dataclass(frozen=True, slots=True)
class Skip:
    """Nothing: the state as it is."""

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        return state


@dataclass(frozen=True, slots=True)
class Fail:
    """A refusal, always."""

    why: str = "it always refuses"

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        return Refusal("fail", stage or state.pipeline.name, self.why)


@dataclass(frozen=True, slots=True)
class Seq:
    """Strategies one after the other; the first refusal is the result."""

    steps: tuple[Strategy, ...]

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        result: State | Refusal = state
        for step in self.steps:
            if isinstance(result, Refusal):
                break
            result = step(result, _follow(result, stage))
        return result


@dataclass(frozen=True, slots=True)
class First:
    """The first strategy that does not refuse; where all do, the last refusal."""

    steps: tuple[Strategy, ...]

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        result: State | Refusal = Refusal("first", stage or state.pipeline.name, "there is nothing to choose from")
        for step in self.steps:
            result = step(state, stage)
            if isinstance(result, State):
                break
        return result


@dataclass(frozen=True, slots=True)
class Try:
    """A strategy, or nothing where it refuses."""

    step: Strategy

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        result = self.step(state, stage)
        return state if isinstance(result, Refusal) else result


@dataclass(frozen=True, slots=True)
class Repeat:
    """A strategy until it refuses or changes nothing, at most so many `times`."""

    step: Strategy
    times: int = MOST

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        for _ in range(self.times):
            result = self.step(state, _follow(state, stage))
            if isinstance(result, Refusal) or result == state:
                break
            state = result
        return state


@dataclass(frozen=True, slots=True)
class At:
    """A strategy at the stages of these names, or of which a predicate holds when it begins, outputs first; refuses
    where it does at one of them. A predicate that holds of none leaves the state."""

    where: tuple[str, ...] | Predicate
    step: Strategy

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        found = self._stages(state)
        if isinstance(found, Refusal):
            return found
        result: State | Refusal = state
        for name in found:
            if isinstance(result, Refusal):
                break
            here = result.followed(name)
            result = result if here is None else self.step(result, here)
        return result

    def _stages(self, state: State) -> tuple[str, ...] | Refusal:
        if isinstance(self.where, Predicate):
            return tuple(name for name in reversed(state.stages) if self.where.holds(state, name))
        for name in self.where:
            if state.followed(name) is None:
                hint = close_to(name, state.stages)
                return Refusal("at", name, f"there is no such stage{f': {hint}' if hint else ''}")
        return self.where


@dataclass(frozen=True, slots=True)
class All:
    """A strategy at every stage, outputs first; refuses where it does at one of them."""

    step: Strategy

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        return At(state.stages[::-1], self.step)(state)


@dataclass(frozen=True, slots=True)
class Once:
    """A strategy at the first stage where it fits, outputs first; refuses where it fits nowhere."""

    step: Strategy

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        result: State | Refusal = Refusal("once", state.pipeline.name, "there is no stage")
        for name in reversed(state.stages):
            result = self.step(state, name)
            if isinstance(result, State) and result != state:
                return result
        return result if isinstance(result, Refusal) else Refusal("once", state.pipeline.name, "it changes nothing")


@dataclass(frozen=True, slots=True)
class Traversal:
    """A strategy wherever it fits, outputs first or inputs first; refuses where it fits nowhere."""

    step: Strategy
    outputs_first: bool

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        refused = Refusal("traversal", state.pipeline.name, "there is no stage")
        fits = False
        for name in reversed(state.stages) if self.outputs_first else state.stages:
            here = state.followed(name)
            if here is None:
                continue
            result = self.step(state, here)
            if isinstance(result, Refusal):
                refused = result
            else:
                state, fits = result, True
        return state if fits else refused


@dataclass(frozen=True, slots=True)
class Normalize:
    """A strategy until it fits nowhere, or changes nothing where it does; refuses, with the rule and where it was made
    last, where it comes back to a state that it has left, or still fits after so many `times`."""

    step: Strategy
    times: int = MOST

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        before, most = state, 1  # a circle meets what it left some power of two rounds ago (Brent)
        for n in range(1, self.times + 1):
            result = Once(self.step)(state)
            if isinstance(result, Refusal):
                return state
            state = result
            if _is_where(state, before):
                return _endless(state, "it comes back to what there was before: normalize has no end with it")
            if n == most:
                before, most = state, 2 * most
        return _endless(state, f"after {self.times} rounds of normalize it fits still: it may have no end")


@dataclass(frozen=True, slots=True)
class Together:
    """Strategies one after the other that are held to legality at the end only: what one leaves may be illegal, if the
    next mends it."""

    steps: tuple[Strategy, ...]

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        result = Seq(self.steps)(replace(state, unchecked=True), stage)
        if isinstance(result, Refusal) or state.unchecked:
            return result
        try:
            check(result.plan)
        except IllegalSchedule as error:
            return Refusal("together", stage or state.pipeline.name, str(error))
        return replace(result, unchecked=False)


@dataclass(frozen=True, slots=True)
class Best:
    """The cheapest of what `then` makes of the `count` cheapest of some alternatives, by predicted time; refuses where
    all do. Of equals it is the one that is named first."""

    count: int
    steps: tuple[Strategy, ...]
    then: Strategy = Skip()

    def __call__(self, state: State, stage: str | None = None, /) -> State | Refusal:
        made = [step(state, stage) for step in self.steps]
        kept = _by_cost(s for s in made if isinstance(s, State))[: self.count]
        results = [*made, *(self.then(s, _follow(s, stage)) for s in kept)]
        found = _by_cost(s for s in results[len(made) :] if isinstance(s, State))
        if found:
            return found[0]
        refused = [r for r in reversed(results) if isinstance(r, Refusal)]
        return (*refused, Refusal("best", stage or state.pipeline.name, "there is nothing to choose from"))[0]


def _is_where(state: State, before: State) -> bool:
    """True of states with the same pipeline, schedule and decisions, however they were come to."""
    same = state.pipeline == before.pipeline and state.schedule == before.schedule
    return same and state.decided == before.decided


def _endless(state: State, why: str) -> Refusal:
    """The refusal of the step that was made last."""
    last = state.applied[-1]
    return Refusal(last.rule, last.where, why)


def _by_cost(states: Iterable[State]) -> list[State]:
    """The states, the cheapest first."""
    return sorted(states, key=cost)


def _follow(state: State, stage: str | None) -> str | None:
    return None if stage is None else (state.followed(stage) or stage)


def seq(*steps: Strategy) -> Strategy:
    """The strategies one after the other."""
    return steps[0] if len(steps) == 1 else Seq(steps)


def first(*steps: Strategy) -> Strategy:
    """The first strategy that fits."""
    return First(steps)


def try_(*steps: Strategy) -> Strategy:
    """The strategies one after the other, or nothing where one refuses."""
    return Try(seq(*steps))


def repeat(*steps: Strategy, times: int = MOST) -> Strategy:
    """The strategies again and again, until one refuses or nothing changes."""
    return Repeat(seq(*steps), times)


def at(where: str | Iterable[str] | Predicate, *steps: Strategy) -> Strategy:
    """The strategies at a stage by its name, at stages by theirs, or where a predicate holds."""
    places = (where,) if isinstance(where, str) else where if isinstance(where, Predicate) else tuple(where)
    return At(places, seq(*steps))


def all_(*steps: Strategy) -> Strategy:
    """The strategies at every stage."""
    return All(seq(*steps))


def once(*steps: Strategy) -> Strategy:
    """The strategies at the first stage where they fit, outputs first."""
    return Once(seq(*steps))


def top_down(*steps: Strategy) -> Strategy:
    """The strategies wherever they fit, outputs first."""
    return Traversal(seq(*steps), True)


def bottom_up(*steps: Strategy) -> Strategy:
    """The strategies wherever they fit, inputs first."""
    return Traversal(seq(*steps), False)


def normalize(*steps: Strategy, times: int = MOST) -> Strategy:
    """The strategies until they fit nowhere."""
    return Normalize(seq(*steps), times)


def together(*steps: Strategy) -> Strategy:
    """The strategies one after the other, held to legality at their end."""
    return Together(steps)


def cheapest(*steps: Strategy) -> Strategy:
    """The strategy whose schedule is predicted to take the least time."""
    return Best(1, steps)


def best(count: int, steps: Iterable[Strategy], then: Strategy) -> Strategy:
    """The cheapest of what `then` makes of the cheapest few."""
    return Best(count, tuple(steps), then)
