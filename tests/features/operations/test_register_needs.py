"""Registers that expressions need."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.features.operations.register_needs import register_need
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


def test_what_is_used_again_stays() -> None:
    again = output("f(x, y) * f(x, y)")
    assert register_need(again, {}, MOST) == 2
    assert register_need(again, {"f": 3.0}, MOST) == 5
