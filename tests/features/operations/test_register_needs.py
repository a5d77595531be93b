"""Registers that expressions need."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.features.operations.register_needs import literals, register_need
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

MOST = 8.0


def output(value: str) -> Stage:
    document = {
        "format": 1,
        "name": "p",
        "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 64]], "f": [[0, 72], [0, 72]]},
    }
    return load(document).stages[0]


@pytest.mark.parametrize(
    ("value", "registers"),
    [
        ("1.0", 0),
        ("f(x, y)", 1),
        ("f(x, y) * 2.0", 1),
        ("f(x, y) * f(x + 1, y)", 2),
        ("f(x, y) * f(x + 1, y) * f(x + 2, y)", 2),  # beside the product so far
        ("(f(x, y) * f(x + 1, y)) * (f(x + 2, y) * f(x + 3, y))", 3),
        ("f(x, y) + f(x + 1, y) + f(x + 2, y) + f(x + 3, y)", 2),
        ("f(x, y) * f(x + 1, y) + f(x + 2, y) * f(x + 3, y)", 3),
        ("sum(f(x + k, y) for k in range(0, 9))", 2),
        ("exp(f(x, y))", MOST),
    ],
)
def test_operations_come_after_their_operands(value: str, registers: float) -> None:
    assert register_need(output(value), {}, MOST) == registers


def test_stages_that_are_inlined_need_theirs() -> None:
    product = output("f(x, y) * f(x + 1, y)")
    assert register_need(product, {"f": 3.0}, MOST) == 4
    assert register_need(product, {"f": 30.0}, MOST) == MOST
    assert register_need(product, {"f": 3.0, "of_others": 9.0}, MOST) == 4
    assert register_need(product, {"of_others": 9.0}, MOST) == register_need(product, {}, MOST) == 2


def test_what_is_used_again_stays() -> None:
    again = output("f(x, y) * f(x, y)")
    assert register_need(again, {}, MOST) == 2
    assert register_need(again, {"f": 3.0}, MOST) == 5


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("f(x, y) * 0.25 + f(x + 1, y) * 0.5 + f(x + 2, y) * 0.25", {0.25: 2, 0.5: 1}),
        ("f(x + 3, y)", {}),  # places are scalars, and loops are split by them
        ("f(x, y) if x >= 8 else f(x, y) * 2.0", {2.0: 1}),
        ("f(x, y) + 2.0 * 3.0", {}),  # nor what is known before: the sum takes the product
        ("max(f(x, y), 0.0)", {0.0: 1}),
        ("(int32(f(x, y)) + 5) * 3 // 4 >> 1", {5.0: 1}),
    ],
)
def test_literals_are_those_that_operations_take_from_registers(value: str, found: dict[float, int]) -> None:
    assert {number: uses for (_, number), uses in literals(output(value)).items()} == found
