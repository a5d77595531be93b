"""Widening of factors: all lanes of a contraction of 16 bits multiply by elements of a stage of 16 bits, and the values
stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.random_cases import case_of, judge
from support.tools import require_tool

from tilesmith.platforms import catalog
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search.driver import autoschedule

ZERO = {"kind": "constant", "value": "7"}


def product(value: str, types: tuple[str, str] = ("uint8", "int8"), boundary: dict[str, str] | None = None) -> Pipeline:
    """`out(x, y)` of `a(r, y)` and `b(x, r)`, and of a zero point."""
    a: dict[str, Any] = {"name": "a", "type": types[0], "dims": ["r", "y"]}
    if boundary is not None:
        a["boundary"] = boundary
    inputs = [a, {"name": "b", "type": types[1], "dims": ["x", "r"]}]
    params = [{"name": "z", "type": "uint8", "default": 3}]
    stage = {"name": "out", "dims": ["x", "y"], "value": value}
    of = {"format": 1, "name": "product", "params": params, "inputs": inputs, "stages": [stage]}
    return load({**of, "outputs": ["out"], "estimates": {"out": [[0, 40], [0, 9]]}})


def wide(of: Pipeline) -> list[Stage]:
    """The stages that a pipeline has in normal form only."""
    normal = normalise(of)
    assert normalise(normal) is normal
    known = {s.name for s in of.stages}
    return [s for s in normal.stages if s.name not in known]


def texts(of: Pipeline) -> list[tuple[str, tuple[str, ...]]]:
    return [(to_text(s.values[0]), s.storage) for s in wide(of)]


QUANTISED = "sum((int32(a(r, y)) - int32(z)) * int32(b(x, r)) for r in range(64))"
PLAIN = "sum(int32(a(r, y)) * int32(b(x, r)) for r in range(65))"


def test_what_all_lanes_multiply_by_is_a_stage() -> None:
    assert texts(product(QUANTISED)) == [("int16(a(r, y)) - int16(z)", ("r", "y"))]
    assert texts(product(PLAIN)) == [("int16(a(r, y))", ("r", "y"))]


def test_elements_of_two_products_are_neighbours() -> None:
    """Elements of `b`, of 16 bits, lie a row apart, and come to lie side by side."""
    value = "sum(int32(b(y, r)) * int32(a(x, r)) for r in range(64))"
    assert texts(product(value, ("int16", "int16"))) == [("b(x, r)", ("r", "x"))]


def test_windows_read_one_stage() -> None:
    value = "sum((int32(a(r, 2 * y + 3 * i)) - 5) * int32(b(x + i, r)) for r in range(64) for i in range(3))"
    assert texts(product(value)) == [("int16(a(r, y)) - 5", ("r", "y"))]


def test_a_boundary_is_that_of_the_stage() -> None:
    """The stage has a margin, and its readers test no boundary."""
    value = "sum((int32(a(r, y + i)) - 5) * int32(b(x + i, r)) for r in range(64) for i in range(3))"
    of = product(value, boundary=ZERO)
    (stage,) = wide(of)
    assert "select" in to_text(stage.values[0])
    assert "select" not in to_text(normalise(of).stage("out").values[0])


@pytest.mark.parametrize(
    ("value", "types"),
    [
        (PLAIN, ("int16", "int8")),  # neighbours of 16 bits as they are
        (PLAIN, ("int32", "int8")),  # no products of 16 bits
        ("sum(int32(a(r, y)) * int32(b(r, y)) for r in range(64))", ("uint8", "int8")),  # points share no factor
        ("sum((int32(a(r, y)) - y) * int32(b(x, r)) for r in range(64))", ("uint8", "int8")),  # moves by itself
        ("sum((int32(a(r, y)) - int32(a(r + 1, y))) * int32(b(x, r)) for r in range(64))", ("uint8", "int8")),
        ("sum(int32(a(int32(a(r, 0)), y)) * int32(b(x, r)) for r in range(64))", ("uint8", "int8")),  # data says where
    ],
)
def test_other_factors_stay(value: str, types: tuple[str, str]) -> None:
    assert wide(product(value, types)) == []


@pytest.mark.parametrize("boundary", [None, ZERO, {"kind": "mirror_image"}])
def test_values_stay(boundary: dict[str, str] | None) -> None:
    value = "sum((int32(a(r, y + i)) - int32(z)) * int32(b(x + i, r)) for r in range(65) for i in range(-1, 2))"
    of = product(value, boundary=boundary)
    rng = np.random.default_rng(0)
    at = (-1, 0) if boundary is None else (0, 0)
    rows = 7 if boundary is None else 4
    inputs = {
        "a": Image(rng.integers(0, 256, (rows, 65)).astype(np.uint8), at[::-1]),
        "b": Image(rng.integers(-128, 128, (65, 9)).astype(np.int8), (-1, 0)),
    }
    region = {"out": ((0, 7), (0, 5))}
    before, after = (interpret(p, inputs, {"z": 11}, region)["out"][0] for p in (of, normalise(of)))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
@pytest.mark.parametrize("value", [QUANTISED, PLAIN])
def test_code_is_right(platform: str, value: str) -> None:
    require_tool("gcc")
    of = product(value)
    schedule = autoschedule(of, catalog.load(platform)).schedule
    assert judge(case_of(of, schedule, 1), ["-O0"]) is None
