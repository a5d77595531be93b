"""Index-set splitting: a row is written once for each remainder that decides what it computes."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, pipeline

Golden = Callable[[str, str], None]


def test_rows_are_written_once_for_each_remainder(golden: Golden) -> None:
    p = pipeline("select(y % 2 == 0, f(x, y), f(x, y) * 2)", dims=("x", "y"))
    golden("rows_are_written_once_for_each_remainder.txt", body(p, [group("x.inner y.inner")]))
