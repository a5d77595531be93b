"""Affine forms of indices: constants, coefficients of variables, and terms that are not affine."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.analysis.affine_forms import AffineForm, affine_form
from tilesmith.scheduler.ir.pipeline.expressions import Binary, BinaryOp, Cast, Const, Expr, InputBound, Unary, Var
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, INT64, ScalarType

X, Y = Var("x"), Var("y")
WIDTH = InputBound("f", "extent", "x")


def of(op: BinaryOp, a: Expr, b: Expr, t: ScalarType = INT32) -> Binary:
    return Binary(op, a, b, t)


def n(value: int) -> Const:
    return Const(value, INT32)


@pytest.mark.parametrize(
    ("e", "const", "terms"),
    [
        (n(7), 7, {}),
        (X, 0, {X: 1}),
        (of("-", of("*", n(3), of("+", X, n(2))), Y), 6, {X: 3, Y: -1}),
        (of("+", of("*", of("*", X, n(2)), n(4)), n(-1)), -1, {X: 8}),
        (Unary("-", of("-", X, Y), INT32), 0, {X: -1, Y: 1}),
        (of("-", X, X), 0, {}),
        (of("*", n(0), X), 0, {}),
        (of("+", of("*", X, WIDTH), Y), 0, {of("*", X, WIDTH): 1, Y: 1}),
        (of("+", of("//", X, n(2)), of("//", X, n(2))), 0, {of("//", X, n(2)): 2}),
        (of("+", Cast(of("+", X, n(1)), INT64), Const(2, INT64), INT64), 3, {X: 1}),
    ],
)
def test_constants_and_coefficients(e: Expr, const: int, terms: dict[Expr, int]) -> None:
    assert affine_form(e) == AffineForm(const, terms)


def test_what_is_no_index_is_one_term() -> None:
    e = of("+", Cast(X, FLOAT32), Const(1.0, FLOAT32), FLOAT32)
    assert affine_form(e) == AffineForm(0, {e: 1})


def test_sums_and_multiples() -> None:
    a, b = AffineForm(1, {X: 2, Y: 1}), AffineForm(4, {X: -2})
    assert a.plus(b) == AffineForm(5, {Y: 1})
    assert a.scaled(-3) == AffineForm(-3, {X: -6, Y: -3})
    assert a.scaled(0) == AffineForm(0, {})
