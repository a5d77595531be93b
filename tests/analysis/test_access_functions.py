"""Access functions against brute force: an index stays between the two ends; no footprint is larger than `extent`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest
from support.random_indices import Indices, number, value_of

from tilesmith.scheduler.analysis.access_functions import (
    UNKNOWN,
    Span,
    compose,
    constant,
    hull,
    span_of,
    variable,
)
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Call, Cast, Expr, InputBound, Var
from tilesmith.scheduler.ir.pipeline.types import INT32, UINT8

R = range(-2, 3)
ENV = {"x": variable("x"), "y": variable("y"), "r": constant(R.start, R.stop - 1)}
X, Y = Var("x"), Var("y")
REACH = range(-10, 11)


def plus(e: Expr, n: int) -> Expr:
    return Binary("+", e, number(n), INT32)


def clamp(e: Expr, lo: Expr | int, hi: Expr | int) -> Expr:
    bounds = tuple(number(b) if isinstance(b, int) else b for b in (lo, hi))
    return Call("clamp", (e, *bounds), INT32)


Draw = Callable[[dict[str, int], Random], int]
"""A value at variables and symbols; data and choices are drawn."""


def of(e: Expr) -> Draw:
    return lambda at, random: value_of(e, at, random)


def assert_holds(draw: Draw, s: Span, seed: int) -> None:
    """Check a span at every value of `s.var`, whatever the others are: no value is beyond the ends, no footprint larger
    than said."""
    random = Random(seed)
    still = {"n": random.randint(-9, 9), "image.min.x": random.randint(-9, 9), "image.extent.x": random.randint(1, 9)}
    found: dict[int, set[int]] = {}
    for v in REACH:
        found[v] = set()
        for _ in range(8):
            others = {"x": random.randint(-14, 14), "y": random.randint(-14, 14), "r": random.choice(R)}
            found[v].add(draw({**still, **others, s.var or "x": v}, random))
    if not s.clamps:
        for v, here in found.items():
            assert s.first(v) <= min(here), (s, v)
            assert max(here) <= s.last(v), (s, v)
    if s.var is None:
        return
    for points in (1, 2, 3, 7):
        for v in REACH[: len(REACH) - points + 1]:
            touched = set.union(*(found[w] for w in range(v, v + points)))
            assert max(touched) - min(touched) + 1 <= s.extent(points), (s, v, points)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_index_stays_within_its_span(depth: int) -> None:
    known = clamped = 0
    for seed in range(400):
        e = Indices(seed * 10 + depth, ("x", "y", "r")).draw(depth)
        s = span_of(e, ENV)
        if s.known:
            known += 1
            clamped += bool(s.clamps)
            assert_holds(of(e), s, seed)
    assert known > 150
    assert depth == 1 or clamped > 10


def test_the_footprint_of_several_accesses_is_within_their_hull() -> None:
    known = 0
    for seed in range(1500):
        indices = Indices(seed, ("x",), data=False)
        a = indices.draw(2)
        b = indices.draw(2) if seed % 3 else plus(a, indices.random.randint(-3, 3))
        both = hull(span_of(a, ENV), span_of(b, ENV))
        if not both.known or both.var is None:
            continue
        known += 1
        either = (of(a), of(b))
        assert_holds(lambda at, random, either=either: random.choice(either)(at, random), both, seed)
    assert known > 80


def test_a_chain_of_accesses_composes() -> None:
    known = 0
    for seed in range(700):
        outer = Indices(seed, ("x",), data=False).draw(2)
        inner = Indices(seed + 5000, ("x",), data=False).draw(2)
        via = span_of(outer, ENV)
        through = compose(span_of(inner, {"x": variable("x")}), via)
        if not through.known:
            continue
        known += 1
        draw, then = of(outer), of(inner)
        assert_holds(
            lambda at, random, draw=draw, then=then: then({**at, "x": draw(at, random)}, random), through, seed
        )
    assert known > 80


def test_ends_that_are_arithmetic_of_numbers_are_rounded_as_it_does() -> None:
    """Half of -1 is -1: a clamp to that keeps it."""
    least = Binary("//", number(-1), number(2), INT32)
    s = span_of(clamp(Var("r"), least, plus(number(0), 1)), ENV)
    assert (s.lo, s.hi) == (-1, 1)


def test_shifts_of_a_clamp_and_clamps_of_a_shift_do_not_match() -> None:
    """f(clamp(x, 0, 5) + 3) and f(clamp(x + 3, 0, 5)) are the same line, but drift apart beyond the edges."""
    inside, outside = span_of(clamp(plus(X, 3), 0, 5), ENV), span_of(plus(clamp(X, 0, 5), 3), ENV)
    assert inside.known
    assert outside.known
    assert hull(inside, outside) == UNKNOWN


def test_neighbours_through_one_clamp_match() -> None:
    """What a boundary makes of a stencil: the distances stay."""
    last = Binary("-", InputBound("image", "extent", "x"), number(1), INT32)
    spans = [span_of(clamp(plus(X, n), 0, last), ENV) for n in (-1, 1)]
    both = hull(*spans)
    assert (both.lo, both.hi, both.extent(1)) == (-1, 1, 3)


@pytest.mark.parametrize(
    "bound",
    [Y, Var("r"), Cast(Access("d", (X,), 0, UINT8), INT32), Binary("*", Y, number(2), INT32)],
    ids=["loop", "reduction", "data", "sum"],
)
def test_a_clamp_to_what_moves_is_no_clamp(bound: Expr) -> None:
    assert not span_of(clamp(X, bound, plus(bound, 2)), ENV).known
    assert not span_of(Call("max", (X, bound), INT32), ENV).known
    assert not span_of(Call("min", (bound, X), INT32), ENV).known


def test_the_overlaps_of_the_usual_accesses() -> None:
    down = span_of(plus(Binary("*", number(2), X, INT32), -1), ENV)
    assert (down.rate, down.extent(1), down.extent(4)) == (2, 1, 7)
    up = span_of(Binary("//", plus(X, 1), number(2), INT32), ENV)
    assert (up.rate, up.extent(1), up.extent(2), up.extent(5)) == (Fraction(1, 2), 1, 2, 3)
    stencil = hull(span_of(plus(X, -1), ENV), span_of(plus(X, 1), ENV))
    assert [stencil.extent(n) for n in (1, 2, 8)] == [3, 4, 10]
