"""Rotating register windows: vectors of a row move on by one at each step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.lowered import body, group, loaded, pipeline
from support.lowered_values import assert_computes, assert_lowered_right, program_of

from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.ops import Binary
from tilesmith.scheduler.ir.loop.program import Assign, Define, Loop, PeeledLoop
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Tile, Vector
from tilesmith.scheduler.lowering.rotating_windows import grid_start

Golden = Callable[[str, str], None]


def test_a_stage_in_registers_is_computed_a_vector_ahead(golden: Golden) -> None:
    p = pipeline("g(x, y) + g(x + 1, y)", ("g", "f(x, y) * 2"), dims=("x", "y"))
    stage = Placement("g", "x.inner", "y.inner", storage="registers", vector=Vector("x", 8))
    golden("a_stage_in_registers_is_computed_a_vector_ahead.txt", body(p, [group("x.inner y.inner", [stage])]))


LANES = 8
SIZE = {"f": ((-40, 120), (-20, 60))}
REGIONS = ((0, 24), (0, 3)), ((3, 1), (1, 1)), ((-5, 7), (0, 2)), ((1, 8), (-2, 2)), ((-9, 37), (2, 4))
"""Whole vectors; a point; rows shorter than a vector; one that lies on two of the grid; several."""


def in_registers(name: str, **changes: object) -> Placement:
    fields: dict = {"storage": "registers", "vector": Vector("x", LANES), **changes}
    return Placement(name, "x.inner", "y.inner", **fields)


def window(value: str, *stages: tuple[str, str], type: str = "float32") -> Pipeline:
    return pipeline(value, *stages, dims=("x", "y"), type=type)


def rotating(p: Pipeline, **changes: object) -> Group:
    """All stages in registers."""
    stages = [in_registers(s.name) for s in p.stages if s.name != "out"]
    return group("x.inner y.inner", stages, **changes)


G = ("g", "f(x, y) * f(x, y + 1)")
WINDOWS = {
    "one to the right": window("g(x, y) + g(x + 1, y)", G),
    "to both sides": window("g(x - 2, y) * 2 + g(x + 3, y)", G),
    "further than a vector": window("g(x - 9, y) + g(x + 17, y)", G),
    "only from afar": window("g(x + 20, y) - g(x + 21, y)", G),
    "no window": window("g(x, y) + 1.0", G),
    "stages of stages": window("h(x, y) + h(x - 1, y) + g(x + 1, y)", G, ("h", "g(x - 1, y) + g(x + 2, y) * 2")),
    "with all of a row's": window("g(x, y) + g(x + 1, y) * f(3, y)", G),
    "of two rows": window("g(x, y) + g(x + 1, y + 1) * 2 + g(x - 1, y + 1)", G),
    "of halves": window("g(x, y) + g(x + 1, y)", ("g", "f(x // 2, y) + f((x + 1) // 2, y) * f(x // 4, y)")),
    "in another order": window("g(x // 4 * 4 + 3 - x % 4, y) + g(x - 1, y) * 2", G),
    "both halves": window("g(x // 8 * 8 + (x + 4) % 8, y) - g(x, y)", G),
    "one for all": window("g(x // 8 * 8 - 3, y)", G),
    "order of order": window(
        "h(x // 2 * 2 + (x + 1) % 2 + 9, y) + g(x - x % 4, y)", G, ("h", "g(x - x % 8 + 5, y) * 2")
    ),
    "moved order": window("h(x - 1, y) + h(x + 2, y)", G, ("h", "g(x // 4 * 4 + (x + 2) % 4, y) * 2")),
    "order of truths": window("select(g(x // 2 * 2 + (x + 1) % 2, y), 1.0, 2.0)", ("g", "f(x, y) > 0")),
    "order of looked up": window("g(x - x % 4, y)", ("g", "f(x + clamp(int32(f(x, y) * 9.0), 0, 2), y)")),
    "truths": window("select(g(x, y) and not g(x + 1, y), f(x, y), 2.0)", ("g", "f(x, y) > 0")),
    "of what does not move": window("g(x, y) + g(x + 1, y)", ("g", "f(2, y)")),
    "clamped": window("g(x, y) + g(x + 1, y)", ("g", "f(clamp(x, 0, 20), y) * 2")),
    "clamped by data": window("g(x, y) + g(x + 1, y)", ("g", "f(clamp(x, 0, clamp(int32(f(0, y) * 9.0), 0, 20)), y)")),
    "bytes": window("uint8(g(x, y) + g(x + 1, y) * 3)", ("g", "uint16(f(x, y)) * 7"), type="uint8"),
    "wider than a register": window("g(x, y) + g(x + 1, y)", ("g", "float64(f(x, y)) * 2")),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("p", WINDOWS.values(), ids=WINDOWS)
def test_rows_are_right_wherever_they_begin(p: Pipeline, stream: bool) -> None:
    assert_lowered_right(p, [rotating(p, stream=stream)], *REGIONS, sizes=SIZE)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("start", range(-1, 8))
def test_the_grid_of_vectors_begins_where_rows_of_the_input_do(start: int, stream: bool) -> None:
    """Every misalignment of the row to it, and every number of points that are left."""
    p = WINDOWS["to both sides"]
    program = program_of(p, [rotating(p, stream=stream)])
    for width in (1, 9, 15, 16):
        assert_computes(p, program, [((start, width), (0, 2))], {"f": ((-30, 90), (0, 5))})


def test_no_more_of_an_input_is_read_than_is_required() -> None:
    """The interpreter notices what leaves it."""
    for name in ("to both sides", "stages of stages", "of halves", "further than a vector"):
        assert_lowered_right(WINDOWS[name], [rotating(WINDOWS[name])], *REGIONS)


def test_tuples_rotate_by_component() -> None:
    g = {"name": "g", "dims": ["x", "y"], "value": ["f(x, y) * 2", "f(x, y) > 0", "int16(f(x, y) * 9)"]}
    value = "g(x - 1, y)[0] + select(g(x, y)[1], float32(g(x + 1, y)[2]), g(x + 2, y)[0])"
    p = loaded(g, {"name": "out", "dims": ["x", "y"], "value": [value, "g(x + 1, y)[2]"]})
    assert_lowered_right(p, [rotating(p)], *REGIONS, sizes=SIZE)


def test_channels_of_the_output_are_computed_in_one_row() -> None:
    """Written out, or in a loop inside of that over vectors."""
    g = {"name": "g", "dims": ["x", "c"], "value": "f(x, c) * 2"}
    p = loaded(g, {"name": "out", "dims": ["x", "c"], "value": "g(x, c) + g(x + 1, 0)"}, extents=(64, 3))
    stage = Placement("g", "x.inner", "x.outer", storage="registers", vector=Vector("x", 8))
    rows = group("c.inner x.inner x.outer", [stage], unroll=("c",), tiles=(Tile("x", 32),))
    assert_lowered_right(p, [rows], ((-3, 21), (0, 3)), ((1, 3), (0, 2)), sizes=SIZE)


def test_a_stage_is_computed_once_a_vector() -> None:
    """Whatever reads it: one product in the loop of whole vectors."""
    p = WINDOWS["to both sides"]
    (row,) = (s for s in walk(program_of(p, [rotating(p)]).body) if isinstance(s, PeeledLoop))
    (whole,) = row.middle
    assert isinstance(whole, Loop)
    products = [s for s in whole.body if isinstance(s, Define) and isinstance(s.op, Binary) and s.op.op == "*"]
    assert len(products) == 2, "that of the stage, and that of the output by 2"
    assert sum(isinstance(s, Assign) for s in whole.body) >= 1


def test_a_row_of_whole_vectors_at_every_size_has_no_code_for_its_ends() -> None:
    """That of a block, of which the reader's coordinates have remainders."""
    h = {"name": "h", "dims": ["i", "bx", "y"], "value": "f(bx * 8 + i, y) * 2"}
    g = {"name": "g", "dims": ["i", "bx", "y"], "value": "h(i, bx, y) + 1"}
    block = {"name": "block", "dims": ["i", "bx", "y"], "value": "g(i, bx, y) + g(i, bx, y + 1)"}
    p = loaded(h, g, block, {"name": "out", "dims": ["x", "y"], "value": "block(x % 8, x // 8, y)"}, extents=(64, 8))
    rows = Placement("g", "i.inner", "bx.inner", storage="registers", vector=Vector("i", LANES))
    loops = ("i.inner", "bx.inner", "y.inner")
    groups = [
        Group("h", loops, (), None, Vector("i", LANES), (), ()),
        Group("block", loops, (), None, Vector("i", LANES), (), (rows,)),
        group("x.inner y.inner"),
    ]
    assert not any(isinstance(s, PeeledLoop) for s in walk(program_of(p, groups).body))
    assert_lowered_right(p, groups, ((0, 24), (0, 3)), ((3, 1), (1, 1)), sizes=SIZE)


@pytest.mark.parametrize("anchor", [-3, 0, 5])
def test_the_vector_that_holds_a_point(anchor: int) -> None:
    for lo in range(-20, 20):
        start = grid_start(const(lo), const(anchor), LANES).const
        assert start <= lo < start + LANES
        assert (start - anchor) % LANES == 0
