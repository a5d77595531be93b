"""Bools in the C, point by point and in vectors: `~` of a bool is `not`, of which C knows nothing."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("value", ["(f(x) > 127) & ~(f(x) > 200)", "~(f(x) > 127) | (not f(x) < 50)", "~~(f(x) > 9)"])
@pytest.mark.parametrize("width", [1, 5, 100])
def test_inverted_bools(value: str, width: int) -> None:
    stage = {"name": "out", "dims": ["x"], "value": f"select({value}, uint8(255), uint8(0))"}
    pipeline = load(
        {
            "format": 1, "name": "inverted", "inputs": [{"name": "f", "type": "uint8", "dims": ["x"]}],
            "stages": [stage], "outputs": ["out"], "estimates": {"out": [[0, 4096]]},
        }
    )  # fmt: skip
    samples = np.random.default_rng(0).integers(0, 256, width).astype(np.uint8)
    inputs, regions = {"f": Image(samples, (0,))}, {"out": ((0, width),)}
    source = compile_pipeline(pipeline, here()).source
    status, found = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(found["out"], interpret(pipeline, inputs, {}, regions)["out"])
