"""Arithmetic of bounds in 64 bits: what surely stays there is computed plainly, the rest sets a flag."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.codegen.c.bounds_overflow import FarSymbols, Magnitudes
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, multiply, sym
from tilesmith.scheduler.ir.loop.program import Fence, Let, OverflowGuard

X, Y, BIG = sym("x"), sym("y"), multiply(multiply(sym("x"), sym("y")), sym("z"))


@pytest.mark.parametrize(
    ("value", "far"),
    [
        (X + Y, False),
        (X.scaled(1 << 40), True),
        (multiply(X, Y), True),
        (X.scaled(1 << 20), False),
        (BIG, True),
        (divide(BIG, 1 << 40), True),  # on the way to it
        (maximum(X, BIG), True),
        (const(1 << 61), False),
    ],
)
def test_what_may_leave_64_bits(value: Index, far: bool) -> None:
    assert Magnitudes(()).far(Let("n", value)) is far


def test_a_name_is_as_large_as_what_it_stands_for() -> None:
    known = Magnitudes(())
    assert not known.far(Let("n", X.scaled(1 << 20)))
    assert known.far(Let("m", sym("n").scaled(1 << 20)))
    assert not known.far(Let("k", X.scaled(1 << 20)))


def test_a_guard_of_what_surely_fits_is_none() -> None:
    known = Magnitudes(())
    assert known.needed(OverflowGuard((), (), (X + Y,))) is None
    assert known.needed(OverflowGuard((), (), (BIG, X))) == OverflowGuard((), (), (BIG,))
    assert known.needed(OverflowGuard((X,), (), (Y,))) == OverflowGuard((X,), (), ())
    assert known.needed(Fence()) == Fence()


def test_sums_and_products_that_may_set_the_flag() -> None:
    text = FarSymbols({}).bare(multiply(X, Y).scaled(3) + X + 7)
    assert text.count("&far)") == 4
    assert "ts_far_product(x, y, &far)" in text
    assert text.endswith(", 7, &far)")
