"""Documents as wholes: every error code with its place, all problems at once, canonical form."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.frontends.document.codes import CODES
from tilesmith.scheduler.frontends.document.document import canonical_json, load, load_text, to_document
from tilesmith.scheduler.frontends.document.limits import Limits

Document = dict[str, Any]

GOOD: Document = {
    "format": 1,
    "name": "good",
    "doc": "All that a document can have.",
    "params": [
        {"name": "gain", "type": "float32", "default": 1.5, "min": 0.0, "max": 4},
        {"name": "shift", "type": "int32", "min": -4, "max": 4},
        {"name": "flag", "type": "bool", "default": True},
    ],
    "inputs": [
        {"name": "image", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]},
        {"name": "soft", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
        {"name": "dark", "type": "uint16", "dims": ["x"], "boundary": {"kind": "constant", "value": "7"}},
    ],
    "stages": [
        {"name": "last", "dims": ["x", "y"], "value": "blur(x, y)[0] * gain + float32(hist(image(x, y, 0)))"},
        {
            "name": "blur",
            "dims": ["x", "y"],
            "value": ["soft(x + shift, y) * 0.5", "image(x, y, 1)"],
            "type": ["float32", "uint8"],
            "boundary": {"kind": "mirror_image", "domain": [[0, 64], ["soft.min.y", "soft.extent.y"]]},
        },
        {
            "name": "hist",
            "dims": ["i"],
            "value": "uint32(0)",
            "type": "uint32",
            "updates": [
                {
                    "domain": {"rx": [0, "image.extent.x"], "ry": ["image.min.y", "image.extent.y"]},
                    "where": "rx != ry and flag",
                    "at": ["image(rx, ry, 0)"],
                    "value": "hist(image(rx, ry, 0)) + 1",
                },
                {"domain": {"r": [1, 255]}, "at": ["r"], "value": "hist(r) + hist(r - 1)"},
                {"domain": {}, "at": [0], "value": 0},
            ],
            "boundary": {"kind": "constant", "value": 0, "domain": [[0, 256]]},
        },
        {"name": "best", "dims": [], "value": "argmax(hist(k) for k in range(0, 256))"},
        {
            "name": "planes",
            "dims": ["x", "y", "c"],
            "value": "image(x, y, c) + sat_uint8(dark(x)) if best()[0] > 3 else 9",
            "storage": ["c", "x", "y"],
        },
    ],
    "outputs": ["last", "planes", "best"],
    "estimates": {
        "planes": [[0, 64], [-8, 64], [0, 3]], "last": [[0, 64], [0, 48]], "best": [],
        "image": [[0, 64], [0, 48], [0, 3]],
    },
}  # fmt: skip


def problems(document: object, **limits: int) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as caught:
        load(document, Limits(**limits))
    return caught.value.problems


def text_problems(text: str | bytes, yaml: bool | None = None, **limits: int) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as caught:
        load_text(text, Limits(**limits), yaml)
    return caught.value.problems


def changed(change: Callable[[Document], object]) -> Document:
    document = copy.deepcopy(GOOD)
    change(document)
    return document


def put(place: str, value: object) -> Callable[[Document], object]:
    """Sets the value at a JSON Pointer."""

    def change(document: Document) -> None:
        *steps, last = (s.replace("~1", "/").replace("~0", "~") for s in place.split("/")[1:])
        here: Any = document
        for step in steps:
            here = here[int(step)] if isinstance(here, list) else here[step]
        if isinstance(here, list):
            here[int(last)] = value
        else:
            here[last] = value

    return change


def drop(place: str) -> Callable[[Document], object]:
    def change(document: Document) -> None:
        *steps, last = (s.replace("~1", "/").replace("~0", "~") for s in place.split("/")[1:])
        here: Any = document
        for step in steps:
            here = here[int(step)] if isinstance(here, list) else here[step]
        del here[last]

    return change


def test_the_good_document_is_good() -> None:
    pipeline = load(GOOD)
    assert [s.name for s in pipeline.stages] == ["blur", "hist", "best", "last", "planes"]
    assert [name for name, _ in pipeline.estimates] == ["best", "image", "last", "planes"]
    assert load(to_document(pipeline)) == pipeline
    assert to_document(load(to_document(pipeline))) == to_document(pipeline)
    assert load_text(canonical_json(pipeline)) == pipeline
    assert canonical_json(load_text(canonical_json(pipeline))) == canonical_json(pipeline)


TABLE: list[tuple[str, Callable[[Document], object], str, int | None]] = [
    # Shape
    ("missing_key", drop("/name"), "", None),
    ("missing_key", drop("/stages/0/value"), "/stages/0", None),
    ("missing_key", drop("/stages/2/updates/0/domain"), "/stages/2/updates/0", None),
    ("unknown_key", put("/extra", 1), "/extra", None),
    ("unknown_key", put("/stages/0/vlaue", "1"), "/stages/0/vlaue", None),
    ("unknown_key", put("/stages/1/boundary/a~0b~1c", 1), "/stages/1/boundary/a~0b~1c", None),
    ("bad_type", put("/stages", {}), "/stages", None),
    ("bad_type", put("/name", 3), "/name", None),
    ("bad_type", put("/stages/0/value", None), "/stages/0/value", None),
    ("bad_type", put("/stages/0/value", [None]), "/stages/0/value/0", None),
    ("bad_type", put("/stages/0/value", True), "/stages/0/value", None),
    ("bad_type", put("/estimates/last/0/1", 1.5), "/estimates/last/0/1", None),
    ("bad_type", put("/stages/0", "f = 3"), "/stages/0", None),
    ("bad_value", put("/estimates/last/0", [1, 2, 3]), "/estimates/last/0", None),
    ("bad_value", put("/stages/2/updates/1/domain/r", [1]), "/stages/2/updates/1/domain/r", None),
    ("bad_value", put("/outputs", []), "/outputs", None),
    ("bad_value", put("/stages/0/value", []), "/stages/0/value", None),
    ("bad_identifier", put("/name", 'system("reboot")'), "/name", None),
    ("bad_identifier", put("/stages/0/name", "a-b"), "/stages/0/name", None),
    ("bad_identifier", put("/stages/0/name", "x" * 65), "/stages/0/name", None),
    ("bad_identifier", put("/stages/0/name", "f\n"), "/stages/0/name", None),
    ("bad_identifier", put("/stages/0/dims/0", "é"), "/stages/0/dims/0", None),
    ("bad_identifier", put("/stages/2/updates/1/domain/2r", [0, 1]), "/stages/2/updates/1/domain/2r", None),
    ("bad_identifier", put("/stages/0/value", f"sum(1 for {'x' * 65} in range(3))"), "/stages/0/value", 11),
    ("reserved_name", put("/stages/3/name", "for"), "/stages/3/name", None),
    ("reserved_name", put("/stages/3/name", "uint8"), "/stages/3/name", None),
    ("reserved_name", put("/stages/3/name", "sum"), "/stages/3/name", None),
    ("reserved_name", put("/stages/0/dims/1", "if"), "/stages/0/dims/1", None),
    ("reserved_name", put("/params/0/name", "lambda"), "/params/0/name", None),
    ("reserved_name", put("/stages/2/updates/1/domain/in", [0, 1]), "/stages/2/updates/1/domain/in", None),
    ("unsupported_format", put("/format", 2), "/format", None),
    ("unsupported_format", put("/format", True), "/format", None),
    ("unknown_type", put("/inputs/0/type", "uint12"), "/inputs/0/type", None),
    ("unknown_type", put("/stages/1/type/1", "u8"), "/stages/1/type/1", None),
    ("unknown_kind", put("/inputs/1/boundary/kind", "repeat"), "/inputs/1/boundary/kind", None),
    # Names
    ("duplicate_name", put("/stages/0/name", "image"), "/stages/0/name", None),
    ("duplicate_name", put("/stages/0/name", "gain"), "/stages/0/name", None),
    ("duplicate_name", put("/stages/4/name", "last"), "/stages/4/name", None),
    ("duplicate_name", put("/stages/0/dims/1", "x"), "/stages/0/dims/1", None),
    ("duplicate_name", put("/outputs/1", "last"), "/outputs/1", None),
    ("shadowed_name", put("/stages/0/dims/1", "gain"), "/stages/0/dims/1", None),
    ("shadowed_name", put("/stages/2/updates/1/domain/i", [0, 1]), "/stages/2/updates/1/domain/i", None),
    # Declarations
    ("bad_boundary", put("/inputs/1/boundary/value", "1"), "/inputs/1/boundary", None),
    ("bad_boundary", drop("/inputs/2/boundary/value"), "/inputs/2/boundary", None),
    ("bad_boundary", put("/inputs/1/boundary/domain", [[0, 1], [0, 1]]), "/inputs/1/boundary/domain", None),
    ("bad_boundary", drop("/stages/1/boundary/domain"), "/stages/1/boundary", None),
    ("bad_boundary", put("/stages/1/boundary/domain", [[0, 1]]), "/stages/1/boundary/domain", None),
    ("bad_boundary", put("/stages/3/boundary", {"kind": "repeat_edge", "domain": []}), "/stages/3/boundary", None),
    (
        "bad_boundary",
        put("/stages/1/boundary", {"kind": "constant", "value": 0, "domain": [[0, 1], [0, 1]]}),
        "/stages/1/boundary/value",
        None,
    ),
    ("bad_constant", put("/inputs/2/boundary/value", "dark.min.x"), "/inputs/2/boundary/value", 1),
    ("type_mismatch", put("/inputs/2/boundary/value", "gain"), "/inputs/2/boundary/value", 1),
    ("bad_bounds", put("/stages/1/boundary/domain/0/1", "x"), "/stages/1/boundary/domain/0/1", 1),
    ("empty_range", put("/stages/1/boundary/domain/0/1", 0), "/stages/1/boundary/domain/0/1", None),
    ("bad_storage", put("/inputs/0/storage", ["c", "x"]), "/inputs/0/storage", None),
    ("bad_storage", put("/stages/4/storage", ["c", "x", "x"]), "/stages/4/storage", None),
    ("bad_param", put("/params/0/default", 5), "/params/0/default", None),
    ("bad_param", put("/params/0/default", True), "/params/0/default", None),
    ("bad_param", put("/params/0/min", 9.0), "/params/0/min", None),
    ("bad_param", put("/params/0/max", 1e39), "/params/0/max", None),
    ("bad_param", put("/params/1/default", 0.5), "/params/1/default", None),
    ("bad_param", put("/params/1/min", -(2**31) - 1), "/params/1/min", None),
    ("bad_param", put("/params/2/min", 0), "/params/2/min", None),
    ("bad_table", put("/inputs/0/values", [1]), "/inputs/0", None),
    ("unknown_output", put("/outputs/0", "lost"), "/outputs/0", None),
    ("unknown_output", put("/outputs/0", "image"), "/outputs/0", None),
    ("missing_estimate", drop("/estimates/last"), "/estimates", None),
    ("unknown_estimate", put("/estimates/lost", []), "/estimates/lost", None),
    ("bad_estimate", put("/estimates/last", [[0, 1]]), "/estimates/last", None),
    ("bad_estimate", put("/estimates/last/1/1", 0), "/estimates/last/1/1", None),
    ("bad_estimate", put("/estimates/last/1/1", 1 << 40), "/estimates/last/1/1", None),
    ("bad_estimate", put("/estimates/last/1/0", -1 << 40), "/estimates/last/1/0", None),
    # Expressions, wherever they stand (test_expressions.py has the forms)
    ("syntax_error", put("/stages/0/value", "blur(x, y)[0] *"), "/stages/0/value", 15),
    ("unsupported_syntax", put("/stages/1/value/0", "'a'"), "/stages/1/value/0", 1),
    ("chained_comparison", put("/stages/2/updates/0/where", "1 < rx < 3"), "/stages/2/updates/0/where", 1),
    ("unknown_name", put("/stages/2/updates/0/domain/rx/1", "imag.extent.x"), "/stages/2/updates/0/domain/rx/1", 1),
    ("unknown_name", put("/stages/0/value", "blur(x, z)[0]"), "/stages/0/value", 9),
    ("unknown_function", put("/stages/0/value", "1.0 + blurr(x, y)[0]"), "/stages/0/value", 7),
    ("wrong_arity", put("/stages/0/value", "1.0 + soft(x)"), "/stages/0/value", 7),
    ("wrong_arguments", put("/stages/0/value", "lerp(1.0, 2.0)"), "/stages/0/value", 1),
    ("tuple_needs_component", put("/stages/0/value", "blur(x, y)"), "/stages/0/value", 1),
    (
        "tuple_needs_component",
        put("/stages/1/value/0", "argmin(soft(r, y) for r in range(0, 3))"),
        "/stages/1/value/0",
        1,
    ),
    ("not_a_tuple", put("/stages/0/value", "soft(x, y)[0]"), "/stages/0/value", 1),
    ("bad_component", put("/stages/0/value", "blur(x, y)[2]"), "/stages/0/value", 12),
    ("type_error", put("/stages/0/value", "x / y"), "/stages/0/value", 1),
    ("type_mismatch", put("/stages/2/type", "int32"), "/stages/2/value", 1),
    ("type_mismatch", put("/stages/1/type", ["float32"]), "/stages/1/type", None),
    ("type_mismatch", put("/stages/1/type", ["float32", "int8"]), "/stages/1/value/1", 1),
    ("type_mismatch", put("/stages/2/updates/1/value", "r"), "/stages/2/updates/1/value", 1),
    ("literal_out_of_range", put("/stages/0/value", "image(x, y, 0) + 256"), "/stages/0/value", 18),
    ("literal_out_of_range", put("/stages/2/updates/2/value", 10**40), "/stages/2/updates/2/value", 1),
    ("literal_out_of_range", put("/stages/0/value", "9" * 5000), "/stages/0/value", None),
    ("bad_exponent", put("/stages/0/value", "x ** y"), "/stages/0/value", 6),
    ("bad_shift", put("/stages/0/value", "x << 32"), "/stages/0/value", 6),
    ("bad_bounds", put("/stages/2/updates/0/domain/rx/1", "i"), "/stages/2/updates/0/domain/rx/1", 1),
    ("empty_range", put("/stages/2/updates/1/domain/r/1", 0), "/stages/2/updates/1/domain/r/1", None),
    ("bad_predicate", put("/stages/2/updates/0/where", "rx"), "/stages/2/updates/0/where", 1),
    ("unbounded_index", put("/stages/0/value", "0.5 * image(int32(soft(x, y)), y, 0)"), "/stages/0/value", 13),
    ("unbounded_index", put("/stages/2/updates/0/at/0", "hist(rx)"), "/stages/2/updates/0/at/0", 1),
    # Stages
    ("self_read", put("/stages/0/value", "0.5 + last(x, y - 1)"), "/stages/0/value", 7),
    ("cycle", put("/stages/2/value", "uint32(last(0, 0))"), "/stages/0", None),
    ("bad_update", put("/stages/2/updates/1/at", ["r", "r"]), "/stages/2/updates/1/at", None),
    ("bad_update", put("/stages/2/updates/1/value", ["hist(r)", "1"]), "/stages/2/updates/1/value", None),
    ("bad_update", put("/stages/2/updates/1/value", "hist(r) + uint32(i)"), "/stages/2/updates/1/at/0", None),
    (
        "bad_update",
        put("/stages/2/updates/1", {"domain": {}, "at": ["i"], "value": "hist(i - 1)"}),
        "/stages/2/updates/1/value",
        None,
    ),
    # Limits
    ("limit_exceeded", put("/stages/0/dims", list("abcdef")), "/stages/0/dims", None),
    ("limit_exceeded", put("/inputs/0/dims", list("abcdef")), "/inputs/0/dims", None),
    ("limit_exceeded", put("/stages/0/value", ["1"] * 17), "/stages/0/value", None),
    ("limit_exceeded", put("/stages/2/updates/2/at", ["1"] * 6), "/stages/2/updates/2/at", None),
    (
        "limit_exceeded",
        put("/stages/2/updates/2/domain", {f"r{i}": [0, 2] for i in range(9)}),
        "/stages/2/updates/2/domain",
        None,
    ),
    ("limit_exceeded", put("/stages/2/updates", [GOOD["stages"][2]["updates"][2]] * 257), "/stages/2/updates", None),
    (
        "limit_exceeded",
        put("/stages/0/value", f"sum(1 {' '.join(f'for r{i} in range(2)' for i in range(9))})"),
        "/stages/0/value",
        5,
    ),
    ("limit_exceeded", put("/params", [GOOD["params"][0]] * 257), "/params", None),
    ("limit_exceeded", put("/stages", [GOOD["stages"][0]] * 10_001), "/stages", None),
    ("expression_too_large", put("/stages/0/value", "x + " * 20_000 + "x"), "/stages/0/value", None),
    ("expression_too_large", put("/stages/0/value", f"random({'x,' * 20_001})"), "/stages/0/value", None),
    ("expression_too_deep", put("/stages/0/value", "(" * 201 + "x" + ")" * 201), "/stages/0/value", 191),
    ("expression_too_deep", put("/stages/0/value", "x" + " + x" * 700), "/stages/0/value", 1),
]


@pytest.mark.parametrize(("code", "change", "place", "column"), TABLE)
def test_errors(code: str, change: Callable[[Document], object], place: str, column: int | None) -> None:
    found = problems(changed(change))
    assert (code, place, column) in [(p.code, p.pointer, p.column) for p in found], found


TEXTS: list[tuple[str, str | bytes, bool | None, dict[str, int]]] = [
    ("bad_encoding", b'{"name": "\xff"}', None, {}),
    ("bad_json", '{"format": 1,}', None, {}),
    ("bad_json", "", False, {}),
    ("bad_json", '{"format": 1} {}', None, {}),
    ("bad_yaml", "format: [1", None, {}),
    ("bad_yaml", "a: !!python/object/apply:os.system [ls]", None, {}),
    ("bad_yaml", "a: &a [1]\nb: *a", None, {}),
    ("bad_yaml", "<<: {a: 1}", None, {}),
    ("bad_yaml", "? [a]\n: 1", None, {}),
    ("bad_yaml", "a: !!binary aGk=", None, {}),
    ("bad_yaml", "a: 1\n--- \nb: 1", None, {}),
    ("bad_yaml", "a: \x01", None, {}),
    ("bad_number", '{"a": NaN}', None, {}),
    ("bad_number", '{"a": -Infinity}', None, {}),
    ("bad_number", '{"a": ' + "9" * 5000 + "}", None, {}),
    ("bad_number", "a: .inf", None, {}),
    ("duplicate_key", '{"a": {"b": 1, "b": 2}}', None, {}),
    ("duplicate_key", "a: 1\na: 2", None, {}),
    ("document_too_large", "{" + " " * 100 + "}", None, {"document_bytes": 50}),
    ("document_too_large", "a:" + " " * 100, None, {"yaml_bytes": 50}),
    ("document_too_deep", "[" * 100_000 + "]" * 100_000, None, {}),
    ("document_too_deep", "[" * 100 + "]" * 100, None, {}),
    ("document_too_deep", "a: " + "[" * 100 + "]" * 100, None, {}),
    ("bad_type", "[1, 2]", None, {}),
    ("bad_type", "just words", None, {}),
    ("bad_type", "", True, {}),
]


@pytest.mark.parametrize(("code", "text", "yaml", "limits"), TEXTS)
def test_texts(code: str, text: str | bytes, yaml: bool | None, limits: dict[str, int]) -> None:
    assert code in [p.code for p in text_problems(text, yaml, **limits)]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "Infinity"])
def test_a_number_that_is_none_is_found_where_it_stands(number: str) -> None:
    (problem,) = text_problems(f'{{"a": [1, {{"b": {number}}}], "c": NaN, "c": 2}}', False)
    assert (problem.code, problem.pointer) == ("bad_number", "/a/1/b")


def test_the_tables_have_every_code() -> None:
    assert {code for code, *_ in TABLE} | {code for code, *_ in TEXTS} == set(CODES)


def test_every_problem_at_once_in_document_order() -> None:
    document = changed(put("/stages/0/value", "nothing(x) + 1"))
    put("/inputs/0/type", "uint12")(document)
    put("/stages/1/value/1", "image(x, y)")(document)
    put("/stages/2/updates/0/where", "rx / ry")(document)
    put("/stages/4/extra", 1)(document)
    del document["name"]
    assert [(p.code, p.pointer) for p in problems(document)] == [
        ("missing_key", ""),
        ("unknown_type", "/inputs/0/type"),
        ("unknown_function", "/stages/0/value"),
        ("type_error", "/stages/2/updates/0/where"),
        ("unknown_key", "/stages/4/extra"),
    ]


def test_a_broken_item_is_not_held_against_its_readers() -> None:
    """Its name is still known, whatever is wrong with it."""
    assert [p.code for p in problems(changed(put("/stages/1/dims", "xy")))] == ["bad_type"]
    assert [p.code for p in problems(changed(put("/stages/1/value/0", "1 +")))] == ["syntax_error"]
    assert [p.code for p in problems(changed(put("/params/0/type", "real")))] == ["unknown_type"]
    assert [p.code for p in problems(changed(put("/stages/1/dims", list("abcdef"))))] == ["limit_exceeded"]


def test_a_declared_type_is_what_readers_see() -> None:
    document = changed(put("/stages/2/value", "int8(0)"))
    assert [(p.code, p.pointer) for p in problems(document)] == [("type_mismatch", "/stages/2/value")]


def test_each_cycle_is_named_once() -> None:
    document = changed(put("/stages", [
        {"name": name, "dims": ["x"], "value": f"{reads}(x) + 1"}
        for name, reads in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "e"), ("e", "c"), ("f", "a"), ("g", "soft"))
    ]))  # fmt: skip
    document |= {"outputs": ["f"], "estimates": {"f": [[0, 9]]}}
    found = problems(document)
    assert [(p.code, p.pointer) for p in found if p.code == "cycle"] == [("cycle", "/stages/0"), ("cycle", "/stages/2")]
    assert "c, d, e" in next(p.message for p in found if p.pointer == "/stages/2")
    assert {p.code for p in found} == {"cycle", "wrong_arity"}


def test_dims_as_domain_variables_are_one_problem() -> None:
    """Whatever else of the update would be wrong were they the dims."""
    change = put("/stages/2/updates/1", {"domain": {"i": [1, 9]}, "at": ["i"], "value": "hist(i - 1) + hist(i)"})
    (problem,) = problems(changed(change))
    assert (problem.code, problem.pointer) == ("shadowed_name", "/stages/2/updates/1/domain/i")


def test_clamps_whose_bounds_are_known_at_run_time_belong_into_the_index() -> None:
    stages = [
        {"name": "at", "dims": ["x"], "value": "clamp(int32(f(x)), 0, f.extent.x - 1)"},
        {"name": "out", "dims": ["x"], "value": "f(at(x))"},
    ]
    document = {
        "format": 1, "name": "moved", "inputs": [{"name": "f", "type": "float32", "dims": ["x"]}], "stages": stages,
        "outputs": ["out"], "estimates": {"out": [[0, 64]]},
    }  # fmt: skip
    (problem,) = problems(document)
    assert problem.code == "unbounded_index"
    assert problem.hint is not None
    assert "known at run time only" in problem.hint
    stages[1]["value"] = "f(clamp(at(x), 0, f.extent.x - 1))"
    assert load(document).stages[1].name == "out"


def test_hints() -> None:
    hints = {
        p.code: p.hint
        for p in (
            *problems(changed(put("/stages/0/vlaue", "1"))),
            *problems(changed(put("/outputs/0", "lasst"))),
            *problems(changed(put("/inputs/0/type", "unit8"))),
            *problems(changed(put("/inputs/1/boundary/kind", "mirror_interor"))),
            *problems(changed(put("/stages/0/value", "blurr(x, y)[0]"))),
            *problems(changed(drop("/estimates/last"))),
        )
    }
    assert hints == {
        "unknown_key": "did you mean 'value'?",
        "unknown_output": "did you mean 'last'?",
        "unknown_type": "did you mean 'uint8'?",
        "unknown_kind": "did you mean 'mirror_interior'?",
        "unknown_function": "did you mean 'blur'?",
        "missing_estimate": 'add "last": [[0, 1920], [0, 1080]], the size that you expect',
    }


def test_what_is_declared_wrong_is_still_what_was_meant() -> None:
    wrong = {**changed(put("/inputs/0/type", "unit8"))}
    name = wrong["inputs"][0]["name"]
    wrong["stages"][0]["value"] = f"{name}x(x, y)"
    assert f"did you mean {name!r}?" in [p.hint for p in problems(wrong)]


def test_a_key_like_no_other_is_told_all_there_are() -> None:
    (problem,) = problems(changed(put("/inputs/0/pixels", 1)))
    assert problem.hint == "the keys here are name, type, dims, boundary, storage, region, values"


def test_messages_are_sentences_and_short() -> None:
    for _, change, _, _ in TABLE:
        for p in problems(changed(change)):
            assert re.match(r"[A-Z'\"]|[a-z0-9_]+\(", p.message), p
            assert p.message.endswith("."), p
            assert len(str(p)) < 500, p
            assert "\n" not in p.message, p


def test_c_keywords_are_ordinary_names() -> None:
    document = changed(put("/stages/3/name", "double"))
    put("/outputs/2", "double")(document)
    put("/estimates/double", document["estimates"].pop("best"))(document)
    put("/stages/4/value", "image(x, y, c) + uint8(double()[0])")(document)
    assert load(document | {"name": "register"}).stage("double").dims == ()


def test_a_list_of_one_is_no_tuple() -> None:
    assert load(changed(put("/stages/0/value", ["soft(x, y)"]))) == load(changed(put("/stages/0/value", "soft(x, y)")))


def test_numbers_may_stand_for_expressions() -> None:
    assert load(changed(put("/stages/0/value", 3))) == load(changed(put("/stages/0/value", "3")))
    assert load(changed(put("/stages/0/value", -0.5))) == load(changed(put("/stages/0/value", "-0.5")))


def test_the_order_of_stages_and_estimates_does_not_matter() -> None:
    document = copy.deepcopy(GOOD)
    document["stages"].reverse()
    document["estimates"] = dict(reversed(document["estimates"].items()))
    assert canonical_json(load(document)) == canonical_json(load(GOOD))


def test_the_order_of_a_domain_does() -> None:
    document = copy.deepcopy(GOOD)
    update = document["stages"][2]["updates"][0]
    update["domain"] = dict(reversed(update["domain"].items()))
    assert load(document) != load(GOOD)


def test_load_leaves_the_document_alone() -> None:
    document = copy.deepcopy(GOOD)
    load(document)
    put("/stages/4/extra", 1)(document)
    before = copy.deepcopy(document)
    problems(document)
    assert document == before


def test_yaml_and_json_are_the_same() -> None:
    import yaml

    assert load_text(yaml.safe_dump(GOOD, sort_keys=False)) == load(GOOD)
    assert load_text(json.dumps(GOOD).encode("utf-8-sig")) == load(GOOD)
    assert load_text(json.dumps(GOOD), yaml=True) == load(GOOD)


def test_updates_see_the_dims_that_stay_in_place() -> None:
    stage = {
        "name": "scan", "dims": ["x", "y"], "value": "soft(x, y)",
        "updates": [
            {"domain": {"r": [1, "soft.extent.y - 1"]}, "at": ["x", "r"], "value": "scan(x, r - 1) + scan(x, r)"},
        ],
    }  # fmt: skip
    document = changed(lambda d: d["stages"].append(stage))
    assert load(document).stage("scan").updates[0].domain[0].name == "r"


def test_too_many_problems_stop_the_work() -> None:
    document = changed(put("/stages", [{"name": f"s{i}", "dims": [], "value": "lost"} for i in range(2000)]))
    assert len(problems(document)) == Limits().problems


def test_declarations_that_are_refused_are_read_on_from():
    """Problems of the rest are told, too, beside a range that is none and a dim that is there twice."""
    f = {"name": "f", "dims": ["x", "x"], "value": "0", "updates": [{"domain": {}, "at": ["x"], "value": "f(x)"}]}
    g = {"name": "g", "dims": ["x"], "value": "image(int32(float32(x) / gain))"}
    document = {
        "format": 1,
        "name": "twice",
        "params": [{"name": "gain", "type": "float32", "default": 0.5, "min": 0.5, "max": 0.0}],
        "inputs": [{"name": "image", "type": "uint8", "dims": ["x"]}],
        "stages": [f, g],
        "outputs": ["f", "g"],
    }
    with pytest.raises(DocumentError) as error:
        load(document)
    found = {(p.code, p.pointer) for p in error.value.problems}
    assert {
        ("bad_param", "/params/0/min"),
        ("duplicate_name", "/stages/0/dims/1"),
        ("bad_update", "/stages/0/updates/0/at"),
    } <= found
