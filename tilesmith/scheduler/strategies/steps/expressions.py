"""Rules over expressions as rules of strategies: the library that is built in, and those that documents bring."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.expression_rules import library
from tilesmith.scheduler.rewrites.expression_rules.application import Rule as ExpressionRule
from tilesmith.scheduler.rewrites.expression_rules.application import apply, matches
from tilesmith.scheduler.rewrites.expression_rules.application import normalize as normalized
from tilesmith.scheduler.rewrites.expression_rules.places import Place
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule as Written
from tilesmith.scheduler.rewrites.expression_rules.rule import RuleText
from tilesmith.scheduler.rewrites.passes import NORMALIZATION
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies.registry import Example, Rule, rule
from tilesmith.scheduler.strategies.state import State

_TEXTS = {text.name: text for text in library.RULES}
NAMES = frozenset(_TEXTS)
"""The names of the rules that are built in."""


class Parameters(BaseModel):
    """The parameters of every rule over expressions: where in the stage, as a path; else it is the first place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Annotated[str, Field(strict=True, max_length=1000)] | None = None


TWICE = """
    format: 1
    name: twice
    inputs: [{name: input, type: float32, dims: [x]}]
    stages: [{name: f, dims: [x], value: "1.0 * max(input(x), input(x))"}]
    outputs: [f]
    estimates: {f: [[0, 1000]]}
    """


@rule("simplify", Example(TWICE, "[{simplify: {stage: f}}]"))
def simplify(state: State, stage: str) -> State | str:
    """Expressions with less to compute, or the same in one way of writing it.

        0.5 * 2 * f(x) + 0      ->      f(x)

    By the rules of the library that always pay, until none fits; under a strict schedule by those that are exact.
    """
    rules = [library.rule(name) for name in library.SIMPLIFICATIONS]
    return _after(state, "simplify", normalized(rules, state.pipeline, (stage,), state.strict))


@cache
def built_in(name: str) -> Rule:
    """The rule of the library of that name; KeyError where there is none."""
    return rule_of(library.rule(name), _TEXTS[name])


def rule_of(found: ExpressionRule, text: RuleText) -> Rule:
    """A rule over expressions as a rule of strategies: it fits a stage where one of its expressions, or a part of one,
    is what the rule matches, outermost first."""

    def function(state: State, stage: str, path: str | None) -> State | str:
        place = Place.parse(f"{stage}.{path}") if path is not None else _first(found, state, stage)
        if place is None:
            return f"nothing there is {text.match}, with its conditions"
        return _after(state, text.name, apply(found, state.pipeline, place, state.strict))

    example = "" if text.example is None else f"{text.example.before}  ->  {text.example.after}"
    conditions = " and ".join(text.where)
    drawing = f"{text.match}  ->  {text.result}"
    summary = "An expression as another one."
    made = Example(example, "")
    own = found if isinstance(found, Written) else None
    return Rule(text.name, summary, drawing, conditions, text.exact, "stage", made, Parameters, function, own)


def _first(found: ExpressionRule, state: State, stage: str) -> Place | None:
    return next(matches(found, state.pipeline, (stage,), strict=state.strict), None)


def _after(state: State, name: str, made: Pipeline | Refusal) -> State | str:
    """The state with a pipeline that was rewritten, in normal form."""
    if isinstance(made, Refusal):
        return f"{made.where}: {made.why}"
    if made is state.pipeline:
        return "there is nothing to do"
    plan = state.plan.rewritten(name, made, "the strategy says so")
    for normalization in NORMALIZATION:
        plan = normalization.run(plan)
    return state.with_plan(plan)
