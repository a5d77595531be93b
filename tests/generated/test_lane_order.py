"""Bytes that are computed in longer elements and become bytes again, in whatever order their lanes are meanwhile: the
same values, for registers of every length and both compilers."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.buffers import invoke, view
from support.interpreted import interpreted
from support.machines import machine
from support.native import build, source_of
from support.tools import require_tool

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.codegen.c.integer_functions import PACKED_BY_PARTS, definition
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import UINT8
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector

WIDTH, HEIGHT = 203, 3
VECTORS = (("uint8_t", "u8x32"), ("int16_t", "i16x16"))
VALUES = {
    "floats": ("uint8", "sat_uint8(float32(image(x, y)) * 1.5 + 0.5)"),
    "shorts": ("uint8", "uint8((uint16(image(x, y)) * 200 + 100) // 256)"),
    "low bits": ("uint8", "uint8(int32(image(x, y)) * 77 + 5)"),
    "signed low bits": ("uint8", "int8(int32(image(x, y)) * 77 - 5)"),
    "unsigned low bits": ("uint8", "uint8(uint32(image(x, y)) * 0x1020305)"),
    "saturated": ("uint8", "sat_int8(int16(image(x, y)) * 3 - 100)"),
    "with a sign": ("int8", "sat_uint8(float32(image(x, y)) * 2.0)"),
    "words": ("uint16", "uint16((int32(image(x, y)) * 3 + 70000) // 4)"),
    "words with a sign": ("int16", "sat_int16(int32(image(x, y)) * 3 - 4)"),
    "floats of words": ("uint16", "sat_uint16(float32(image(x, y)) * 0.75)"),
    "pairs": ("uint8", "uint8((int32(image(x, y)) * 77 + int32(image(x + 1, y)) * 150 + image(x + 2, y) * 9) >> 8)"),
    "turned": ("uint8", "sat_uint8(float32(image(x // 4 * 4 + 3 - x % 4, y)) * 0.5)"),
    "two lengths": ("uint8", "sat_uint8(float32(uint16(image(x, y)) * uint16(image(x + 1, y)) // 256) * 1.25)"),
    "chosen": ("uint8", "uint8(select(image(x, y) > 100, int32(image(x, y)) * 3 // 4, int32(image(x, y)) // 2))"),
    "both": ("uint8", "uint8(int16(image(x, y)) * 3 // 4) + uint8(float32(image(x, y)) * 0.25)"),
}  # fmt: skip


def pipeline_of(*names: str) -> Pipeline:
    """A pipeline of values of one type, each an output."""
    ((type_, *_), *_) = values = [VALUES[name] for name in names]
    outputs = [f"out{n}" for n in range(len(names))]
    return load(
        {
            "format": 1,
            "name": "order",
            "inputs": [{"name": "image", "type": type_, "dims": ["x", "y"]}],
            "stages": [{"name": o, "dims": ["x", "y"], "value": v} for o, (_, v) in zip(outputs, values, strict=True)],
            "outputs": outputs,
            "estimates": {o: [[0, 640], [0, 480]] for o in outputs} | {"image": [[0, 644], [0, 480]]},
        }
    )


def source_for(pipeline: Pipeline, vector_bytes: int) -> CSource:
    """C with vectors of which one register has all that are in memory."""
    lanes = vector_bytes // pipeline.inputs[0].type.bytes
    groups = tuple(Group(o, ("x.inner", "y.inner"), (), None, Vector("x", lanes), (), ()) for o in pipeline.outputs)
    return source_of(pipeline, Schedule("order", "by hand", groups), machine(vector_bytes=vector_bytes))


SIZES = (16, 32, 64)
TYPES = sorted({type_ for type_, _ in VALUES.values()})
BUILDS = (("gcc", ("-O0",)), ("gcc", ("-O1",)), ("clang", ("-O1",)))
"""Compilers with flags, each of which has every size of registers and every type."""


@pytest.mark.parametrize(
    ("type_", "vector_bytes", "compiler", "flags"),
    [(t, size, *BUILDS[(k + j) % len(BUILDS)]) for k, t in enumerate(TYPES) for j, size in enumerate(SIZES)],
)
def test_values(type_: str, vector_bytes: int, compiler: str, flags: tuple[str, ...]) -> None:
    names = [name for name, (of, _) in VALUES.items() if of == type_]
    pipeline = pipeline_of(*names)
    source, t = source_for(pipeline, vector_bytes), pipeline.inputs[0].type
    rng = np.random.default_rng(1)
    array = rng.integers(t.min, t.max, (HEIGHT, WIDTH + 8), t.numpy, endpoint=True)
    regions = dict.fromkeys(pipeline.outputs, ((0, WIDTH), (0, HEIGHT)))
    expected = interpreted(pipeline, {"image": Image(array, (0, 0))}, {}, regions)
    outs = [np.zeros_like(expected[o][0]) for o in pipeline.outputs]
    library = build(source, flags, compiler, vector_bytes)
    assert invoke(library, source, [view(array, (0, 0)), *(view(out, (0, 0)) for out in outs)]) == 0
    for name, output, out in zip(names, pipeline.outputs, outs, strict=True):
        np.testing.assert_array_equal(out, expected[output][0], err_msg=name)


@pytest.mark.parametrize("name", ["floats", "pairs", "turned", "floats of words", "signed low bits", "two lengths"])
def test_lanes_are_not_put_into_order(name: str) -> None:
    assert "packed_by_parts" in source_for(pipeline_of(name), 32).code


@pytest.mark.parametrize("name", ["floats", "pairs"])
def test_short_registers_have_one_part(name: str) -> None:
    assert "by_parts" not in source_for(pipeline_of(name), 16).code


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_packing_is_one_instruction(compiler: str, tmp_path: Path) -> None:
    """Compilers that are told by a choice of the nearest values clamp first, where they do not know these."""
    require_tool(compiler)
    if platform.machine() != "x86_64":
        pytest.skip("its compiler knows no AVX2")
    text = "#include <stdint.h>\n#define INLINE static inline\n"
    text += "".join(f"typedef {t} {name} __attribute__((vector_size(32)));\n" for t, name in VECTORS)
    text += definition(PACKED_BY_PARTS, UINT8, 32, "packed", "x86_64")
    source, code = tmp_path / "packed.c", tmp_path / "packed.s"
    source.write_text(f"{text}u8x32 all(i16x16 a, i16x16 b) {{ return packed(a, b); }}\n")
    subprocess.run([compiler, "-O2", "-mavx2", "-S", "-o", code, source], check=True)
    vectors = [line.split()[0] for line in code.read_text().splitlines() if line.startswith("\tvp")]
    assert vectors == ["vpackuswb"]
