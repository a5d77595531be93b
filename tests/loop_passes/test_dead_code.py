"""Dead-code elimination: definitions that nothing uses are left out; those that stores, loops and conditions need
stay."""

from __future__ import annotations

import pytest

from scheduler.ir.index import const
from scheduler.ir.loop.parser import parse_body
from scheduler.ir.loop.printer import print_body
from scheduler.ir.loop.program import Body
from scheduler.ir.loop.values import Buffer, Pointer
from scheduler.ir.pipeline.types import INT32
from scheduler.loop_passes.dead_code import prune

BUFFER = Buffer("f", 0, INT32, ("x",), 0, "argument", Pointer("data"), [const(0)], [const(1)], [None], [const(9)])


def block(text: str) -> Body:
    return parse_body(text, buffers=(BUFFER,))


CASES = {
    "values that are not stored": (
        """
        for i = 0 to n step 1 {
          %a = load data[i] : i32
          %b = load data[i] : i32
          store %a to @data at data[i]
        }""",
        """
        for i = 0 to n step 1 {
          %a = load data[i] : i32
          store %a to @data at data[i]
        }""",
    ),
    "a chain of values that is stored": (
        """
        for i = 0 to n step 1 {
          %a = load data[i] : i32
          %b = %a + 1:i32 : i32
          %c = neg %b : i32
          store %c to @data at data[i]
        }""",
        None,
    ),
    "a chain of values that is not": (
        """
        for i = 0 to n step 1 {
          %a = load data[i] : i32
          %b = %a + 1:i32 : i32
          %c = neg %b : i32
          store 0:i32 to @data at data[i]
        }""",
        """
        for i = 0 to n step 1 {
          store 0:i32 to @data at data[i]
        }""",
    ),
    "loops and conditions without effect": (
        """
        for i = 0 to n step 1 {
          %a = load data[i] : i32
        }
        if (n >= 0) {
          %a = load data[n] : i32
        }""",
        "",
    ),
    "pointers to rows that nothing reads": (
        """
        let offset = 4*n
        row line = @data + offset
        row other = @data + offset
        %a = load line[0] : i32
        store %a to @data at data[0]""",
        """
        let offset = 4*n
        row line = @data + offset
        %a = load line[0] : i32
        store %a to @data at data[0]""",
    ),
    "the place in a row that nothing in the loop uses": (
        """
        peel first, last, from, to = lo until end lanes 4 align 1
        for i = 0 to n step 1 seen w to last {
          store 0:i32 to @data at data[i]
        }
        for i = 0 to n step 1 seen v to last {
          store 0:i32 to @data at data[v]
        }""",
        """
        peel first, last, from, to = lo until end lanes 4 align 1
        for i = 0 to n step 1 {
          store 0:i32 to @data at data[i]
        }
        for i = 0 to n step 1 seen v to last {
          store 0:i32 to @data at data[v]
        }""",
    ),
    "what loops and conditions ask for": (
        """
        let n = extent - 1
        let asked = extent - 9
        for i = 0 to n step 1 {
          %a = load data[i] : i32
          %holds = %a < 3:i32 : b8
          if (asked >= 0) and %holds {
            store %a to @data at data[i]
          }
        }""",
        None,
    ),
    "one of two branches": (
        """
        if (n >= 0) {
          %a = load data[0] : i32
        } else {
          store 0:i32 to @data at data[0]
        }""",
        """
        if (n >= 0) {
        } else {
          store 0:i32 to @data at data[0]
        }""",
    ),
    "accumulators that are stored": (
        """
        %sum = accumulator 0:i32 : i32
        for i = 0 to n step 1 {
          %a = load data[i] : i32
          %next = %sum + %a : i32
          assign %sum = %next
        }
        store %sum to @data at data[0]""",
        None,
    ),
    "accumulators that are not": (
        """
        %sum = accumulator 0:i32 : i32
        for i = 0 to n step 1 {
          %next = %sum + 1:i32 : i32
          assign %sum = %next
          store 0:i32 to @data at data[i]
        }""",
        """
        for i = 0 to n step 1 {
          store 0:i32 to @data at data[i]
        }""",
    ),
    "mutable indices": (
        """
        mutable done = lo
        mutable lost = lo
        for i = 0 to n step 1 {
          for j = 0 to done step 1 {
            store 0:i32 to @data at data[j]
          }
          set done = i
          set lost = i
        }""",
        """
        mutable done = lo
        for i = 0 to n step 1 {
          for j = 0 to done step 1 {
            store 0:i32 to @data at data[j]
          }
          set done = i
        }""",
    ),
    "prefetches of rows that the iteration before has read": (
        """
        for y = 0 to n step 1 {
          prefetch data[y] rows 0 place 0 step 1
          prefetch data[y + 8] rows 0 place 1 step 1
          store 0:i32 to @data at data[y]
        }""",
        """
        for y = 0 to n step 1 {
          prefetch data[y + 8] rows 0 place 1 step 1
          store 0:i32 to @data at data[y]
        }""",
    ),
    "comments where something follows": (
        """
        for i = 0 to n step 1 {
          // "said"
          store 0:i32 to @data at data[i]
        }""",
        None,
    ),
}
"""Blocks before and after; None: the same."""


@pytest.mark.parametrize("case", CASES)
def test_what_is_dead_is_left_out(case: str) -> None:
    before, after = CASES[case]
    assert print_body(prune((), block(before), ())[1]) == print_body(block(before if after is None else after))


def test_bounds_are_kept_for_the_query() -> None:
    lets = block("let lo = min - 1 let hi = lo + 2 let lost = min + 9")
    (needed,) = (s.value for s in block("let needed = hi"))  # type: ignore[union-attr]
    assert prune(lets, (), (needed,)) == (lets[:2], ())
