"""Loop nests: a row is whole vectors, and scalars at its edges."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, pipeline

Golden = Callable[[str, str], None]


def test_a_row_is_vectors_and_what_is_left(golden: Golden) -> None:
    p = pipeline("f(x) + 1.0")
    golden("a_row_is_vectors_and_what_is_left.txt", body(p, [group("x.inner")]))


def test_without_vectors_it_is_one_loop(golden: Golden) -> None:
    p = pipeline("f(x) + 1.0")
    golden("without_vectors_it_is_one_loop.txt", body(p, [group("x.inner", vector=None)]))


def test_clamps_cut_the_row(golden: Golden) -> None:
    p = pipeline("f(clamp(x - 1, 0, 60))")
    golden("clamps_cut_the_row.txt", body(p, [group("x.inner")]))
