"""Columns: the rows of images, and of a group's own buffers, that loops walk across."""

from __future__ import annotations

import pytest
from support.group_work import works
from support.small_pipelines import F, k, pipeline, stage, summed, x, y

from tilesmith.cost_models.work import Column
from tilesmith.scheduler.features.groups.group_counts import Levels

LOOPS = ("x.inner", "y.inner", "y.outer", "x.outer")


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (200, (Column(200 * 4.0, 100.0, 200 * 40 * 100 / 8, True),)),
        (8, (Column(8 * 4.0, 1.0, 0.0, True),)),  # a panel, which is read in the order of memory
    ],
)
def test_a_sum_walks_across_the_rows_of_a_copy_as_far_apart_as_it_is_kept(
    width: int, columns: tuple[Column, ...]
) -> None:
    values = summed(F("copy")(x, k) * F("input")(y, k), k=(0, 100))
    of = pipeline("product", [stage("copy", "xy", F("input")(x, y)), stage("out", "xy", values)], {"out": (200, 40)})
    found = works(of, LOOPS, {"copy": Levels(3, 3)}, {"x": width, "y": 40}, 8)
    assert found["out"].columns == columns
