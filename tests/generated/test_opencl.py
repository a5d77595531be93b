"""Generated OpenCL on PoCL: every shipped pipeline, and random ones, compute what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest
from support.native import call
from support.opencl import device, loaded
from support.random_cases import random_case
from support.random_pipelines import disagreement
from support.shipped import LONG, assert_right, problem, scheduled

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.search import root_schedule

NAMES = tuple(name for name in pipelines.names() if name not in LONG)


def judge(name: str, size: str) -> None:
    p, source = problem(name, size), scheduled(name, device()).source
    library = loaded(source)
    for _ in range(2):  # the second call finds the device as the first has left it
        status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0
        assert_right(got, p.expected, p.within)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_pipeline_computes_what_it_says(name: str) -> None:
    judge(name, "shifted")


@pytest.mark.parametrize("name", [name for name in LONG if name != "vdsr"])
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


@pytest.mark.parametrize("start", range(0, 48, 8))
def test_random_pipelines_compute_what_the_interpreter_does(start: int) -> None:
    for seed in range(start, start + 8):
        case = random_case(seed)
        source = generate(case.pipeline, case.schedule, device(vector_bytes=case.vector_bytes))
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
