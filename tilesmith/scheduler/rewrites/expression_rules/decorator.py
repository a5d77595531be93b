"""Rules in Python: a function of pattern variables that returns both sides, terms of the pipeline language.

>>> @rule(exact="rounding")
... def factor_common(a, b, k):
...     return a * k + b * k, (a + b) * k
>>> factor_common.text.drawing
'?a * ?k + ?b * ?k  ->  (?a + ?b) * ?k'

Conditions are given with the sides, as terms or as texts:

>>> @rule()
... def drop_min(a, b):
...     return call("min", a, b), a, [a < b]
>>> drop_min.text.where
('?a < ?b',)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import TypeAlias

from tilesmith.scheduler.frontends.python.terms import Operand, Term, as_term, call
from tilesmith.scheduler.rewrites.expression_rules.reader import read
from tilesmith.scheduler.rewrites.expression_rules.rule import Exactness, ExpressionRule, RuleText
from tilesmith.scheduler.rewrites.expression_rules.verification import check

__all__ = ["call", "rule"]

Sides: TypeAlias = "tuple[Operand, Operand] | tuple[Operand, Operand, Sequence[Term | str]]"


def rule(exact: Exactness = "exact") -> Callable[[Callable[..., Sides]], ExpressionRule]:
    """Makes a rule of a function: its name is the function's, and its parameters are the pattern variables. Raises
    DocumentError where it is no rule, or not a true one."""

    def made(function: Callable[..., Sides]) -> ExpressionRule:
        match, result, *where = function(*(Term(f"?{name}") for name in signature(function).parameters))
        conditions = tuple(str(c) for c in where[0]) if where else ()
        text = RuleText(function.__name__, as_term(match).text, as_term(result).text, exact, conditions)
        return check(read(text))

    return made
