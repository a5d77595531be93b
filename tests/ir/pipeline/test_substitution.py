"""Substitution of variables: all at once, none that a reduction binds, and what has none of them stays."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Const, Expr, Reduce, RVar, Var
from tilesmith.scheduler.ir.pipeline.substitution import substituted, substitution
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32

X, Y, R = Var("x"), Var("y"), Var("r")


def plus(a: Expr, b: Expr) -> Binary:
    return Binary("+", a, b, a.type)


def at(x: Expr, y: Expr) -> Access:
    return Access("f", (x, y), 0, FLOAT32)


WINDOW = Reduce("sum", at(plus(X, R), Y), (RVar("r", Const(0, INT32), plus(Y, R)),), None, 0, FLOAT32)
LEFT = at(plus(X, Const(1, INT32)), Const(0, INT32))
SUM = plus(LEFT, WINDOW)
"""f(x + 1, 0) + sum(f(x + r, y) for r in range(y + r))"""


@pytest.mark.parametrize(
    "variables",
    [{}, {"x": X}, {"x": Y, "y": X}, {"y": plus(Y, Const(2, INT32))}, {"r": Const(7, INT32), "x": X}, {"z": X}],
    ids=str,
)
def test_many_substitutions_are_one_after_the_other(variables: dict[str, Expr]) -> None:
    put = substitution(SUM)
    for _ in range(2):
        assert put(variables) == substituted(SUM, variables)


def test_a_bound_variable_is_not_replaced() -> None:
    assert substitution(SUM)({"r": Const(7, INT32)}) == SUM


def test_parts_without_the_variables_stay() -> None:
    put = substitution(SUM)
    found = put({"y": plus(Y, Const(2, INT32)), "x": X})
    assert isinstance(found, Binary)
    assert found.left is LEFT
    assert put({"x": X}) is SUM
