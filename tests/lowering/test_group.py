"""Groups: stages are computed where they are placed, and slide along the loops around."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.executed import execute
from support.lowered import body, group, loaded, pipeline
from support.lowered_values import assert_lowered_right

from tilesmith.scheduler.ir.schedule.schedule import Placement, Tile, Vector

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


REGIONS = ((0, 21), (0, 6)), ((-3, 5), (2, 1)), ((5, 1), (-4, 9))
"""Vectors, tiles and what is left; one row; one column, from below 0."""
WINDOWS = {
    "down": ("g(x, y) + g(x, y + 1) * 2 + g(x + 1, y + 2)", "f(x, y) * f(x + 1, y)"),
    "both ways": ("g(x, y - 2) - g(x, y + 1)", "f(x, y) * 2"),
    "several new rows each": ("g(x, 2 * y) + g(x, 2 * y + 2) * 3", "f(x, y) + f(x, y + 1)"),
    "rows left out": ("g(x, 5 * y) + g(x, 5 * y + 1)", "f(x, y) + 1"),
    "rows again": ("g(x, y // 2) + g(x, y // 2 + 1) * 2", "f(x, y) * 2"),
    "from below": ("g(x, -y) + g(x, 2 - y) * 3", "f(x, y) * 2"),
    "always the same row": ("g(x, 3) + g(x, 5) * f(x, y)", "f(x, y) * 2"),
    "diagonally": ("g(x + y, y) + g(x + y, y + 1) * 2", "f(x, y) + 1"),
    "columns": ("g(2 * x, y) + g(2 * x + 3, y)", "f(x, y) * 2"),
    "of clamped rows": ("g(x, clamp(y - 1, 0, 7)) + g(x, clamp(y + 2, 0, 7))", "f(x, y) * 2"),
}
SIZE = {"f": ((-40, 100), (-40, 100))}
TILES = (Tile("x", 16), Tile("y", 4))
ROWS = "x.inner y.inner y.outer"
PLACES = {
    "in each row": ("x.inner y.inner", "y.inner", "y.inner", ()),
    "sliding from row to row": (ROWS, "y.inner", "y.outer", (Tile("y", None),)),
    "once": (ROWS, "y.outer", "y.outer", (Tile("y", None),)),
    "in each point": ("x.inner y.inner", "x.inner", "x.inner", ()),
    "in tiles": ("x.inner y.inner x.outer y.outer", "x.outer", "x.outer", TILES),
    "sliding in tiles": ("x.inner y.inner x.outer y.outer", "y.inner", "x.outer", TILES),
    "sliding from tile to tile": ("x.inner y.inner y.outer x.outer", "y.outer", "x.outer", TILES),
    "sliding along the row": ("x.inner y.inner", "x.inner", "y.inner", ()),
}  # fmt: skip


@pytest.mark.parametrize(("loops", "compute", "store", "tiles"), PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(("value", "of"), WINDOWS.values(), ids=WINDOWS)
def test_stages_are_right_wherever_they_are_computed(
    value: str, of: str, loops: str, compute: str, store: str, tiles: tuple[Tile, ...]
) -> None:
    """By threads as well, where there are tiles."""
    p = pipeline(value, ("g", of), dims=("x", "y"))
    stage, outermost = Placement("g", compute, store, order=("x", "y")), loops.split()[-1]
    for parallel in (None, outermost) if tiles else (None,):
        found = group(loops, [stage], None if compute == "x.inner" else 8, tiles=tiles, parallel=parallel)
        assert_lowered_right(p, [found], *REGIONS, sizes=SIZE)


def test_chains_of_stages_slide_one_behind_the_other() -> None:
    p = pipeline(
        "h(x, y) + h(x, y + 2)",
        ("g", "f(x, y) + f(x, y + 1)"),
        ("h", "g(x, y) * g(x + 1, y + 1)"),
        dims=("x", "y"),
    )
    sliding = [Placement(name, "y.inner", "y.outer", order=("x", "y"), vector=Vector("x", 8)) for name in ("g", "h")]
    program = assert_lowered_right(p, [group(ROWS, sliding, tiles=(Tile("y", None),))], *REGIONS, sizes=SIZE)
    run = execute(program, p, {"out": ((0, 24), (0, 9)), "f": ((0, 25), (0, 13))})
    assert run.stored == {"g": 25 // 8 * 8 * 12 + 12 * 8, "h": 24 * 11, "out": 24 * 9}


def test_stages_of_tuples_and_their_updates_are_computed_in_place() -> None:
    g = {
        "name": "g",
        "dims": ["x", "y"],
        "value": ["f(x, y)", "f(x, y) > 0"],
        "updates": [{"domain": {"k": [0, 3]}, "at": ["x", "y"], "value": ["g(x, y)[0] + 1.0", "not g(x, y)[1]"]}],
    }
    out = {"name": "out", "dims": ["x", "y"], "value": "g(x, y)[0] + select(g(x, y + 1)[1], g(x + 1, y)[0], 0.0)"}
    p = loaded(g, out)
    for level in ("y.inner", "y.outer"):
        stage = Placement("g", "y.inner", level, order=("x", "y"))
        assert_lowered_right(p, [group(ROWS, [stage], tiles=(Tile("y", None),))], *REGIONS, sizes=SIZE)


@pytest.mark.parametrize("level", ["y.inner", "y.outer"])
def test_scans_are_computed_anew_for_each_row(level: str) -> None:
    """Of a stage whose updates run along the rows that it slides by, no part of a box is left from the last one."""
    scan = {"domain": {"r": [1, 9]}, "at": ["x", "r"], "value": "g(x, r - 1) * 0.5 + g(x, r)"}
    g = {"name": "g", "dims": ["x", "y"], "value": "f(x, y)", "updates": [scan]}
    p = loaded(g, {"name": "out", "dims": ["x", "y"], "value": "g(x, y) + g(x, y + 1)"})
    stage = Placement("g", "y.inner", level, order=("x", "y"))
    assert_lowered_right(p, [group(ROWS, [stage], tiles=(Tile("y", None),))], *REGIONS, sizes=SIZE)


def test_what_no_iteration_moves_is_computed_in_the_first() -> None:
    p = pipeline("g(x, 3) * f(x, y)", ("g", "f(x, y) * 2"), dims=("x", "y"))
    stage = Placement("g", "y.inner", "y.outer", order=("x", "y"))
    program = assert_lowered_right(p, [group(ROWS, [stage], tiles=(Tile("y", None),))], *REGIONS, sizes=SIZE)
    assert execute(program, p, {"out": ((0, 24), (0, 9)), "f": ((0, 24), (0, 9))}).stored["g"] == 24


def test_threads_have_windows_of_their_own() -> None:
    """A window begins again in each tile: two rows more than it has."""
    p = pipeline("g(x, y) + g(x, y + 2)", ("g", "f(x, y) * 2"), dims=("x", "y"))
    stage = Placement("g", "y.inner", "y.outer", order=("x", "y"))
    tiled = group("x.inner y.inner y.outer", [stage], tiles=(Tile("y", 4),), parallel="y.outer")
    program = assert_lowered_right(p, [tiled], *REGIONS, sizes=SIZE)
    run = execute(program, p, {"out": ((0, 24), (0, 8)), "f": ((0, 24), (0, 10))})
    assert run.stored["g"] == 24 * 2 * (4 + 2)
    assert run.elements["g"] == (24, 4)


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("parallel", [None, "y.outer"])
def test_the_last_tile_of_rows_side_by_side_is_moved_back(parallel: str | None, registers: bool) -> None:
    """Over rows of the tile before it, in the same iteration of the parallel loop. Fewer rows than a tile stay so."""
    p = pipeline("g(x - 1, y) + g(x + 1, y + 1) * 2", ("g", "f(x, y) * f(x, y + 1)"), dims=("x", "y"))
    stage = (
        Placement("g", "x.inner", "x.outer", storage="registers") if registers else Placement("g", "inline", "inline")
    )
    loops = "y.inner x.inner x.outer y.outer" if registers else "x.inner y.inner y.outer"
    tiles = (*((Tile("x", None),) if registers else ()), Tile("y", 4))
    tiled = group(loops, [stage], tiles=tiles, unroll=("y",), parallel=parallel)
    heights = [((3, 21), (-2, rows)) for rows in range(1, 14)]
    assert_lowered_right(p, [tiled], *heights, sizes=SIZE)
    lines = body(p, [tiled])
    assert "let y_lo_0 = max(" in lines
    assert ('once // "a tile, and the last"' in lines) == (parallel is not None)


def test_tiles_behind_which_a_stage_slides_are_not_moved_back() -> None:
    p = pipeline("g(x, y) + g(x, y + 2)", ("g", "f(x, y) * 2"), dims=("x", "y"))
    stage, tiles = Placement("g", "y.outer", "x.outer", order=("x", "y")), (Tile("x", None), Tile("y", 4))
    tiled = group("x.inner y.inner y.outer x.outer", [stage], tiles=tiles, unroll=("y",))
    assert_lowered_right(p, [tiled], *REGIONS, sizes=SIZE)
    assert "y_lo" not in body(p, [tiled])
