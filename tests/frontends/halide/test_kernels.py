"""Kernels of tensors as compilers write them in Halide's Python: imported, they compute what NumPy does, and with a
schedule of ours Halide computes it, too."""

from __future__ import annotations

import numpy as np
import pytest
from support.modules import require_module

from tilesmith import platforms
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.interpreter.interpreter import Image, interpret

require_module("halide")

import halide as hl  # noqa: E402
from support.halide_kernels import KERNELS, Kernel  # noqa: E402

from tilesmith.scheduler.codegen.halide import apply  # noqa: E402
from tilesmith.scheduler.frontends.halide import from_halide  # noqa: E402

pytestmark = [pytest.mark.halide, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def realized(made: Kernel) -> list[np.ndarray]:
    for image, array in made.images.items():
        image.set(hl.Buffer(array))
    buffers = [hl.Buffer(f.types()[0], list(e.shape[::-1])) for f, e in zip(made.outputs, made.expected, strict=True)]
    hl.Pipeline(made.outputs).realize(buffers if len(buffers) > 1 else buffers[0])
    return [np.array(b) for b in buffers]


@pytest.mark.parametrize("name", KERNELS)
def test_what_compilers_write(name: str) -> None:
    made = KERNELS[name]()
    imported = from_halide(made.outputs)
    pipeline = imported.pipeline
    images = {i.name(): Image(a, (0,) * a.ndim) for i, a in made.images.items()}
    regions = {
        n: tuple((0, size) for size in e.shape[::-1]) for n, e in zip(pipeline.outputs, made.expected, strict=True)
    }
    results = interpret(pipeline, images, {}, regions)
    for output, expected in zip(pipeline.outputs, made.expected, strict=True):
        close(results[output][0], expected)
    compiled = compile_pipeline(pipeline, platforms.load("i7-6700"), Options("taco2019"))
    apply(compiled.schedule, made.outputs, imported)
    for got, expected in zip(realized(made), made.expected, strict=True):
        close(got, expected)
