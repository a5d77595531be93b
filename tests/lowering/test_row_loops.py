"""Row loops: stages in rings join the loop over vectors of a row with stages in registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.lowered import body, group, pipeline
from support.lowered_values import assert_lowered_right
from support.machines import machine

from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow, UnrolledDim
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.lowering.bounds import with_bounds
from tilesmith.scheduler.lowering.loops import with_loops
from tilesmith.scheduler.lowering.passes import begun
from tilesmith.scheduler.lowering.row_loops import unrolled_dims
from tilesmith.scheduler.rewrites.passes import rewrite

Golden = Callable[[str, str], None]


def test_a_ring_is_filled_in_the_loop_that_reads_it(golden: Golden) -> None:
    p = pipeline("h(x, y) + h(x + 1, y)", ("g", "f(x, y) * 2"), ("h", "g(x, y) + g(x, y + 1)"), dims=("x", "y"))
    ring = Placement("g", "x.inner", "root", order=("x", "y"), vector=Vector("x", 8))
    stage = Placement("h", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8))
    golden("a_ring_is_filled_in_the_loop_that_reads_it.txt", body(p, [group("x.inner y.inner", [ring, stage])]))


SIZE = {"f": ((-40, 120), (-40, 60))}
REGIONS = ((0, 24), (0, 6)), ((3, 1), (1, 1)), ((-5, 7), (-3, 5)), ((-9, 37), (2, 4))
ROWS = "x.inner y.inner y.outer"


def joined(value: str, g: str, h: str, **changes: object) -> tuple[Pipeline, Group]:
    """A stage `h` in registers, of a stage `g` in a ring of rows."""
    p = pipeline(value, ("g", g), ("h", h), dims=("x", "y"))
    ring = Placement("g", "x.inner", "y.outer", order=("x", "y"), vector=Vector("x", 8))
    stage = Placement("h", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8))
    return p, group(ROWS, [ring, stage], tiles=(Tile("y", None),), **changes)


ROWS_OF = {
    "one new row": ("h(x, y) + h(x + 1, y)", "f(x, y) * 2", "g(x, y) + g(x, y + 1) * 2"),
    "around": ("h(x - 1, y) + h(x + 1, y)", "f(x, y) * f(x + 1, y)", "g(x - 1, y - 1) + g(x + 2, y + 1) * 2"),
    "several new rows": ("h(x, y) + h(x + 1, y)", "f(x, y) * 2", "g(x, 2 * y) + g(x, 2 * y + 2) * 2"),
    "the same row again": ("h(x, y) + h(x + 1, y)", "f(x, y) * 2", "g(x, y // 2) + g(x, y // 2 + 1) * 2"),
    "clamped rows": ("h(x, y) + h(x + 1, y)", "f(x, y) * 2", "g(x, clamp(y, 0, 4)) + g(x, clamp(y + 1, 0, 4))"),
    "not along the row": ("h(x, y) + h(x + 1, y)", "f(x, y) * 2", "g(2 * x, y) + g(2 * x, y + 1)"),
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("value", "g", "h"), ROWS_OF.values(), ids=ROWS_OF)
def test_rings_are_right_whatever_is_new_of_them(value: str, g: str, h: str, stream: bool) -> None:
    p, rows = joined(value, g, h, stream=stream)
    assert_lowered_right(p, [rows], *REGIONS, sizes=SIZE)


@pytest.mark.parametrize(
    ("case", "rings"), [("one new row", 1), ("around", 1), ("several new rows", 0), ("not along the row", 0)]
)
def test_stages_join_the_loop_where_one_row_of_them_is_new(case: str, rings: int) -> None:
    """Else they are computed ahead of it."""
    p, rows = joined(*ROWS_OF[case])
    plan = rewrite(p, Schedule(p.name, "by hand", (rows,)))
    found = list(walk(with_loops(with_bounds(begun(plan, machine(vector_bytes=32)))).program.body))
    (row,) = (s for s in found if isinstance(s, FusedRow))
    assert [s.stage for s in row.stages if s.ring] == ["g"] * rings
    assert [s.stage for s in row.stages if not s.ring] == ["h"]
    assert [s.stage for s in found if isinstance(s, Compute)] == ["g"] * (1 - rings)


def test_dims_to_unroll_keep_what_they_are_expected_to_have() -> None:
    assert unrolled_dims({"c": (0, 3), "t": (None, 2)}) == (UnrolledDim("c", 3, 0), UnrolledDim("t", 2, None))
