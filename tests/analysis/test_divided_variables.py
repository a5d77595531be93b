"""Loops as two, where their variable is divided."""

from __future__ import annotations

import pytest
from support.lowered import pipeline

from tilesmith.scheduler.analysis.divided_variables import inner_trips
from tilesmith.scheduler.analysis.stage_graph import reductions


def found(value: str, *inlined: tuple[str, str]) -> int | None:
    """The inner trips of the only reduction of a value, where all stages that it reads are inline."""
    p = pipeline(value, *inlined)
    (e,) = reductions(p.stages[-1])
    return inner_trips(e.domain[0], (e.body,), {s.name: s for s in p.stages[:-1]})


@pytest.mark.parametrize(
    ("body", "domain", "trips"),
    [
        ("f(x + k // 9)", "range(81)", 9),
        ("f(x + k % 9)", "range(81)", 9),
        ("f(x + 16 * (k // 9) + k % 9)", "range(9, 90)", 9),
        ("f(x + k // 3 + k % 9)", "range(81)", 9),
        ("f(x + k // 9 + k % 2)", "range(90)", 9),
        ("f(x + k // 9)", "range(80)", None),
        ("f(x + k // 9)", "range(1, 82)", None),
        ("f(x + k // 81)", "range(81)", None),
        ("f(x + x // 9)", "range(81)", None),
        ("f((x + k) // 9)", "range(81)", None),
    ],
)
def test_the_inner_loop_has_as_many_trips_as_the_divisor_says(body: str, domain: str, trips: int | None) -> None:
    assert found(f"sum({body} for k in {domain})") == trips


def test_divisors_in_inline_stages_count_for_the_variable_that_is_their_coordinate() -> None:
    assert found("sum(halved(k) * f(x + k) for k in range(80))", ("halved", "f(x // 8)")) == 8
    assert found("sum(halved(x) * f(x + k) for k in range(80))", ("halved", "f(x // 8)")) is None
    assert found("sum(twice(k) for k in range(80))", ("halved", "f(x // 8)"), ("twice", "halved(x) + halved(x)")) == 8
