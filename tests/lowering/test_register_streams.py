"""Streams of registers: which vectors of a row are kept, and lanes of two of them."""

from __future__ import annotations

import pytest
from support.builders import builder
from support.lowered import LANES, pipeline

from tilesmith.scheduler.ir.index import divide, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Shuffle
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32
from tilesmith.scheduler.lowering.register_streams import Stream, Streams, mask_bits

STAGE = pipeline("f(x)").stages[0]


def stream(lead: int, least: int) -> Stream:
    return Stream(STAGE, 0, (), most=lead, least=least, first=sym("lo"), last=sym("hi"), within=(0, 0), lead=lead)


def streams(b: Builder, planning: bool) -> Streams:
    ends = (sym("lo"), sym("hi"))
    return Streams({"out": 0}, {"out": STAGE}, {}, sym("x"), LANES, planning, b, frozenset(), ends=ends)


def one_ahead() -> tuple[Builder, Streams, Value, Value]:
    """Streams of a row that is computed a vector ahead: with that vector, and the one before it."""
    b = builder()
    own, before = Value(FLOAT32, LANES, "own"), Value(FLOAT32, LANES, "before")
    row = streams(b, planning=False)
    row.known["out", 0, ()] = stream(LANES, 0)
    row.known["out", 0, ()].previous = [before]
    row.compute = lambda _: own
    return b, row, own, before


@pytest.mark.parametrize(
    ("value", "bits"), [("f(x)", 0), ("uint8(f(x)) > 3", 8), ("uint8(f(x)) > 3 and f(x) > 0.5", 32)]
)
def test_a_mask_is_as_wide_as_what_is_compared(value: str, bits: int) -> None:
    assert mask_bits(pipeline(value).stages[0], 0) == bits


@pytest.mark.parametrize(
    ("lead", "least", "vectors"), [(0, 0, 0), (8, 8, 0), (8, 1, 1), (8, 0, 1), (8, -1, 2), (0, -8, 1)]
)
def test_as_many_vectors_are_kept_as_readers_reach_back(lead: int, least: int, vectors: int) -> None:
    assert stream(lead, least).history(LANES) == vectors


def test_planning_notes_how_far_readers_reach() -> None:
    b = builder()
    planned = streams(b, planning=True)
    for shift in (2, -1, 0):
        assert planned.read("out", 0, (Lane(sym("x") + shift, tuple(range(LANES))),)) is not None
    found = planned.known["out", 0, ()]
    assert (found.least, found.most, found.first, found.last) == (-1, 2, sym("lo") - 1, sym("hi") + 2)


def test_planning_notes_what_is_needed_where_lanes_are_in_another_order() -> None:
    """A row needs whole periods at most, and for certain what any lane reads from there on."""
    planned = streams(builder(), planning=True)
    assert planned.read("out", 0, (Lane(sym("x") + 2, (3, 2, 1, 0, 7, 6, 5, 4)),)) is not None
    found = planned.known["out", 0, ()]
    assert (found.least, found.most) == (2, 2)
    whole = [divide(sym(end), 4).scaled(4) for end in ("lo", "hi")]
    assert (found.first, found.last) == (whole[0] + 2, whole[1] + 5)
    assert found.within == (2 + 3, 2 - 3)


def test_lanes_in_another_order_are_picked_from_the_vectors_that_have_them() -> None:
    b, row, _, before = one_ahead()
    picked = row.read("out", 0, (Lane(sym("x"), tuple(reversed(range(LANES)))),))
    assert b.scopes[0].statements == [Define(picked, Shuffle(before, before, tuple(reversed(range(LANES)))))]


def test_what_is_not_along_the_row_is_not_at_hand() -> None:
    planned = streams(builder(), planning=True)
    assert planned.read("out", 0, (Lane(sym("x"), (0, 1)),)) is None
    assert planned.read("out", 0, (Lane(sym("y"), tuple(range(LANES))),)) is None
    assert planned.read("out", 0, (Lane(sym("x")),)) is None
    assert planned.known == {}


def test_a_shift_takes_lanes_of_two_vectors() -> None:
    b, row, own, before = one_ahead()
    assert row.read("out", 0, (Lane(sym("x") + LANES, tuple(range(LANES))),)) is own
    assert row.read("out", 0, (Lane(sym("x"), tuple(range(LANES))),)) is before
    moved = row.read("out", 0, (Lane(sym("x") + 3, tuple(range(LANES))),))
    assert b.scopes[0].statements == [Define(moved, Shuffle(before, own, tuple(range(3, 3 + LANES))))]
