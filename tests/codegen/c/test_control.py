"""Control flow and sizes as lines of C."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.lowered import buffer

from tilesmith.scheduler.codegen.c.control import advanced, opened, peeled, strides
from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.program import ClampedIndex, Extents, Loop, PeelVectors
from tilesmith.scheduler.ir.pipeline.types import FLOAT32

SYMBOLS = Symbols({"out.min.x": "out_min_x"})
ROW = PeelVectors("first", "last", "from", "to", sym("out.min.x"), sym("end"), 8, 1)
LOOP = Loop("x", const(0), sym("hi"), const(1), ())


def test_a_row_is_peeled_where_the_last_vector_fits() -> None:
    assert peeled(SYMBOLS, ROW) == [
        "const int64_t first = out_min_x;",
        "const int64_t last = ts_last_vector(first, end - 8, 8);",
        "const int64_t from = first, to = last + 8;",
    ]


def test_aligned_vectors_begin_at_the_next_multiple() -> None:
    assert peeled(SYMBOLS, replace(ROW, align=4)) == [
        "const int64_t first = (out_min_x + 3) >> 2;",
        "const int64_t last = ts_last_vector(first, (end - 8) >> 2, 2);",
        "const int64_t from = 4 * first, to = 4 * last + 8;",
    ]


def test_where_what_is_given_does_not_hold_there_is_no_vector() -> None:
    found = peeled(SYMBOLS, replace(ROW, given=(sym("a") - 1, sym("b"))))
    assert found[1] == "const int64_t last = (a - 1) >= 0 && b >= 0 ? ts_last_vector(first, end - 8, 8) : first - 8;"


@pytest.mark.parametrize(("step", "text"), [(const(1), "x++"), (const(8), "x += 8"), (sym("n") + 1, "x += n + 1")])
def test_steps(step: object, text: str) -> None:
    assert advanced(SYMBOLS, replace(LOOP, step=step)) == text


def test_a_plain_loop_begins_with_its_body() -> None:
    assert opened(SYMBOLS, LOOP) == []


def test_what_is_skipped_is_jumped_over() -> None:
    """Steps of one meet its beginning; longer ones may land inside."""
    skip = sym("from"), sym("to")
    assert opened(SYMBOLS, replace(LOOP, skip=skip)) == ["    if (x == from && (x = to) > hi) break;"]
    assert opened(SYMBOLS, replace(LOOP, skip=skip, step=const(8))) == [
        "    if (x >= from && x < to && (x = to) > hi) break;"
    ]


def test_the_index_that_the_body_sees_is_clamped() -> None:
    def seen(first: object, last: object) -> list[str]:
        return opened(SYMBOLS, replace(LOOP, seen=ClampedIndex("v", first, last)))

    assert seen(None, sym("last")) == ["    const int64_t v = x < last ? x : last;"]
    assert seen(sym("a"), None) == ["    const int64_t v = ts_max(x, a);"]
    assert seen(sym("a"), sym("last")) == ["    const int64_t v = x < last ? ts_max(x, a) : last;"]


def test_rows_and_planes_have_a_pitch() -> None:
    memory = buffer("f", FLOAT32, ("x", "y", "c"))
    extents = sym("w"), sym("h"), const(3)
    lines, elements = strides(SYMBOLS, Extents(memory, (0, 1, 2), extents))
    assert lines == [
        "const int64_t f_stride_y = ts_pitch(w, sizeof(float));",
        "const int64_t f_stride_c = ts_pitch(ts_times(f_stride_y, h), sizeof(float));",
    ]
    assert elements == "ts_times(f_stride_c, 3)"


def test_a_single_row_is_dense_and_a_point_is_one() -> None:
    assert strides(SYMBOLS, Extents(buffer("f", FLOAT32), (0,), (sym("w") + 2,))) == ([], "(w + 2)")
    memory = buffer("f", FLOAT32, ())
    assert strides(SYMBOLS, Extents(memory, (), ())) == ([], "1")


def test_interleaved_channels_lie_dense_and_rows_of_pixels_have_the_pitch() -> None:
    memory = buffer("f", FLOAT32, ("c", "x", "y"))
    memory.channels, memory.pixels = 3, 1
    lines, elements = strides(SYMBOLS, Extents(memory, (0, 1, 2), (const(3), sym("w"), sym("h"))))
    assert lines == [
        "const int64_t f_stride_x = 3;",
        "const int64_t f_stride_y = ts_pitch(ts_times(f_stride_x, w), sizeof(float));",
    ]
    assert elements == "ts_times(f_stride_y, h)"
