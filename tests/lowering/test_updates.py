"""Updates: loops over the free dims and the domain, after the values."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.builders import builder
from support.lowered import body, group, loaded
from support.lowered_values import assert_lowered_right

from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Tile, UpdateLoops, Vector
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.updates import left_to_values

Golden = Callable[[str, str], None]


def test_an_update_runs_over_its_domain_after_the_values(golden: Golden) -> None:
    update = {
        "domain": {"k": [0, 64]},
        "at": ["clamp(int32(f(k)), 0, 63)"],
        "value": "out(clamp(int32(f(k)), 0, 63)) + 1",
    }
    p = loaded({"name": "out", "dims": ["x"], "type": "int32", "value": "0", "updates": [update]}, type="uint8")
    golden("an_update_runs_over_its_domain_after_the_values.txt", body(p, [group("x.inner", vector=None)]))


def update(
    value: str | list[str], at: list[str], where: str | None = None, **domain: list[object]
) -> dict[str, object]:
    found: dict[str, object] = {"domain": domain, "at": at, "value": value}
    return found if where is None else {**found, "where": where}


def stage(*updates: dict[str, object], value: str | list[str] = "float32(y)", **more: object) -> Pipeline:
    """A stage over x and y with these updates."""
    return loaded({"name": "out", "dims": ["x", "y"], "value": value, "updates": list(updates)}, **more)


def scheduled(*loops: UpdateLoops, **changes: object) -> Group:
    return group("x.inner y.inner", updates=loops, **changes)


DOWN = update("out(x, r - 1) * 0.5 + f(x, r)", ["x", "r"], r=[1, "f.extent.y - 1"])
"""A running sum, of free columns."""
ALONG = update("out(r - 1, y) * 0.5 + f(r, y)", ["r", "y"], r=[1, 18])
"""One along the rows: x is the order."""
SIZE = {"f": ((0, 24), (0, 9))}
WHOLE = ((0, 24), (0, 9))


@pytest.mark.parametrize(
    "loops",
    [
        (),
        (UpdateLoops(("x", "r")),),
        (UpdateLoops(("r", "x")),),
        (UpdateLoops(("x", "r"), Vector("x", 8)),),
        (UpdateLoops(("x", "r"), Vector("x", 4)),),
        (UpdateLoops(("r", "x"), None, "x"),),
    ],
)
def test_running_sums_in_any_order_of_loops(loops: tuple[UpdateLoops, ...]) -> None:
    """Rows of 24, 3, 9 and 13 points: whole vectors, none, and what is left."""
    for width in (24, 3, 9, 13):
        assert_lowered_right(stage(DOWN), [scheduled(*loops)], ((0, width), (0, 9)), sizes={"f": ((0, width), (0, 9))})


def test_no_point_of_an_update_is_done_twice() -> None:
    """Vectors that were moved back to end with the row would add twice."""
    add = update("out(x, r) + f(x, r)", ["x", "r"], r=[1, 3])
    for width in (1, 7, 8, 9, 15, 21):
        assert_lowered_right(stage(add), [scheduled(UpdateLoops(("x", "r"), Vector("x", 8)))], ((2, width), (1, 3)))


def test_rows_that_go_back_in_memory_have_vectors_that_do() -> None:
    """Rows of 24, 3, 9 and 13 points."""
    p = stage(update("out(x, 9 - r) * 0.5 + f(x, 8 - r)", ["x", "8 - r"], r=[0, 9]), value="float32(y)")
    schedule = [scheduled(UpdateLoops(("x", "r"), Vector("x", 8)))]
    assert "let xv_1 = x_first_1 + x_last_1 - x_step_1" in body(p, schedule)
    for width in (24, 3, 9, 13):
        assert_lowered_right(p, schedule, ((0, width), (0, 10)), sizes={"f": ((0, width), (0, 10))})


def test_updates_are_done_one_after_the_other() -> None:
    twice = update("out(x, i) * 2", ["x", "i"], i=[0, 9])
    vector = UpdateLoops(("x", "i"), Vector("x", 8))
    p = stage(DOWN, twice, ALONG, twice)
    assert_lowered_right(p, [scheduled()], WHOLE, sizes=SIZE)
    assert_lowered_right(
        p, [scheduled(UpdateLoops(("x", "r")), vector, UpdateLoops(("r", "y")), vector)], WHOLE, sizes=SIZE
    )


@pytest.mark.parametrize("vector", [None, Vector("x", 8)])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_domain_of_no_rows_changes_nothing(rows: int, vector: Vector | None) -> None:
    """Of -1, 0 and 1 rows."""
    p = stage(update("out(x, r) + f(x, r)", ["x", "r"], r=[0, "f.extent.y - 2"]))
    size = {"f": ((0, 20), (0, rows))}
    assert_lowered_right(p, [scheduled(UpdateLoops(("x", "r"), vector))], ((0, 20), (0, rows)), sizes=size)


CONDITIONS = {
    "of data": "f(x, r) > 0",
    "of a place": "x > 5",
    "of the row alone": "r % 2 == 0",
    "of lanes": "x % 2 == 0",
    "never": "r < 0",
}


@pytest.mark.parametrize("vector", [None, Vector("x", 8)])
@pytest.mark.parametrize("where", CONDITIONS.values(), ids=CONDITIONS)
def test_points_where_a_condition_holds(where: str, vector: Vector | None) -> None:
    p = stage(update("out(x, r - 1) + 1.0", ["x", "r"], where, r=[1, 8]))
    for width in (24, 5):
        size = {"f": ((0, width), (0, 9))}
        assert_lowered_right(p, [scheduled(UpdateLoops(("x", "r"), vector))], ((0, width), (0, 9)), sizes=size)


@pytest.mark.parametrize("vector", [None, Vector("x", 8)])
def test_components_change_at_once(vector: Vector | None) -> None:
    """Each reads what the other was."""
    swap = update(["out(x, r)[1]", "out(x, r)[0]"], ["x", "r"], r=[0, 5])
    choose = update(["out(x, r)[1]", "out(x, r)[0] + 1.0"], ["x", "r"], "f(x, r) > 0", r=[2, 5])
    p = stage(swap, choose, value=["f(x, y)", "float32(x) + f(x, y)"])
    loops = UpdateLoops(("x", "r"), vector)
    assert_lowered_right(p, [scheduled(loops, loops)], ((0, 21), (0, 9)), sizes={"f": ((0, 21), (0, 9))})


def test_scatters_go_where_data_says() -> None:
    at = "clamp(int32(f(i, j) * 12.0), 0, 20)"
    count = update(f"out({at}, j) + 1.0", [at, "j"], i=[0, 24], j=[0, 9])
    for loops in ((), (UpdateLoops(("i", "j")),), (UpdateLoops(("i", "j"), None, "j"),)):
        assert_lowered_right(stage(count, value="0.0"), [scheduled(*loops)], WHOLE, sizes=SIZE)


def test_short_dims_inside_of_vectors_are_done_side_by_side() -> None:
    """All points read what the vector reads once."""
    p = loaded(
        {
            "name": "out",
            "dims": ["x", "c"],
            "value": "0.0",
            "updates": [update("out(x, c) * 0.5 + f(x, r) * float32(c)", ["x", "c"], r=[0, "f.extent.c"])],
        },
        extents=(64, 3),
    )
    loops = UpdateLoops(("c", "x", "r"), Vector("x", 8))
    for channels in (3, 2):
        size = {"f": ((0, 21), (0, 5))}
        assert_lowered_right(p, [group("x.inner c.inner", updates=(loops,))], ((0, 21), (0, channels)), sizes=size)


def left(p: Pipeline, box: tuple[tuple[int, int], tuple[int, int]], *loops: UpdateLoops) -> set[tuple[int, int]]:
    """The points that values have to fill."""
    b = builder()
    ends = tuple((const(lo), const(hi)) for lo, hi in box)
    found: list[tuple[int, int]] = []
    for (x0, x1), (y0, y1) in left_to_values(b, Sources({}, {}, {}), p.stages[-1], loops, ends):
        found += [(x, y) for x in range(x0.const, x1.const + 1) for y in range(y0.const, y1.const + 1)]
    assert len(found) == len(set(found)), "parts do not overlap"
    return set(found)


def points(x0: int, x1: int, y0: int, y1: int) -> set[tuple[int, int]]:
    return {(x, y) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1)}


def test_what_the_first_update_writes_needs_no_values() -> None:
    set_all = update("f(i, j)", ["i", "j"], i=[2, 5], j=[1, 3])
    box = (0, 9), (0, 7)
    whole = points(0, 9, 0, 7)
    assert left(stage(), box) == whole
    down = update("out(x, r - 1) * 0.5 + f(x, r)", ["x", "r"], r=[1, 6])
    assert left(stage(down), box) == whole - points(0, 9, 1, 6)
    assert left(stage(set_all), box) == whole - points(2, 6, 1, 3)
    assert left(stage(update("f(i, y)", ["i", "y"], i=[2, 5])), box) == whole - points(2, 6, 0, 7)
    assert left(stage(update("f(i, y)", ["i", "y"], i=[-5, 99])), box) == set()
    assert left(stage(update("out(i + 1, y) + 1.0", ["i", "y"], i=[2, 5])), box) == whole
    assert left(stage(update("f(i, j)", ["i", "j"], "f(i, j) > 0", i=[2, 5], j=[1, 3])), box) == whole


def test_updates_that_fill_a_stage_are_right_beside_its_values() -> None:
    p = stage(update("f(i + 1, j)", ["i + 3", "j"], i=[2, 5], j=[1, 3]), update("out(x, y) + 1.0", ["x", "y"]))
    assert_lowered_right(p, [scheduled()], WHOLE, sizes=SIZE)


def test_a_reduction_into_each_point_is_no_scan_along_the_row() -> None:
    """Though the domain's loop is the innermost: vectors run along the row."""
    values = ["select(f(x, k) < out(x, y)[1], k, out(x, y)[0])", "min(out(x, y)[1], f(x, k))"]
    p = stage(update(values, ["x", "y"], k=[0, "f.extent.y"]), value=["0", "255.0"])
    made = body(p, [scheduled(UpdateLoops(("k", "x", "y"), Vector("x", 8)))])
    assert re.search(r"call min\(.*\) : f32x8", made)


@pytest.mark.parametrize(
    ("value", "width", "asked"),
    [("f(x, y)", 64, 8), ("f(x, y)", 4096, 8), ("f(x, y)", 1 << 17, 0), ("sum(f(k, y) for k in range(0, 9))", 64, 0)],
)
def test_scans_of_a_block_ask_for_the_rows_of_the_next(value: str, width: int, asked: int) -> None:
    """A line of each of eight rows, sixteen further; not where two blocks are more than the second level holds, nor for
    the many elements that a reduction reads."""
    p = stage(ALONG, value=value, extents=(width, 64))
    made = body(p, [scheduled(UpdateLoops(("r", "y"), Vector("y", 8)))], vector_bytes=32)
    assert made.count("prefetch") == asked


@pytest.mark.parametrize(
    ("width", "height", "step", "asked"),
    [(1024, 1024, 2, 1), (1024, 1024, 1, 0), (1000, 1024, 2, 0), (1024, 32, 2, 0), (1 << 20, 8, 2, 0)],
)
def test_updates_ask_for_the_next_row_pages_further(width: int, height: int, step: int, asked: int) -> None:
    """Rows are asked for of an array larger than the second level, which holds two of them."""
    value = f"out(x, r - 1) * 0.5 + f(x, clamp({step} * r, 0, {height - 1}))"
    p = stage(update(value, ["x", "r"], r=[1, "f.extent.y - 1"]), extents=(width, height))
    made = body(p, [scheduled(UpdateLoops(("x", "r"), Vector("x", 8)))])
    assert made.count("prefetch") == asked


@pytest.mark.parametrize(
    ("width", "height", "strip", "own", "steps"),
    [
        (1600, 1000, 800, False, 8),
        (2048, 1000, 1024, False, 4),
        (1600, 1000, None, False, 1),
        (1600, 30, 800, False, 1),
        (96, 1000, 48, True, 1),
    ],
)
def test_vectors_take_steps_of_a_scan_together_where_rows_are_torn(
    width: int, height: int, strip: int | None, own: bool, steps: int
) -> None:
    """Fewer of rows that share sets of a cache; one of whole rows, of few, and of what is in the second level."""
    read = "out(x, r)" if own else "f(x, r)"
    p = stage(update(f"out(x, r - 1) * 0.5 + {read}", ["x", "r"], r=[1, "f.extent.y - 1"]), extents=(width, height))
    loops = UpdateLoops(("x", "r"), Vector("x", 8))
    tiled = {} if strip is None else {"tiles": (Tile("x", strip),)}
    of = group("x.inner y.inner x.outer" if tiled else "x.inner y.inner", updates=(loops,), **tiled)
    made = body(p, [of], vector_bytes=32)
    assert re.findall(r"for r_0 = .* step (\d)", made) == [str(steps)]
    assert_lowered_right(p, [of], WHOLE, sizes=SIZE)


def test_steps_together_are_in_registers_for_the_next_ones() -> None:
    p = stage(
        update("out(x, r - 1) * 0.5 - out(x, r - 2) + f(x, r)", ["x", "r"], r=[2, "f.extent.y - 2"]),
        extents=(1600, 1000),
    )
    of = group("x.inner y.inner x.outer", tiles=(Tile("x", 800),), updates=(UpdateLoops(("x", "r"), Vector("x", 8)),))
    (vectors,) = re.findall(r"for r_0 = .*?for x_step.*?}", body(p, [of], vector_bytes=32), re.DOTALL)
    assert (vectors.count("load out"), vectors.count("load f")) == (3, 8)
    for rows in (2, 9, 10, 11, 18, 19):
        assert_lowered_right(p, [of], ((0, 24), (0, rows)), sizes={"f": ((0, 24), (0, rows))})


def test_blocks_of_scans_that_ask_ahead_are_right() -> None:
    p = stage(ALONG, update("out(17 - r, y) * 0.5 + out(18 - r, y)", ["17 - r", "y"], r=[0, 18]), value="f(x, y)")
    loops = UpdateLoops(("r", "y"), Vector("y", 8))
    assert_lowered_right(p, [scheduled(loops, loops)], ((0, 24), (0, 37)), sizes={"f": ((0, 24), (0, 37))})


def test_threads_share_blocks_whose_last_update_goes_in_order() -> None:
    down = update("out(x, r - 1) + out(x, r)", ["x", "r"], r=[1, 36])
    p = stage(ALONG, down, value="f(x, y)")
    loops = UpdateLoops(("r", "y"), Vector("y", 8), "y"), UpdateLoops(("x", "r"), Vector("x", 8))
    made = body(p, [scheduled(*loops)], vector_bytes=32)
    assert re.search(r"for \w+ = \S+ to \S+ step 16 parallel", made)
    assert made.count("ordered {") == 1
    assert_lowered_right(p, [scheduled(*loops)], ((0, 24), (0, 37)), sizes={"f": ((0, 24), (0, 37))})
