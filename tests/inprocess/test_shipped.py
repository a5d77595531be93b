"""Shipped pipelines called in this process: what a child process computes of the same images, bit for bit. Left out are
those whose C a compiler works on for long: how a call is made goes by inputs and outputs, of which the others have all
kinds."""

from __future__ import annotations

import numpy as np
import pytest
from support.shipped import LONG

import tilesmith as ts
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build_cache import kept_build
from tilesmith.app.runtime.run import run
from tilesmith.scheduler import pipelines

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [name for name in pipelines.names() if name not in (*LONG, "machado_interpolation")])
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
