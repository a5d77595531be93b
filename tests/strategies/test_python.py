"""Strategies in Python: rules over expressions are a part of them, and of what a schedule's key is a hash of."""

from __future__ import annotations

import pytest

from tilesmith import Options, compile, platform, shipped_pipeline
from tilesmith.strategies import (
    StrategyDocument,
    at,
    expression_rule,
    first,
    from_document,
    load_text,
    normalize,
    rewriting,
    rules,
    search,
    strategy,
    to_yaml,
)


def turning(name: str, product: bool) -> StrategyDocument:
    """A strategy with a rule of that name, which swaps the operands of a sum or of a product."""

    def turn(a, b):
        return (a * b, b * a) if product else (a + b, b + a)

    turn.__name__ = name
    step = rewriting(expression_rule()(turn))
    return strategy("turned", at("blur_y", first(step, normalize(rules.inline()))), search)


def test_a_strategy_has_its_rules_in_its_document() -> None:
    made = turning("turn", product=False)
    assert [r.name for r in made.rules] == ["turn"]
    assert from_document(made.to_document()) == made
    assert load_text(to_yaml(made)) == made
    found = compile(shipped_pipeline("blur"), platform("i7-6700"), Options(strategy=made))
    assert [s.rule for s in found.trace.steps] == ["turn", "search"]


def test_rules_of_one_name_that_say_something_else_make_other_keys() -> None:
    keys = {
        compile(shipped_pipeline("blur"), platform("i7-6700"), Options(strategy=turning("turn", product))).key
        for product in (False, True)
    }
    assert len(keys) == 2


def test_rules_of_the_library_and_registered_ones_are_no_part_of_it() -> None:
    assert strategy("plain", at("blur_y", rules.commute_sum()), rules.inline(), search).rules == ()


def test_two_rules_of_one_name_are_refused() -> None:
    both = [turning("turn", product).strategy for product in (False, True)]
    with pytest.raises(ValueError, match="two rules 'turn'"):
        strategy("both", *both)
