"""Indices that go on in the same order again, against walking along them."""

from __future__ import annotations

from math import inf

import pytest
from support.lowered import index, pipeline

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.periodic_indices import Order, Steps, joined, order_of, repeats_of, steps_of


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("x", (1, 1, True)),
        ("3 - 2 * x", (1, -2, True)),
        ("y + 5", (1, 0, True)),
        ("x // 4", (4, 1, True)),
        ("x * 2 // 3", (3, 2, True)),
        ("x * 6 // 4", (2, 3, True)),
        ("x // 2 // 3", (6, 1, True)),
        ("x % 4", (4, 0, False)),
        ("x % 16 % 8", (16, 0, False)),
        ("x // 4 * 4", (4, 4, True)),
        ("x // 4 * 4 + x % 2", (4, 4, False)),
        ("x // 2 - x // 4", (4, 1, False)),
        ("x - x % 3 + y % 5", (3, 3, False)),
        ("x // 2 * 2 + x // 3", (6, 8, True)),
        ("clamp(x + 1, 0, 9)", (1, 1, True)),
        ("max(x // 2, 0)", (2, 1, True)),
    ],
)
def test_steps_of_an_index(text: str, steps: tuple[int, int, bool]) -> None:
    found = steps_of(index(text), "x")
    assert found == Steps(*steps)
    place = text.replace("clamp(x + 1, 0, 9)", "x + 1").replace("max(x // 2, 0)", "x // 2")
    walked = [eval(place, {"x": n, "y": 2}) for n in range(-20, 40)]  # the texts are those above
    assert all(b - a == found.further for a, b in zip(walked, walked[found.period :], strict=False))
    if found.in_order:
        assert walked in (sorted(walked), sorted(walked, reverse=True))


@pytest.mark.parametrize("text", ["x * x", "x // y", "x % -3", "max(x, 2 * x)", "select(x > 3, x, 0)"])
def test_indices_without_steps(text: str) -> None:
    assert steps_of(index(text), "x") is None


def test_orders_of_several_places_are_one() -> None:
    p = pipeline("f(x, y) + f(x // 2 * 2, y) + f(x - x % 3, y - y % 5)", dims=("x", "y"))
    read = accesses(p.stages[0])
    found = joined(order_of(a.access.indices[d], a.spans[d].var) for a in read for d in range(2))
    assert found == (Order("x", 6.0, False), Order("y", 5.0, False))
    assert joined([order_of(index("x // 2"), "x"), order_of(index("3"), None)]) == (Order("x", 2.0, True),)
    assert joined([order_of(index("x // 2"), "x"), order_of(index("x * x"), "x")]) == (Order("x", inf, False),)


@pytest.mark.parametrize(
    ("value", "repeats"),
    [
        ("cos(0.5 * float32(x % 8 % 4))", ("x", 8.0)),
        ("select(x % 6 < 2, 1.0, float32(x % 4))", ("x", 12.0)),
        ("float32(x % 8 + x)", ("x", inf)),
        ("float32(x % 8 * (y % 2))", None),
        ("f(x % 8, 0)", None),
        ("1.5", None),
    ],
)
def test_values_that_are_the_same_again(value: str, repeats: tuple[str, float] | None) -> None:
    assert repeats_of(pipeline(value, dims=("x", "y")).stages[0]) == repeats
