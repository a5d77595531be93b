"""Rows of memory of our own, in C: every width from 1 up, down and up a pyramid, in tiles narrower than a vector, by
several threads."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import here
from support.native import build, source_of
from support.shipped import assert_right, random_array

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import TYPES
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

WIDTHS = range(1, 41)
STAGES = {
    "base": "input(x, y)",
    "down": "base(2 * x - 1, y) + base(2 * x, y) + base(2 * x + 1, y)",
    "rows": "down(x, 2 * y) + down(x, 2 * y + 1)",
    "up": "rows(x // 2, y) + rows((x + 1) // 2, y)",
    "tall": "up(x, y // 2) - up(x, (y + 1) // 2)",
    "out": "tall(x, y) + tall(x + 1, y)",
}
IMAGE = ((-20, 100), (-10, 40))


def pyramid(type_: str) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "pyramid",
            "inputs": [{"name": "input", "type": type_, "dims": ["x", "y"]}],
            "stages": [{"name": n, "dims": ["x", "y"], "value": v} for n, v in STAGES.items()],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 64]]},
        }
    )


def scheduled(p: Pipeline, tile: int | None, lanes: int) -> Schedule:
    """`up` is an image in memory, of tiles of their own; the other stages are in tiles of what they lead to."""
    vector = Vector("x", lanes)

    def group(output: str, *stages: str) -> Group:
        places = tuple(Placement(s, "x.outer", "x.outer", order=("x", "y"), vector=vector) for s in stages)
        loops = ("x.inner", "y.inner", "x.outer", "y.outer")
        return Group(output, loops, (Tile("x", tile), Tile("y", 2)), "y.outer", vector, (), places)

    return Schedule(p.name, "by hand", (group("up", "base", "down", "rows"), group("out", "tall")))


@pytest.mark.parametrize("tile", [None, 3, 24])
@pytest.mark.parametrize("type_", ["uint8", "int16", "uint32", "int64", "float32"])
def test_every_width(type_: str, tile: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    p = pyramid(type_)
    schedule = scheduled(p, tile, 32 // max(TYPES[type_].bytes, 2))
    check(rewrite(p, schedule))
    source = source_of(p, schedule, here())
    library = build(source)
    inputs = {"input": Image(random_array(TYPES[type_], IMAGE, np.random.default_rng(3)), tuple(lo for lo, _ in IMAGE))}
    for width in WIDTHS:
        regions = {"out": ((width % 3 - 1, width), (-1, 5))}
        status, got = call(library, source, p, inputs, {}, regions)
        assert status == 0, width
        assert_right(got, interpreted(p, inputs, {}, regions))
