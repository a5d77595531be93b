"""Places in rows that all loads of a loop are counted from."""

from __future__ import annotations

import pytest
from support.lowered import buffer

from tilesmith.scheduler.codegen.c.row_places import counted_from, row_places
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Define, Let, Loop, Prefetch, RowPointer, Statement, Store
from tilesmith.scheduler.ir.loop.values import Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32

ROW, X = Pointer("row"), sym("x")
MEMORY = buffer("f", FLOAT32, ("x", "y"))


def loop(*body: Statement) -> Loop:
    return Loop("q", const(0), const(2), const(1), (RowPointer(ROW, MEMORY, sym("q").scaled(100)), *body))


def load(at: Index, number: int = 0) -> Define:
    return Define(Value(FLOAT32, 8, f"v_{number}"), ops.Load(ROW, at))


def asked(at: Index) -> Prefetch:
    return Prefetch(ROW, at, False, 0)


def test_loads_that_differ_by_numbers_are_counted_from_one_place() -> None:
    body = loop(load(X - 1), load(X + 7, 1), asked(sym("stride") + X + 15))
    assert row_places(body, [ROW]) == {ROW: X}
    assert counted_from(body, {ROW: X}) == loop(load(const(-1)), load(const(7), 1), asked(sym("stride") + 15))
    assert counted_from(body, {}) == body


@pytest.mark.parametrize(
    "body",
    [
        loop(load(X), load(sym("y"), 1)),
        loop(load(const(0)), load(const(1), 1)),
        loop(Let("x", sym("q") + 1), load(X), load(X + 1, 1)),
        loop(load(X), Store(MEMORY, ROW, X, Value(FLOAT32, 8, "v_0"))),
        loop(asked(X)),
    ],
)
def test_rows_without_such_a_place_begin_where_they_are(body: Loop) -> None:
    """At several places, at numbers already, at places that an iteration finds, rows that are written, or not read."""
    assert row_places(body, [ROW]) == {}
    assert row_places(loop(load(X)), []) == {}
