"""Expressions: what they read, the variables that occur in them, and those that are free."""

from __future__ import annotations

from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Const,
    Expr,
    Reduce,
    RVar,
    Var,
    free_variables,
    has_accesses,
    reads_from,
    reduction_loops_of,
    variables_of,
)
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32


def at(name: str, *indices: Expr) -> Access:
    return Access(name, indices, 0, FLOAT32)


def plus(a: Expr, b: Expr) -> Binary:
    return Binary("+", a, b, a.type)


X, Y = Var("x"), Var("y")
LOOP = RVar("r", Const(0, INT32), Const(5, INT32))
WINDOW = Reduce("sum", at("f", plus(X, Var("r")), Y), (LOOP,), None, 0, FLOAT32)
SUM = plus(at("g", plus(Y, X)), WINDOW)
"""g(y + x) + sum(f(x + r, y) for r in range(5))"""


def test_reads_by_name() -> None:
    assert reads_from(SUM, "f")
    assert reads_from(SUM, "g")
    assert not reads_from(SUM, "h")
    assert not reads_from(SUM, "x")
    assert not reads_from(SUM, None)


def test_accesses() -> None:
    assert has_accesses(SUM)
    assert has_accesses(plus(Const(0, FLOAT32), WINDOW))
    assert not has_accesses(plus(X, Const(1, INT32)))


def test_variables_of_several_expressions() -> None:
    assert variables_of(SUM) == {"x", "y", "r"}
    assert variables_of(X, plus(Y, X)) == {"x", "y"}
    assert variables_of() == set()


def test_loops_of_reductions() -> None:
    assert reduction_loops_of(SUM) == {"r"}
    assert reduction_loops_of(X, Y) == set()
    nested = Reduce("max", WINDOW, (RVar("s", Const(0, INT32), X),), None, 0, FLOAT32)
    assert reduction_loops_of(nested, SUM) == {"r", "s"}


def test_free_variables_in_the_order_of_their_occurrence() -> None:
    assert free_variables(SUM) == ("y", "x")
    assert free_variables(WINDOW.body) == ("x", "r", "y")
