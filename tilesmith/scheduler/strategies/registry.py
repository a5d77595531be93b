"""Rules: the steps that strategies are made of, by name. A new rule is a function with a decorator, in a file of its
own.

A rule takes a state, a stage and its arguments, and gives the state after it, or says why it does not fit there. Its
docstring is a sentence, the drawing of what it does (before -> after, indented), and the conditions under which it
does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from tilesmith.scheduler.errors import MOST_PROBLEMS, DocumentError, IllegalSchedule, Problem
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.frontends.document.names import close_to
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies.applied import changed
from tilesmith.scheduler.strategies.state import State

Exactness = Literal["exact", "rounding", "approximate"]
"""The values after a rule: the same; the same but for rounding; close. A strict state takes those that are the same."""
Place = Literal["stage", "pipeline"]


@dataclass(frozen=True, slots=True)
class Example:
    """An example that a test runs: the rule fits the last of `steps` on the shipped `pipeline`."""

    pipeline: str
    steps: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by its name: a `summary`, the `drawing` and the `conditions` for people; whether it keeps values, where it
    fits, an example, its parameters, and the function itself. `expression` is the rule over expressions that it makes,
    where it is one."""

    name: str
    summary: str
    drawing: str
    conditions: str
    exactness: Exactness
    place: Place
    example: Example
    parameters: type[BaseModel] = field(compare=False)
    function: Callable[..., State | str] = field(compare=False)
    expression: ExpressionRule | None = None

    def __call__(self, **arguments: object) -> Step:
        """The step of this rule with these arguments; raises DocumentError for such as it does not take."""
        return self.step(arguments, ())

    def step(self, arguments: Mapping[str, object], place: tuple[str | int, ...]) -> Step:
        """The step with arguments that stand at `place` of a document; raises DocumentError."""
        try:
            return Step(self, self.parameters.model_validate(dict(arguments)))
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]
            raise DocumentError(tuple(self._problem(d["type"], d["loc"], d["msg"], place) for d in found)) from None

    def _problem(self, kind: str, loc: tuple[str | int, ...], message: str, place: tuple[str | int, ...]) -> Problem:
        at = pointer(*place, *(part if isinstance(part, int) else part[:80] for part in loc))
        known = tuple(self.parameters.model_fields)
        match kind:
            case "extra_forbidden":
                hint = close_to(str(loc[-1]), known) or f"it takes: {', '.join(known) or 'nothing'}"
                return Problem("unknown_key", at, f"{self.name} takes no '{str(loc[-1])[:64]}'", hint)
            case "missing":
                return Problem("missing_key", at, f"{self.name} needs '{loc[-1]}'")
        return Problem("bad_value", at, f"{self.name}: {message[:1].lower()}{message[1:]}")


@dataclass(frozen=True, slots=True)
class Step:
    """A rule with its arguments: a strategy."""

    rule: Rule
    arguments: BaseModel

    def __call__(self, state: State, stage: str | None = None) -> State | Refusal:
        """The state after the rule at `stage`, checked; a refusal where it does not fit."""
        where = stage or state.pipeline.name
        if state.context.budget.spent():
            return Refusal(self.rule.name, where, "the strategy has made as many steps as it may")
        if self.rule.place == "stage" and (stage is None or stage not in state.graph.consumers):
            return Refusal(self.rule.name, where, _no_stage(state, stage))
        if state.strict and self.rule.exactness == "approximate":
            return Refusal(self.rule.name, where, "the values would only be close, and the schedule is strict")
        given = {name: getattr(self.arguments, name) for name in type(self.arguments).model_fields}
        try:
            after = self.rule.function(state, stage, **given)
            if isinstance(after, str):
                return Refusal(self.rule.name, where, after)
            if not after.unchecked:
                check(after.plan)
        except IllegalSchedule as error:
            return Refusal(self.rule.name, where, str(error))
        if after == state and self.rule.place == "stage":
            return state
        made = changed(
            self.rule.name, where, self.in_words(), (state.pipeline, state.schedule), (after.pipeline, after.schedule)
        )
        return replace(after, applied=(*after.applied, made))

    def in_words(self) -> str:
        """The arguments that were given, in words."""
        return ", ".join(f"{name} {_words(value)}" for name, value in self.to_document().items())

    def to_document(self) -> dict[str, Any]:
        """The arguments that were given, as plain data."""
        return self.arguments.model_dump(mode="json", exclude_unset=True)


RULES: dict[str, Rule] = {}
"""The rules that there are, by name."""


def rule(
    name: str, example: Example, exactness: Exactness = "exact", place: Place = "stage"
) -> Callable[[Callable[..., State | str]], Rule]:
    """Makes a rule of a function of a state, a stage, and arguments with types, and registers it."""

    def registered(function: Callable[..., State | str]) -> Rule:
        summary, drawing, conditions = _told(function)
        made = Rule(
            name, summary, drawing, conditions, exactness, place, example, _parameters(name, function), function
        )
        if name in RULES:
            raise ValueError(f"there is a rule '{name}' already")
        RULES[name] = made
        return made

    return registered


def _parameters(name: str, function: Callable[..., State | str]) -> type[BaseModel]:
    """A model of what the function takes beside the state and the stage."""
    hints = get_type_hints(function, include_extras=True)
    given = list(inspect.signature(function).parameters.values())[2:]
    fields: dict[str, Any] = {
        p.name: (hints[p.name], ... if p.default is inspect.Parameter.empty else p.default) for p in given
    }
    return create_model(name, __config__=ConfigDict(extra="forbid", frozen=True), **fields)


def _told(function: Callable[..., State | str]) -> tuple[str, str, str]:
    """The summary, the drawing and the conditions of a docstring."""
    parts = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    drawn = [n for n, part in enumerate(parts) if part.startswith("    ")]
    if not drawn or drawn[0] == 0:
        raise ValueError(f"the docstring of {function.__name__} has no drawing")
    first, last = drawn[0], drawn[-1] + 1
    drawing = "\n\n".join(parts[first:last])
    words = [" ".join(part.split()) for part in (*parts[:first], *parts[last:])]
    return words[0], inspect.cleandoc("\n" + drawing), " ".join(words[1:])


def _no_stage(state: State, stage: str | None) -> str:
    if stage is None:
        return "it is about a stage, and none is named"
    hint = close_to(stage, state.stages)
    return f"there is no such stage{f': {hint}' if hint else ''}"


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_words(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(_words, value))
    return "whole" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
