"""Instructions of statements of the loop IR, at estimates of the indices."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.features.work.row_edges import REMAINDER
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, modulo, sym
from tilesmith.scheduler.ir.loop.ops import Binary, FromIndex
from tilesmith.scheduler.ir.loop.program import Define, If, Let, Loop, Statement
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.lowering.code_size import DIVISION, executed

N = sym("n")
ONE = Value(INT32, 1, "a")
FOUR = Value(INT32, 16, "b")


def estimate(x: Index) -> int:
    return x.value({"n": 10})


@pytest.mark.parametrize(
    ("statement", "instructions"),
    [
        (Define(ONE, Binary("+", ONE, ONE)), 1),
        (Define(FOUR, Binary("+", FOUR, FOUR)), 4),
        (Define(FOUR, Binary("%", FOUR, FOUR)), 4 * REMAINDER),
        (Define(FOUR, Binary("//", FOUR, FOUR)), 8 * DIVISION),
        (Let("m", modulo(sym("k"), N)), 2 + REMAINDER),
        (Define(FOUR, Binary("%", FOUR, Value(INT32, literal=3))), 4),
        (Define(ONE, FromIndex(N + 1)), 1),
        (Let("m", maximum(N, const(0))), 2),
        (Let("m", divide(sym("k"), N)), 2 + DIVISION),
        (Loop("i", const(0), N - 1, const(2), (Define(ONE, Binary("+", ONE, ONE)),)), 5),
        (If((N,), (Define(ONE, Binary("+", ONE, ONE)),), None, (Define(FOUR, Binary("+", FOUR, FOUR)),)), 1),
    ],
)
def test_operations_count_for_each_register(statement: Statement, instructions: float) -> None:
    assert executed((statement,), 16, estimate) == instructions
