"""Integer narrowing: the same values in fewer bits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Cast, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.narrow_integers import narrowed
from tilesmith.scheduler.rewrites.scaled_terms import with_fields

INPUTS = ("uint8", "int8", "uint16", "int16", "uint32", "int32")


def pipeline_of(value: str, *stages: str, type: str = "uint8") -> Pipeline:
    """The output `out` of that value; stages `s0`, `s1`, ... before it; inputs `a` and `b`, a param `n` of 0 to 9."""
    values = {**{f"s{n}": v for n, v in enumerate(stages)}, "out": value}
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [{"name": name, "type": type, "dims": ["x"]} for name in ("a", "b")],
            "params": [{"name": "n", "type": "int32", "min": 0, "max": 9, "default": 3}],
            "stages": [{"name": name, "dims": ["x"], "value": v} for name, v in values.items()],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]]},
        }
    )


def texts(pipeline: Pipeline) -> dict[str, str]:
    return {s.name: to_text(s.values[0]) for s in pipeline.stages}


NARROWED = [
    ("uint32(a(x)) + 2 * uint32(b(x))", "uint32(int16(a(x)) + 2 * int16(b(x)))"),
    ("(int32(a(x)) + int32(b(x)) + 1) >> 1", "int32(int16(a(x)) + int16(b(x)) + 1 >> 1)"),
    ("(int32(a(x)) * 3 + int32(b(x))) // 3", "int32(int16((uint16(a(x)) * 3 + uint16(b(x))) // 3))"),
    ("uint8((uint32(a(x)) * 200 + uint32(b(x)) * 57) >> 8)", "uint8(uint16(a(x)) * 200 + uint16(b(x)) * 57 >> 8)"),
    ("uint32(a(x)) * 4899 >> 14", "uint32(int32(a(x)) * 4899 >> 14)"),
    ("uint8(int32(a(x)) + int32(b(x)))", "a(x) + b(x)"),
    ("uint8(int32(a(x)) * int32(b(x)))", "uint8(int16(a(x)) * int16(b(x)))"),
    ("float32(int32(a(x)) - int32(b(x)))", "float32(int16(a(x)) - int16(b(x)))"),
    ("max(int32(a(x)), int32(b(x)))", "int32(max(a(x), b(x)))"),
    ("abs(int32(a(x)) - int32(b(x)))", "int32(abs(int16(a(x)) - int16(b(x))))"),
    ("int32(a(x)) if int32(a(x)) < int32(b(x)) else 7", "int32(select(a(x) < b(x), a(x), 7))"),
    ("sat_uint8(int32(a(x)) * 2 - 9)", "sat_uint8(int16(a(x)) * 2 - 9)"),
    ("uint8(int32(a(x)) * n >> 4)", "uint8(int16(a(x)) * int16(n) >> 4)"),
    # to convert the result takes as much as to convert what is read
    ("int32(a(x)) * n", "int32(a(x)) * n"),
    ("sum(int32(a(x + r)) * r for r in range(4))", "int32(sum(int16(a(x + r)) * int16(r) for r in range(4)))"),
    # counts of bytes are bytes, where they fit
    (
        "sum(1 if a(x + r) < b(x) else 0 for r in range(255))",
        "int32(sum((uint8(1) if a(x + r) < b(x) else uint8(0)) for r in range(255)))",
    ),
    (
        "sum(1 if a(x + r) < b(x) else 0 for r in range(256))",
        "int32(sum(int16(uint8(1) if a(x + r) < b(x) else uint8(0)) for r in range(256)))",
    ),
    # of what is wider vectors have fewer lanes
    (
        "sum(1 if float32(a(x + r)) < sqrt(float32(b(x))) else 0 for r in range(9))",
        "int32(sum(int16(uint8(1) if float32(a(x + r)) < sqrt(float32(b(x))) else uint8(0)) for r in range(9)))",
    ),
    ("float32(uint32(a(x)) * 70000)", "float32(int32(a(x)) * 70000)"),
    # terms of a sum that stays wide stay products of what is short
    ("int32(a(x)) * 2 + int32(b(x)) * 9000", "int32(a(x)) * 2 + int32(b(x)) * 9000"),
    # factors that are differences are short, too, though each reads one element
    (
        "(int32(a(x)) - 128) * (int32(b(x)) - n) + int32(b(x)) * 9000",
        "int32(int16(a(x)) - 128) * int32(int16(b(x)) - int16(n)) + int32(b(x)) * 9000",
    ),
    (
        "sum((int32(a(x + r)) - 128) * (int32(b(r)) - 40) for r in range(9))",
        "sum(int32(int16(a(x + r)) - 128) * int32(int16(b(r)) - 40) for r in range(9))",
    ),
    # but those of a product that there is none to pair with
    ("(int32(a(x)) - 128) * 400 + 9", "(int32(a(x)) - 128) * 400 + 9"),
    ("(int32(a(x)) - 128) * 400 - int32(b(x)) * 300", "(int32(a(x)) - 128) * 400 - int32(b(x)) * 300"),
    (
        "sum((int32(a(x + r)) - 128) * (int32(b(r)) - 40000) for r in range(99))",
        "sum((int32(a(x + r)) - 128) * (int32(b(r)) - 40000) for r in range(99))",
    ),
    # a sum in it without products is made wider once
    (
        "uint32(1 if a(x) < 9 else 0) + uint32(2 if b(x) < 9 else 0) + uint32(70000 if a(x) < b(x) else 0)",
        "uint32(int32((uint8(1) if a(x) < 9 else uint8(0)) + (uint8(2) if b(x) < 9 else uint8(0)))"
        " + (70000 if a(x) < b(x) else 0))",
    ),
    # places are no values
    ("int32(a(x)) + x % 4", "int32(a(x)) + x % 4"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "after"), NARROWED, ids=[v for v, _ in NARROWED])
def test_an_expression_is_as_narrow_as_its_values(value: str, after: str) -> None:
    assert texts(narrowed(pipeline_of(value)))["out"] == to_text(pipeline_of(after).stage("out").values[0])


def test_parts_of_a_pattern_of_bits_are_bytes() -> None:
    """Whatever the order of the terms; one alone stays, and so do those of which no byte is 0."""
    bits = [f"(uint32({c}) if a(x + {n}) < b(x) else uint32(0))" for n, c in enumerate((512, 1, 256, 2, 65536), 1)]
    text = texts(narrowed(pipeline_of(" + ".join(bits))))["out"]
    assert "select(a(x + 1) < b(x), uint8(2), uint8(0)) + select(a(x + 3) < b(x), uint8(1), uint8(0))) << 8" in text
    assert "select(a(x + 2) < b(x), uint8(1), uint8(0)) + select(a(x + 4) < b(x), uint8(2), uint8(0))" in text
    odd = pipeline_of(" + ".join(bits).replace("256", "257"))
    assert with_fields(odd.stage("out")) is odd.stage("out")


@pytest.mark.parametrize("seed", range(3))
def test_random_patterns_of_bits_keep_their_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = {name: Image(rng.integers(0, 256, 80, np.uint8), (0,)) for name in ("a", "b")}
    for _ in range(10):
        t = str(rng.choice(["int32", "uint32", "int64"]))
        pairs = rng.integers(-9, 200, (12, 2)) << rng.integers(0, 20, (12, 1))
        terms = [f"({t}({n}) if a(x + {k}) < {3 * n % 250} else {t}({m}))" for k, (n, m) in enumerate(pairs.tolist())]
        of = pipeline_of(" + ".join([*terms, f"{t}(b(x))"]))
        one, other = (interpret(p, images, {"n": 4}, {"out": ((0, 64),)})["out"][0] for p in (of, narrowed(of)))
        np.testing.assert_array_equal(one, other, err_msg=str(texts(of)))


def test_a_stage_between_is_kept_in_few_bits() -> None:
    found = narrowed(pipeline_of("s0(x) + s0(x + 1)", "(uint32(a(x)) * 100 + uint32(b(x)) * 27) >> 7"))
    assert texts(found) == {
        "s0": "int16(a(x)) * 100 + int16(b(x)) * 27 >> 7",
        "out": "uint32(s0(x) + s0(x + 1))",
    }


def test_what_was_made_wider_once_is_not_made_so_wherever_it_is_read() -> None:
    found = narrowed(pipeline_of("s0(x) + s0(x + 1)", "int32(a(x))"))
    assert texts(found) == {"s0": "int16(a(x))", "out": "int32(s0(x) + s0(x + 1))"}
    short = pipeline_of("s0(x) + s0(x + 1)", "uint16(a(x))")
    assert narrowed(short) is short


def test_what_outputs_and_indices_are_keeps_its_type() -> None:
    of = pipeline_of("int32(a(s0(x))) + 1", "int32(b(x)) % 16")
    found = narrowed(of)
    assert [s.types for s in found.stages] == [s.types for s in of.stages]
    reads = [e for e in walk(found.stage("out").values[0]) if isinstance(e, Access) and e.name == "a"]
    assert [to_text(i) for e in reads for i in e.indices] == ["s0(x)"]


def test_what_is_there_twice_stays_one() -> None:
    of = pipeline_of("(uint32(a(x)) * uint32(b(x)) + 128) >> 8")
    (out,) = of.stages
    (value,) = out.values
    twice = replace(out, values=(Binary("+", value, value, value.type),))
    found = narrowed(replace(of, stages=(twice,))).stages[0].values[0]
    assert isinstance(found, Cast)
    assert isinstance(found.operand, Binary)
    assert found.operand.left is found.operand.right


OPERATIONS = [
    "{p} + {q}", "{p} - {q}", "{p} * {q}", "{p} & {q}", "{p} | {q}", "{p} ^ {q}", "~{p}", "{p} << 3", "{p} >> 3",
    "{p} // 7", "{p} % 7", "min({p}, {q})", "max({p}, {q})", "clamp({p}, 3, 90)", "abs({p})", "absd({p}, {q})",
    "select({p} < {q}, {p}, {q})", "mux({p}, {q}, {p}, 5)",
    "sum({p} for {r} in range(3))", "max({p} for {r} in range(3))", "sat_add({p}, {q})", "halving_add({p}, {q})",
]  # fmt: skip
WIDE = ("int16", "uint16", "int32", "uint32", "int64")
LEAVES = ("{t}(a(x))", "{t}(b(x))", "{t}(a(x + 1))", "{t}(5)", "{t}(250)", "{t}(sat_int8(b(x)))", "{t}(n)")
ENDS = ("{e}", "uint8({e})", "int8({e})", "sat_uint8({e})", "int16({e})", "float32({e})", "{e} > {t}(9)")


def some_value(rng: np.random.Generator) -> tuple[str, str]:
    """An expression of several operations in one type, converted in the end; that type."""
    t = str(rng.choice(WIDE))
    parts = [str(rng.choice(LEAVES)).format(t=t) for _ in range(3)]
    for n in range(rng.integers(1, 6)):
        p, q = rng.choice(parts, 2)
        parts.append("(" + str(rng.choice(OPERATIONS)).format(p=p, q=q, r=f"r{n}") + ")")
        if len(parts[-1]) > 300:
            break
    return str(rng.choice(ENDS)).format(e=parts[-1], t=t), t


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_keep_their_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    changed = 0
    for _ in range(40):
        type = str(rng.choice(INPUTS, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]))
        (first, t), (second, _) = some_value(rng), some_value(rng)
        of = pipeline_of(f"{t}(s0(x)) + {t}(s0(x + 1))" if rng.random() < 0.5 else second, f"{first}", type=type)
        if of.stage("s0").types[0].kind == "bool":
            continue
        found = narrowed(of)
        assert narrowed(found) is found
        assert found.stage("out").types == of.stage("out").types
        changed += found is not of
        ends = np.iinfo(type)
        images = {name: Image(rng.integers(ends.min, ends.max, 80, type, endpoint=True), (0,)) for name in ("a", "b")}
        for image in images.values():
            image.array[:4] = ends.min, ends.max, 0, 1
        with np.errstate(all="ignore"):
            one, other = (interpret(p, images, {"n": 4}, {"out": ((0, 64),)})["out"][0] for p in (of, found))
        np.testing.assert_array_equal(one, other, err_msg=f"{texts(of)} {texts(found)}")
    assert changed > 10


@pytest.mark.parametrize(("type", "wide"), [("uint8", "int32"), ("uint8", "uint32"), ("int8", "uint16")])
def test_all_bytes(type: str, wide: str) -> None:
    """Brute force: each operation on every byte and every eleventh, and what is made of its results."""
    values = np.arange(256, dtype=np.uint8).view(type)
    a, b = (np.array(v, type) for v in zip(*product(values, values[::11]), strict=True))
    images = {"a": Image(np.append(a, a[:1]), (0,)), "b": Image(np.append(b, b[:1]), (0,))}
    for text in OPERATIONS:
        e = text.format(p=f"({wide}(a(x)) * 3 - {wide}(b(x)))", q=f"({wide}(b(x)) + 7)", r="r")
        for end in ("{e}", "uint8({e})", "sat_int8({e})"):
            of = pipeline_of(end.format(e=e), type=type)
            region = {"out": ((0, len(a)),)}
            with np.errstate(all="ignore"):
                one, other = (interpret(p, images, {"n": 0}, region)["out"][0] for p in (of, narrowed(of)))
            np.testing.assert_array_equal(one, other, err_msg=f"{end.format(e=e)} {texts(narrowed(of))}")
