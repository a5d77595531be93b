"""Documents made to hurt: each is refused with a DocumentError, and nothing else ever comes out."""

from __future__ import annotations

import json
import random
import string
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import canonical_json, load, load_text, to_document
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


def test_a_domain_without_end() -> None:
    endless = {"domain": {"r": [0, 2_000_000_000], "s": [0, "2000000000"]}, "at": ["x", "y"], "value": "x"}
    assert codes(one_stage("x", updates=[endless])) == {"limit_exceeded"}


def one_stage(value: object, **stage: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "name": "hostile",
        "inputs": [{"name": "a", "type": "uint8", "dims": ["i"]}, {"name": "w", "type": "float32", "dims": ["i", "j"]}],
        "stages": [{"name": "f", "dims": ["x", "y"], "value": value, **stage}],
        "outputs": ["f"],
        "estimates": {"f": [[0, 8], [0, 8]]},
    }


def codes(document: object) -> set[str]:
    with pytest.raises(DocumentError) as caught:
        load(document)
    assert all(len(str(p)) < 600 for p in caught.value.problems)
    return {p.code for p in caught.value.problems}


DEEP = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "(" * DEEP + "x" + ")" * DEEP,
        "[" * DEEP + "]" * DEEP,
        "abs(" * DEEP + "x" + ")" * DEEP,
        "a(" * DEEP + "x" + ")" * DEEP,
        "-" * DEEP + "x",
        "- " * DEEP + "x",
        "~" * DEEP + "x",
        "+" * DEEP + "x",
        "not " * DEEP + "True",
        "x" + "+x" * DEEP,
        "x" + "**x" * DEEP,
        "x" + "-(x" * DEEP + ")" * DEEP,
        "x" + " if True else x" * 4000,
        "x" + "[0]" * DEEP,
        "x" + ".x" * DEEP,
        "True" + " and True" * 7000,
        "True" + " < True" * 8000,
        "max(" + "x," * DEEP + "x)",
        "sum(" * 100 + "x" + "".join(f" for r{i} in range(2))" for i in range(100)),
        "sum(x for r in range(2000000000) for s in range(2000000000))",
        "(" * 150 + "x" + "+x)" * 150 + "+x" * 500,
    ],
)
def test_deep_or_long_expressions(text: str) -> None:
    found = codes(one_stage(text))
    assert found & {"expression_too_deep", "expression_too_large", "limit_exceeded", "chained_comparison"}, found


@pytest.mark.parametrize("extra", [0, 400])
def test_five_hundred_terms_are_fine(extra: int) -> None:
    """Whatever is on the stack already."""

    def descend(levels: int) -> None:
        if levels:
            return descend(levels - 1)
        terms = " + ".join(f"w(x + {i}, y) * 0.5" for i in range(500))
        pipeline = load(one_stage(terms))
        text = canonical_json(pipeline)
        assert canonical_json(load_text(text)) == text
        return None

    descend(extra)
    assert sys.getrecursionlimit() == 1000


def test_the_deepest_expression_allowed() -> None:
    depth = 180
    for text in (
        "abs(" * depth + "x" + ")" * depth,
        "a(" * depth + "x" + ")" * depth,
        "x" + "-(x" * depth + ")" * depth,
        "x" + " if True else x" * depth,
        "-" * depth + "x",
        "not " * depth + "True",
        "max(" + "x, " * 590 + "x)",
        "True" + " and True" * 590,
    ):
        pipeline = load(one_stage(text))
        assert to_document(load(to_document(pipeline))) == to_document(pipeline)


@pytest.mark.parametrize(
    "text",
    [
        "uint8(x + " * 100 + "x" + ")" * 100,  # each level is converted back by itself
        "x" + " if True else x" * 195,  # select() has brackets
        "x" + "+x" * 15_000,
        "random(" + "x," * 15_000 + "x)",
        "random(" + "x,x+x," * 8_000 + "x)",
        "random(" + "a(x)+x," * 2_500 + "x)",
    ],
)
def test_what_is_accepted_is_accepted_again(text: str) -> None:
    """The canonical text has more brackets, spaces and conversions than what was written."""
    try:
        pipeline = load(one_stage(text))
    except DocumentError:
        return
    assert to_document(load(to_document(pipeline))) == to_document(pipeline)


def test_unbalanced_and_foreign_text() -> None:
    for text in (
        "(" * 100, ")" * 100, "(" * 99 + "]" * 99, "f(" * 60 + "x" * 100, "{" * 100, '"' * 3, "x\\\n", "# x", "x;y",
        "\x00",
        "x\u200b", "ｘ", "𝐱", "\ud800", "1" * 4301, "0x" + "f" * 60_000, "1e" + "9" * 5000, "1_", "0b12", "1.e", "1..x",
        "9" * 60_000, "system(\"rm -rf /\")", "__import__('os').system('ls')", "exec(x)", "f'{x}'", "x if",
        "print(x)", "().__class__", "x.__class__", "(lambda: x)()", "[].append", "x!r", "a := 1", "*", "**", "@", "->",
    ):  # fmt: skip
        assert codes(one_stage(text))


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e308, float("nan"), float("inf"), 1 << 64])
def test_numbers_as_expressions(value: float) -> None:
    assert codes(one_stage(value)) <= {"literal_out_of_range", "bad_type", "bad_number"}


@pytest.mark.parametrize(
    "document",
    [
        None, 3, "x", b"x", [], [[]], {}, {1: 2}, {"format": 1}, {"stages": None}, {"stages": [None, 1, "x", [], {}]},
        {"inputs": {"name": 1}}, {"estimates": [[1]]}, {"outputs": [{}]}, {"params": "x"},
        {"stages": [{"name": {"a": 1}}]}, {"stages": [{"updates": [{"domain": {3: [1, 2]}}]}]}, {"\ud800": 1},
        {"name": "\ud800"}, {"doc": "\ud800"}, set(), object(),
    ],
)  # fmt: skip
def test_any_object_at_all(document: object) -> None:
    assert codes(document)


def test_a_million_stages() -> None:
    stage = {"name": "s", "dims": [], "value": "0"}
    assert codes(one_stage("0") | {"stages": [stage] * 1_000_000}) == {"limit_exceeded"}
    text = '{"stages":[' + ",".join(['{"name":"s","dims":[],"value":"0"}'] * 1_000_000) + "]}"
    with pytest.raises(DocumentError) as caught:
        load_text(text)
    assert [p.code for p in caught.value.problems] == ["document_too_large"]


@pytest.mark.slow
def test_ten_thousand_stages_are_allowed() -> None:
    n = Limits().stages
    stages = [{"name": f"s{i}", "dims": ["x"], "value": f"s{i - 1}(x) + 1" if i else "x"} for i in range(n)]
    document = one_stage("0") | {"stages": stages, "outputs": [f"s{n - 1}"], "estimates": {f"s{n - 1}": [[0, 9]]}}
    pipeline = load(document)
    assert [s.name for s in pipeline.stages[:3]] == ["s0", "s1", "s2"]
    assert len(pipeline.stages) == n


@pytest.mark.slow
def test_ten_thousand_stages_in_a_ring() -> None:
    n = Limits().stages
    stages = [{"name": f"s{i}", "dims": ["x"], "value": f"s{(i - 1) % n}(x) + 1"} for i in range(n)]
    document = one_stage("0") | {"stages": stages, "outputs": ["s1"], "estimates": {"s1": [[0, 9]]}}
    assert codes(document) == {"cycle"}


@pytest.mark.slow
def test_many_of_anything() -> None:
    many = 200_000
    for change in (
        {"dims": ["x"] * many},
        {"storage": ["x"] * many},
        {"type": ["int32"] * many},
        {"value": ["x"] * many},
        {"updates": [{"domain": {}, "at": ["x"] * many, "value": "x"}]},
        {"updates": [{"domain": {}, "at": ["x", "y"], "value": ["x"] * many}]},
        {"updates": [{"domain": {f"r{i}": [0, 1] for i in range(many)}, "at": ["x", "y"], "value": "x"}]},
        {"boundary": {"kind": "repeat_edge", "domain": [[0, 1]] * many}},
        {f"key{i}": 1 for i in range(many)},
    ):
        assert codes(one_stage("x + f2(x)") | {"stages": [one_stage("x")["stages"][0] | change]})
    assert codes(one_stage("x") | {"estimates": {f"e{i}": [] for i in range(many)}})
    assert codes(one_stage("x") | {"estimates": {"f": [[0, 1]] * many}})
    assert codes(one_stage("x") | {f"key{i}": 1 for i in range(many)})


@pytest.mark.slow
def test_expressions_together_have_a_limit() -> None:
    text = "+".join(["x"] * 500)
    stages = [{"name": f"s{i}", "dims": ["x"], "value": text} for i in range(1000)]
    assert "limit_exceeded" in codes(one_stage("0") | {"stages": stages})
    stages = [{"name": f"s{i}", "dims": ["x"], "value": " " * 60_000 + "x"} for i in range(100)]
    assert "limit_exceeded" in codes(one_stage("0") | {"stages": stages})


def test_deep_json_and_yaml() -> None:
    for text in (
        '{"a":' * 100_000,
        "[" * 1_000_000,
        "- " * 50_000,
        "a: " + "{a: " * 10_000,
        "? " * 10_000,
        "!!" * 1000,
    ):
        with pytest.raises(DocumentError):
            load_text(text)


def test_alias_bombs() -> None:
    levels = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 30))
    with pytest.raises(DocumentError) as caught:
        load_text("l0: &l0 [x]\n" + levels)
    assert [p.code for p in caught.value.problems] == ["bad_yaml"]
    with pytest.raises(DocumentError):
        load_text("a: &a [*a]")


_TOKENS = """
    x y f a w 1 0.5 True 255 300 ( ) [ ] , + - * / // % ** & | ^ ~ << >> < <= == != >= > and or not if else for in r
    range sum argmin min max select clamp mux lerp sqrt uint8 sat_int8 . a(x) w(x,y) [0] is lambda await * = := 3j None
"""


def survives(load_it: Callable[[], Pipeline]) -> None:
    """A pipeline that makes the round trip, or a DocumentError."""
    try:
        pipeline = load_it()
    except DocumentError:
        return
    assert load(to_document(pipeline)) == pipeline


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(sorted(_TOKENS.split())), min_size=1, max_size=20), st.sampled_from(["", " "]))
def test_soup_of_tokens(tokens: list[str], space: str) -> None:
    survives(lambda: load(one_stage(space.join(tokens))))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    survives(lambda: load(one_stage(text)))
    survives(lambda: load_text(text))
    survives(lambda: load_text(text, yaml=True))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([True, False, None]))
def test_any_bytes(text: bytes, yaml: bool | None) -> None:
    with pytest.raises(DocumentError):
        load_text(text, yaml=yaml)


def test_broken_copies_of_a_good_document() -> None:
    """A character of a good document replaced: an error, or another good document."""
    good = json.dumps(one_stage("sum(w(x + r, y) * 0.5 for r in range(-1, 2) if r != 0) + float32(a(a(x)))"))
    dice = random.Random(7)
    for _ in range(600):
        at = dice.randrange(len(good))
        text = good[:at] + dice.choice(string.printable) + good[at + dice.choice((0, 1)) :]
        survives(lambda text=text: load_text(text))


def _places(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [steps, *(place for key, child in inside for place in _places(child, (*steps, key)))]


def _replaced(value: Any, steps: tuple[Any, ...], new: Any) -> Any:
    if not steps:
        return new
    if isinstance(value, dict):
        return {k: _replaced(v, steps[1:], new) if k == steps[0] else v for k, v in value.items()}
    return [_replaced(v, steps[1:], new) if i == steps[0] else v for i, v in enumerate(value)]


_RICH: dict[str, Any] = {
    "format": 1,
    "name": "rich",
    "doc": "d",
    "params": [{"name": "p", "type": "int32", "default": 3, "min": 0, "max": 9}],
    "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "constant", "value": "7"}}],
    "stages": [
        {"name": "f", "dims": ["x", "y"], "value": "sum(a(x + r, y) for r in range(0, p))", "storage": ["y", "x"]},
        {"name": "t", "dims": ["i"], "value": ["uint32(0)", "0.5"], "type": ["uint32", "float32"],
         "updates": [{"domain": {"r": [0, "a.extent.x"]}, "where": "r > 1", "at": ["f(r, 0)"],
                      "value": ["1", "t(f(r, 0))[1]"]}],
         "boundary": {"kind": "repeat_edge", "domain": [[0, 256]]}},
        {"name": "g", "dims": [], "value": "argmin(t(i)[0] for i in range(0, 256))"},
    ],
    "outputs": ["f", "g"],
    "estimates": {"f": [[0, 64], [0, 48]], "g": [], "a": [[0, 64], [0, 48]]},
}  # fmt: skip
_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
        st.sampled_from(["x", "y", "f", "t", "g", "a", "p", "r", "f(x, y)", "t(x)[0]", "g()[0]", "uint8", "for"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), _JSON), min_size=1, max_size=3))
@pytest.mark.slow
def test_any_value_anywhere(changes: list[tuple[int, Any]]) -> None:
    document: Any = _RICH
    for at, value in changes:
        places = _places(document)
        document = _replaced(document, places[at % len(places)], value)
    survives(lambda: load(document))


def test_any_key_missing_or_twice() -> None:
    assert load(_RICH)
    for place in _places(_RICH)[1:]:
        *owner, key = place
        here: Any = _RICH
        for step in owner:
            here = here[step]
        less = {k: v for k, v in here.items() if k != key} if isinstance(here, dict) else here[:key] + here[key + 1 :]
        survives(lambda: load(_replaced(_RICH, tuple(owner), less)))  # noqa: B023
        if isinstance(here, list):
            more = [*here, here[key]]
            survives(lambda: load(_replaced(_RICH, tuple(owner), more)))  # noqa: B023
