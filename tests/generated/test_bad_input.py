"""Input that no estimate thinks of: nothing to reduce, domains of no extent, NaN and infinity, tables that are too
short. What comes out is defined (docs/pipeline-format.md), and the same as the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.buffers import E_ARGUMENT, E_REGION, OK, invoke, query, region_of, view
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.random_schedules import random_schedule

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, RegionError
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

N = 37


def pipeline_of(value: Any, type_: str = "float32", updates: tuple = (), params: tuple = (), **more: Any) -> Pipeline:
    """One stage over x (and what reads it), from an input of that type and perhaps params."""
    stages = [{"name": "made", "dims": ["x"], "value": value, "updates": list(updates)}]
    components = len(value) if isinstance(value, list) else value.count("argm") * 2
    reads = [f"made(x)[{k}]" for k in range(components)] if components else ["made(x)"]
    stages.append({"name": "out", "dims": ["x"], "value": reads if components else reads[0]})
    return load(
        {
            "format": 1,
            "name": "odd",
            "params": list(params),
            "inputs": [{"name": "input", "type": type_, "dims": ["x"], "boundary": {"kind": "repeat_edge"}}],
            "stages": stages,
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]], "input": [[0, 64]]},
            **more,
        }
    )


def sources(pipeline: Pipeline) -> list[CSource]:
    """C by the method, relaxed and strict, and by a schedule drawn at random."""
    made = [compile_pipeline(pipeline, here(), Options(strict=strict)).source for strict in (False, True)]
    schedule = random_schedule(pipeline, 2)
    check(rewrite(pipeline, schedule))
    return [*made, source_of(pipeline, schedule, here())]


def agrees(pipeline: Pipeline, array: np.ndarray, *params: dict[str, int]) -> None:
    """Bit for bit, but for a zero's sign and what bits a NaN has."""
    inputs, regions, calls = {"input": Image(array, (0,))}, {"out": ((-2, N),)}, params or ({},)
    expected = [interpret(pipeline, inputs, given, regions)["out"] for given in calls]
    for source in sources(pipeline):
        library = build(source)
        for given, right in zip(calls, expected, strict=True):
            status, got = call(library, source, pipeline, inputs, given, regions)
            assert status == OK
            for a, b in zip(got["out"], right, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=str(given))


INTEGERS = np.arange(N, dtype=np.int32) * 37 % 11 - 5
COUNT = {"name": "n", "type": "int32", "default": 3, "min": -4, "max": 6}
COUNTS = [{"n": n} for n in (-4, -1, 0, 1, 2, 6)]


# Nothing to reduce


@pytest.mark.parametrize("type_", ["int32", "uint8", "float32"])
def test_reductions_over_nothing(type_: str) -> None:
    ops = ("sum", "product", "min", "max")
    pipeline = pipeline_of([f"{op}(input(x + r) for r in range(n))" for op in ops], type_, params=(COUNT,))
    agrees(pipeline, INTEGERS.astype(type_), *COUNTS)
    none = interpret(pipeline, {"input": Image(INTEGERS.astype(type_), (0,))}, {"n": 0}, {"out": ((0, 1),)})["out"]
    ends = (-np.inf, np.inf) if type_ == "float32" else (np.iinfo(type_).min, np.iinfo(type_).max)
    assert [values[0] for values in none] == [0, 1, ends[1], ends[0]]


def test_conditions_of_nothing() -> None:
    values = [f"{op}(input(x + r) > 2 for r in range(n))" for op in ("any", "all")]
    agrees(pipeline_of(values, "int32", params=(COUNT,)), INTEGERS, *COUNTS)


@pytest.mark.parametrize(
    ("op", "type_", "where"),
    [("argmin", "int32", ""), ("argmin", "float32", " if input(x + r) > 100"),
     ("argmax", "int32", " if input(x + r) > 100"), ("argmax", "float32", "")],
)  # fmt: skip
def test_the_best_of_nothing_is_the_first_point_and_the_worst_value(op: str, type_: str, where: str) -> None:
    pipeline = pipeline_of(f"{op}(input(x + r) for r in range(2, 2 + n){where})", type_, params=(COUNT,))
    agrees(pipeline, INTEGERS.astype(type_), *COUNTS)
    inputs = {"input": Image(INTEGERS.astype(type_), (0,))}
    at, best = interpret(pipeline, inputs, {"n": 0}, {"out": ((0, 1),)})["out"]
    ends = (-np.inf, np.inf) if type_ == "float32" else (np.iinfo(type_).min, np.iinfo(type_).max)
    assert (at[0], best[0]) == (2, ends[op == "argmin"])


@pytest.mark.parametrize(
    "update",
    [
        {"domain": {"r": [0, "n"]}, "at": ["r"], "value": "made(r) + 1"},
        {"domain": {"r": [3, "n"]}, "at": ["x"], "value": "made(x) * 2 + input(x - r)"},
        {"domain": {"r": [1, "n"], "s": [0, "n - 2"]}, "at": ["r + s"], "value": "made(r + s - 1) + made(r + s)"},
        {"domain": {"r": [0, 9]}, "where": "input(r) > 100", "at": ["r"], "value": "0"},
    ],
    ids=["scatter", "sum", "scan", "never"],
)
def test_updates_over_nothing_change_nothing(update: dict[str, Any]) -> None:
    pipeline = pipeline_of("input(x)", "int32", (update,), (COUNT,) if "n" in str(update["domain"]) else ())
    agrees(pipeline, INTEGERS, *(COUNTS if pipeline.params else ({},)))


def test_a_boundary_around_a_domain_of_no_extent() -> None:
    """It is its first point; nothing, if the boundary is a constant."""
    kinds = ("repeat_edge", "mirror_image", "mirror_interior", "repeat_image", "constant")
    stages = [
        {
            "name": kind,
            "dims": ["x"],
            "value": "input(x)",
            "boundary": {"kind": kind, **({"value": "9"} if kind == "constant" else {}), "domain": [[2, "n"]]},
        }
        for kind in kinds
    ]
    reads = {"name": "out", "dims": ["x"], "value": [f"{kind}(x) + {kind}(x + 1)" for kind in kinds]}
    agrees(pipeline_of("0", "int32", params=(COUNT,), stages=[*stages, reads]), INTEGERS, *COUNTS)


@pytest.mark.parametrize("extent", [0, -1, -(2**31)])
def test_outputs_of_no_extent_are_refused(extent: int) -> None:
    pipeline = pipeline_of("input(x) + 1", "int32")
    source = compile_pipeline(pipeline, here()).source
    out = view(np.zeros(N, np.int32), (0,))
    out.extent[0] = extent
    assert invoke(build(source), source, [view(INTEGERS, (0,)), out]) == E_ARGUMENT
    with pytest.raises(ArgumentError, match="the region is empty"):
        interpret(pipeline, {"input": Image(INTEGERS, (0,))}, {}, {"out": ((0, extent),)})


# NaN and infinity

ODD = np.tile([1.5, np.nan, -np.inf, 0.0, np.inf, -np.nan, -2.5, 3e38, -3e38, 255.7, 1e10, -0.0], 4)[:N]
VALUES = [
    "min(input(x), input(x + 1))", "max(input(x), input(x + 1))", "min(input(x), 1.0)", "max(1.0, input(x))",
    "clamp(input(x), -1.0, 2.0)", "max(min(input(x), 2.0), -1.0)", "abs(input(x))", "-input(x)",
    "select(input(x) < input(x + 1), 1, 2)", "select(input(x) >= input(x + 1), 1, 2)",
    "select(input(x) == input(x), 1, 2)", "select(input(x) != input(x + 1), input(x), 7.0)",
    "select(not (input(x) > 0.0), 1, 2)", "floor(input(x))", "round(input(x))", "input(x) + input(x + 1)",
    "min(input(x + r) for r in range(3))", "max(input(x + r) for r in range(3))",
    "any(input(x + r) > 1.0 for r in range(3))", "all(input(x + r) > -1.0 for r in range(3))",
    "argmin(input(x + r) for r in range(4))[0]", "argmax(input(x + r) for r in range(4))[1]",
    "sqrt(abs(input(x)))",
]  # fmt: skip
TYPES = ["bool"] + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("type_", ["float32", "float64"])
@pytest.mark.parametrize("part", range(3))
def test_not_a_number_and_infinity(part: int, type_: str) -> None:
    agrees(pipeline_of(VALUES[part::3], type_), ODD.astype(type_))


@pytest.mark.parametrize("type_", ["float32", "float64"])
def test_conversions_of_not_a_number_and_infinity(type_: str) -> None:
    """All at once: NaN is 0 (True as a bool), what is beyond a type is its nearest end."""
    agrees(pipeline_of([f"{t}(input(x))" for t in TYPES], type_), ODD.astype(type_))
    agrees(pipeline_of([f"sat_{t}(input(x))" for t in TYPES[1:]], type_), ODD.astype(type_))


def test_places_made_of_not_a_number() -> None:
    """Bounds with the number second hold for NaN as well."""
    for index in (
        "int32(clamp(input(x), 0.0, 9.0))",
        "int32(max(min(input(x), 9.0), 0.0))",
        "clamp(int32(input(x)), 0, 9)",
    ):
        table = {"name": "table", "dims": ["i"], "value": "i * i"}
        reads = {"name": "out", "dims": ["x"], "value": f"table({index})"}
        agrees(pipeline_of("0", stages=[table, reads]), ODD.astype(np.float32))


# Places that data says, beyond what is there


def test_a_table_that_is_shorter_than_what_data_may_ask_for() -> None:
    """All 256 places of a byte are required, whatever the bytes are; the query says so before anything is read."""
    pipeline = load(
        {
            "format": 1,
            "name": "lookup",
            "inputs": [
                {"name": "input", "type": "uint8", "dims": ["x"]},
                {"name": "table", "type": "int32", "dims": ["i"]},
            ],
            "stages": [{"name": "out", "dims": ["x"], "value": "table(input(x))"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64]]},
        }
    )
    data, table, out = np.zeros(N, np.uint8), np.arange(256, dtype=np.int32), np.full(N, 7, np.int32)
    for source in sources(pipeline):
        library = build(source)
        for cut in (table[:255], table[1:], table[:1]):
            told = view(cut, (0,))
            assert invoke(library, source, [view(data, (0,)), told, view(out, (0,))]) == E_REGION
            assert region_of(told) == ((0, 256),)
            assert (out == 7).all()
        told = query(((0, 1),))
        assert invoke(library, source, [view(data, (0,)), told, view(out, (0,))]) == E_REGION
        assert region_of(told) == ((0, 256),)
        assert invoke(library, source, [view(data, (0,)), view(table, (0,)), view(out.copy(), (0,))]) == OK
    with pytest.raises(RegionError, match=r"table"):
        # it looks at the bytes that there are
        interpret(
            pipeline, {"input": Image(data + 255, (0,)), "table": Image(table[:255], (0,))}, {}, {"out": ((0, N),)}
        )
