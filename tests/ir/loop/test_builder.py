"""The builder computes a value once, as far out as its operands exist, and forgets what is taken back."""

from __future__ import annotations

import pytest
from support.builders import builder

from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.loop.builder import TooWide, literal
from tilesmith.scheduler.ir.loop.ops import Binary, FromIndex, Lanes, Load, ToIndex, Unary
from tilesmith.scheduler.ir.loop.program import Define, Let, RowPointer
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, FLOAT64, INT32, UINT8

ONE = literal(1, INT32)
DATA = Pointer("data")


def buffer(pointer: str = "data") -> Buffer:
    return Buffer("f", 0, INT32, ("x",), 0, "argument", pointer=Pointer(pointer))


def test_the_same_question_has_the_same_value() -> None:
    b = builder()
    n = sym("n")
    x = b.define(FromIndex(n), INT32)
    assert b.define(Binary("+", x, ONE), INT32) is b.define(Binary("+", x, ONE), INT32)
    assert b.define(Binary("+", x, ONE), INT32) != b.define(Binary("-", x, ONE), INT32)
    assert b.define(Binary("+", x, ONE), INT32) != b.define(Binary("+", x, ONE), INT32, lanes=4)
    assert b.define(Lanes(n, (0, 1)), INT32, 2) != b.define(Lanes(n, (0, 2)), INT32, 2)
    assert len(b.scopes[0].statements) == 6


def test_values_live_as_far_out_as_their_operands() -> None:
    b = builder()
    with b.scope() as outer:
        i = b.declare("i")
        with b.scope() as inner:
            j = b.declare("j")
            fixed = b.define(FromIndex(sym("n")), INT32)
            of_i = b.define(FromIndex(i), INT32)
            of_j = b.define(FromIndex(j), INT32)
            both = b.define(Binary("+", of_i, of_j), INT32)
            b.define(Binary("*", fixed, of_i), INT32)
    assert [s.result for s in b.scopes[0].statements if isinstance(s, Define)] == [fixed]
    assert [type(s.op) for s in outer if isinstance(s, Define)] == [FromIndex, Binary]
    assert [s.result for s in inner if isinstance(s, Define)] == [of_j, both]


def test_loads_stay_where_their_row_exists() -> None:
    b = builder()
    with b.scope() as outer:
        i = b.declare("i")
        with b.scope() as inner:
            row = b.row(buffer(), i.scaled(8))
            value = b.define(Load(row, const(0)), INT32)
            assert b.define(Load(row, const(0)), INT32) is value
            assert b.define(Load(row, const(1)), INT32) is not value
    assert inner == []
    assert [type(s) for s in outer] == [RowPointer, Define, Define]


def test_loads_stay_where_they_are_told_to() -> None:
    b = builder()
    with b.scope() as outer, b.scope() as inner:
        kept = b.define(Load(DATA, const(0)), INT32, at_least=1)
        b.define(Load(DATA, const(1)), INT32)
    assert [s.result for s in outer if isinstance(s, Define)] == [kept]
    assert inner == []
    assert len(b.scopes[0].statements) == 1


def test_pinned_values_are_neither_shared_nor_moved() -> None:
    b = builder()
    with b.scope() as body:
        first = b.define(Load(DATA, const(0)), INT32, pinned=True)
        second = b.define(Load(DATA, const(0)), INT32, pinned=True)
    assert first != second
    assert [s.result for s in body if isinstance(s, Define)] == [first, second]


def test_a_condition_keeps_loads_inside() -> None:
    b = builder()
    assert b.guard == 0
    with b.scope():
        with b.condition():
            assert b.guard == 2
            with b.condition():
                assert b.guard == 3
            assert b.guard == 2
        assert b.guard == 0
    with pytest.raises(TooWide), b.condition():
        b.define(Unary("-", ONE), FLOAT64, lanes=64)
    assert b.guard == 0
    assert b.depth == 0


def test_what_is_built_outside_of_open_blocks_runs_whether_or_not_they_do() -> None:
    b = builder()
    with b.scope() as body:
        i = b.declare("i")
        with b.condition() as inside:
            b.declare("j")
            with b.outside(1):
                assert (b.depth, b.guard) == (1, 0)
                kept = b.define(Load(DATA, i), INT32, pinned=True)
            assert (b.depth, b.guard) == (2, 2)
            with pytest.raises(TooWide), b.outside(1), b.scope():
                b.define(Unary("-", ONE), FLOAT64, lanes=64)
            assert (b.depth, b.guard) == (2, 2)
    assert [s.result for s in body if isinstance(s, Define)] == [kept]
    assert not inside


def test_a_trial_forgets_values_and_statements() -> None:
    b = builder()
    kept = b.define(FromIndex(sym("n")), INT32)
    with b.scope() as body:
        i = b.declare("i")
        with b.trial():
            lost = b.define(Binary("+", kept, ONE), INT32)
            b.define(FromIndex(i), INT32)
            b.let(sym("n").scaled(2), "twice")
        assert body == []
    assert [s.result for s in b.scopes[0].statements if isinstance(s, Define)] == [kept]
    again = b.define(Binary("+", kept, ONE), INT32)
    assert again != lost, "names are not used twice"
    assert [s.result for s in b.scopes[0].statements if isinstance(s, Define)] == [kept, again]


def test_an_attempt_is_forgotten_where_it_does_not_fit_and_kept_where_it_does() -> None:
    b = builder()
    with b.attempt():
        kept = b.define(FromIndex(sym("n")), INT32)

    def too_wide() -> None:
        with b.attempt(), b.scope():
            b.define(FromIndex(sym("m")), INT32)
            b.define(Unary("-", ONE), FLOAT64, lanes=64)

    with pytest.raises(TooWide):
        too_wide()
    assert [s.result for s in b.scopes[0].statements if isinstance(s, Define)] == [kept]
    assert b.depth == 0


def test_what_another_builder_has_made_is_found_and_its_names_are_taken() -> None:
    b = builder()
    twice = sym("n").scaled(2)
    b.reserve(["x_3", "x_1", "_cursor"])
    b.replay(Let("twice_0", twice))
    assert b.let(twice, "again") == sym("twice_0")
    assert (b.fresh("x"), b.fresh("x"), b.fresh("y")) == ("x_4", "x_5", "y_0")


def test_grants_and_remainders_hold_inside_and_no_longer() -> None:
    b = builder()
    y, given = sym("y"), [sym("g")]
    with b.scope(given=given), b.condition({(y, 2): 1}), b.scope():
        assert b.given is given
        assert b.remainder(y + 2, 2) == const(1)
        with b.condition({(y, 3): 0}):
            assert (b.remainder(y, 3), b.remainder(y, 2)) == (const(0), const(1))
    assert b.given is None
    assert not b.remainder(y, 2).is_const


def test_simple_indices_need_no_name() -> None:
    b = builder()
    n = sym("n")
    for simple in (const(3), n, n.scaled(-1)):
        assert b.let(simple, "k") == simple
    assert b.scopes[0].statements == []
    named = b.let(n.scaled(2) + sym("m"), "k")
    assert b.let(sym("m") + n.scaled(2), "other") == named
    assert b.scopes[0].statements == [Let("k_0", n.scaled(2) + sym("m"))]


@pytest.mark.parametrize("hint", ["int", "x", "", "_", "1", "_9", "é", "a b", "*/", "x_0", "if"])
def test_names_are_new_and_end_in_a_number(hint: str) -> None:
    b = builder()
    names = [b.fresh(h) for h in (hint, hint, "x", "x_0", "v", "v9", hint)]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.isidentifier()
        assert name.isascii()
        assert name.rpartition("_")[2].isdigit()


def test_vectors_take_four_registers_at_most() -> None:
    b = builder()
    b.define(Unary("-", ONE), UINT8, lanes=64)
    b.define(Unary("-", ONE), FLOAT32, lanes=16)
    for type_, lanes in ((UINT8, 512), (FLOAT32, 128), (FLOAT64, 64)):
        with pytest.raises(TooWide):
            b.define(Unary("-", ONE), type_, lanes=lanes)


def test_literals_are_rounded_to_their_type() -> None:
    assert literal(0.1, FLOAT32).literal == pytest.approx(0.1, rel=1e-7)
    assert literal(0.1, FLOAT32).literal != 0.1
    assert literal(0.1, FLOAT64).literal == 0.1
    assert literal(True, INT32).literal == 1
    b = builder()
    assert b.as_index(literal(7, INT32)) == const(7)


def test_an_index_that_was_a_value_is_known_as_data() -> None:
    b = builder()
    with b.scope() as body:
        i = b.declare("i")
        value = b.define(Load(DATA, i), INT32)
        index = b.as_index(value)
    assert set(index.symbols()) <= b.data
    assert [type(s.op) for s in body if isinstance(s, Define)] == [Load, ToIndex]


def test_vectors_are_granted_what_is_known_ahead_of_them() -> None:
    b = builder()
    given: list[Index] = []
    n = b.declare("n")
    assert not b.grant(n), "nothing is granted outside"
    assert b.grant(const(0))
    assert not b.grant(const(-1))
    with b.scope(given=given), b.scope(narrow=False):
        x = b.declare("x")
        assert b.grant(n)
        assert b.grant(n)
        assert not b.grant(x)
        assert not b.narrow
    assert given == [n]
    assert b.narrow
