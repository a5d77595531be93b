"""Lane divergence: lanes that compute different things are evaluated class by class."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, pipeline

Golden = Callable[[str, str], None]


def test_even_and_odd_lanes_are_shuffled_together(golden: Golden) -> None:
    p = pipeline("select(x % 2 == 0, f(x // 2), f(x // 2) * 2)")
    golden("even_and_odd_lanes_are_shuffled_together.txt", body(p, [group("x.inner")]))
