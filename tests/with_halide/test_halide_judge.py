"""Halide, which nobody here wrote, against the reference interpreter and the generated C."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.kept import KEPT
from support.modules import require_module
from support.random_pipelines import disagreement, random_inputs, random_params, random_pipeline, random_regions
from support.shipped import HEAVY, LIGHT, WITHIN, assert_right, scheduled
from support.tools import require_tool

from tilesmith.app.runtime.build import BuiltLibrary, build
from tilesmith.app.runtime.run import run
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

require_module("halide")

import halide as hl  # noqa: E402

from benchmarks.judge import Judge  # noqa: E402
from benchmarks.problem import Problem, Region, at_estimates, at_regions  # noqa: E402
from tilesmith.app.bench.to_halide import Untranslatable  # noqa: E402

pytestmark = pytest.mark.halide

TOLERANCE = 1e-5  # of the output's largest magnitude

# Per dim x, y; further dims are channels. One point, primes, a non-zero and a negative min, more than a vector or two.
REGIONS: dict[str, Region] = {
    "1x1": ((0, 1), (0, 1)),
    "7x3": ((0, 7), (0, 3)),
    "shifted": ((5, 31), (-3, 17)),
    "64x64": ((0, 64), (0, 64)),
    "131x67": ((0, 131), (0, 67)),
}


def problem_of(pipeline: Pipeline, plane: Region) -> Problem:
    """The shipped pipelines' outputs are planes or three channels."""
    regions = {}
    for name in pipeline.outputs:
        regions[name] = plane + ((0, 3),) * (len(pipeline.stage(name).dims) - 2)
    return at_regions(pipeline, regions, use_estimates=False)


def images_of(problem: Problem) -> dict[str, Image]:
    return {
        name: Image(array, tuple(low for low, _ in problem.input_regions[name]))
        for name, array in problem.inputs.items()
    }


def interpreted(problem: Problem) -> dict[str, tuple[np.ndarray[Any, Any], ...]]:
    return interpret(problem.pipeline, images_of(problem), problem.params, problem.output_regions)


def judged(judge: Judge, problem: Problem) -> dict[str, tuple[np.ndarray[Any, Any], ...]]:
    return judge.run(problem.inputs, problem.input_regions, problem.params, problem.output_regions)


def assert_agree(
    expected: dict[str, tuple[np.ndarray, ...]], got: dict[str, tuple[np.ndarray, ...]], of: Pipeline
) -> None:
    """Integers as `assert_right` has them; floats equal in what is finite and within TOLERANCE."""
    assert expected.keys() == got.keys()
    for name in expected:
        for k, (a, b) in enumerate(zip(expected[name], got[name], strict=True)):
            assert a.dtype == b.dtype, (name, k)
            if a.dtype.kind != "f":
                assert_right({name: (b,)}, {name: (a,)}, WITHIN.get(of.name, 0))
                continue
            finite = np.isfinite(a)
            np.testing.assert_array_equal(finite, np.isfinite(b), err_msg=f"{name}[{k}]")
            scale = float(np.abs(a[finite]).max(initial=0.0)) or 1.0
            np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=TOLERANCE * scale, err_msg=f"{name}[{k}]")


# With the number of threads: more than there are rows, fewer than cores, an odd number.
C_REGIONS: dict[str, tuple[Region | None, int]] = {
    "1x1": (((0, 1), (0, 1)), 5),
    "7x3": (((0, 7), (0, 3)), 2),
    "shifted": (((5, 131), (-3, 67)), 2),
    "64x64": (((0, 64), (0, 64)), 1),
    "1021x769": (((0, 1021), (0, 769)), 5),
    "estimates": (None, 2),
}
SMALL, BIG = ("1x1", "7x3", "shifted", "64x64"), ("1021x769", "estimates")


APPS = ("lens_blur", "local_laplacian")
"""Pipelines whose values by the interpreter `test_halide_apps.py` holds to those of Halide's own app."""


@cache
def library_of(name: str) -> BuiltLibrary:
    require_tool("gcc")
    return build(scheduled(name, host()).source, host(), KEPT / "with_halide", timeout_s=120)


@pytest.mark.parametrize("name", [name for name in pipelines.names() if name not in ("vdsr", *APPS)])
def test_halide_computes_what_the_interpreter_and_the_generated_c_do(name: str) -> None:
    """The C was held to the interpreter at each size: it is run at one, in turn, and at a large one, where the
    interpreter is slow. Every stage in full, as Halide computes them, is too much for the heavy ones at large sizes;
    compilers take half a minute for twenty layers of one kind. Inputs that do not cover what is read are refused by the
    interpreter, which comes first."""
    judge = Judge(pipelines.load(name), guarded=False)
    for region in REGIONS if name not in HEAVY else ("1x1", "7x3", "shifted"):  # there the interpreter takes seconds
        problem = problem_of(pipelines.load(name), REGIONS[region])
        assert_agree(interpreted(problem), judged(judge, problem), problem.pipeline)
    compiled = [SMALL[pipelines.names().index(name) % len(SMALL)]]
    if name in LIGHT:
        compiled.append(BIG[LIGHT.index(name) % len(BIG)])
    for region in compiled:
        assert_c_agrees(name, judge, region)


def assert_c_agrees(name: str, judge: Judge, region: str) -> None:
    plane, threads = C_REGIONS[region]
    pipeline = pipelines.load(name)
    problem = at_estimates(pipeline) if plane is None else problem_of(pipeline, plane)
    assert_agree(judged(judge, problem), by_c(name, problem, threads), pipeline)


def by_c(name: str, problem: Problem, threads: int) -> dict[str, tuple[np.ndarray[Any, Any], ...]]:
    images = images_of(problem)
    return run(
        library_of(name), problem.pipeline, images, problem.params, problem.output_regions, threads=threads
    ).outputs


@pytest.mark.parametrize("name", APPS)
def test_the_generated_c_computes_what_the_interpreter_does(name: str) -> None:
    plane, threads = C_REGIONS["7x3"]
    assert plane is not None
    problem = problem_of(pipelines.load(name), plane)
    assert_agree(interpreted(problem), by_c(name, problem, threads), problem.pipeline)


# ---- every operator, function and construct of the language -------------------------------------------------------

WIDTH = 257


def document(stages: list[dict[str, Any]], inputs: list[dict[str, Any]], dims: int = 1) -> Pipeline:
    """A pipeline of which every stage is an output, over WIDTH points or over a small plane."""
    region = [[0, WIDTH]] if dims == 1 else [[0, 33], [0, 17]]
    return load(
        {
            "format": 1,
            "name": "judged",
            "inputs": inputs,
            "stages": stages,
            "outputs": [s["name"] for s in stages],
            "estimates": {s["name"]: region for s in stages},
        }
    )


def check(pipeline: Pipeline) -> None:
    regions = {name: pipeline.estimate(name) or () for name in pipeline.outputs}
    problem = at_regions(pipeline, regions)
    assert_agree(interpreted(problem), judged(Judge(pipeline, guarded=False), problem), pipeline)


def pointwise(type_: str, expressions: list[str]) -> Pipeline:
    stages = [{"name": f"s{k}", "dims": ["x"], "value": e} for k, e in enumerate(expressions)]
    image = {"type": type_, "dims": ["x"]}
    return document(stages, [{"name": "a", **image}, {"name": "b", **image}])


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
# Signed overflow of 32 and 64 bits is undefined in Halide; the inputs have 16 bits, so these stay below.
INTEGER_EXPRESSIONS = [
    "a(x) + b(x)", "a(x) - b(x)", "a(x) * b(x)", "a(x) // b(x)", "a(x) % b(x)", "a(x) // 7", "a(x) % 7", "a(x) ** 2",
    "a(x) & b(x)", "a(x) | b(x)", "a(x) ^ b(x)", "~a(x)", "-a(x)", "a(x) << 3", "a(x) >> 2",
    "a(x) < b(x)", "a(x) <= b(x)", "a(x) == b(x)", "a(x) != b(x)", "a(x) >= b(x)", "a(x) > b(x)",
    "not (a(x) < 3) and (b(x) > 5 or a(x) == b(x))", "min(a(x), b(x), 9)", "max(a(x), b(x), 9)",
    "clamp(a(x), 3, 50)", "abs(a(x))", "absd(a(x), b(x))", "a(x) if a(x) < b(x) else b(x) // 2",
    "mux(x % 5, a(x), b(x), a(x) // 3)", "sat_add(a(x), b(x))", "sat_sub(a(x), b(x))", "halving_add(a(x), b(x))",
    "rounding_halving_add(a(x), b(x))", "popcount(a(x))", "count_leading_zeros(a(x))", "count_trailing_zeros(b(x))",
    "as_float32(uint32(a(x)))", "as_int64(float64(a(x)))",
    *(f"{t}(a(x))" for t in INTEGERS), *(f"sat_{t}(a(x))" for t in INTEGERS), "float32(a(x))", "float64(a(x))",
    "bool(a(x))", "random(a(x), x)",
]  # fmt: skip


UNSIGNED_EXPRESSIONS = [
    "lerp(a(x), b(x), uint8(x))", "lerp(a(x), b(x), float32(x % 9) / 9)", "lerp(a(x), b(x), uint16(x * 200))",
    "mul_shift_right(a(x), b(x), 7)", "rounding_shift_right(a(x), 3)", "a(x) << (b(x) % 8)", "a(x) >> (b(x) % 8)",
]  # fmt: skip


@pytest.mark.parametrize("type_", ["uint8", "uint16", "uint32"])
def test_unsigned_idioms(type_: str) -> None:
    check(pointwise(type_, UNSIGNED_EXPRESSIONS))


@pytest.mark.parametrize("type_", ["int8", "int16", "int32"])
def test_signed_idioms(type_: str) -> None:
    check(pointwise(type_, ["mul_shift_right(a(x), b(x), 7)", "rounding_shift_right(a(x), 3)", "a(x) >> (b(x) % 8)"]))


@pytest.mark.parametrize("type_", INTEGERS)
def test_integer_operators(type_: str) -> None:
    check(pointwise(type_, INTEGER_EXPRESSIONS))


FLOAT_EXPRESSIONS = [
    "a(x) + b(x)", "a(x) - b(x)", "a(x) * b(x)", "a(x) / (b(x) + 1)", "a(x) // (b(x) + 1)", "a(x) % (b(x) + 0.5)",
    "a(x) ** 5", "(a(x) + 1) ** -3", "a(x) ** b(x)", "-a(x)", "a(x) < b(x)", "a(x) >= b(x)", "min(a(x), b(x), 0.5)",
    "max(a(x), b(x), 0.5)", "clamp(a(x), 0.25, 0.75)", "abs(a(x) - b(x))", "absd(a(x), b(x))", "lerp(a(x), b(x), 0.3)",
    "sqrt(a(x))", "exp(a(x))", "log(a(x) + 0.1)", "pow(a(x), b(x))", "sin(9 * a(x))", "cos(9 * a(x))", "tan(a(x))",
    "asin(a(x))", "acos(a(x))", "atan(a(x))", "atan2(a(x) - 0.5, b(x) - 0.5)", "tanh(a(x))",
    "floor(9 * a(x) - 4)", "ceil(9 * a(x) - 4)", "round(9 * a(x) - 4)", "trunc(9 * a(x) - 4)", "round(x / 2.0)",
    "uint8(255 * a(x))", "int16(1000 * (a(x) - 0.5))", "sat_uint8(400 * a(x) - 70)", "sat_int8(400 * a(x) - 200)",
    "float32(a(x))", "float64(a(x))", "a(x) if a(x) < b(x) else 2 * b(x)",
]  # fmt: skip


@pytest.mark.parametrize("type_", ["float32", "float64"])
def test_float_operators(type_: str) -> None:
    check(pointwise(type_, FLOAT_EXPRESSIONS))


@pytest.mark.parametrize("type_", ["uint8", "int16", "float32"])
def test_reductions(type_: str) -> None:
    expressions = [
        "sum(a(x + r) for r in range(-2, 3))",
        "sum(int32(a(x + r)) * (r + 1) for r in range(0, 40))",
        "product(a(x + r) % 3 for r in range(0, 3))"
        if type_ != "float32"
        else "product(a(x + r) for r in range(0, 3))",
        "min(a(x + r) for r in range(-2, 3))",
        "max(a(x + r) for r in range(-2, 3))",
        "any(a(x + r) > b(x) for r in range(0, 3))",
        "all(a(x + r) > b(x) for r in range(0, 3))",
        "sum(a(x + r) for r in range(0, 9) if r % 2 == 0)",
        "sum(a(x + r) for r in range(0, 9) if a(x + r) > b(x))",
        "argmin(absd(a(x + r), b(x)) for r in range(-3, 4))[0]",
        "argmin(absd(a(x + r), b(x)) for r in range(-3, 4))[1]",
        "argmax(a(x + r) // 16 + b(x + s) // 16 for r in range(0, 3) for s in range(0, 4))[0]",
        "argmax(a(x + r) // 16 + b(x + s) // 16 for r in range(0, 3) for s in range(0, 4))[1]",
    ]
    check(pointwise(type_, expressions))


@pytest.mark.parametrize("kind", ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant"])
def test_boundaries(kind: str) -> None:
    boundary = {"kind": kind} | ({"value": "7"} if kind == "constant" else {})
    stages = [
        {"name": "near", "dims": ["x", "y"], "value": "image(x - 3, y - 2) + 2 * image(x + 3, y + 2)"},
        {"name": "far", "dims": ["x", "y"], "value": "image(3 * x - 20, y * 2 - 9)"},
        {
            "name": "framed",
            "dims": ["x", "y"],
            "value": "image(x, y) + uint16(1)",
            "boundary": boundary | {"domain": [[2, 11], [3, 7]]},
        },
        {"name": "reader", "dims": ["x", "y"], "value": "framed(x - 4, y + 5)"},
    ]
    check(document(stages, [{"name": "image", "type": "uint16", "dims": ["x", "y"], "boundary": boundary}], dims=2))


def test_updates_tuples_and_storage() -> None:
    plane = {"type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
    stages = [
        {
            "name": "histogram",
            "dims": ["i"],
            "value": "uint32(0)",
            "updates": [
                {
                    "domain": {"rx": [0, "image.extent.x"], "ry": [0, "image.extent.y"]},
                    "at": ["int32(image(rx, ry))"],
                    "value": "histogram(int32(image(rx, ry))) + 1",
                }
            ],
        },
        {
            "name": "scan",
            "dims": ["i"],
            "value": "histogram(i)",
            "updates": [{"domain": {"r": [1, 255]}, "at": ["r"], "value": "scan(r) + scan(r - 1)"}],
        },
        {"name": "both", "dims": ["x", "y"], "value": ["image(x, y) // 2", "float32(image(x, y)) * 0.5"]},
        {"name": "mixed", "dims": ["x", "y"], "value": "float32(both(x, y)[0]) - both(x + 1, y)[1]"},
        {"name": "turned", "dims": ["x", "y"], "value": "image(y, x)", "storage": ["y", "x"]},
    ]
    pipeline = load(
        {
            "format": 1,
            "name": "judged",
            "inputs": [{"name": "image", **plane}],
            "stages": stages,
            "outputs": ["scan", "both", "mixed", "turned"],
            "estimates": {"scan": [[0, 256]], **{n: [[0, 33], [0, 17]] for n in ("both", "mixed", "turned")}},
        }
    )
    check(pipeline)


# ---- random pipelines -----------------------------------------------------------------------------------------------

SEEDS = (*range(16), 92)  # of an input of one element a row, which NumPy and Halide see with different strides


def test_random_pipelines() -> None:
    """Those that Halide can do: it has no 128-bit intermediates and proves fewer bounds than we do."""
    judged_ones = 0
    for seed in SEEDS:
        pipeline = load(random_pipeline(seed))
        params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
        images = random_inputs(pipeline, seed, regions, params)
        arrays = {name: image.array for name, image in images.items()}
        places = {name: tuple(zip(i.min, reversed(i.array.shape), strict=True)) for name, i in images.items()}
        try:
            judge = Judge(pipeline, guarded=False)
        except (hl.HalideError, Untranslatable):
            continue
        expected = interpret(pipeline, images, params, regions)  # refuses images too small, and is first
        got = judge.run(arrays, places, params, regions)
        wrong = [
            f"{name}[{k}]: {what}"
            for name in expected
            for k, (a, b) in enumerate(zip(got[name], expected[name], strict=True))
            if (what := disagreement(a, b))
        ]
        assert not wrong, f"seed {seed}: {wrong}"
        judged_ones += 1
    assert judged_ones >= len(SEEDS) // 2
