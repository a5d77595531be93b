"""A tile of one row makes the inter-tile loop a loop by ones: windows still slide across it, in whole buffers."""

from __future__ import annotations

import numpy as np
from support.machines import machine
from support.native import build, call, source_of

from scheduler.lang.document import load
from scheduler.lang.interpret import Image, interpret
from scheduler.legality import check
from scheduler.schedule import Group, Placement, Schedule, Tile

DOCUMENT = {
    "format": 1,
    "name": "rows",
    "inputs": [{"name": "image", "type": "int32", "dims": ["x", "y"]}],
    "stages": [
        {"name": "f", "dims": ["x", "y"], "value": "image(x, y) * 3"},
        {"name": "g", "dims": ["x", "y"], "value": "f(x, y - 1) + 2 * f(x, y + 2)"},
    ],
    "outputs": ["g"],
    "estimates": {"g": [[0, 19], [0, 9]]},
}


def test_rows_are_produced_by_the_loop_that_has_iterations() -> None:
    pipeline = load(DOCUMENT)
    group = Group(
        output="g",
        loops=("x.inner", "y.inner", "y.outer", "x.outer"),
        tiles=(Tile("x", None), Tile("y", 1)),
        parallel=None,
        vector=None,
        unroll=(),
        placements=(Placement("f", "y.inner", "x.outer"),),
    )
    schedule = Schedule("rows", "by hand", (group,))
    check(pipeline, schedule)
    source = source_of(pipeline, schedule, machine())
    inputs = {"image": Image(np.arange(19 * 12, dtype=np.int32).reshape(12, 19), (0, -1))}
    regions = {"g": ((0, 19), (0, 9))}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["g"][0], interpret(pipeline, inputs, {}, regions)["g"][0])
