"""Scans along rows and across them: which loops they run in, and whether they go back in memory."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.analysis.row_scans import goes_back
from tilesmith.scheduler.frontends.document.document import load


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (["x", "input.extent.y - 1 - r"], True),
        (["x", "8 - 2 * r"], True),
        (["x", "-r - r"], True),
        (["x", "r"], False),
        (["x", "r - input.extent.y"], False),
        (["9 - r", "9 - r"], True),
        (["9 - r", "r"], False),
        (["x", "abs(r - 5)"], False),
        (["x", "9 - r // 2"], False),  # may stay where it is
        (["x", "4"], False),
    ],
)
def test_updates_go_back_where_every_place_falls(place: list[str], expected: bool) -> None:
    update = {"domain": {"r": [1, 4]}, "at": place, "value": "1"}
    of = load(
        {
            "format": 1,
            "name": "places",
            "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"]}],
            "stages": [{"name": "f", "dims": ["x", "y"], "value": "input(x, y)", "updates": [update]}],
            "outputs": ["f"],
            "estimates": {"f": [[0, 16], [0, 16]]},
        }
    )
    assert goes_back(of.stages[0].updates[0], "r") is expected
    assert not goes_back(of.stages[0].updates[0], "other")
