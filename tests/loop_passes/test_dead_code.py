"""Dead-code elimination: definitions that nothing uses are left out; those that stores, loops and conditions need
stay."""

from __future__ import annotations

from dataclasses import replace

from scheduler.ir.index import const, sym
from scheduler.ir.loop.builder import literal
from scheduler.ir.loop.program import (
    Accumulator,
    Assign,
    Buffer,
    Comment,
    Define,
    If,
    Let,
    Loop,
    Mutable,
    Row,
    SetIndex,
    Statement,
    Store,
    Value,
    VectorSplit,
)
from scheduler.ir.pipeline.types import BOOL, INT32
from scheduler.loop_passes.dead_code import prune

BUFFER = Buffer("f", 0, INT32, ("x",), 0, "argument", pointer="data")


def value(name: str) -> Value:
    return Value(INT32, 1, name)


def load(name: str, row: str = "data", at: str = "i") -> Define:
    return Define(value(name), "load", (sym(at),), (row,))


def store(name: str, row: str = "data", at: str = "i") -> Store:
    return Store(BUFFER, row, sym(at), value(name))


def loop(*body: Statement, hi: str = "n", var: str = "i") -> Loop:
    return Loop(var, const(0), sym(hi), const(1), body)


def body_of(*statements: Statement) -> tuple[Statement, ...]:
    return prune((), statements, ())[1]


def test_a_place_in_a_row_of_vectors_that_nothing_uses_is_left_out() -> None:
    split = VectorSplit("first", "last", "from", "to", sym("lo"), sym("end"), 4, 1)
    loops = [replace(loop(load("a", at=at), store("a", at=at)), last=("v", "last")) for at in ("v", "n")]
    assert body_of(split, loops[0]) == (split, loops[0])
    assert body_of(split, loops[1]) == (split, replace(loops[1], last=None))


def test_values_that_are_not_stored_are_left_out() -> None:
    used, unused = load("a"), load("b")
    assert body_of(loop(used, unused, store("a"))) == (loop(used, store("a")),)


def test_a_chain_of_values_stays_or_goes_together() -> None:
    chain = (
        load("a"),
        Define(value("b"), "+", (value("a"), literal(1, INT32))),
        Define(value("c"), "neg", (value("b"),)),
    )
    assert body_of(loop(*chain, store("c"))) == (loop(*chain, store("c")),)
    assert body_of(loop(*chain, load("d"), store("d"))) == (loop(load("d"), store("d")),)


def test_loops_without_effect_are_left_out() -> None:
    assert body_of(loop(load("a"))) == ()
    assert body_of(loop(loop(load("a"), var="j"), store("b", at="i"), load("b"))) != ()
    assert body_of(If((sym("n"),), (load("a"),))) == ()


def test_rows_are_needed_by_what_is_read_through_them() -> None:
    row = Row("line", BUFFER, sym("offset"))
    offset = Let("offset", sym("n").scaled(4))
    other = Row("other", BUFFER, sym("offset"))
    read = load("a", row="line")
    assert body_of(offset, row, other, loop(read, store("a"))) == (offset, row, loop(read, store("a")))


def test_bounds_are_kept_for_the_query() -> None:
    lets = (Let("lo", sym("min") - 1), Let("hi", sym("lo") + 2), Let("lost", sym("min") + 9))
    bounds, body = prune(lets, (), (sym("hi"),))
    assert bounds == lets[:2]
    assert body == ()


def test_what_loops_and_conditions_ask_for_stays() -> None:
    n = Let("n", sym("extent") - 1)
    asked = Let("asked", sym("extent") - 9)
    condition = Define(Value(BOOL, 1, "holds"), "<", (value("a"), value("a")))
    inside = If((sym("asked"),), (store("a"),), Value(BOOL, 1, "holds"))
    statements = (n, asked, loop(load("a"), condition, inside))
    assert body_of(*statements) == statements


def test_the_other_branch_counts() -> None:
    a, b = load("a"), load("b")
    both = If((sym("n"),), (a,), None, (b, store("b")))
    (kept,) = body_of(both)
    assert isinstance(kept, If)
    assert kept.body == ()
    assert kept.otherwise == (b, store("b"))


def test_accumulators_and_their_steps_go_together() -> None:
    start = Accumulator(value("sum"), literal(0, INT32))
    step = loop(load("a"), Define(value("next"), "+", (value("sum"), value("a"))), Assign(value("sum"), value("next")))
    assert body_of(start, step, store("sum", at="n")) == (start, step, store("sum", at="n"))
    assert body_of(start, step, loop(load("b"), store("b"))) == (loop(load("b"), store("b")),)


def test_how_far_a_window_is_goes_with_its_loop() -> None:
    done = (Mutable("done", sym("lo")), loop(SetIndex("done", sym("i") + 1)))
    assert body_of(*done) == ()
    rows = (
        Mutable("done", sym("lo")),
        loop(loop(store("a", at="done"), var="j", hi="done"), SetIndex("done", sym("i"))),
    )
    assert body_of(*rows) == rows


def test_comments_stay_where_something_follows() -> None:
    said = Comment("said")
    assert body_of(loop(said, load("a"), store("a"))) == (loop(said, load("a"), store("a")),)
