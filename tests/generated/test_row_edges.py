"""Edges of rows, where clamps are at work: vectors whose lanes clamp on their own, where what clamps cannot be told."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.machines import machine
from support.native import build

from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

WIDTH = 20
EDGE = {"name": "input", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}


def rows(value: str, *updates: dict[str, object]) -> Pipeline:
    stage = {"name": "f", "dims": ["x", "y"], "value": value, "updates": list(updates)}
    estimates = {"f": [[0, WIDTH], [0, 16]], "input": [[0, WIDTH], [0, 16]]}
    document = {"format": 1, "name": "rows", "inputs": [EDGE], "stages": [stage], "outputs": ["f"]}
    return load(document | {"estimates": estimates})


DIFFERENCE = (
    "sum(int32(absd(input(2 * x + p, 2 * y), input(2 * x + p + k % 3 - 1, 2 * y + k // 3 - 1))) for p in range(2))"
)
DOWN = {"domain": {"e": [0, "input.extent.x"], "r": [1, "input.extent.y - 1"]}, "at": ["e", "r"]}
MIRRORED = "x // 32 * 32 + 31 - x % 32"
CASES = {
    "mirrored in blocks": rows(f"uint16(input({MIRRORED} - 1, y)) + 2 * uint16(input({MIRRORED} + 1, y))"),
    "begun anew in blocks": rows("input(x // 16 * 16 + (x + 5) % 16 + 2, y) - input(x // 8 * 8 + x % 8 - 9, y)"),
    "far to both sides": rows("int32(input(x - 5, y)) * 2 + input(x + 6, y) + input(x // 2 - 1, y)"),
    "displacements of blocks": rows(f"argmin({DIFFERENCE} for k in range(9))[0]"),
    "a place by a product of loops": rows("sum(int32(input(x + r * q, y)) for r in range(3) for q in range(-2, 3))"),
    "neighbours of a path": rows(
        "int32(input(x, y))",
        DOWN | {"value": "f(e, r) + min(f(max(e - 1, 0), r - 1), f(min(e + 1, input.extent.x - 1), r - 1)) // 2"},
    ),
    "a path from the left": rows(
        "int32(input(x, y))", DOWN | {"value": "f(e, r) + f(max(e - r, 0), r - 1) // 2 + input(e - r, r)"}
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_edges_are_as_the_pipeline_says(case: str) -> None:
    of = CASES[case]
    made = compile_pipeline(of, machine(vector_bytes=16), Options(strict=True))
    library = build(made.source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng = np.random.default_rng(11)
    for width, height in ((1, 2), (4, 3), (9, 5), (WIDTH, 16), (23, 7), (83, 3)):
        image = Image(rng.integers(0, 256, (height, width)).astype(np.uint8), (0, 0))
        for region in (((0, width), (0, height)), ((width // 2, width - width // 2), (height // 2, 1))):
            (expected,) = interpret(of, {"input": image}, {}, {"f": region})["f"]
            status, got = call(library, made.source, of, {"input": image}, {}, {"f": region})
            assert status == 0
            np.testing.assert_array_equal(got["f"][0], expected, err_msg=f"{width} x {height}, {region}")


@pytest.mark.parametrize("case", ["displacements of blocks", "a place by a product of loops", "neighbours of a path"])
def test_they_are_vectors(case: str) -> None:
    code = compile_pipeline(CASES[case], machine(vector_bytes=16), Options()).source.code
    assert len(re.findall(r"\b(?:i32x4|ts_near_\w+x\d+)\b", code)) > 3
