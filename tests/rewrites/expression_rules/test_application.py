"""Application of rules: places, matching, proofs, refusals, normal forms."""

from __future__ import annotations

import re

import pytest
from support.rule_expressions import expression, pointwise

from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.ir.pipeline.expressions import Expr
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.expression_rules.application import apply, everywhere, matches, normalize
from tilesmith.scheduler.rewrites.expression_rules.equality import same
from tilesmith.scheduler.rewrites.expression_rules.library import rule as algebra
from tilesmith.scheduler.rewrites.expression_rules.matching import MOST_BINDINGS, bindings
from tilesmith.scheduler.rewrites.expression_rules.places import Place, expressions, parts
from tilesmith.scheduler.rewrites.expression_rules.proofs import Bounds
from tilesmith.scheduler.rewrites.expression_rules.reader import read
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule, RuleText
from tilesmith.scheduler.rewrites.refusal import Refusal


def rule(match: str, result: str, *where: str) -> ExpressionRule:
    return read(RuleText("r", match, result, "exact", where))


def rewritten(r: ExpressionRule, text: str, type: str = "float32", strict: bool = False) -> str:
    """The expression rewritten, as text; or why not."""
    e = expression(text, type)
    found = r.rewritten(e, Bounds(e), strict)
    return found if isinstance(found, str) else to_text(found)


def value(pipeline: Pipeline | Refusal, stage: str = "f0") -> str:
    assert isinstance(pipeline, Pipeline), pipeline
    assert load(to_document(pipeline)) == pipeline
    return to_text(pipeline.stage(stage).values[0])


# Matching


def test_operands_that_may_be_swapped_match_both_ways() -> None:
    factor = algebra("factor_common")
    for text in ("u * w + v * w", "w * u + v * w", "u * w + w * v", "w * u + w * v"):
        assert rewritten(factor, text) == "(u + v) * w"
    assert rewritten(algebra("min_of_max"), "min(max(v, u), u)", "int16") == "u"
    assert rewritten(algebra("difference_of_ends"), "max(u, v) - min(v, u)", "uint8") == "absd(u, v)"


def test_a_minimum_of_floats_has_an_order() -> None:
    first = rule("min(?a, abs(?b))", "?a", "?a < abs(?b)")
    found = [len(list(bindings(i.match, expression("min(abs(u), v)", i.match.type.name)))) for i in first.instances]
    assert [bool(n) for n in found] == [not i.match.type.is_float for i in first.instances]


def test_as_written_comes_first() -> None:
    assert rewritten(rule("?a + ?b", "?a - -?b"), "u + v") == "u - -v"
    assert rewritten(rule("?a + ?b", "?a", "type(?a) is uint8", "?b == 0"), "0 + v", "uint8") == "v"


def test_a_variable_is_one_thing() -> None:
    assert rewritten(algebra("subtract_self"), "(u + v) - (u + v)") == "0.0"
    assert rewritten(algebra("subtract_self"), "(u + v) - (v + u)") == "it is no ?a - ?a"


def test_zeros_are_two() -> None:
    assert rewritten(algebra("subtract_zero"), "u - 0.0") == "u"
    assert rewritten(algebra("subtract_zero"), "u - -0.0") == "it is no ?a - 0"
    assert not same(expression("u * 0.0"), expression("u * -0.0"))


def test_kinds_of_operations_are_told_apart() -> None:
    assert "it is no" in rewritten(rule("sat_uint8(?a)", "uint8(max(?a, 0))"), "uint8(u)", "int16")
    assert "it is no" in rewritten(algebra("select_least"), "select(u > v, u, v)")
    assert "it is no" in rewritten(algebra("floor_twice"), "floor(ceil(u))")


def test_what_is_tried_is_bounded() -> None:
    tree = "((a + b) + (c + d)) + ((e + f) + (g + h))"
    wide = rule(re.sub("([a-h])", r"?\1", tree), "?a", "type(?a) is uint8")
    assert len(list(bindings(wide.instances[0].match, expression(tree, "uint8")))) == MOST_BINDINGS


# Conditions


@pytest.mark.parametrize(
    ("condition", "holds", "fails"),
    [
        ("?a >= 0", "u", "int8(u)"),
        ("?a > 0", "max(u, 1)", "u"),
        ("?a < 100 and ?a >= 3", "clamp(u, 3, 99)", "clamp(u, 2, 99)"),
        ("not ?a == 7", "u & 3", "u & 15"),
        ("?a == 5", "5", "u"),
        ("?a != 5 or ?a == 5", "u % 5", "u"),
        ("?a is constant", "7", "u"),
        ("?a is not constant", "u", "7"),
        ("?a ** 2 + ?a == 6 and ?a is not constant", "clamp(u, 2, 2)", "u"),
        ("int32(?a) * 2 < 511", "u", "int32(u) * 2"),
    ],
)
def test_conditions_are_proved(condition: str, holds: str, fails: str) -> None:
    if "is constant" in condition or "is not constant" in condition:
        conditions = [c.strip() for c in condition.split(" and ")]
    else:
        conditions = [condition]
    r = rule("~~?a", "?a", *conditions)
    assert rewritten(r, f"~~({holds})", "uint8") == to_text(expression(holds, "uint8"))
    assert "it is not known that" in rewritten(r, f"~~({fails})", "uint8")


def test_of_what_may_be_nan_nothing_is_known() -> None:
    r = rule("abs(?a)", "?a", "?a >= 0 or ?a < 0", "type(?a) is float")
    assert "it is not known" in rewritten(r, "abs(u)")
    assert rewritten(r, "abs(max(u, 0.0))") == "max(u, 0.0)"


def test_arithmetic_of_conditions_wraps() -> None:
    """As everywhere: it is computed in the type that it has."""
    r = rule("~~?a", "?a", "?a + 1 > 0")
    assert "it is not known" in rewritten(r, "~~u", "uint8")
    assert rewritten(r, "~~(u & 127)", "uint8") == "u & 127"


def test_coordinates_may_be_anything_and_loops_their_range() -> None:
    r = algebra("magnitude_of_natural")
    p = pointwise("abs(x) + sum(abs(r) for r in range(0, 3)) + sum(abs(s) for s in range(-1, 3))", images="u")
    assert [str(m) for m in matches(r, p)] == ["f0.value.left.right.body"]


def test_reads() -> None:
    r = rule("?a + ?b", "?b - -?a", "?a does not read u")
    p = pointwise("u(x, y) + v(x, y)", "u(x, y) + u(x + 1, y)")
    assert [str(m) for m in matches(r, p)] == ["f0.value"]
    assert value(apply(r, p, Place("f0", ("value",)))) == "u(x, y) - -v(x, y)"


def test_logarithms() -> None:
    shift = algebra("multiply_to_shift")
    assert rewritten(shift, "u * 64", "uint8") == "u << 6"
    assert rewritten(shift, "64 * u", "uint8") == "u << 6"
    for text in ("u * 3", "u * v", "u * 1", "u * -128"):
        assert "it is " in rewritten(shift, text, "int8") or "power of two" in rewritten(shift, text, "int8")


def test_constants_of_results_are_folded() -> None:
    assert rewritten(algebra("divide_by_constant"), "u / 5") == "u * 0.2"
    assert rewritten(algebra("remainder_to_mask"), "u % 16", "int64") == "u & 15"
    assert rewritten(rule("?a + ?k", "?a - (0 - ?k)", "?k is constant"), "u + 300", "int16") == "u - -300"


def test_no_infinite_constant_is_made() -> None:
    assert "inf" not in rewritten(rule("?a / ?k", "?a * (1 / ?k)", "?k is constant"), "u / 0.0")


# Places


NESTED = "select(u(x, y) < v(x + 1, y), sum(w(x + r, y) * u(x, y) for r in range(-1, 2) if r != 0), min(-u(x, y), 2.0))"


def test_places_have_texts() -> None:
    p = pointwise(NESTED)
    found = [".".join(part.path) for whole in expressions(p.stage("f0")) for part in parts(whole)]
    assert found == [
        "value",
        "value.condition",
        "value.condition.left",
        "value.condition.right",
        "value.if_true",
        "value.if_true.where",
        "value.if_true.where.left",
        "value.if_true.where.right",
        "value.if_true.body",
        "value.if_true.body.left",
        "value.if_true.body.right",
        "value.if_false",
        "value.if_false.args[0]",
        "value.if_false.args[0].operand",
        "value.if_false.args[1]",
    ]
    up = [".".join(part.path) for whole in expressions(p.stage("f0")) for part in parts(whole, "bottom_up")]
    assert sorted(up) == sorted(found)
    assert up[:3] == ["value.condition.left", "value.condition.right", "value.condition"]
    assert up[-1] == "value"
    assert Place.parse("f0.value.if_false.args[0]") == Place("f0", ("value", "if_false", "args[0]"))


def test_a_part_is_replaced_in_its_place() -> None:
    p = pointwise("(u(x, y) + v(x, y)) + (u(x, y) + v(x, y))")
    q = apply(algebra("commute_sum"), p, Place.parse("f0.value.right"))
    assert value(q) == "u(x, y) + v(x, y) + (v(x, y) + u(x, y))"
    same = pointwise("sum(u(x + r, y) for r in range(-1, 2) if r + x > 3)")
    assert value(apply(algebra("flip_greater"), same, Place.parse("f0.value.where"))) == (
        "sum(u(x + r, y) for r in range(-1, 2) if 3 < r + x)"
    )


UPDATES = {
    "format": 1,
    "name": "updates",
    "inputs": [{"name": "u", "type": "float32", "dims": ["x"]}],
    "stages": [
        {"name": "pair", "dims": ["x"], "value": ["u(x) + 0.0", "u(x) - 0.0"], "updates": [
            {"domain": {"r": [0, 4]}, "where": "not (u(r) == 1.0)", "at": ["r"],
             "value": ["pair(r)[0] - 0.0", "pair(r)[1] - 0.0"]}]},
    ],
    "outputs": ["pair"],
    "estimates": {"pair": [[0, 8]]},
}  # fmt: skip


def test_places_of_tuples_and_updates() -> None:
    p = load(UPDATES)
    assert [str(m) for m in matches(algebra("subtract_zero"), p)] == [
        "pair.value[1]",
        "pair.updates[0].value[0]",
        "pair.updates[0].value[1]",
    ]
    q = normalize([algebra("subtract_zero"), algebra("not_equal")], p)
    assert isinstance(q, Pipeline)
    assert to_document(q)["stages"][0]["updates"][0]["value"] == ["pair(r)[0]", "pair(r)[1]"]
    assert to_document(q)["stages"][0]["updates"][0]["where"] == "u(r) != 1.0"
    assert load(to_document(q)) == q


def test_indices_are_no_places() -> None:
    assert list(matches(algebra("commute_sum"), pointwise("u(x + 1, y + 2)"))) == []


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("g.value", "there is no stage 'g'"),
        ("f0", "the stage has value"),
        ("f0.updates[0].value", "the stage has value"),
        ("f0.value.args[0]", "there is no 'args[0]': this has left, right"),
        ("f0.value.left.operand", "there is no 'operand': this has no parts"),
        ("f0.value.left", "it is no ?a - 0"),
        ("f0.value", "it is no ?a - 0"),
    ],
)
def test_refusals(place: str, why: str) -> None:
    p = pointwise("u(x, y) - v(x, y)")
    assert apply(algebra("subtract_zero"), p, Place.parse(place)) == Refusal("subtract_zero", place, why)


def test_strict_takes_what_is_exact() -> None:
    p = pointwise("u(x, y) * w(x, y) + v(x, y) * w(x, y)")
    refused = apply(algebra("factor_common"), p, Place.parse("f0.value"), strict=True)
    assert refused == Refusal("factor_common", "f0.value", "the rule is exact but for rounding")
    assert list(matches(algebra("factor_common"), p, strict=True)) == []
    assert normalize([algebra("factor_common")], p, strict=True) is p
    whole = pointwise("u(x, y) * w(x, y) + v(x, y) * w(x, y)", type="uint8")
    assert value(apply(algebra("factor_common"), whole, Place.parse("f0.value"), strict=True)) == (
        "(u(x, y) + v(x, y)) * w(x, y)"
    )
    small = pointwise("sin(clamp(u(x, y), 0.0, 0.1))")
    assert apply(algebra("small_sine"), small, Place.parse("f0.value"), strict=True) == Refusal(
        "small_sine", "f0.value", "the rule is approximate"
    )


def test_what_would_change_nothing_is_refused() -> None:
    p = pointwise("u(x, y) + u(x, y)")
    refused = apply(algebra("commute_sum"), p, Place.parse("f0.value"))
    assert refused == Refusal("commute_sum", "f0.value", "it would change nothing")


# Everywhere, and until nothing fits


def test_everywhere_is_once() -> None:
    p = pointwise("--(--u(x, y) + v(x, y))", "----u(x, y)")
    q = everywhere([algebra("negate_twice")], p)
    assert (value(q), value(q, "f1")) == ("u(x, y) + v(x, y)", "u(x, y)")
    swapped = everywhere([algebra("commute_sum")], pointwise("u(x, y) + (v(x, y) + w(x, y))"))
    assert value(swapped) == "w(x, y) + v(x, y) + u(x, y)"


def test_a_normal_form_has_no_place_left() -> None:
    rules = [algebra(n) for n in ("negate_twice", "subtract_zero", "multiply_by_one", "and_true", "select_same")]
    p = pointwise("select(u(x, y) < v(x, y) and True, --(u(x, y) * 1.0), u(x, y) - 0.0) - 0.0", "u(x, y)")
    q = normalize(rules, p)
    assert value(q) == "u(x, y)"
    assert isinstance(q, Pipeline)
    assert q.stage("f1") is p.stage("f1")
    assert [m for r in rules for m in matches(r, q)] == []
    assert normalize(rules, q) is q
    assert normalize([], p) is p


def test_stages_may_be_chosen() -> None:
    p = pointwise("u(x, y) - 0.0", "v(x, y) - 0.0")
    q = normalize([algebra("subtract_zero")], p, stages={"f1"})
    assert (value(q), value(q, "f1")) == ("u(x, y) - 0.0", "v(x, y)")
    assert [str(m) for m in matches(algebra("subtract_zero"), p, stages={"f1"})] == ["f1.value"]


def test_rules_without_normal_form_are_refused() -> None:
    p = pointwise("u(x, y) + v(x, y)")
    found = normalize([algebra("commute_sum")], p)
    assert isinstance(found, Refusal)
    assert (found.rule, found.where) == ("commute_sum", "f0")
    assert "no normal form" in found.why


def test_rules_that_grow_are_refused() -> None:
    p = pointwise("*".join(["(u(x, y) + v(x, y))"] * 40))
    found = normalize([algebra("distribute")], p)
    assert isinstance(found, Refusal)
    assert "more than 20000 parts" in found.why or "no normal form" in found.why


def test_deep_expressions_are_no_danger() -> None:
    p = pointwise(" + ".join(["u(x, y)"] * 590))
    assert len(list(matches(algebra("commute_sum"), p))) == 588
    q = everywhere([algebra("commute_sum")], p)
    assert isinstance(q, Pipeline)
    negated = pointwise("-" * 150 + "u(x, y)")
    assert value(normalize([algebra("negate_twice")], negated)) == "u(x, y)"


class Counting:
    """A rule that fits nowhere, and counts how often it is asked."""

    name, kinds, text = "counting", None, RuleText("counting", "?a", "?a")

    def __init__(self) -> None:
        self.asked = 0

    def rewritten(self, e: Expr, bounds: Bounds, strict: bool) -> str:
        self.asked += 1
        return "never"


def test_every_part_is_asked_once() -> None:
    """Those that are made by a rule once more: what it leaves alone is not looked at again."""
    for n in (10, 20, 40):
        p = pointwise(" + ".join(["--u(x, y)"] * n))
        counting = Counting()
        assert isinstance(normalize([algebra("negate_twice"), counting], p), Pipeline)
        assert counting.asked == 2 * n - 1 + n  # sums, reads, and what is negated once
        counting = Counting()
        assert list(matches(counting, p)) == []
        assert counting.asked == 2 * n - 1 + 2 * n
