"""Rows and vectors of stages, against walking small loop nests."""

from __future__ import annotations

import pytest
from support.group_work import ORDERS, TILES, boxes, works
from support.small_pipelines import F, blur, pipeline, stage, x, y

from tilesmith.scheduler.features.groups.group_counts import Levels


@pytest.mark.parametrize("tiles", TILES, ids=str)
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_rows_and_vectors_of_a_sliding_blur(tiles: dict[str, int], lanes: int) -> None:
    found = works(blur(20, 13), ORDERS[0], {"blur_x": Levels(1, 2)}, tiles, lanes)
    rows = {"blur_y": 0, "blur_x": 0}
    steps, singles = dict(rows), dict(rows)
    for tile in boxes({"x": 20, "y": 13}, tiles):
        for name, more in (("blur_y", 0), ("blur_x", 2)):
            lines, length = len(tile["y"]) + more, len(tile["x"])
            rows[name] += lines
            if lanes == 1:
                steps[name] += lines * length
            elif length < lanes:
                singles[name] += lines * length
            else:
                steps[name] += lines * -(-length // lanes)
    for name, work in found.items():
        assert (work.rows, work.steps, work.singles) == (rows[name], steps[name], singles[name]), name


def test_what_is_computed_for_each_vector_begins_a_row_for_each() -> None:
    """Eight vectors of a row of 64, where nothing is in registers: each reads eight points, or ten of a window."""
    for reach, vectors in ((0, 1), (2, 2)):
        value = F("f")(x, y) if reach == 0 else F("f")(x - 1, y) + F("f")(x + 1, y)
        of = pipeline("inside", [stage("f", "xy", F("input")(x, y) * 2.0), stage("out", "xy", value)], {"out": (64, 8)})
        found = works(of, ORDERS[0], {"f": Levels(0, 0)}, {"x": 64, "y": 8}, 8)["f"]
        assert not found.in_output
        assert float(found.rows) == 8 * 8
        assert float(found.steps) == vectors * 8 * 8
