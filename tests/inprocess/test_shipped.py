"""Shipped pipelines called in this process: what a child process computes of the same images, bit for bit. How a call
is made goes by inputs and outputs, of which four pipelines have all kinds."""

from __future__ import annotations

import numpy as np
import pytest

import tilesmith as ts
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build_cache import kept_build
from tilesmith.app.runtime.run import run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["bilateral_grid", "blur", "camera_pipe", "laplacian_sharpen"])
def test_a_call_computes_what_a_child_does(name: str) -> None:
    compiled = ts.compile(name, options=ts.Options(strict=True))  # else rounding goes with where memory lies
    images = estimates.images(compiled.pipeline, {})
    regions = estimates.output_regions(compiled.pipeline)
    origin = {input: image.min for input, image in images.items()}
    result = compiled(**{input: image.array for input, image in images.items()}, region=regions, origin=origin)
    wanted = run(kept_build(compiled.source, compiled.platform), compiled.pipeline, images, {}, regions).outputs
    parts = result if len(wanted) > 1 else (result,)
    for found, expected in zip(parts, wanted.values(), strict=True):
        for one, other in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_array_equal(one, other)
