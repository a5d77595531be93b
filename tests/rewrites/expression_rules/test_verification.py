"""Verification: rules that are not what they say are refused, with values that show it."""

from __future__ import annotations

import doctest
import re

import numpy as np
import pytest
from support.rule_expressions import expression

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import Expr, Var, walk
from tilesmith.scheduler.ir.pipeline.types import TYPES
from tilesmith.scheduler.rewrites.expression_rules import decorator
from tilesmith.scheduler.rewrites.expression_rules.decorator import rule
from tilesmith.scheduler.rewrites.expression_rules.error_bounds import with_errors
from tilesmith.scheduler.rewrites.expression_rules.reader import read
from tilesmith.scheduler.rewrites.expression_rules.rule import Exactness, RuleText
from tilesmith.scheduler.rewrites.expression_rules.verification import check

WRONG: list[tuple[str, str, Exactness, tuple[str, ...]]] = [
    ("?a + ?b", "?a - ?b", "exact", ()),
    ("?a + ?b", "?a - ?b", "rounding", ()),
    ("?a + ?b", "?a - ?b", "approximate", ()),
    ("(?a + ?b) - ?b", "?a", "exact", ("type(?a) is float",)),
    ("sat_sub(sat_add(?a, ?b), ?b)", "?a", "exact", ("type(?a) is uint8",)),
    ("(uint8(?a) + uint8(?b)) // 2", "halving_add(uint8(?a), uint8(?b))", "exact", ("type(?a) is uint16",)),
    ("?a * ?k + ?b * ?k", "(?a + ?b) * ?k", "exact", ()),
    ("?a + 0", "?a", "exact", ()),  # -0.0 + 0.0 is 0.0
    ("?a * 0", "0", "exact", ()),  # NaN
    ("?a / ?a", "1", "exact", ()),
    ("min(?a, ?b)", "min(?b, ?a)", "exact", ()),
    ("not ?a < ?b", "?a >= ?b", "exact", ()),
    ("?a // 2", "?a / 2", "rounding", ()),
    ("?a * ?b // ?b", "?a", "exact", ("type(?a) is integer", "?b > 0")),
    ("abs(?a)", "?a", "exact", ("?a > -1",)),
    ("sqrt(?a)", "?a * 0.5 + 0.5", "approximate", ()),
    ("?a < ?b", "?a <= ?b", "rounding", ()),
    ("floor(?a)", "?a", "rounding", ()),
    ("?T(?a)", "sat_?T(?a)", "exact", ("type(?a) is integer", "type(?T) is integer", "bits(?T) < bits(?a)")),
    ("(?a + ?b) * 1.0000001", "?a + ?b", "rounding", ("type(?a) is float64",)),
]


@pytest.mark.parametrize(("match", "result", "exact", "where"), WRONG)
def test_wrong_rules_are_refused(match: str, result: str, exact: Exactness, where: tuple[str, ...]) -> None:
    with pytest.raises(DocumentError) as error:
        check(read(RuleText("wrong", match, result, exact, where)), "/rules/0")
    assert "/rules/0: The rule 'wrong' is not " in str(error.value)
    assert re.search(r"with \?a = \S+ \(\w+\)", str(error.value))


def test_the_message_has_both_sides() -> None:
    with pytest.raises(DocumentError) as error:
        check(read(RuleText("wrong", "?a + ?b", "?a | ?b", "exact", ("type(?a) is uint8",))))
    shown = str(error.value)
    found = re.search(
        r"with \?a = (\d+) \(uint8\), \?b = (\d+) \(uint8\), \?a \+ \?b is (\d+) and \?a \| \?b is (\d+)", shown
    )
    assert found is not None
    a, b, before, after = map(int, found.groups())
    assert ((a + b) % 256, a | b) == (before, after)
    assert before != after


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(DocumentError, match="cannot be judged: no values"):
        check(read(RuleText("never", "?a + 1", "?a", "exact", ("?a < 5", "?a > 5"))))


RIGHT: list[tuple[str, str, Exactness, tuple[str, ...]]] = [
    ("?a * ?k + ?b * ?k", "(?a + ?b) * ?k", "rounding", ()),
    ("?a * ?k + ?b * ?k", "(?a + ?b) * ?k", "exact", ("type(?a) is integer",)),
    ("?a + ?b - ?b", "?a", "exact", ("type(?a) is integer",)),
    ("?a * ?b // ?b", "?a", "exact", ("type(?a) is int32", "?a >= 0", "?a < 1000", "?b > 0", "?b < 1000")),
    ("sqrt(?a * ?a + ?b * ?b) / ?c", "sqrt(?a * ?a + ?b * ?b) * (1 / ?c)", "rounding", ()),
    ("?a ** 5", "?a * ?a * (?a * ?a) * ?a", "rounding", ()),
    ("tanh(?a)", "?a", "approximate", ("?a > -0.05", "?a < 0.05")),
    ("?a % ?k", "?a & (?k - 1)", "exact", ("?k is constant", "?k > 0", "?k & (?k - 1) == 0")),
]


@pytest.mark.parametrize(("match", "result", "exact", "where"), RIGHT)
def test_right_rules_are_not(match: str, result: str, exact: Exactness, where: tuple[str, ...]) -> None:
    assert check(read(RuleText("right", match, result, exact, where))).exact == exact


BOUNDED = [
    "u + v - w", "u * v / (1 + w * w)", "sqrt(u * u + v * v)", "exp(u) * v", "lerp(u, v, w)", "u ** 5 + v ** 3",
    "abs(u - v)", "log(1 + u * u)", "min(u * v, w + u)", "sin(u) * cos(v)", "pow(abs(u) + 1, v)", "u / v / w",
    "absd(u, v) * 3 + 0.1", "select(u < v, u * w, v * w)", "clamp(u * v, -1, 1)",
    "atan2(u, v)", "tanh(u + v)", "u // 0.5", "u % 0.75",
]  # fmt: skip


@pytest.mark.parametrize("text", BOUNDED)
def test_error_bounds_hold(text: str) -> None:
    """In float32, against the same in float64; and they are no wider than they need be."""
    e, wide = expression(text), expression(text, "float64")
    rng = np.random.default_rng(1)
    values = {n.name: rng.normal(size=4096) * 2.0 ** rng.integers(-6, 7, 4096) for n in walk(e) if isinstance(n, Var)}
    narrow = {name: v.astype(np.float32) for name, v in sorted(values.items())}
    got, bound = with_errors(e, narrow)
    true = _value(wide, {name: v.astype(np.float64) for name, v in narrow.items()})
    sure = np.isfinite(bound)
    assert sure.mean() > 0.5
    assert (np.abs(got - true)[sure] <= bound[sure]).all()
    assert np.median(bound[sure] / np.maximum(np.abs(got[sure]), 1e-30)) < 1e-4


def _value(e: Expr, values: dict[str, np.ndarray]) -> np.ndarray:
    def leaf(leaf: Leaf) -> np.ndarray:
        assert isinstance(leaf, Var)
        return values[leaf.name]

    return evaluate(e, leaf)


def test_a_rule_in_python() -> None:
    @rule(exact="rounding")
    def factor_common(a, b, k):
        """a*k + b*k  ->  (a + b)*k"""
        return a * k + b * k, (a + b) * k

    assert factor_common == read(RuleText("factor_common", "?a * ?k + ?b * ?k", "(?a + ?b) * ?k", "rounding"))
    with pytest.raises(DocumentError, match="'factor_common' is not exact: with"):
        rule()(lambda_named("factor_common", lambda a, b, k: (a * k + b * k, (a + b) * k)))


def lambda_named(name: str, f):
    f.__name__ = name
    return f


def test_examples_of_the_module() -> None:
    assert doctest.testmod(decorator).failed == 0


def test_values_are_tried_in_every_type() -> None:
    """A rule that is wrong in one type only is refused there."""
    for name in TYPES:
        if name.startswith("int"):
            with pytest.raises(DocumentError, match=rf"\({name}\)"):
                check(read(RuleText("wrong", "abs(?a)", "max(?a, 1)", "exact", (f"type(?a) is {name}",))))
