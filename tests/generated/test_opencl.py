"""Generated OpenCL on PoCL: every shipped pipeline, and random ones, compute what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.opencl import Shape, device, loaded
from support.random_cases import random_case
from support.random_pipelines import disagreement
from support.shipped import LONG, assert_right, problem, scheduled

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options, compile_pipeline, generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.search import root_schedule
from tilesmith.scheduler.strategies.document import load_text

NAMES = tuple(name for name in pipelines.names() if name not in LONG)
SLOW_BARRIERS = ("camera_pipe", "interpolate", "machado_interpolation")
"""Pipelines with a kernel of many barriers, which takes PoCL minutes to compile: it copies what is between them."""


def judge(name: str, size: str, shape: Shape = "cpu", optimized: bool = False) -> None:
    p, source = problem(name, size), scheduled(name, device(shape)).source
    library = loaded(source, optimized)
    for _ in range(2):  # the second call finds the device as the first has left it
        status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0
        assert_right(got, p.expected, p.within)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_pipeline_computes_what_it_says(name: str) -> None:
    judge(name, "shifted")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW_BARRIERS])
def test_it_does_with_many_work_items(name: str) -> None:
    judge(name, "shifted", "gpu", optimized=True)


@pytest.mark.parametrize("name", [name for name in LONG if name not in ("lens_blur", "vdsr")])
def test_one_with_much_code_does(name: str) -> None:
    judge(name, "7x3")


@pytest.mark.parametrize("name", ["blur", "harris", "interpolate"])
def test_other_sizes_do(name: str) -> None:
    for size in ("1x1", "64x64"):
        judge(name, size)


@pytest.mark.parametrize("name", ["harris", "bilateral_grid", "unsharp"])
def test_stages_at_root_are_kernels_of_their_own(name: str) -> None:
    p = problem(name, "shifted")
    source = generate(p.pipeline, root_schedule(p.pipeline, device()), device())
    status, got = call(loaded(source), source, p.pipeline, p.inputs, {}, p.regions)
    assert status == 0
    assert_right(got, p.expected)


def test_what_a_launch_leaves_to_the_next_is_in_global_memory() -> None:
    """A window that slides along rows, each of which the host launches on its own."""
    case = random_case(28)
    source = generate(case.pipeline, case.schedule, device("gpu"))
    assert "kernel void f2_2(" in source.code
    assert "kernel void f2_2_local(" not in source.code


def test_buffers_of_a_tile_beyond_local_memory_are_in_global_memory() -> None:
    stages = [
        {"name": "h", "dims": ["x", "y"], "value": "f(x, y) * 2.0"},
        {"name": "g", "dims": ["x", "y"], "value": "h(x, y) + h(x + 1, y + 1)"},
    ]
    size = {"g": [[0, 64], [0, 8]]}
    image = {"name": "f", "type": "float32", "dims": ["x", "y"]}
    pipeline = load(
        {"format": 1, "name": "tiles", "inputs": [image], "stages": stages, "outputs": ["g"], "estimates": size}
    )
    strategy = load_text(
        "strategy: s\nsteps: [{at: {stage: g, do: [{tile: {sizes: {y: 4}}}, vectorize, parallel]}}, "
        "{compute_at: {stage: h, loop: y.outer}}]"
    )
    source = compile_pipeline(pipeline, device("gpu"), Options(strategy=strategy)).source
    assert "kernel void g_0_local(" in source.code
    assert "barrier(" in source.code
    library = loaded(source)
    # a tile of 5 rows: of 200 columns PoCL's local memory has it, of 2,000,000 no device's does
    for columns in (200, 2_000_000):
        values = np.arange(9 * (columns + 1), dtype=np.float32).reshape(9, -1) % 1000
        inputs = {"f": Image(values, (0, 0))}
        regions = {"g": ((0, columns), (0, 8))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        expected = 2 * (values[:-1, :-1] + values[1:, 1:])
        np.testing.assert_array_equal(got["g"][0], expected)


@pytest.mark.parametrize("start", [0, 6])
def test_random_pipelines_compute_what_the_interpreter_does(start: int) -> None:
    """Two of three on a device of many work-items, which has more that can go wrong: each family on both."""
    for seed in range(start, start + 6):
        case, shape = random_case(seed), "gpu" if seed % 3 else "cpu"
        vectors = {} if shape == "gpu" else {"vector_bytes": case.vector_bytes}
        source = generate(case.pipeline, case.schedule, device(shape, **vectors))
        with np.errstate(all="ignore"):
            expected = interpret(case.pipeline, case.inputs, case.params, case.regions)
        status, got = call(loaded(source), source, case.pipeline, case.inputs, case.params, case.regions)
        assert status == 0, seed
        wrong = {
            f"{name}[{n}]": found
            for name, arrays in expected.items()
            for n, (a, b) in enumerate(zip(got[name], arrays, strict=True))
            if (found := disagreement(a, b))
        }
        assert wrong == {}, seed
