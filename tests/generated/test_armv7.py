"""C for 32-bit Arm, in QEMU's user mode: the values are those of the interpreter, and vectors are NEON's."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tools import require_tool

from benchmarks.documents import pipeline_of
from benchmarks.problem import at_estimates
from tilesmith import platforms
from tilesmith.app.runtime.build import build
from tilesmith.app.runtime.run import run
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.errors import NoBackend
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

pytestmark = pytest.mark.slow

COMPILER, EMULATOR, MACHINE = "arm-linux-gnueabihf-gcc", "qemu-arm", "cortex-a7"

EXACT = {
    "sat_add": ("int8", "uint16", "int32", "uint32"),
    "sat_sub": ("int8", "uint16", "int32", "uint32"),
    "halving_add": ("int16", "uint32", "int32"),
    "rounding_halving_add": ("uint8", "uint32", "int32"),
    "rounding_shift_right": ("int16", "uint32", "int32"),
    "lerp": ("uint8", "uint16", "uint32"),
}
"""Functions of two operands or, with one more, three, by the types that 64 bits hold the results of exactly."""


def agree(pipeline: Pipeline, tmp_path: Path, tolerance: float) -> None:
    require_tool(COMPILER)
    require_tool(EMULATOR)
    machine, problem = platforms.load(MACHINE), at_estimates(pipeline)
    images = {n: Image(a, tuple(low for low, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
    library = build(compile_pipeline(pipeline, machine).source, machine, tmp_path, 500)
    got = run(library, pipeline, images, problem.params, problem.output_regions, 1).outputs
    expected = interpret(pipeline, images, problem.params, problem.output_regions)
    for name in pipeline.outputs:
        for a, b in zip(got[name], expected[name], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * float(np.abs(b).max(initial=1)))


@pytest.mark.parametrize("name", ["bilateral_grid", "gaussian3x3", "harris", "laplacian_sharpen", "sobel"])
def test_shipped_pipelines(name: str, tmp_path: Path) -> None:
    agree(pipeline_of(f"{name}@96x80"), tmp_path, 1e-5)


def exact(values: dict[str, str], types: set[str]) -> Pipeline:
    estimates: dict[str, Any] = {name: [[0, 67], [0, 9]] for name in values}
    inputs = [{"name": f"{k}_{t}", "type": t, "dims": ["x", "y"]} for t in sorted(types) for k in "ab"]
    stages = [{"name": name, "dims": ["x", "y"], "value": value} for name, value in values.items()]
    document = {"format": 1, "name": "exact", "inputs": inputs, "stages": stages}
    return load({**document, "outputs": list(values), "estimates": estimates})


def test_functions_whose_results_are_exact(tmp_path: Path) -> None:
    values = {
        f"{f}_{t}": f"{f}(a_{t}(x, y), b_{t}(x, y)" + (f", a_{t}(y, x))" if f == "lerp" else ")")
        for f, types in EXACT.items()
        for t in types
    }
    values |= {f"product_{t}": f"mul_shift_right(a_{t}(x, y), b_{t}(x, y), 5)" for t in ("int16", "uint16", "int32")}
    values |= {"narrowed": "sat_int8(a_int32(x, y))", "further": "sat_uint16(int64(a_int32(x, y)) * 3)"}
    agree(exact(values, {t for types in EXACT.values() for t in types}), tmp_path, 0)


@pytest.mark.parametrize(
    "value",
    [
        "sat_add(a_int64(x, y), b_int64(x, y))",
        "mul_shift_right(a_uint32(x, y), b_uint32(x, y), 3)",
        "sat_int8(a_uint64(x, y))",
    ],
)
def test_what_needs_wider_integers_is_refused(value: str) -> None:
    pipeline = exact({"output": value}, {"int64", "uint32", "uint64"})
    with pytest.raises(NoBackend, match="needs integers of 128 bits"):
        compile_pipeline(pipeline, platforms.load(MACHINE).model_copy(update={"vector_bytes": 4}))


@pytest.mark.parametrize("strict", [False, True])
def test_floats_are_in_neon_unless_subnormal_numbers_count(strict: bool, tmp_path: Path) -> None:
    compiler = require_tool(COMPILER)
    machine = platforms.load(MACHINE)
    source = compile_pipeline(pipeline_of("harris"), machine, Options(strict=strict)).source
    (tmp_path / "harris.c").write_text(source.code)
    (tmp_path / source.header_name).write_text(source.header)
    flags = [*source.flags, *machine.compiler.flags, "-S", "-o", "-", "harris.c"]
    made = subprocess.run([compiler, *flags], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert ("vadd.f32\tq" in made) == (not strict)
