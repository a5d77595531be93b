"""Reading of rules: their types, and what is wrong with texts that are none."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.expression_rules.document import MOST_RULES, rules_of, to_document
from tilesmith.scheduler.rewrites.expression_rules.reader import read
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule, RuleText


def rule(match: str, result: str, *where: str) -> ExpressionRule:
    return read(RuleText("r", match, result, "exact", where))


def types(r: ExpressionRule) -> list[str]:
    return [" ".join(v.type.name for v in i.variables) for i in r.instances]


def problem(match: str, result: str, *where: str) -> str:
    with pytest.raises(DocumentError) as error:
        rule(match, result, *where)
    return str(error.value)


NUMBERS = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def test_operands_have_one_type() -> None:
    r = rule("?a * ?k + ?b * ?k", "(?a + ?b) * ?k")
    assert types(r) == [f"{t} {t} {t}" for t in NUMBERS]
    assert {to_text(i.match) for i in r.instances} == {"?a * ?k + ?b * ?k"}


def test_a_type_follows_from_operations_and_conditions() -> None:
    assert types(rule("?a / ?b", "?a * (1 / ?b)")) == ["float32 float32", "float64 float64"]
    assert types(rule("?a + 0.5", "0.5 + ?a")) == ["float32", "float64"]
    assert types(rule("select(not ?c, ?a, ?a)", "?a", "type(?a) is uint8")) == ["bool uint8"]
    assert types(rule("?a + ?b", "?b + ?a", "type(?a) is signed", "type(?b) is not int8")) == [
        "int16 int16",
        "int32 int32",
        "int64 int64",
    ]


def test_a_type_may_be_a_variable() -> None:
    r = rule("?T(?a)", "sat_?T(?a)", "type(?T) is unsigned", "type(?a) is unsigned", "bits(?T) < bits(?a)")
    assert sorted(types(r)) == ["uint16", "uint32", "uint32", "uint64", "uint64", "uint64"]
    assert to_text(r.instances[0].result) == "sat_uint8(?a)"
    assert (
        types(rule("?T(?U(?a))", "?a", "type(?T) is type(?a)", "type(?U) holds type(?T)", "type(?a) is int16"))
        == ["int16"] * 4
    )


def test_literals_take_the_type_of_their_neighbours() -> None:
    r = rule("?a * 2", "?a + ?a")
    assert [to_text(i.match) for i in r.instances] == ["?a * 2.0"] * 2 + ["?a * 2"] * 8


def test_what_a_type_has_no_literal_for_is_no_instance() -> None:
    assert types(rule("?a & 255", "255 & ?a"))[:2] == ["int16", "int32"]  # no int8


@pytest.mark.parametrize(
    ("match", "result", "where", "message"),
    [
        ("?a +", "?a", (), "/match column 4: This is not an expression"),
        ("?a + b", "?a", (), "/match column 6: Nothing here is called 'b'"),
        ("?a + _b", "?a", (), "/match column 6: Nothing is called '_b'. [unknown_name] (pattern variables"),
        ("?a + 1", "?b", (), "/result: Nothing in the match is called ?b"),
        ("?a + 1", "f(?a)", (), "/result column 1: No input, stage or function is called 'f'"),
        ("?a", "?a + 1", (), "has no types"),
        ("3", "3", (), "has no types"),
        ("?a + ?b", "?a and ?b", (), "has no types"),
        ("sum(?a for r in range(0, 3))", "?a * 3", (), "A rule has no reductions"),
        ("?a + 1", "?a", ("?b > 0",), "/where/0: Nothing in the match is called ?b"),
        ("?a + 1", "?a", ("type(?b) is float",), "/where: Nothing in the match is called ?b"),
        ("?a + 1", "?a", ("type(?a) is complex",), "/where/0: There is no type 'complex'"),
        ("?a + 1", "?a", ("?a + 1",), "A condition has to be bool"),
        ("?a + 1", "?a", ("?a is odd",), "/where/0"),
        ("?a + 1", "?a", ("?a > 0",) * 9, "At most 8 conditions"),
        ("?a(?a)", "?a", (), "?a is a value, and a type"),
        ("+".join(f"?v{n}" for n in range(9)), "?v0", (), "At most 8 variables"),
        ("+".join(["?a"] * 50), "?a", (), "more than 40 parts"),
        ("select(?a < ?b, int8(?c), int8(?d) << ?e)", "int8(?c)", (), "more than 3 types that are independent"),
        ("__import__('os')", "1", (), "[unknown_name]"),
        ("?a.real + 1", "?a", (), "'.' is only for the bounds of inputs"),
        ("(lambda: ?a)()", "?a", (), "is not part of the language"),
    ],
)
def test_problems(match: str, result: str, where: tuple[str, ...], message: str) -> None:
    assert message in problem(match, result, *where)


def test_documents() -> None:
    document = [
        {"name": "factor", "match": "?a * ?k + ?b * ?k", "result": "(?a + ?b) * ?k", "exact": "rounding"},
        {"name": "drop", "match": "min(?a, ?b)", "result": "?a", "where": "?a < ?b"},
    ]
    factor, drop = rules_of(document, "/rules")
    assert (factor.name, factor.exact) == ("factor", "rounding")
    assert drop.text.where == ("?a < ?b",)
    assert rules_of([to_document(factor.text), to_document(drop.text)]) == (factor, drop)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "/rules: "),
        ([{"name": "r", "match": "?a + 0"}], "/rules/0/result: The rule has no 'result'. [missing_key]"),
        ([{"name": "r", "match": "?a - 0", "result": "?a", "how": 1}], "/rules/0/how: A rule has no 'how'."),
        (["factor"], "/rules/0: A rule is an object."),
        ([{"name": "r", "match": 3, "result": "?a"}], "/rules/0/match: A text is expected."),
        ([{"name": "r s", "match": "?a - 0", "result": "?a"}], "/rules/0/name: "),
        (
            [{"name": "r", "match": "?a - 0", "result": "?a", "exact": "mostly"}],
            "/rules/0/exact: One of exact, rounding",
        ),
        ([{"name": "r", "match": "?a - 0", "result": "?a"}] * 2, "/rules/1/name: Two rules are called 'r'"),
        ([{"name": "r", "match": "x" * 2000, "result": "?a"}], "/rules/0/match: "),
        ([{"name": "r", "match": "?a - 0", "result": "?a"}] * (MOST_RULES + 1), "[limit_exceeded]"),
    ],
)
def test_problems_of_documents(document: object, message: str) -> None:
    with pytest.raises(DocumentError) as error:
        rules_of(document, "/rules")
    assert message in str(error.value)


def test_all_rules_of_a_document_are_judged() -> None:
    with pytest.raises(DocumentError) as error:
        rules_of(
            [
                {"name": "r", "match": "?a + ?b", "result": "?a - ?b"},
                {"name": "s", "match": "?a +", "result": "?a"},
                {"name": "t", "match": "?a + 1", "exact": "exactly"},
                {"name": "u", "match": "?a + ?b", "result": "?b + ?a", "where": "?a > ?b and"},
            ]
        )
    assert [p.pointer for p in error.value.problems] == ["/0", "/1/match", "/2/result", "/2/exact", "/3/where"]
