"""Interleaved channels: lanes are picked of several vectors by shuffles of two."""

from __future__ import annotations

import pytest
from support.builders import builder
from support.lowered import buffer

from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.printer import print_body
from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, UINT8
from tilesmith.scheduler.lowering.access import Access
from tilesmith.scheduler.lowering.interleaved_channels import apart, channel_of, expect_channels, picked

PIXELS = Lane(sym("x"), tuple(range(4)))


def vectors(count: int) -> list[Value]:
    return [Value(FLOAT32, 4, f"v{n}") for n in range(count)]


@pytest.mark.parametrize(("count", "shuffles"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_vectors_are_joined_by_shuffles_of_two(count: int, shuffles: int) -> None:
    b = builder()
    found = picked(b, vectors(count), [(n % count, n) for n in range(4)])
    assert (found.lanes, len(b.scopes[0].statements)) == (4, shuffles)


def test_the_third_of_three_joins_what_the_first_two_gave() -> None:
    b = builder()
    picked(b, vectors(3), [(0, 0), (0, 3), (1, 2), (2, 1)])
    assert print_body(tuple(b.scopes[0].statements)).splitlines() == [
        "%v0_0 = shuffle %v0, %v1 [0, 3, 6, 0] : f32x4",
        "%v0_0_0 = shuffle %v0_0, %v2 [0, 1, 2, 5] : f32x4",
    ]


def test_elements_apart_come_from_vectors_that_end_with_the_last() -> None:
    b = builder()
    image = Access(buffer("f", UINT8), (), UINT8)
    row = image.buffer.pointer
    assert apart(b, image, row, sym("x"), [0, 3, 6, 9]) is not None
    assert [line.split(" : ")[0] for line in print_body(tuple(b.scopes[0].statements)).splitlines()[:2]] == [
        "%f_0 = load f[x]",
        "%f_1 = load f[x + 2]",
    ]
    assert apart(b, image, row, sym("x"), [0, 1000]) is None


def test_a_channel_is_told_where_pixels_are_granted_to_lie_side_by_side() -> None:
    b = builder()
    image = buffer("f", UINT8, ("c", "x"))
    expect_channels(image, ("c", "x"), 3)
    assert (image.channels, image.pixels) == (3, 1)
    assert channel_of(b, image, (Lane(const(2)), PIXELS)) is None
    with b.scope(given=[]):
        assert channel_of(b, image, (Lane(const(2)), PIXELS)) == const(2)
        assert channel_of(b, image, (Lane(const(3)), PIXELS)) is None
        assert channel_of(b, image, (PIXELS, Lane(sym("y")))) is None
