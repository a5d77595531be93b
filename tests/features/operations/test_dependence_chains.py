"""Chains of dependent operations."""

from __future__ import annotations

import pytest

from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler.features.operations.dependence_chains import chain
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

CORE = ORDINARY.latency_cycles
LOAD, GATHER, FLOAT, QUOTIENT, CHOICE = CORE.load, CORE.gather, CORE.float_sum, CORE.quotient, CORE.choice

INPUTS = [{"name": "f", "type": "float32", "dims": ["x", "y", "c"]}, {"name": "g", "type": "float32", "dims": ["x"]}]


def output(value: str) -> Stage:
    document = {
        "format": 1,
        "name": "p",
        "inputs": INPUTS,
        "stages": [{"name": "out", "dims": ["x", "y", "c"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 64], [0, 3]]},
    }
    return load(document).stages[0]


@pytest.mark.parametrize(
    ("value", "whole", "after"),
    [
        ("f(x, y, c)", LOAD, LOAD),
        ("f(x, y, c) * 2.0 + 1.0", LOAD + 2 * FLOAT, LOAD + 2 * FLOAT),
        ("f(x, y, c) + g(x)", LOAD + FLOAT, LOAD + FLOAT),
        ("f(x, y, 0) + f(x, y, 1) + f(x, y, 2)", LOAD + 2 * FLOAT, LOAD + FLOAT),
        ("f(x, y, 0) * f(x, y, 1) * f(x, y, 2)", LOAD + 2 * FLOAT, LOAD + 2 * FLOAT),
        ("f(x, y, c) ** 2", LOAD + FLOAT, LOAD + FLOAT),
        ("f(x, y, c) ** 5", LOAD + 3 * FLOAT, LOAD + 3 * FLOAT),
        ("clamp(f(x, y, c), 0.0, 1.0)", LOAD + 2 * CHOICE, LOAD + 2 * CHOICE),
        ("select(f(x, y, c) > 0.0, f(x, y, c), 0.0)", LOAD + 2 * CHOICE, LOAD + 2 * CHOICE),
        ("sqrt(f(x, y, c))", LOAD + QUOTIENT, LOAD + QUOTIENT),
        ("as_float32(as_int32(f(x, y, c)) ^ 9)", LOAD + CORE.integer_sum, LOAD + CORE.integer_sum),  # the same register
        ("sum(f(x + i, y, c) for i in range(3))", LOAD + 2.5 * FLOAT, LOAD + FLOAT),
        ("sum(f(x + i, y, c) for i in range(16))", LOAD + 9 * FLOAT, LOAD + FLOAT),  # two chains, and their sum
        ("g(clamp(int32(f(x, y, c)), 0, 9))", None, None),
        ("float32(x) * 2.0", 0.0, 0.0),
    ],
)
def test_chains_are_what_waits_for_loads(value: str, whole: float | None, after: float | None) -> None:
    found = chain(output(value), CORE)
    if whole is None:
        assert found[0] == found[1] > LOAD + GATHER
    else:
        assert found == (whole, after)


@pytest.mark.parametrize(
    ("value", "along", "whole"),
    [
        ("float32(x) * 2.0", "x", CORE.conversion + FLOAT),
        ("exp(float32(x - 7))", "x", CORE.conversion + 14 * FLOAT),
        ("exp(float32(y))", "x", 0.0),  # once a row
        ("g(x + 1)", "x", LOAD),
        ("g(clamp(int32(float32(x) * 0.5), 0, 9))", "x", None),
        ("exp(float32(x)) + f(x, y, c)", "x", CORE.conversion + 15 * FLOAT),
        ("exp(f(0, y, c)) * 2.0", "x", 0.0),  # a value for all of the row
        ("exp(f(0, y, c)) * g(x)", "x", LOAD + FLOAT),
        ("sum(exp(f(0, y, i)) for i in range(3))", "x", 0.0),
        ("sum(exp(f(0, y, i)) for i in range(999))", "x", LOAD + (14 + 999) * FLOAT),  # another in each term
    ],
)
def test_coordinates_along_the_row_that_become_floats_begin_chains(value: str, along: str, whole: float | None) -> None:
    found = chain(output(value), CORE, frozenset(along))[0]
    if whole is None:
        assert found > CORE.conversion + FLOAT + GATHER
    else:
        assert found == whole


def test_latencies_are_those_of_the_machine() -> None:
    stage = output("exp(f(x, y, c)) + sqrt(f(x, y, c))")
    slow = CORE.model_copy(update={"float_sum": 1.0, "quotient": 90.0})
    assert chain(stage, CORE) == (LOAD + 14 * FLOAT + FLOAT,) * 2
    assert chain(stage, slow) == (LOAD + 90 + 1,) * 2
    assert chain(stage, CORE) == (LOAD + 14 * FLOAT + FLOAT,) * 2
