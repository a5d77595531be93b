"""Index expressions: a canonical form, and simplifications that brute force agrees with."""

from __future__ import annotations

from random import Random

import pytest

from tilesmith.scheduler.ir.index import (
    Index,
    change,
    const,
    divide,
    floor_div,
    is_multiple,
    linear_bound,
    maximum,
    minimum,
    modulo,
    multiply,
    remainder,
    sym,
)

X, Y, N = sym("x"), sym("y"), sym("n")


def drawn(random: Random, depth: int) -> tuple[Index, str]:
    """An index, and Python that computes the same from the symbols by plain arithmetic."""
    if depth == 0:
        if random.random() < 0.3:
            n = random.randint(-7, 7)
            return const(n), f"({n})"
        name = random.choice("xyn")
        return sym(name), name
    (a, ta), (b, tb) = drawn(random, depth - 1), drawn(random, depth - 1)
    k = random.choice((-4, -3, -1, 0, 1, 2, 3, 4, 8))
    match random.choice(("+", "-", "scaled", "min", "max", "div", "mod", "mul", "divk", "modk", "+k")):
        case "+":
            return a + b, f"({ta} + {tb})"
        case "-":
            return a - b, f"({ta} - {tb})"
        case "scaled":
            return a.scaled(k), f"({k} * {ta})"
        case "min":
            return minimum(a, b), f"min({ta}, {tb})"
        case "max":
            return maximum(a, b), f"max({ta}, {tb})"
        case "div":
            return divide(a, b), f"floor_div({ta}, {tb})"
        case "mod":
            return modulo(a, b), f"remainder({ta}, {tb})"
        case "mul":
            return multiply(a, b), f"({ta} * {tb})"
        case "divk":
            return divide(a, k), f"floor_div({ta}, {k})"
        case "modk":
            return modulo(a, k), f"remainder({ta}, {k})"
    return a + k, f"({ta} + {k})"


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_an_index_has_the_value_of_what_it_was_made_of(depth: int) -> None:
    functions = {"floor_div": floor_div, "remainder": remainder, "min": min, "max": max}
    for seed in range(500):
        random = Random(seed * 5 + depth)
        index, text = drawn(random, depth)
        for _ in range(6):
            env = {name: random.randint(-20, 20) for name in "xyn"}
            assert index.value(env) == eval(text, functions, dict(env)), text
            assert index.value(env.__getitem__) == index.value(env)


@pytest.mark.parametrize("b", [-3, -2, -1, 0, 1, 2, 3])
def test_the_remainder_is_never_negative(b: int) -> None:
    for a in range(-10, 11):
        q, r = floor_div(a, b), remainder(a, b)
        assert 0 <= r < max(abs(b), 1)
        assert q * b + r == (a if b else 0)


def test_equal_by_arithmetic_is_equal() -> None:
    assert X + Y - X == Y
    assert const(2) == (X + 3) - (X + 1)
    assert X.scaled(2) + Y == Y + X + X
    assert hash(X + Y) == hash(Y + X)
    assert minimum(X, Y) == minimum(Y, X)
    assert multiply(X, Y) == multiply(Y, X)
    assert X.scaled(0) == const(0)
    assert X + 1 != X
    assert X != Y


def test_extremes_are_decided_where_the_difference_is_known() -> None:
    assert minimum(X + 1, X - 2) == X - 2
    assert maximum(X + 1, X - 2) == X + 1
    assert minimum(const(3), const(5)) == const(3)
    nested = minimum(minimum(X, Y) + 2, X + 1)
    assert nested == minimum(X + 1, Y + 2)
    assert maximum(maximum(X, Y), maximum(Y, X)) == maximum(X, Y)


def test_extremes_of_remainders_and_numbers_are_decided() -> None:
    rest = modulo(X + 3, 31)
    for number in (-3, 0, 30, 40):
        assert minimum(rest, const(number)) == (const(number) if number <= 0 else rest)
        assert maximum(rest, const(number)) == (const(number) if number >= 30 else rest)
    assert minimum(rest + 2, const(2)) == const(2)
    assert minimum(rest, const(7)).terms[0][0].kind == "min"
    assert maximum(modulo(X, N), const(0)).terms[0][0].kind == "max"


def test_extremes_are_decided_between_the_same_functions_of_more_and_less() -> None:
    def clamped(x: Index) -> Index:
        return maximum(minimum(x, N), const(-1))

    assert minimum(minimum(clamped(X - 1), clamped(X)), clamped(X + 1)) == clamped(X - 1)
    assert maximum(clamped(X + 1), maximum(clamped(X - 1), Y)) == maximum(Y, clamped(X + 1))
    assert maximum(divide(X, 2) + 1, divide(X + 1, 2)) == divide(X, 2) + 1
    assert minimum(divide(X, 2) + 1, divide(X + 1, 2)) == divide(X + 1, 2)
    assert minimum(divide(X, 2), divide(X, 3)).terms[0][0].kind == "min"
    assert maximum(clamped(X), clamped(Y)).terms[0][0].kind == "max"


def test_exact_parts_leave_a_division() -> None:
    assert divide(X.scaled(4) + 7, 4) == X + 1
    assert divide(X.scaled(4) + Y, 4) == X + divide(Y, 4)
    assert divide(X.scaled(-6), -3) == X.scaled(2)
    assert divide(X, 1) == X
    assert divide(X, 0) == const(0)
    assert modulo(X.scaled(8) + 11, 8) == const(3)
    assert modulo(X.scaled(8) + Y + 9, 8) == modulo(Y + 1, 8)
    assert modulo(X, -1) == const(0)
    assert multiply(X, const(3)) == X.scaled(3)


@pytest.mark.parametrize(
    ("index", "of", "expected"),
    [
        (X.scaled(8) + 16, 8, True),
        (X.scaled(8) + 4, 8, False),
        (modulo(X.scaled(8) + 32, 64) + divide(X, 7).scaled(24), 8, True),
        (modulo(X.scaled(8) + 32, 64), 16, False),
        (modulo(X.scaled(8), 12), 8, False),
        (modulo(X.scaled(4), 6).scaled(4), 8, True),
        (modulo(modulo(X.scaled(8), 64) + 16, 32), 8, True),
        (minimum(X.scaled(8), Y.scaled(16)), 8, True),
        (maximum(X.scaled(8), Y), 8, False),
        (multiply(X, Y.scaled(8)), 8, True),
        (multiply(X, Y), 2, False),
        (divide(X.scaled(8), 3), 8, False),
    ],
)
def test_multiples_are_known_through_remainders_and_extremes(index: Index, of: int, expected: bool) -> None:
    assert is_multiple(index, of) == expected
    if expected:
        assert all(index.value({"x": x, "y": y}) % of == 0 for x in range(-40, 40) for y in range(-9, 9))


def test_symbols_and_coefficients() -> None:
    index = minimum(X, N.scaled(2)) + X.scaled(3) + 1
    assert set(index.symbols()) == {"x", "n"}
    assert index.mentions("n")
    assert not index.mentions("y")
    assert index.coefficient("x") == 3
    assert index.coefficient("n") == 0
    assert not index.is_const
    assert (index - index).is_const
    with pytest.raises(KeyError):
        index.value({"x": 1})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X + 3, (1, 1)),
        (Y.scaled(2) - X, (-1, -1)),
        (divide(X + 5, 4), (0, 1)),
        (divide(X + 5, 4).scaled(4) + 7, (0, 4)),
        (divide(X.scaled(-2), 3), (-1, 0)),
        (minimum(X + 1, N), (0, 1)),
        (maximum(X.scaled(3), X + 1), (1, 3)),
        (modulo(Y, N) + X, (1, 1)),
        (modulo(X, 4), None),
        (multiply(X, Y), None),
    ],
)
def test_change_from_one_iteration_to_the_next(value: Index, expected: tuple[int, int] | None) -> None:
    named = sym("of_four")
    values = {"of_four": value}
    assert change(value, "x", {}, {}) == expected
    assert change(named.scaled(-1), "x", values, {}) == (None if expected is None else (-expected[1], -expected[0]))
    assert change(value, "y_inner", values, {}) == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_linear_bound_is_not_negative_only_where_the_index_is_not(seed: int) -> None:
    random, places = Random(seed), range(-40, 41)
    for _ in range(60):
        a, b = (X.scaled(random.choice((1, 4, 8))) + random.randint(-9, 9) + Y.scaled(16) for _ in range(2))
        k, m = random.choice((2, 3, 8, 32)), random.choice((4, 32))
        x = divide(a, k).scaled(random.choice((-3, k, -k, 8))) + modulo(b, m).scaled(random.choice((-2, 1, 2))) + X
        bound = linear_bound(x, "x")
        assert not (bound - X.scaled(bound.coefficient("x"))).mentions("x")
        for env in ({"x": n, "y": random.choice(places)} for n in places):
            assert bound.value(env) < 0 or x.value(env) >= 0


def test_a_linear_bound_of_a_place_mirrored_in_blocks_is_a_block_from_its_ends() -> None:
    place = divide(X.scaled(16), 32).scaled(32) + 31 - modulo(X.scaled(16), 32)
    assert linear_bound(place - 15, "x") == X.scaled(8) - 8  # half of 16 * x + 16 - 2 * (16 * x % 32), which is 16
    assert linear_bound(X - N, "x") == X - N


def test_numbers_decide_what_is_beyond_another() -> None:
    """Numbers that end remainders, and minima and maxima of their sums, as of a box that may be empty, are known."""
    rest = modulo(sym("n"), 4)
    missing = minimum(maximum(const(1) - rest, const(0)), const(1))
    assert minimum(const(0), missing.scaled(1 << 34)) == const(0)
    assert maximum(const(255), const(255) - missing.scaled(1 << 34)) == const(255)
    assert maximum(const(5), rest.scaled(2) + 6) == rest.scaled(2) + 6
    assert not maximum(const(5), rest.scaled(2)).is_const
