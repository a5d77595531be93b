"""The interpreter of the loop IR computes what the pipeline says, before and after the passes; it notices accesses
beyond a buffer, and races."""

from __future__ import annotations

import numpy as np
import pytest
from support.loop_programs import run_program
from support.machines import machine
from support.random_cases import random_case
from support.shipped import assert_right, loaded, problem

from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.loop.interpreter import Image, execute
from tilesmith.scheduler.ir.loop.interpreter_memory import MemoryFault
from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import autoschedule

SMALL = ("blur", "camera_pipe", "gaussian3x3", "harris", "interpolate", "laplacian_sharpen", "sobel")
"""Shipped pipelines that the interpreter computes in a second or two."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_shipped_pipelines_keep_their_values(name: str) -> None:
    of, platform = problem(name, "7x3"), machine(vector_bytes=16)
    program = lower(autoschedule(loaded(name), platform).plan, platform)
    for step in (program, optimize(program)):
        assert_right(run_program(step, of.pipeline, of.inputs, {}, of.regions), of.expected, of.within)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 12))
def test_random_pipelines_keep_their_values(seed: int) -> None:
    case = random_case(seed)
    with np.errstate(all="ignore"):
        expected = interpret(case.pipeline, case.inputs, case.params, case.regions)
    program = lower(rewrite(case.pipeline, case.schedule), machine(vector_bytes=case.vector_bytes))
    for step in (program, optimize(program)):
        got = run_program(step, case.pipeline, case.inputs, case.params, case.regions)
        for name, arrays in expected.items():
            for a, b in zip(got[name], arrays, strict=True):
                np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=1e-4, atol=1e-4)


TEXT = """
program "p" {{
  doc "" method "hand"
  machine "x86_64" line_bytes 64 register_bytes 32 carried_vectors 12 permuted_bytes 4 crowded_bytes 2048
  argument "f" as f : i32 dims(x) storage(x) output made_by "f"
  param "n" as n_0 : i32
  buffer f_data "f" component 0 : i32 dims(x) unit 0 argument
    origin(f.origin.x) stride(1) ring(none) extent(f.extent.x)
  derivation {{}} bounds {{}}
  body {{ row p = @f_data + -f.origin.x {body} }}
}}
"""


def run(body: str, n: int = 8) -> list[int]:
    out = np.zeros(n, np.int32)
    execute(parse_program(TEXT.format(body=body)), {"f": Image(out, (3,))}, {"n": 5})
    return out.tolist()


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("for x = 3 to 10 step 1 { %x = from_index x : i32 store %x to @f_data at p[x] }", [3, 4, 5, 6, 7, 8, 9, 10]),
        ("for x = 3 to 10 step 1 skip 5 to 9 { store 1:i32 to @f_data at p[x] }", [1, 1, 0, 0, 0, 0, 1, 1]),
        (
            "peeled x = 3 to 10 skip 5 to 9 { %x = from_index x : i32 store %x to @f_data at p[x] } "
            "middle { store 7:i32 to @f_data at p[6] store 7:i32 to @f_data at p[3] }",
            [7, 4, 0, 7, 0, 0, 9, 10],
        ),
        ("apart seldom { store 1:i32 to @f_data at p[3] } apart { store 2:i32 to @f_data at p[4] }", [1, 2] + 6 * [0]),
        (
            "peeled x = 3 to 4 skip 5 to 5 { store 1:i32 to @f_data at p[x] } "
            "middle { store 2:i32 to @f_data at p[4] }",
            [1, 2] + 6 * [0],
        ),
        (
            "for x = 3 to 10 step 4 seen q to 4 { %v = lanes x [0, 10, 20, 30] : i32x4 store %v to @f_data at p[q] }",
            [3, 7, 17, 27, 37, 0, 0, 0],
        ),
        ("%v = lanes 0 [0, 1, 2, 3] : i32x4 store %v to @f_data at p[5] within 6 to 7", [0, 0, 0, 1, 2, 0, 0, 0]),
        (
            "%v = lanes 1 [0, 1] : i32x2 scatter %v to @f_data at p[<3; [6, 2]> origin 0 stride 1]",
            [0, 0, 2, 0, 0, 0, 1, 0],
        ),
        (
            "if (param.n - 6 >= 0) { store 1:i32 to @f_data at p[3] } else { store 2:i32 to @f_data at p[3] }",
            [2] + 7 * [0],
        ),
        (
            "peel a, b, c, d = 4 until 11 lanes 4 align 1 %a = from_index a : i32 %b = from_index b : i32 "
            "%d = from_index d : i32 store %a to @f_data at p[3] store %b to @f_data at p[4] "
            "store %d to @f_data at p[5]",
            [4, 7, 11, 0, 0, 0, 0, 0],
        ),
        (
            "%s = accumulator 1:i32 : i32 for i = 1 to 4 step 1 { %t = %s * 2:i32 : i32 assign %s = %t } "
            "store %s to @f_data at p[3]",
            [16] + 7 * [0],
        ),
        (
            "%v = lanes 5 [0, 1, 2, 3] : i32x4 %w = clamped_load p[9] from 3 to 10 : i32x4 %x = %v + %w : i32x4 "
            "stream_line %x to @f_data at p[3] moved 1 part 0",
            [0, 6, 7, 8, 0, 0, 0, 0],
        ),
        (
            "%a = lanes 10 [0, 1, 2, 3] : i32x4 %b = lanes 20 [0, 1, 2, 3] : i32x4 "
            "%held = carried_elements p[5] of i32 by 4 : i64 "
            "%h = to_index %held : i64 %k = lanes 4 - h [0, 1, 2, 3] : i32x4 "
            "stream_aligned %b after %a by %k to @f_data at p[5] apart 0",
            [12, 13, 20, 21, 0, 0, 0, 0],
        ),
    ],
)
def test_statements_do_what_they_say(body: str, values: list[int]) -> None:
    assert run(body) == values


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("store 1:i32 to @f_data at p[11]", "'f' has 8 elements, and is accessed at 8"),
        ("%v = load p[2] : i32", "accessed at -1"),
        ("%v = lanes 0 [0, 1, 2, 3] : i32x4 store %v to @f_data at p[8]", "accessed at 8"),
        ("for i = 0 to 2 step 1 parallel { store 1:i32 to @f_data at p[div(i, 2) + 3] }", "race"),
        (
            "for i = 3 to 5 step 1 parallel { %v = load p[i + 1] : i32 store %v to @f_data at p[i] }",
            "race: two iterations of the parallel loop touch element 1 of 'f'",
        ),
        (  # the iteration before may not have come to its own part in order yet
            "for i = 4 to 6 step 1 parallel { %v = load p[i - 1] : i32 ordered { store %v to @f_data at p[i] } }",
            "race: two iterations of the parallel loop touch element 1 of 'f'",
        ),
    ],
)
def test_faults_are_noticed(body: str, fault: str) -> None:
    with pytest.raises(MemoryFault) as caught:
        run(body)
    assert fault in str(caught.value)
