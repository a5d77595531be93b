"""Groups: stages are computed where they are placed, and slide along the loops around."""

from __future__ import annotations

from collections.abc import Callable

from support.lowered import body, group, pipeline

from tilesmith.scheduler.ir.schedule.schedule import Placement, Tile

Golden = Callable[[str, str], None]


def test_a_stage_is_computed_in_each_tile(golden: Golden) -> None:
    p = pipeline("g(x) + g(x + 1)", ("g", "f(x) * 2"))
    stage = Placement("g", "x.outer", "x.outer")
    tiled = group("x.inner x.outer", [stage], None, tiles=(Tile("x", 16),), parallel="x.outer")
    golden("a_stage_is_computed_in_each_tile.txt", body(p, [tiled]))


def test_a_stage_that_slides_computes_what_is_new(golden: Golden) -> None:
    p = pipeline("g(x, y) + g(x, y + 1)", ("g", "f(x, y) * 2"), dims=("x", "y"))
    stage = Placement("g", "y.inner", "x.outer", order=("x", "y"))
    columns = group("x.inner y.inner x.outer", [stage], None, tiles=(Tile("x", 16),))
    golden("a_stage_that_slides_computes_what_is_new.txt", body(p, [columns]))
