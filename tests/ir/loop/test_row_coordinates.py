"""Coordinates of rows, to the offset and back."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.ir.index import Index, const, modulo, multiply, sym
from tilesmith.scheduler.ir.loop.row_coordinates import row_coordinates, row_offset
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.types import FLOAT32

X_LO, Y_LO, PITCH, PLANE = sym("x_lo"), sym("y_lo"), sym("pitch"), sym("plane")


def image(origin: Index = Y_LO, ring: int | None = None) -> Buffer:
    return Buffer(
        "image", 0, FLOAT32, ("x", "y", "c"), 0, "call",
        pointer=Pointer("image_0"),
        origin=[X_LO, origin, const(0)],
        stride=[const(1), PITCH, PLANE],
        ring=[None, ring, None],
        extent=[const(64), const(64), const(3)],
    )  # fmt: skip


@pytest.mark.parametrize("y", [sym("y"), sym("y").scaled(2) + 3, const(7), sym("y") + sym("z")])
@pytest.mark.parametrize("c", [sym("c"), sym("c") + 1, const(2)])
@pytest.mark.parametrize("ring", [None, 4])
def test_what_an_offset_is_made_of_is_found_in_it(y: Index, c: Index, ring: int | None) -> None:
    b = image(ring=ring)
    found = row_coordinates(b, row_offset(b, (y, c)))
    assert found is not None
    assert found[1] == c
    assert row_offset(b, found) == row_offset(b, (y, c))
    if ring is None:
        assert found[0] == y


def test_the_first_row_needs_no_index() -> None:
    b = image()
    assert row_coordinates(b, const(0) - X_LO) == (None, None)
    assert row_offset(b, (None, None)) == row_offset(b, (Y_LO, const(0)))


def test_a_row_of_a_ring_is_told_by_its_remainder() -> None:
    assert row_coordinates(image(ring=4), multiply(modulo(sym("y") + 6, 4), PITCH) - X_LO) == (sym("y") + 2, None)


def test_a_place_that_is_no_row_has_no_coordinates() -> None:
    b = image()
    assert row_coordinates(b, row_offset(b, (sym("y"), sym("c"))) + sym("x")) is None
    assert row_coordinates(b, row_offset(b, (sym("y"), None)) + 1) is None
    assert row_coordinates(b, multiply(sym("y"), PITCH).scaled(2) - X_LO) is None


def test_coordinates_mention_what_the_offset_does() -> None:
    """A tile begins at `tile`, which the loop around may not know any more."""
    b = image(origin=sym("tile"))
    assert row_coordinates(b, row_offset(b, (sym("tile") + 1, sym("c")))) is None
    assert row_coordinates(b, row_offset(b, (sym("y"), sym("c")))) == (sym("y"), sym("c"))
