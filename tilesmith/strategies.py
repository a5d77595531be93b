"""Strategies in Python: combinators, predicates, and the rules as functions of their arguments.

>>> from tilesmith import Options, compile, platform, shipped_pipeline
>>> from tilesmith.strategies import at, rules, search, seq, strategy, where
>>> rows = strategy("rows", seq(
...     at("blur_y", rules.tile(sizes={"y": 32}), rules.parallel()),
...     at(where("is read in a window along y"), rules.store_circular(along="y")),
...     search,
... ))
>>> made = compile(shipped_pipeline("blur"), platform("i7-6700"), Options(strategy=rows))
>>> [step.rule for step in made.trace.steps]
['tile', 'parallel', 'store_circular', 'search']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tilesmith.scheduler.rewrites.expression_rules.decorator import rule as expression_rule
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies.catalog import load as shipped
from tilesmith.scheduler.strategies.catalog import names as shipped_names
from tilesmith.scheduler.strategies.combinators import (
    Fail,
    Skip,
    Strategy,
    all_,
    at,
    best,
    bottom_up,
    cheapest,
    first,
    normalize,
    once,
    repeat,
    seq,
    together,
    top_down,
    try_,
)
from tilesmith.scheduler.strategies.document import StrategyDocument, from_document, load_text, to_yaml
from tilesmith.scheduler.strategies.predicates import Predicate, where
from tilesmith.scheduler.strategies.recorded import recorded
from tilesmith.scheduler.strategies.registry import Example, Rule, Step, rule
from tilesmith.scheduler.strategies.rules import names as rule_names
from tilesmith.scheduler.strategies.rules import rule as rule_named
from tilesmith.scheduler.strategies.state import State, begin
from tilesmith.scheduler.strategies.steps.expressions import NAMES, rule_of

__all__ = [
    "Example", "Predicate", "Refusal", "Rule", "State", "Strategy", "StrategyDocument", "all_", "at", "begin", "best",
    "bottom_up", "cheapest", "expression_rule", "fail", "first", "from_document", "load_text", "normalize", "once",
    "recorded", "repeat", "rewriting", "rule", "rule_names", "rules", "search", "seq", "shipped", "shipped_names",
    "skip", "strategy", "to_yaml", "together", "top_down", "try_", "where",
]  # fmt: skip


class _Rules:
    """The rules by name: `rules.tile(sizes={"y": 32})`."""

    def __getattr__(self, name: str) -> Rule:
        if name not in rule_names():
            raise AttributeError(f"there is no rule '{name}'")
        return rule_named(name)

    def __dir__(self) -> list[str]:
        return list(rule_names())


rules = _Rules()
search: Strategy = rule_named("search")()
skip: Strategy = Skip()
fail: Strategy = Fail()


def strategy(name: str, *steps: Strategy, doc: str = "") -> StrategyDocument:
    """A strategy with its name: for `Options(strategy=...)`. Rules over expressions of its own are a part of it.
    Raises ValueError for two of one name."""
    made = seq(*steps)
    rules = tuple(dict.fromkeys(_own_rules(made)))
    twice = [r.name for n, r in enumerate(rules) if r.name in (before.name for before in rules[:n])]
    if twice:
        raise ValueError(f"there are two rules '{twice[0]}' in it")
    return StrategyDocument(name, made, doc, rules)


def _own_rules(part: Any) -> Iterator[ExpressionRule]:
    """The rules over expressions in a part of a strategy that are not those of the library."""
    if isinstance(part, Step):
        if part.rule.expression is not None and part.rule.name not in NAMES:
            yield part.rule.expression
    elif isinstance(part, tuple):
        for inner in part:
            yield from _own_rules(inner)
    elif is_dataclass(part):
        for f in fields(part):
            yield from _own_rules(getattr(part, f.name))


def rewriting(found: Any) -> Strategy:
    """The step of a rule over expressions, such as `expression_rule` makes."""
    return rule_of(found, found.text)()
