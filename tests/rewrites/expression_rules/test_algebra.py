"""Built-in rules: each is what it says, and its example is what it does."""

from __future__ import annotations

import pytest
from support.rule_expressions import expression

from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.expression_rules.algebra import ALGEBRA
from tilesmith.scheduler.rewrites.expression_rules.library import RULES, SIMPLIFICATIONS, rule
from tilesmith.scheduler.rewrites.expression_rules.proofs import Bounds
from tilesmith.scheduler.rewrites.expression_rules.reader import read
from tilesmith.scheduler.rewrites.expression_rules.verification import check

TEXTS = {text.name: text for text in ALGEBRA}
NAMES = [text.name for text in RULES]


def test_names_differ() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert all(name.isidentifier() and name == name.lower() for name in NAMES)


@pytest.mark.parametrize("name", TEXTS)
def test_is_true(name: str) -> None:
    """On all values of small types, on extreme and random ones of the others."""
    check(read(TEXTS[name]))


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str) -> None:
    example = rule(name).text.example
    assert example is not None
    before = expression(example.before, example.type)
    after = expression(example.after, example.type, before.type)
    found = rule(name).rewritten(before, Bounds(before), strict=False)
    assert not isinstance(found, str), found
    assert to_text(found) == to_text(after)
    assert found == after


def test_simplifications_are_rules() -> None:
    assert set(SIMPLIFICATIONS) <= set(NAMES)
    assert len(set(SIMPLIFICATIONS)) == len(SIMPLIFICATIONS)
