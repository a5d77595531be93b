"""The judge's translation says what we mean where Halide's way of writing something differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.modules import require_module

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

require_module("halide")

from benchmarks.judge import Judge  # noqa: E402
from benchmarks.problem import at_regions  # noqa: E402

pytestmark = pytest.mark.halide


def agree(value: Any, *, width: int = 24) -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "judged",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}],
            "stages": [{"name": "s", "dims": ["x"], "value": value}],
            "outputs": ["s"],
            "estimates": {"s": [[0, width]]},
        }
    )
    problem = at_regions(pipeline, {"s": ((0, width),)})
    images = {n: Image(a, tuple(lo for lo, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
    ours = interpret(pipeline, images, {}, problem.output_regions)["s"]
    theirs = Judge(pipeline).run(problem.inputs, problem.input_regions, {}, problem.output_regions)["s"]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "value",
    [
        "argmax(a(x + r) // 255 // 255 for r in range(-2, 3))",
        "argmin(a(x + r) | 255 for r in range(5, 9) for s in range(1, 3))",
        "argmax(a(x + r) // 16 for r in range(-2, 3) if a(x + r) > 128)",
        "argmax(a(r) for r in range(3, 5) if r > x)",
        "argmin(float32(a(x + r + s)) for r in range(3, 5) for s in range(0, 3))",
    ],
)
def test_argmin_and_argmax_begin_at_the_first_place(value: str) -> None:
    """hl.argmin and hl.argmax begin at place 0, and stay there where nothing beats the worst value of the type."""
    agree(value)


def test_predicates_over_values_that_vanish() -> None:
    """Halide takes the dims of a reduction from its value: none are left in a power of 0."""
    agree("max(int64(a(x + r)) ** 0 for r in range(0, 4) if a(x + r) > 240)")
    agree("sum(a(x) ** 0 for r in range(0, 4))")
