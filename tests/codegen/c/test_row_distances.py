"""Distances of rows."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.codegen.c.row_distances import apart, products
from tilesmith.scheduler.ir.index import Index, const, modulo, multiply, sym

X, Y, Z, PITCH, PLANE = (sym(name) for name in ("x", "y", "z", "pitch", "plane"))


def at(y: Index, z: Index) -> Index:
    return multiply(y, PITCH) + multiply(z, PLANE) - X


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        (at(Y + 3, Z), at(Y + 1, Z), PITCH.scaled(2)),
        (at(Y, Z - 1), at(Y, Z), PLANE.scaled(-1)),
        (at(Y, Z) + 5, at(Y, Z), const(5)),
        (at(Y, Z), at(Y + 1, Z + 1), None),
        (at(Y, Z), at(Y + X, Z), None),
        (at(modulo(Y, 4), Z), at(modulo(Y + 1, 4), Z), None),
    ],
)
def test_how_far_a_row_is_from_another(one: Index, other: Index, distance: Index | None) -> None:
    assert apart(one, other) == distance


def test_rows_a_number_of_strides_apart_have_the_same_products() -> None:
    assert products(at(Y + 3, Z)) == products(at(Y, Z - 1))
    assert products(at(Y, Z)) != products(at(Y + X, Z))
