"""Coordinate maps: what places of coordinates alone are told from those that data says."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.analysis.coordinate_maps import coordinate_maps
from tilesmith.scheduler.frontends.document.document import load

A = {"name": "a", "type": "float32", "dims": ["x", "y"]}


@pytest.mark.parametrize(
    ("value", "mapped"),
    [
        ("1280.0 + float32(x) * cos(float32(y))", True),
        ("floor(0.3 * float32(x)) + clamp(float32(y), 0.0, 9.0)", True),
        ("float32(x) + a(x, y)", False),
        ("float32(x ^ y)", False),
        ("float32(x % 8)", False),
        ("select(x > y, 1.0, 2.0)", False),
        ("random(x, y)", False),
    ],
)
def test_maps_are_continuous_functions_of_coordinates(value: str, mapped: bool) -> None:
    document = {
        "format": 1, "name": "maps", "inputs": [A],
        "stages": [
            {"name": "at", "dims": ["x", "y"], "value": value},
            {"name": "twice", "dims": ["x", "y"], "value": "2.0 * at(x, y)"},
            {"name": "out", "dims": ["x", "y"], "value": "a(x, y) + twice(x, y)"},
        ],
        "outputs": ["out"], "estimates": {"out": [[0, 64], [0, 64]]},
    }  # fmt: skip
    assert coordinate_maps(load(document).stages) == ({"at", "twice"} if mapped else set())
