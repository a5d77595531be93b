"""Names of a document may be anything that the format allows: keywords, macros, library functions, our own names."""

from __future__ import annotations

import numpy as np
import pytest
from support.builders import builder
from support.calls import call
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.codegen.c.prelude import HELPERS
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.search import root_schedule

NAMES = (
    "int", "main", "printf", "NULL", "restrict", "memory", "status", "query", "linux", "unix", "errno",
    "tilesmith_min", "tilesmith_buffer", "x_0", "x_0_min0", "x_0_data", "INFINITY", "LINE", "args", "finish", "free",
    "scratch_bytes0", "mine0", "_", "_1", "__1x", "v1x", "__func__", "stdout", "I", "complex", "asm", "typeof", "n",
    "int64_t", "i32x8", "f32x8_at", "omp_get_thread_num", "TILESMITH_OK", "argv", "size_t", "sqrtf", "_Bool", "signed",
    "__builtin_memcpy", "buffer", "copy", "scaled", "mix", "dense", "argc", "__LINE__", "NDEBUG", "z" * 64, "M_PI",
    "M_SQRT1",
)  # fmt: skip
"""Names of stages, dims, inputs and params."""


def pipeline_named(pipeline: str, image: str, param: str, inner: str, output: str, dims: tuple[str, str]) -> dict:
    x, y = dims
    return {
        "format": 1,
        "name": pipeline,
        "params": [{"name": param, "type": "int32", "default": 2, "min": 0, "max": 9}],
        "inputs": [{"name": image, "type": "int32", "dims": [x, y], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": inner, "dims": [x, y], "value": f"{image}({x} - 1, {y}) * {param} + {x} + {image}({x} + 1, {y})"},
            {"name": output, "dims": [x, y], "value": f"{inner}({x}, {y} - 1) + {inner}({x}, {y} + 1)"},
        ],
        "outputs": [output],
        "estimates": {output: [[0, 64], [0, 64]], image: [[0, 64], [0, 64]]},
    }


def assert_works(document: dict) -> None:
    pipeline = load(document)
    source = compile_pipeline(pipeline, here()).source
    library = build(source)
    (image, param, output) = (pipeline.inputs[0].name, pipeline.params[0].name, pipeline.outputs[0])
    inputs = {image: Image(np.arange(35 * 9, dtype=np.int32).reshape(9, 35), (0, -1))}
    regions = {output: ((-2, 37), (0, 8))}
    status, got = call(library, source, pipeline, inputs, {param: 3}, regions)
    assert status == 0
    expected = interpret(pipeline, inputs, {param: 3}, regions)
    np.testing.assert_array_equal(got[output][0], expected[output][0])


@pytest.mark.parametrize("n", range(0, len(NAMES), 3))
def test_names_of_everything(n: int) -> None:
    """Seven names at a time, all different."""
    names = [NAMES[(n + k) % len(NAMES)] for k in range(7)]
    assert_works(pipeline_named(names[0], names[1], names[2], names[3], names[4], (names[5], names[6])))


@pytest.mark.parametrize("name", sorted({h.removeprefix("tilesmith_") for h in HELPERS}))
def test_a_pipeline_named_as_a_helper_is(name: str) -> None:
    pipeline = load(pipeline_named(name, "input", "p", "a", "b", ("x", "y")))
    assert source_of(pipeline, root_schedule(pipeline, here()), here()).entry not in HELPERS


@pytest.mark.parametrize(
    "name", ["buffer", "min", "max", "lerp", "times", "copy", "scaled", "shift_i32", "math", "string", "omp"]
)
def test_a_pipeline_with_a_name_of_ours_works(name: str) -> None:
    assert_works(pipeline_named(name, "input", "p", "a", "b", ("x", "y")))


def test_texts_of_a_document_stay_comments() -> None:
    document = pipeline_named("doc", "input", "p", "a", "b", ("x", "y"))
    document["doc"] = '*/ #error no\n#error no ??/\n \\\n system("true"); /* \u202e \x00 // %s ' + "x" * 2000
    assert_works(document)


def test_numbered_names_are_no_macros() -> None:
    """M_PI_2 and M_SQRT1_2 are."""
    b = builder()
    names = [b.fresh(n) for n in ("M_PI", "M_SQRT1") for _ in range(5)]
    assert len(set(names)) == len(names)
    assert not any(n.startswith("M_") for n in names)
