"""Gathering of neighbours: terms of sums that become reductions."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.gather_neighbours import gathered


def pipeline_of(value: str, type: str = "uint8") -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "terms",
            "inputs": [{"name": "a", "type": type, "dims": ["x", "y"]}],
            "stages": [{"name": "f", "dims": ["x", "y"], "value": value}],
            "outputs": ["f"],
            "estimates": {"f": [[0, 64], [0, 48]]},
        }
    )


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            "uint8((uint16(a(2 * x, y)) + uint16(a(2 * x + 1, y)) + 1) // 2)",
            "uint8((sum(uint16(a(2 * x + near, y)) for near in range(0, 2)) + 1) // 2)",
        ),
        (
            "uint16(a(2 * x - 1, y)) + uint16(a(2 * x, y)) * 3 + uint16(a(2 * x, y))",
            "sum(uint16(a(2 * x + near - 1, y)) for near in range(0, 2)) + uint16(a(2 * x, y)) * 3",
        ),
        (
            "uint16(absd(a(4 * x, y), a(4 * x + 5, y))) + uint16(absd(a(4 * x + 1, y), a(4 * x + 6, y))) + "
            "uint16(absd(a(4 * x + 3, y), a(4 * x + 8, y))) + uint16(absd(a(4 * x + 2, y), a(4 * x + 7, y)))",
            "sum(uint16(absd(a(4 * x + near, y), a(4 * x + near + 5, y))) for near in range(0, 4))",
        ),
    ],
)
def test_terms_that_vectors_step_over_become_sums(value: str, found: str) -> None:
    after = gathered(pipeline_of(value))
    assert to_text(after.stages[0].values[0]) == found
    assert gathered(after) is after


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("uint16(a(2 * x, y)) + uint16(a(2 * x + 2, y))", "uint8"),
        ("uint16(a(4 * x, y)) + uint16(a(4 * x + 1, y))", "uint8"),
        ("uint16(a(2 * x, y)) + uint16(a(2 * x + 1, y + 1))", "uint8"),
        ("uint16(a(x, 2 * y)) + uint16(a(x, 2 * y + 1))", "uint8"),
        ("uint16(a(x, y)) + uint16(a(x + 1, y))", "uint8"),
        ("a(2 * x, y) + a(2 * x + 1, y)", "float32"),
        (" + ".join(f"a(2 * x + {n}, y) * {n}.5" for n in range(500)), "float32"),
    ],
)
def test_others_stay_as_they_were_written(value: str, type: str) -> None:
    before = pipeline_of(value, type)
    assert gathered(before) is before
