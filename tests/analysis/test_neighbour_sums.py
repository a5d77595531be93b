"""Sums of neighbours: which reductions are over what vectors step over."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.analysis.neighbour_sums import summed_variable, total_type
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Reduce


def sum_of(value: str, type: str = "uint8") -> Reduce:
    """The value of a stage, a sum that reads the images `a` and `b`."""
    images = [{"name": n, "type": type, "dims": ["x", "y"]} for n in "ab"]
    stage = {"name": "f", "dims": ["x", "y"], "value": value}
    of = {"format": 1, "name": "sums", "inputs": images, "stages": [stage], "outputs": ["f"]}
    found = load({**of, "estimates": {"f": [[0, 64], [0, 48]]}}).stages[0].values[0]
    assert isinstance(found, Reduce)
    return found


@pytest.mark.parametrize(
    ("value", "variable", "bits"),
    [
        ("sum(uint16(a(2 * x + i, y)) for i in range(2))", "i", 16),
        ("sum(uint16(a(4 * x + i - 1, 3 * y + j)) for j in range(3) for i in range(4))", "i", 32),
        ("sum(uint32(a(4 * x + i + 2, y)) for i in range(-3, 1))", "i", 32),
        ("sum(uint16(absd(a(8 * x + i, y + j), b(8 * x + i + j, y))) for i in range(8) for j in range(5))", "i", 64),
        ("sum(uint16(absd(a(8 * x + i, y), b(8 * x + i + y % 9 - 4, y // 9))) for i in range(8))", "i", 64),
        ("sum(uint32(max(a(16 * x + i, y), a(0, y))) for i in range(16))", "i", 64),
    ],
)
def test_sums_over_what_vectors_step_over(value: str, variable: str, bits: int) -> None:
    e = sum_of(value)
    r = summed_variable(e, "x", {}, lambda _: 0)
    assert r is not None
    assert r.name == variable
    total = total_type(e, r)
    assert total is not None
    assert total.bits == bits
    assert summed_variable(e, "y", {}, lambda _: 1) is None
    assert summed_variable(e, "x", {}, lambda _: 1) is None


@pytest.mark.parametrize(
    "value",
    [
        "sum(uint16(a(2 * x + i, y)) for i in range(4))",  # elements are read twice
        "sum(uint16(a(4 * x + i, y)) for i in range(2))",  # and some are not
        "sum(uint16(a(3 * x + i, y)) for i in range(3))",
        "sum(uint16(a(2 * x - i, y)) for i in range(2))",
        "sum(uint16(a(2 * x + i, y) * uint8(i)) for i in range(2))",
        "sum(uint16(a(2 * x + i, y)) * uint16(b(i, y)) for i in range(2))",
        "sum(uint16(a(2 * x + i, y) + b(x, y)) for i in range(2))",
        "sum(uint16(a(2 * x + i, y + i)) for i in range(2))",
        "sum(uint16(a((2 * x + i) % 8, y)) for i in range(2))",
        "sum(int16(a(2 * x + i, y)) - 7 for i in range(2))",
        "sum(uint16(a(2 * x + i, y)) for i in range(2) if i < 1)",
        "max(a(2 * x + i, y) for i in range(2))",
    ],
)
def test_others_are_none(value: str) -> None:
    assert summed_variable(sum_of(value), "x", {}, lambda _: 0) is None


def test_a_sum_fits_what_it_is_added_up_in() -> None:
    few = sum_of("sum(uint32(a(2 * x + i, y + j)) for i in range(2) for j in range(128))")
    many = sum_of("sum(uint32(a(2 * x + i, y + j)) for i in range(2) for j in range(129))")
    found = [summed_variable(e, "x", {}, lambda _: 0) for e in (few, many)]
    assert [None if r is None else total_type(e, r) for e, r in zip((few, many), found, strict=True)][1] is None
    assert found[0] is not None
    assert total_type(few, found[0]) is not None
