"""Tables: inputs whose values the document has. Callers need not pass them."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of

import tilesmith as ts
from tilesmith import platforms
from tilesmith.app.runtime import estimates
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.printer import print_program
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

DOCUMENT = {
    "format": 1,
    "name": "weighed",
    "inputs": [
        {"name": "photo", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
        {"name": "kernel", "type": "float32", "dims": ["i", "j"], "storage": ["j", "i"], "region": [[-1, 3], [0, 2]],
         "values": [0.5, 1, -0.25, 2, 0.1, 1e30]},
        {"name": "tone", "type": "int8", "dims": ["i"], "region": [[0, 4]], "values": [-128, 127, 3, 0]},
    ],
    "stages": [
        {"name": "out", "dims": ["x", "y"],
         "value": "sum(photo(x + i, y + j) * kernel(i, j) for j in range(0, 2) for i in range(-1, 2) if i + j < 2)"
                  " + float32(tone(x % 4))"}
    ],
    "outputs": ["out"],
    "estimates": {"out": [[0, 64], [0, 32]]},
}  # fmt: skip
PHOTO = np.random.default_rng(2).random((32, 64)).astype(np.float32)
REGION = ((0, 64), (0, 32))


def expected() -> np.ndarray:
    wide = np.pad(PHOTO, ((0, 1), (1, 1)), mode="edge").astype(np.float64)
    weights = np.array([[0.5, 1, -0.25], [2, 0.1, 0]])
    found = sum(weights[j, i + 1] * wide[j : j + 32, i + 1 : i + 65] for j in range(2) for i in range(-1, 2))
    return found + np.tile([-128, 127, 3, 0], 16)


def test_the_interpreter_and_compiled_functions_need_no_tables() -> None:
    pipeline = load(DOCUMENT)
    assert load(to_document(pipeline)) == pipeline
    assert pipeline.estimate("kernel") == ((-1, 3), (0, 2))
    done = interpret(pipeline, {"photo": Image(PHOTO, (0, 0))}, {}, {"out": REGION})["out"][0]
    np.testing.assert_allclose(done, expected(), rtol=1e-5)
    np.testing.assert_array_equal(estimates.images(pipeline, {})["tone"].array, [-128, 127, 3, 0])
    function = ts.compile(pipeline)
    assert str(function.signature).startswith("weighed(photo, *,")
    np.testing.assert_allclose(function(PHOTO), expected(), rtol=1e-5)
    np.testing.assert_allclose(function(PHOTO, tone=np.zeros(4, np.int8)) + np.tile([-128, 127, 3, 0], 16), expected(),
                               rtol=1e-4)  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
def test_the_c_has_them(strict: bool) -> None:
    pipeline = load(DOCUMENT)
    record = compile_pipeline(pipeline, platforms.load("i7-6700"), Options(strict=strict))
    source = source_of(pipeline, record.schedule, here())
    assert "static const int8_t tone_0_values[]" in source.code
    assert "input kernel: float32 [i, j], j fastest in memory; NULL: the values of the pipeline" in source.header
    images = {"photo": Image(PHOTO, (0, 0))}
    status, got = call(build(source), source, pipeline, images, {}, {"out": REGION})
    assert status == 0
    want = interpret(pipeline, images, {}, {"out": REGION})["out"][0]
    np.testing.assert_allclose(got["out"][0], want, rtol=0 if strict else 1e-5)


def test_programs_with_tables_have_a_text() -> None:
    record = compile_pipeline(load(DOCUMENT), platforms.load("i7-6700"), Options())
    program = lower(rewrite(load(DOCUMENT), record.schedule), here())
    assert parse_program(print_program(program)) == program


def test_entries_for_halide_have_no_parameters_for_them() -> None:
    source = compile_pipeline(load(DOCUMENT), platforms.load("i7-6700"), Options(backend="c-halide")).source
    assert "tilesmith_weighed_halide(struct halide_buffer_t *photo_0, struct halide_buffer_t *out_0);" in source.header
    assert "tilesmith_weighed(&own[0], 0, 0, &own[1])" in source.code


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        ({"values": [1, 2]}, "bad_table", "/inputs/2/values"),
        ({"region": None}, "bad_table", "/inputs/2"),
        ({"values": None}, "bad_table", "/inputs/2"),
        ({"region": [[0, 4], [0, 1]]}, "bad_table", "/inputs/2/region"),
        ({"values": [1, 2, 3, 128]}, "bad_table", "/inputs/2/values/3"),
        ({"values": [1, 2, 3, True]}, "bad_table", "/inputs/2/values/3"),
        ({"region": [[0, 70_000]], "values": [0] * 70_000}, "limit_exceeded", "/inputs/2/values"),
    ],
)
def test_what_is_no_table_is_told(change: dict[str, object], code: str, where: str) -> None:
    *others, tone = DOCUMENT["inputs"]
    wrong = {k: v for k, v in {**tone, **change}.items() if v is not None}
    with pytest.raises(DocumentError) as caught:
        load({**DOCUMENT, "inputs": [*others, wrong]})
    assert (caught.value.problems[0].code, caught.value.problems[0].pointer) == (code, where)
