"""Factorisation of exponentials: weights of windows that are separable become products, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.scheduler.analysis.separability import windows
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.factor_exponentials import factored
from tilesmith.scheduler.rewrites.passes import normalise

LOOPS = "for j in range(-4, 5) for i in range(-3, 4)"
A = "a(x + i, y + j)"


def pipeline_of(weights: str, loops: str = LOOPS, at: str = A) -> Pipeline:
    """The sum `out` of an input times weights; params `s` with a range, `t` without."""
    return load(
        {
            "format": 1,
            "name": "test",
            "params": [
                {"name": "s", "type": "float32", "default": 2.0, "min": 1, "max": 4},
                {"name": "t", "type": "float32", "default": 2.0},
                {"name": "n", "type": "int32", "default": 2, "min": 0, "max": 4},
            ],
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": f"sum({at} * {weights} {loops})"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 48]]},
        }
    )


FACTORED = [
    ("exp(-float32(i * i + j * j) / 8.0)", "exp(-float32(i * i) / 8.0) * exp(-float32(j * j) / 8.0)"),
    ("exp(float32(-(i * i + j * j)) / (2.0 * s * s))",
     "exp(float32(-(i * i)) / (2.0 * s * s)) * exp(float32(-(j * j)) / (2.0 * s * s))"),
    ("exp(-0.5 * (float32(i) ** 2 + float32(j) ** 2 / s))",
     "exp(-0.5 * float32(i) ** 2) * exp(-0.5 * (float32(j) ** 2 / s))"),
    ("exp(1.0 - float32(i) + float32(j) + 0.5)", "exp(-float32(i) + 1.0 + 0.5) * exp(float32(j))"),
    ("(2.0 * exp(float32(i - j)))", "(2.0 * (exp(float32(i)) * exp(float32(-j))))"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), FACTORED, ids=[b for b, _ in FACTORED])
def test_a_window_is_separable_by_a_factor_a_loop(before: str, after: str) -> None:
    of, expected = pipeline_of(before), pipeline_of(f"({after})").stage("out")
    stage = factored(of.stage("out"))
    assert len(windows(stage)) == 1
    assert factored(stage) is stage
    image = {"a": Image(np.random.default_rng(0).random((24, 24)).astype(np.float32), (-5, -5))}
    region = {"out": ((0, 9), (1, 7))}
    (whole,), (parts,) = (interpret(p, image, {"s": 1.5, "t": 1.0}, region)["out"] for p in (of, normalise(of)))
    np.testing.assert_allclose(parts, whole, rtol=3e-6)
    same = interpret(normalise(of, strict=True), image, {"s": 1.5, "t": 1.0}, region)["out"][0]
    np.testing.assert_array_equal(same, whole)
    alike = to_text(stage.values[0]), to_text(expected.values[0])
    assert alike[0] == alike[1]


@pytest.mark.parametrize(
    ("weights", "loops", "at"),
    [
        ("exp(-float32(i * j) / 8.0)", LOOPS, A),  # one term
        ("exp(-float32(i * i + i * j + j * j) / 8.0)", LOOPS, A),  # of both loops
        ("exp(-float32(i * i + j * j) / t)", LOOPS, A),  # may overflow
        ("exp(float32(i * 30 + j))", LOOPS, A),
        ("exp(-float32(i * i + j * j) * 1e30)", LOOPS, A),
        ("exp(-float32(i * i + j * j) / 8.0)", "for j in range(-n, n + 1) for i in range(-3, 4)", A),  # no numbers
        ("exp(-float32(i * i + j * j) / 8.0) * cos(float32(i * j))", LOOPS, A),  # not separable all the same
        ("exp(a(x + i, y) - float32(j * j))", LOOPS, A),  # of data
        ("exp(-float32(i * i + j * j) / 8.0)", LOOPS, "a(x + i + j, y)"),
    ],
)
def test_other_weights_stay(weights: str, loops: str, at: str) -> None:
    stage = pipeline_of(weights, loops, at).stage("out")
    assert factored(stage) is stage
