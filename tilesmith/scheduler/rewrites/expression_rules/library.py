"""The library of rules over expressions: each by its name, and sets of them that have a normal form."""

from __future__ import annotations

from functools import cache
from typing import Final

from tilesmith.scheduler.rewrites.expression_rules.algebra import ALGEBRA
from tilesmith.scheduler.rewrites.expression_rules.application import Rule
from tilesmith.scheduler.rewrites.expression_rules.reader import read
from tilesmith.scheduler.rewrites.expression_rules.reductions import COMPUTED
from tilesmith.scheduler.rewrites.expression_rules.rule import RuleText

RULES: Final[tuple[RuleText, ...]] = (*ALGEBRA, *(r.text for r in COMPUTED))
"""Every rule as it is written."""

SIMPLIFICATIONS: Final = (
    "fold_constants", "add_zero", "subtract_zero", "subtract_from_zero", "subtract_self", "add_negative",
    "subtract_negative", "negate_twice", "multiply_by_one", "multiply_by_zero", "multiply_by_minus_one",
    "multiply_negatives", "divide_by_one", "floor_divide_by_one", "remainder_of_one", "remainder_twice", "divide_twice",
    "shift_left_by_zero", "shift_right_by_zero", "and_zero", "and_all", "and_itself", "or_zero", "or_itself",
    "xor_zero", "xor_itself", "invert_twice", "select_true", "select_false", "select_same", "select_not", "select_bool",
    "select_again", "select_else", "min_itself", "max_itself", "min_first", "min_second", "max_first", "max_second",
    "min_of_max", "max_of_min", "clamp_twice", "clamp_between", "clamp_inside", "magnitude_of_positive",
    "magnitude_of_natural", "magnitude_twice", "magnitude_of_negative", "less_than_itself", "at_most_itself",
    "equal_to_itself", "unequal_to_itself", "surely_less", "surely_not_less", "surely_at_most", "surely_not_at_most",
    "surely_unequal", "and_true", "and_false", "and_same", "and_opposite", "and_absorbed", "or_true", "or_false",
    "or_same", "or_opposite", "or_absorbed", "not_twice", "not_equal", "not_unequal", "not_less", "not_less_or_equal",
    "not_greater", "not_greater_or_equal", "flip_greater", "flip_greater_or_equal", "convert_once",
    "convert_float_once", "convert_there_and_back", "floor_twice", "cosine_of_negative",
)  # fmt: skip
"""Rules each of which leaves less to compute, or the same in one way of writing it."""

_TEXTS: Final = {text.name: text for text in ALGEBRA}
_COMPUTED: Final = {rule.name: rule for rule in COMPUTED}


@cache
def rule(name: str) -> Rule:
    """The rule of that name; KeyError where there is none."""
    return _COMPUTED[name] if name in _COMPUTED else read(_TEXTS[name])
