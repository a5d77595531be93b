"""Hints for what people of other tools write."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document import foreign_words
from tilesmith.scheduler.frontends.document.document import load, load_text
from tilesmith.scheduler.frontends.document.functions import FUNCTIONS
from tilesmith.scheduler.frontends.document.schema_errors import _KINDS
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.types import TYPES


def _document(value: str = "img(x, y)", **image: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "name": "p",
        "inputs": [{"name": "img", "type": "uint8", "dims": ["x", "y"]} | image],
        "stages": [{"name": "f", "dims": ["x", "y"], "value": value}],
        "outputs": ["f"],
        "estimates": {"f": [[0, 64], [0, 64]]},
    }


def _problems(document: dict[str, Any]) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as caught:
        load(document)
    return caught.value.problems


@pytest.mark.parametrize("call", ["u8(img(x, y))", "hl.u8(img(x, y))", "np.ubyte(img(x, y)) + byte(img(x, y))"])
def test_types_of_other_tools_that_are_called(call: str) -> None:
    assert "a type is a function: write uint8(value)" in [p.hint for p in _problems(_document(call))]


@pytest.mark.parametrize("call", ["clip(img(x, y), 0, 9)", "np.clip(img(x, y), 0, 9)"])
def test_functions_of_other_tools_by_any_prefix(call: str) -> None:
    assert [p.hint for p in _problems(_document(call))] == ["write clamp(value, low, high)"]


@pytest.mark.parametrize(("kind", "word"), [("BORDER_REFLECT_101", "mirror_interior"), ("wrap", "repeat_image")])
def test_boundaries_of_other_tools(kind: str, word: str) -> None:
    assert [p.hint for p in _problems(_document(boundary={"kind": kind}))] == [f"write {word}"]
    (as_word,) = _problems(_document(boundary=kind))
    assert as_word.hint == f'a boundary is an object, {{"kind": ...}}; write {word}'


def test_a_boundary_that_is_a_word_of_ours() -> None:
    (problem,) = _problems(_document(boundary="repeat_edge"))
    assert problem.hint == 'write {"kind": "repeat_edge"}'


def test_types_of_other_tools() -> None:
    assert [p.hint for p in _problems(_document(type="np.uint8_t"))] == ["write uint8"]
    assert [p.hint for p in _problems(_document(type="CV_32F"))] == ["write float32"]


def test_no_word_is_one_of_the_language() -> None:
    assert not foreign_words.FUNCTIONS.keys() & FUNCTIONS.keys()
    assert not foreign_words.BOUNDARIES.keys() & set(_KINDS)
    assert not foreign_words.TYPES.keys() & TYPES.keys()
    assert set(foreign_words.TYPES.values()) <= TYPES.keys()


def test_keys_that_are_missing_are_proposed() -> None:
    document = _document()
    for key in ("format", "outputs", "estimates"):
        del document[key]
    hints = {p.message.split("'")[1]: p.hint for p in _problems(document)}
    assert hints["format"] == 'add "format": 1'
    assert hints["outputs"] == 'add "outputs": ["f"]'
    assert hints["estimates"] is not None
    document = _document()
    del document["estimates"]
    (problem,) = _problems(document)
    assert problem.hint == 'add "estimates": {"f": [[0, 1920], [0, 1080]]}, the size that you expect'
    load(_document() | {"estimates": {"f": [[0, 1920], [0, 1080]]}})


def test_proposals_of_documents_that_are_wrong_altogether() -> None:
    assert all(p.hint for p in _problems({"stages": [{"dims": 3}, 4], "outputs": 5, "inputs": []}) if not p.pointer)


@pytest.mark.parametrize("value", ["img(x, y)", "img(x, y) + img(x, y)"])
def test_an_expression_that_its_comma_cuts(value: str) -> None:
    text = f"format: 1\nname: p\nstages:\n  - {{name: f, dims: [x, y], value: {value}}}\n"
    with pytest.raises(DocumentError) as caught:
        load_text(text)
    (problem, *_) = caught.value.problems
    assert problem.code == "bad_yaml"
    assert problem.pointer == "/stages/0/value"
    assert problem.message.startswith("Line 4, column 36: in braces a comma ends the value: 'img(x, y)")
    assert problem.hint is not None
    assert "quotes" in problem.hint


SAME_IN_NUMPY = (
    "hypot", "log2", "log10", "log1p", "exp2", "expm1", "cbrt", "reciprocal", "sinh", "cosh", "sign", "copysign",
    "degrees", "radians", "rint", "square", "isnan", "arcsin", "arctan2", "fmax", "absolute",
)  # fmt: skip


@pytest.mark.parametrize("name", SAME_IN_NUMPY)
def test_what_is_proposed_for_a_function_of_numpy_computes_the_same(name: str) -> None:
    """The text after `write`, with the names in it as inputs."""
    function = getattr(np, name)
    names = ["y", "x"] if name == "arctan2" else ["a", "b"] if function.nin == 2 else ["value"]
    text = foreign_words.FUNCTIONS[name].removeprefix("write ")
    text = text.rpartition(", of numbers")[0] or text
    for n in names:
        text = re.sub(rf"\b{n}\b", f"i_{n}(p)", text)
    document = {
        "format": 1,
        "name": "p",
        "inputs": [{"name": f"i_{n}", "type": "float32", "dims": ["p"]} for n in names],
        "stages": [{"name": "f", "dims": ["p"], "value": f"float32({text})"}],
        "outputs": ["f"],
        "estimates": {"f": [[0, 5]]},
    }
    columns = [np.array([0.25, 0.5, 0.75, 0.125, 0.9], np.float32), np.array([0.5, 2, 0.3, 1, 0.1], np.float32)]
    images = {f"i_{n}": Image(c, (0,)) for n, c in zip(names, columns, strict=False)}
    found = interpret(load(document), images, {}, {"f": ((0, 5),)})["f"][0]
    np.testing.assert_allclose(found, function(*columns[: len(names)]), rtol=2e-6)


def test_what_is_no_name_is_not_taken_for_one_with_the_same_letters() -> None:
    """`hypot` is no `photo`; who has swapped or left out a letter, or turned words round, is told the name."""
    document = _document("hypot(img(x, y), img(x, y))")
    document["inputs"].append({"name": "photo", "type": "uint8", "dims": ["x", "y"]})
    assert [p.hint for p in _problems(document)] == ["write sqrt(a * a + b * b)"]
    for wrong, hint in (
        ("qqq(x, y)", None),
        ("PHOTO(x, y)", "photo"),
        ("phtoo(x, y)", "photo"),
        ("phot(x, y)", "photo"),
        ("mni(1, 2)", "min"),
        ("UINT8_sat(1)", "sat_uint8"),
    ):
        document["stages"][0]["value"] = wrong
        assert [p.hint for p in _problems(document)] == [hint and f"did you mean {hint!r}?"]


def test_bools_that_are_multiplied_and_loops_over_pairs() -> None:
    """As NumPy takes them, and Python."""
    for value in ("(img(x, y) > 3) * 2.0", "(img(x, y) > 3) * img(x, y)", "1 - (img(x, y) > 3)"):
        (problem,) = _problems(_document(value))
        assert problem.message.endswith("needs numbers, not bool.")
        assert problem.hint is not None
        assert "`a if condition else b`" in problem.hint
    (problem,) = _problems(_document("sum(img(x + i, y + j) for i, j in range(3))"))
    assert problem.hint == "write `for i in range(n) for j in range(m)`"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("img(x, y) > 1 ? 2 : 3", "write select(condition, a, b)"),
        ("float32(img(x, y)) ^ 2", "a power is pow(a, b), or a ** b"),
        ("float32(img(x, y)) & 1", "compare first, as (a > 0) & (b > 0)"),
    ],
)
def test_operators_of_other_languages_are_told_with_what_they_are_here(value: str, hint: str) -> None:
    assert [p.hint for p in _problems(_document(value))] == [hint]
