"""Masks of vectors that have a bit for each lane, and the same C where they are vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build, compiled, source_of
from support.rows import of_types, rows
from support.tools import require_compiler

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c import masks
from tilesmith.scheduler.codegen.c.vector_functions import Functions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector

BYTES = 64
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")
BITS, VECTORS = ("-O1",), ("-O1", "-mno-avx512vl")
"""Flags with which masks are bits, and with which they are vectors."""


def pipeline_of(value: str, types: Mapping[str, str]) -> Pipeline:
    inputs = [{"name": name, "type": type_, "dims": ["x"]} for name, type_ in types.items()]
    stages = [{"name": "out", "dims": ["x"], "value": value}]
    estimates = {"out": [[0, 4096]]}
    return load(
        {"format": 1, "name": "masks", "inputs": inputs, "stages": stages, "outputs": ["out"], "estimates": estimates}
    )


def source(pipeline: Pipeline, lanes: int, strict: bool = False) -> CSource:
    group = Group("out", ("x.inner",), (), None, Vector("x", lanes), (), ())
    return source_of(pipeline, Schedule("masks", "by hand", (group,), strict), machine(vector_bytes=BYTES))


def test_functions_of_masks_have_one_order() -> None:
    """Types of masks have one name whatever their bits: the order was that of a set, by Python's hash seed."""
    functions, every = Functions(False, BYTES, "x86_64"), [(n, bits) for n in (2, 4, 8, 16) for bits in (8, 16, 32)]
    for n, bits in every:
        functions.ask(masks.resized(64), masks.mask_of(bits), n)
    found = re.findall(r" ts_resized_64_b(\d+)x(\d+)\(", "\n".join(functions.text()))
    assert [(int(n), int(bits)) for bits, n in found] == every


def image(type_: str, seed: int) -> Image:
    """Small numbers, many of them alike, and the ends of the type."""
    random = np.random.default_rng(seed)
    if type_ == "bool":
        return Image(random.integers(0, 2, 203) > 0, (0,))
    t = np.dtype(type_)
    ends = [np.nan, np.inf, -np.inf, -0.0] if t.kind == "f" else [np.iinfo(t).min, np.iinfo(t).max]
    found = random.integers(0, 4, 203).astype(t)
    found[random.integers(0, 203, 60)] = random.choice(np.array(ends, t), 60)
    return Image(found, (0,))


def check(values: Sequence[tuple[str, Sequence[str]]], lanes: int, flags: tuple[str, ...]) -> None:
    """Values of a(x), b(x) and c(x) of these types, all in one library."""
    named = [of_types(value, types) for value, types in values]
    types = {name: type_ for _, of in named for name, type_ in of.items()}
    pipeline, made = rows([value for value, _ in named], types, lanes, machine(vector_bytes=BYTES))
    images = {name: image(type_, "abc".index(name[0])) for name, type_ in types.items()}
    regions = dict.fromkeys(pipeline.outputs, ((0, 203),))
    status, found = call(build(made, flags, vector_bytes=BYTES), made, pipeline, images, {}, regions)
    assert status == 0
    expected = interpreted(pipeline, images, {}, regions)
    for (value, _), output in zip(named, pipeline.outputs, strict=True):
        if expected[output][0].dtype.kind == "f":  # the sign of a 0 may differ
            np.testing.assert_array_equal(found[output][0], expected[output][0], err_msg=value)
        else:
            assert found[output][0].tobytes() == expected[output][0].tobytes(), value


@pytest.mark.parametrize("flags", [BITS, VECTORS], ids=["bits", "vectors"])
@pytest.mark.parametrize("types", [TYPES[:5], TYPES[5:]])
def test_comparisons(types: Sequence[str], flags: tuple[str, ...]) -> None:
    ops = ("<", "<=", "==", "!=", ">=", ">")
    check([(f"select(a(x) {op} b(x), a(x), c(x))", [type_] * 3) for type_ in types for op in ops], 8, flags)


CHOICES = (
    ("select(a(x) < b(x), c(x), 0.5)", ("uint8", "uint8", "float32")),
    ("select(a(x) < b(x), c(x), uint8(7))", ("float64", "float64", "uint8")),
    ("select(a(x) < b(x) and not (b(x) == a(x) or c(x) > 2.0), a(x), b(x))", ("int16", "int16", "float32")),
    ("a(x) < b(x)", ("uint16", "uint16", "uint16")),
    ("(a(x) < b(x)) == (b(x) < c(x))", ("int32", "int32", "int32")),
    ("(a(x) < b(x)) != (b(x) < c(x))", ("int8", "int8", "int8")),
    ("select(c(x), a(x), b(x))", ("int64", "int64", "bool")),
    ("select(c(x), a(x) < b(x), a(x) == b(x))", ("uint8", "uint8", "bool")),
    ("int32(a(x) < b(x)) + int32(b(x) < c(x))", ("uint8", "uint8", "uint8")),
    ("float32(a(x) < b(x)) * c(x)", ("uint8", "uint8", "float32")),
    ("select(a(x) > b(x), 0, c(x))", ("float32", "float32", "int32")),
    ("a(x) + select(b(x) < c(x), b(x), 0)", ("int32", "int32", "int32")),
    ("a(x) + select(b(x) < c(x), b(x) * c(x), 0.0)", ("float32", "float32", "float32")),
    ("select(bool(a(x)) and b(x) < c(x), 1, 2)", ("uint8", "float32", "float32")),
    ("select(a(min(2 * x, 202)) and b(x) < c(x), 1, 2)", ("bool", "float32", "float32")),
)


@pytest.mark.parametrize(
    ("lanes", "flags"), [(2, BITS), (4, VECTORS), (8, BITS), (16, VECTORS), (32, BITS), (64, VECTORS)]
)
def test_choices(lanes: int, flags: tuple[str, ...]) -> None:
    check(CHOICES, lanes, flags)


@pytest.mark.parametrize(
    ("value", "instructions"),
    [
        ("select(a(x) < b(x), a(x) * b(x), a(x) + b(x))", ("vaddps", "vmulps")),
        ("select(a(x) < b(x), a(x) * b(x), b(x))", ("vmulps",)),
        ("a(x) + select(a(x) < b(x), b(x), 0.0)", ("vaddps",)),
    ],
)
def test_what_is_chosen_is_computed_under_the_mask(value: str, instructions: tuple[str, ...]) -> None:
    """Not joined with an `or` of what is computed with zeros, as GCC does it by itself."""
    made = source(pipeline_of(value, {"a": "float32", "b": "float32"}), 16)
    lines = disassembled(made)
    masked = [line for line in lines if "{%k" in line]
    assert {line.split()[0] for line in masked} <= set(instructions)
    assert masked
    assert not any(line.split()[0] in ("vporq", "vpord", "vorps", "knotw") for line in lines)


def test_strict_sums_of_floats_add_zeros() -> None:
    value = "a(x) + select(b(x) < 1.0, b(x), 0.0)"
    pipeline = pipeline_of(value, {"a": "float32", "b": "float32"})
    assert "ts_chosen_f32x16" not in source(pipeline, 16, strict=True).code
    assert "ts_chosen_f32x16" in source(pipeline, 16).code


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        ("select(a(x) < b(x), a(x), b(x))", True),
        ("select(a(x) < b(x) and not a(x) == 1.0, a(x), b(x))", True),
        ("select(a(x) < b(x), a(x), 0.0)", False),
        ("float32(a(x) < b(x)) * 3.0 + select(a(x) < b(x), a(x), b(x))", False),
        ("select(a(x) < b(x), a(x), b(x)) * select(a(x) < b(x) and a(x) < 1.0, a(x), 0.0)", True),
        ("select(a(x) < b(x), b(x), 0.0) * select(a(x) < b(x) and a(x) < 1.0, a(x), 0.0)", False),
    ],
)
def test_masks_that_only_zeros_are_chosen_by_stay_vectors(value: str, bits: bool) -> None:
    """Choices that GCC makes well by itself."""
    code = source(pipeline_of(value, {"a": "float32", "b": "float32"}), 16).code
    assert ("ts_chosen_f32x16" in code) == ("ts_lt_f32x16" in code) == bits


def disassembled(made: CSource) -> list[str]:
    """The instructions of the C, as GCC's assembly for 64 bytes has them."""
    require_compiler("gcc")
    import subprocess

    library = compiled(made, ("-O3",), vector_bytes=BYTES)
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True)
    return [line.split("\t")[1] for line in text.stdout.splitlines() if line.count("\t") == 1]


@pytest.mark.parametrize("lanes", [4, 8])
def test_masks_of_shorter_elements_are_halved_step_by_step(lanes: int) -> None:
    """Bytes chosen by comparisons of longer elements: of vectors shorter than a register GCC takes lane by lane what
    is not halved."""
    value = "select(a(x) < b(x), uint8(255), uint8(7))"
    check([(value, (type_, type_)) for type_ in ("float64", "float32", "int32", "uint16")], lanes, VECTORS)
    group = Group("out", ("x.inner",), (), None, Vector("x", lanes), (), ())
    pipeline = pipeline_of(value, {"a": "float32", "b": "float32"})
    code = source_of(pipeline, Schedule("masks", "by hand", (group,)), machine(vector_bytes=32)).code
    assert re.search(rf"convertvector\(__builtin_convertvector\(\w+, i16x{lanes}\), i8x{lanes}\)", code)
