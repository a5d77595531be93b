"""Index-set splitting: a row is written once for each remainder that decides what it computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.builders import builder
from support.lowered import body, choice, group, pipeline, row
from support.lowered_values import assert_lowered_right

from tilesmith.scheduler.ir.index import Index, modulo, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.printer import print_body
from tilesmith.scheduler.ir.loop.program import Comment
from tilesmith.scheduler.lowering.lane_divergence import truths
from tilesmith.scheduler.lowering.residue_splitting import NeedRemainder, ask, by_remainder

Golden = Callable[[str, str], None]


def test_rows_are_written_once_for_each_remainder(golden: Golden) -> None:
    p = pipeline("select(y % 2 == 0, f(x, y), f(x, y) * 2)", dims=("x", "y"))
    golden("rows_are_written_once_for_each_remainder.txt", body(p, [group("x.inner y.inner")]))


def with_row() -> tuple[Builder, Index]:
    b = builder()
    return b, b.declare("y")


@pytest.mark.parametrize("by", [2, 3, 4])
def test_small_remainders_are_asked_for(by: int) -> None:
    b, y = with_row()
    with pytest.raises(NeedRemainder) as asked:
        ask(b, modulo(y + 1, by) - 1, 1)
    assert (asked.value.of, asked.value.by) == (y, by)


def test_what_is_no_small_remainder_is_not() -> None:
    b, y = with_row()
    for undecided in (y - 3, modulo(y, 5), modulo(y, sym("n")), modulo(y, 2) + y, y - y):
        ask(b, undecided, 1)


def test_nor_is_what_the_row_itself_moves() -> None:
    b, _ = with_row()
    with b.scope():
        x = b.declare("x")
        ask(b, modulo(x, 2), 1)


def test_rows_are_split_by_two_remainders_at_most() -> None:
    b, y = with_row()
    with b.condition({(y, 2): 1, (y, 3): 0}):
        ask(b, modulo(y, 4), 1)


def rows(b: Builder, of: list[Index]) -> str:
    """Rows that ask for these remainders as long as they may, and are a comment of them."""

    def emit(may_ask: bool) -> None:
        found = [b.remainder(x, 2) for x in of]
        for x in found:
            if may_ask and not x.is_const:
                ask(b, x, 1)
        b.emit(Comment(" ".join(str(x.const) if x.is_const else "unknown" for x in found)))

    by_remainder(b, emit)
    return print_body(b.scopes[0].statements)


def test_what_asks_for_nothing_is_written_once() -> None:
    b, _ = with_row()
    assert rows(b, []) == '// ""'


def test_every_remainder_has_its_row() -> None:
    b, y = with_row()
    assert (
        rows(b, [y, y + 1]).splitlines()
        == """
let remainder_0 = mod(y, 2)
if (-remainder_0 >= 0) {
  // "0 1"
} else {
  // "1 0"
}
""".strip().splitlines()
    )


def test_rows_are_split_again_and_no_more_than_that() -> None:
    b, y = with_row()
    found = rows(b, [y, b.declare("z"), b.declare("w")])
    for first in (0, 1):
        for second in (0, 1):
            assert found.count(f'"{first} {second} unknown"') == 1


def test_what_an_attempt_has_built_is_forgotten() -> None:
    b, y = with_row()

    def emit(_: bool) -> None:
        b.emit(Comment("begun"))
        if not b.remainders:
            raise NeedRemainder(y, 3)

    by_remainder(b, emit)
    assert print_body(b.scopes[0].statements).count("begun") == 3


def test_a_remainder_of_what_rows_have_read_is_not_known_before_them() -> None:
    """It is made of data: the row is written once, and chooses."""
    b, _ = with_row()
    asked: list[bool] = []

    def emit(may_ask: bool) -> None:
        asked.append(may_ask)
        data = b.declare("data")
        if may_ask:
            raise NeedRemainder(data, 2)

    by_remainder(b, emit)
    assert asked == [True, False]


def test_where_a_remainder_holds_it_is_decided() -> None:
    ev, frame = row(splits=True)
    y = frame.env["y"].base
    for r in (0, 1):
        with ev.builder.condition({(y, 2): r}):
            assert truths(ev, choice("(y + 1) % 2 == 0").condition, frame) == (r == 1,)
        ev.known_lanes.clear()


SPLIT = {
    "two": "select(y % 2 == 0, f(x, y), f(x + 1, y) * 2)",
    "three": "mux(y % 3, f(x, y), f(x + 1, y) * 2, f(x, y + 1))",
    "four, and two of them": "select((y + 3) % 4 < 2, f(x, y // 2), f(x, y) * 3)",
    "two at once": "select(y % 2 == 0, f(x, y), 0.0) + select(y % 3 == 0, f(x + 1, y), 1.0)",
    "of lanes as well": "mux(x % 2 + 2 * (y % 2), f(x // 2, y), f(x, y) * 2, f(x // 2 + 1, y), f(x, y + 1))",
    "too many": "f(x, y) * float32(y % 2 + y % 3 + y % 5)",
    "of what was read": "select(int32(f(3, y)) % 2 == 0, f(x, y), f(x, y) * 2)",
}


@pytest.mark.parametrize("value", SPLIT.values(), ids=SPLIT)
def test_all_rows_are_right(value: str) -> None:
    p = pipeline(value, dims=("x", "y"))
    size = {"f": ((-8, 60), (-8, 30))}
    assert_lowered_right(p, [group("x.inner y.inner")], ((-3, 20), (-5, 13)), ((1, 3), (2, 1)), sizes=size)
