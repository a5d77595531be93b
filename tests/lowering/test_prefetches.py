"""Software prefetches: which lines vectors ask for, how far ahead, and how often."""

from __future__ import annotations

import pytest
from support.planes import X, Y, open_row, planes, statements

from tilesmith.platforms.core import ORDINARY, Core
from tilesmith.platforms.core import Prefetch as CorePrefetch
from tilesmith.scheduler.ir.index import const, maximum, minimum, modulo, sym
from tilesmith.scheduler.ir.loop.program import Prefetch
from tilesmith.scheduler.ir.loop.values import Buffer, Lane
from tilesmith.scheduler.loop_passes.dead_code import prune
from tilesmith.scheduler.lowering.prefetches import Ahead, ask_ahead


def prefetches(
    ahead: Ahead, *lanes: tuple[Lane, ...], memory: Buffer | None = None, core: Core = ORDINARY
) -> list[tuple[int, bool]]:
    """Elements from x on and from y's row on that vectors ask for, a thousand elements a row; and whether far ahead."""
    b = open_row()
    b.core = core
    for one in lanes:
        ask_ahead(b, ahead, memory or planes(), one, b.depth_of(X))
    at: list[tuple[int, bool]] = []
    for s in statements(b):
        if isinstance(s, Prefetch):
            at.append((s.index.value({"x": 0, "y": 0, "f_stride_y": 1000}), s.far))
    return at


def test_vectors_ask_ahead_once_a_line() -> None:
    neighbours = tuple((Lane(X + n, tuple(range(8))), Lane(Y)) for n in (-1, 0, 1))
    assert prefetches(Ahead(512), *neighbours) == [(128 - 1, False)]
    assert prefetches(Ahead(512), (Lane(X, tuple(range(0, 64, 2))), Lane(Y))) == [
        (128 + n, False) for n in range(0, 64, 16)
    ]
    assert prefetches(Ahead(4096), neighbours[1]) == [(1024, True)]
    assert prefetches(Ahead(4096, again=True), neighbours[1]) == [(1024, True), (384, False)]
    assert prefetches(Ahead(512, {"f": {1: 2}}), neighbours[1]) == [(2000 + 128, True)]
    assert prefetches(Ahead(rows={"f": {1: 1}}), neighbours[1]) == [(1000, True)]
    assert prefetches(Ahead(rows={"g": {1: 1}}), neighbours[1]) == []
    assert prefetches(Ahead(rows={"f": {1: 1}}, near=True), neighbours[1]) == [(1000, False), (1016, False)]


def test_rows_that_are_read_from_end_to_begin_are_asked_for_in_that_direction() -> None:
    """Pictures that are turned, whose index may have a name, and loops that go down."""
    back = tuple(range(0, -8, -1))
    assert prefetches(Ahead(512), (Lane(X.scaled(-1), back), Lane(Y))) == [(-7 - 128, False)]
    assert prefetches(Ahead(4096, again=True), (Lane(X.scaled(-1), back), Lane(Y))) == [
        (-7 - 1024, True),
        (-7 - 384, False),
    ]
    b = open_row()
    with b.scope() as body:
        down = b.declare("down", step=-8)
        b.values["turned"], turned = X.scaled(-1) + 9, b.declare("turned")
        for first in (down, turned, turned.scaled(-1)):
            ask_ahead(b, Ahead(512), planes(), (Lane(first, tuple(range(8))), Lane(Y)), b.depth)
    at = {"x": 0, "y": 0, "down": 0, "turned": 0, "f_stride_y": 1000}
    assert [s.index.value(at) for s in body if isinstance(s, Prefetch)] == [-128, -128, 128]


def test_of_rows_that_a_loop_takes_some_at_a_time_as_many_are_new() -> None:
    b = open_row()
    with b.scope() as body:
        y = b.declare("block", step=4)
        for row in range(6):
            ask_ahead(b, Ahead(512), planes(), (Lane(X, tuple(range(8))), Lane(y + row)), b.depth_of(X))
    _, kept = prune((), tuple(body), ())
    assert [(s.place, s.step) for s in kept if isinstance(s, Prefetch)] == [(row, 4) for row in (2, 3, 4, 5)]


@pytest.mark.parametrize("boundary", ["clamped", "repeated", "mirrored"])
def test_rows_are_new_whatever_the_boundary_of_their_image(boundary: str) -> None:
    """Rows lie inside of the image, from `low` on, as most do."""
    b = open_row()
    low, extent = sym("low"), sym("extent")
    turn = {"repeated": extent, "mirrored": extent.scaled(2) - 2}.get(boundary)
    with b.scope() as body:
        y = b.declare("block", step=4)
        for row in range(6):
            inside = y + row
            if turn is not None:
                turned = modulo(y + row - low, turn)
                inside = low + (minimum(turned, turn - turned) if boundary == "mirrored" else turned)
            at = maximum(low, minimum(inside, low + extent - 1))
            ask_ahead(b, Ahead(512), planes(), (Lane(X, tuple(range(8))), Lane(at)), b.depth_of(X))
    _, kept = prune((), tuple(body), ())
    assert [(s.place, s.step) for s in kept if isinstance(s, Prefetch)] == [(row, 4) for row in (2, 3, 4, 5)]


def test_rows_that_two_indices_bound_are_asked_for_one_by_one() -> None:
    """Both move, and neither is a boundary."""
    b = open_row()
    with b.scope() as body:
        y = b.declare("block", step=4)
        for row in range(3):
            at = minimum(y + row, y.scaled(2))
            ask_ahead(b, Ahead(512), planes(), (Lane(X, tuple(range(8))), Lane(at)), b.depth_of(X))
    _, kept = prune((), tuple(body), ())
    assert sum(isinstance(s, Prefetch) for s in kept) == 3


def test_loops_inside_of_a_vector_do_not_ask_for_its_line_again() -> None:
    """The terms of a sum go along the row one by one, or by half a line; or from row to row."""
    b = open_row()
    depth = b.depth_of(X)
    with b.scope() as body:
        i = b.declare("i")
        for at in (Lane(X + i, tuple(range(8))), Lane(Y)), (Lane(X + i.scaled(8), tuple(range(8))), Lane(Y)):
            ask_ahead(b, Ahead(512), planes(), at, depth)
        ask_ahead(b, Ahead(512), planes(), (Lane(X, tuple(range(8))), Lane(Y + i)), depth)
    asked = [s.index.value({"x": 0, "y": 0, "i": 1, "f_stride_y": 1000}) for s in body if isinstance(s, Prefetch)]
    assert asked == [128 + 8, 128]


def test_a_loop_over_vectors_that_stays_where_it_is_asks_for_nothing() -> None:
    """Weights of two channels in turn are the same for each step along a row; rows to come are others."""
    b = open_row()
    with b.scope() as body:
        b.declare("step")
        for ahead in Ahead(512), Ahead(512, {"f": {1: 1}}):
            ask_ahead(b, ahead, planes(), (Lane(X, (0, 1, 0, 1)), Lane(Y)), b.depth)
    at = {"x": 0, "y": 0, "f_stride_y": 1000}
    assert [s.index.value(at) for s in body if isinstance(s, Prefetch)] == [1128]


def test_rows_that_the_loop_around_goes_along_again_are_not_asked_for() -> None:
    """A row of weights is the same for each of the rows that it is for; a row of these is not, nor is one that data
    says, nor one of those that an inner loop goes through."""
    b = open_row()
    vectors = tuple(range(8))
    with b.scope():
        outside = b.declare("outside", ends=(const(0), const(9)))
        with b.scope():
            row = b.declare("row", ends=(const(0), const(99)))
            with b.scope() as body:
                at, told, asked = b.declare("at", ends=(const(0), const(999)), step=8), b.declare("told"), []
                depth = b.depth
                for y in const(3), outside, row, told:
                    ask_ahead(b, Ahead(512), planes(), (Lane(at, vectors), Lane(y)), depth)
                    asked.append(sum(isinstance(s, Prefetch) for s in body))
                with b.scope() as terms:
                    i = b.declare("i", ends=(const(0), const(9)))
                    ask_ahead(b, Ahead(512), planes(name="g"), (Lane(at, vectors), Lane(i)), depth)
    assert asked == [0, 0, 1, 2]
    assert sum(isinstance(s, Prefetch) for s in (*body, *terms)) == 3


def test_what_is_near_is_a_figure_of_the_machine() -> None:
    neighbours = Lane(X, tuple(range(8))), Lane(Y)
    core = Core(prefetch=CorePrefetch(near_bytes=4096, again_bytes=1024))
    assert prefetches(Ahead(4096), neighbours, core=core) == [(1024, False)]
    assert prefetches(Ahead(8192, again=True), neighbours, core=core) == [(2048, True), (256, False)]


def test_who_asks_for_nothing() -> None:
    """Without a distance, of memory of a thread, of one element, and of lanes down a column."""
    row = Lane(X, tuple(range(8))), Lane(Y)
    scratch = planes()
    scratch.where = "thread"
    assert prefetches(Ahead(0), row) == []
    assert prefetches(Ahead(512), row, memory=scratch) == []
    assert prefetches(Ahead(512), (Lane(X), Lane(Y))) == []
    assert prefetches(Ahead(512), (Lane(X, tuple(range(8))), Lane(Y, tuple(range(8))))) == []
