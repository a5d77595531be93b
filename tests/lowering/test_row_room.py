"""Room at the ends of rows: rows of memory of our own are whole vectors, whatever their length, where all that lanes
beyond them touch is room; and scalars are left where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.lowered import group, loaded
from support.lowered_values import assert_lowered_right, program_of
from support.turns import in_turn

from tilesmith.scheduler.ir.loop.program import Program, Stores
from tilesmith.scheduler.ir.loop.traversal import walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Tile, Vector

REGIONS = [((-3 * (width // 2 % 2), width), (-1, 3)) for width in (*range(1, 19), 31, 32, 33)]
"""Rows of every width up to two vectors and more; odd and even ones begin at 0 and at -3 in turn."""
SIZE = {"f": ((-200, 400), (-200, 400))}


def stores(program: Program) -> Iterator[tuple[str, int]]:
    """Stages that are stored to, and by how many lanes."""
    for s in walk(program.body):
        if isinstance(s, Stores):
            yield s.buffer.stage, s.value.lanes


def by_points(program: Program) -> set[str]:
    """The stages that points are stored of, one by one."""
    return {stage for stage, lanes in stores(program) if lanes == 1}


def chain(*values: str, type_: str = "int32") -> Pipeline:
    """Stages s1, s2, ... of these values, where s0 is an image, and the output that follows, over x and y."""
    names = [*(f"s{n}" for n in range(1, len(values))), "out"]
    stages = [(name, value.replace("s0", "f")) for name, value in zip(names, values, strict=True)]
    return loaded(*({"name": n, "dims": ["x", "y"], "value": v} for n, v in stages), type=type_)


def in_rows(p: Pipeline, compute: str = "y.inner", store: str = "y.inner", lanes: int = 8) -> list[Placement]:
    """The stages before the output, computed in vectors along x."""
    names = [s.name for s in p.stages if s.name not in p.outputs]
    return [Placement(n, compute, store, order=("x", "y"), vector=Vector("x", lanes)) for n in names]


def rows_of(p: Pipeline) -> Group:
    return group("x.inner y.inner", in_rows(p))


MIDDLES = {
    "neighbours": "s1(x - 1, y) + s1(x, y) * 2 + s1(x + 1, y)",
    "every other": "s1(2 * x - 1, y) + s1(2 * x, y) * 3 + s1(2 * x + 1, y)",
    "every point twice": "s1(x // 2, y) * 3 + s1((x + 1) // 2, y)",
    "its neighbours as well": "s1(x // 2 - 1, y) + s1(x // 2 + 1, y)",
    "four times": "s1(x // 4, y) + s1((x + 2) // 4, y)",
    "what the point is": "s1(x, y) * x + y",
    "a divisor": "s1(x, y) // s1(x + 1, y)",
    "a place that data say": "s1(clamp(s1(x, y), -3, 3), y)",
    "a row that data say": "s1(2 * x, clamp(s1(x, y), -2, 2))",
    "a row that data of all lanes say": "s1(x, clamp(s1(x // 8, y), -2, 2))",
}


@pytest.mark.parametrize("value", MIDDLES.values(), ids=MIDDLES)
def test_rows_that_read_memory_of_our_own_are_vectors(value: str) -> None:
    """The stage that reads the image, and the output, which is the caller's, are points where they are short."""
    p = chain("s0(x, y) * 3 + 1", value, "s2(x, y) + s2(x + 1, y)")
    assert by_points(assert_lowered_right(p, [rows_of(p)], *REGIONS, sizes=SIZE)) == {"s1", "out"}


POINTS = {
    "further apart than there is room for": "s1(3 * x, y)",
    "a place that data move": "s1(x + clamp(s1(x, y), -3, 3), y)",
    "from the other end": "s1(-x, y) + s1(3 - x, y)",
    "further apart, of a row that data say": "s1(3 * x, clamp(s1(x, y), -2, 2))",
    "at multiples of something, without a margin": "select(x % 2 == 0, s1(x, y), s1(x + 1, y) * 2)",
    "of a column": "s1(y, x)",
    "where the point itself is not a line": "s1(clamp(x * x, -9, 9), y)",
    "of an image": "s1(x, y) + f(x, y)",
    "at an edge": "s1(clamp(x, 0, 5), y)",
}


@pytest.mark.parametrize("value", POINTS.values(), ids=POINTS)
def test_rows_are_points_where_lanes_beyond_are_anywhere(value: str) -> None:
    p = chain("s0(x, y) * 3 + 1", value, "s2(x, y) + s2(x + 1, y)")
    assert "s2" in by_points(assert_lowered_right(p, [rows_of(p)], *REGIONS, sizes=SIZE))


@pytest.mark.parametrize("type_", ["uint8", "int16", "uint32", "int64", "float32", "float64"])
def test_rows_of_every_type_are_vectors(type_: str) -> None:
    p = chain(
        "s0(x, y)", "s1(2 * x - 1, y) + s1(2 * x, y)", "s2(x // 2, y) + s2(x // 2 + 1, y)", "s3(x, y)", type_=type_
    )
    assert by_points(assert_lowered_right(p, [rows_of(p)], *REGIONS, sizes=SIZE)) == {"s1", "out"}


LEVELS = [("x.outer", "x.outer"), ("y.inner", "x.outer"), ("y.inner", "y.inner")]


@pytest.mark.parametrize(("width", "level"), in_turn([1, 3, 8, 13, 3, 1], LEVELS))
def test_rows_of_tiles_have_room_of_their_own(width: int, level: tuple[str, str]) -> None:
    """Widths and levels take turns."""
    p = chain("s0(x, y) * 3", "s1(x - 1, y) + s1(2 * x, y)", "s2(x // 2, y) + s2(x, y - 1)", "s3(x, y) + s3(x + 1, y)")
    tiles = group("x.inner y.inner x.outer", in_rows(p, *level), tiles=(Tile("x", width),), parallel="x.outer")
    assert by_points(assert_lowered_right(p, [tiles], *REGIONS, sizes=SIZE)) == {"s1", "out"}


EVERY_OTHER = "select(x % 2 == 0, s1(x, y), s1(x + 1, y) * 2)"


@pytest.mark.parametrize("readers", [("s2(x // 2, y)", "s3(x, y)"), ("s1(x // 2, y)", "s2(x, y) + s3(x, y)")])
def test_vectors_at_multiples_need_margins_where_they_read_and_where_they_are_stored(readers: tuple[str, ...]) -> None:
    """Readers at half the rate give a margin to the stage that they read, once the one, once the other."""
    p = chain("s0(x, y) * 3 + 1", EVERY_OTHER, *readers)
    assert "s2" in by_points(assert_lowered_right(p, [rows_of(p)], *REGIONS, sizes=SIZE))


@pytest.mark.parametrize("at", [("x // 2", "x"), ("x", "x // 2")])
def test_margins_are_seen_through_what_is_inlined(at: tuple[str, str]) -> None:
    inlined, reader = at
    p = chain(
        "s0(x, y) * 3", f"s1({inlined}, y) * 5", f"s2({reader}, y) + s2({reader} + 3, y)", "s3(x, y) - s3(x + 1, y)"
    )
    s1, s2, s3 = in_rows(p)
    rows = group("x.inner y.inner", [s1, replace(s2, compute="inline", store="inline", order=(), vector=None), s3])
    assert by_points(assert_lowered_right(p, [rows], *REGIONS, sizes=SIZE)) == {"s1", "out"}


def test_short_rows_of_a_ring_do_not_reach_into_each_other() -> None:
    p = chain("s0(x, y) * 3", "s1(x, y) - s1(x + 1, y)", "s2(x, y) + s2(x, y + 1) * 5 + s2(x, y + 2) * 7")
    for level in ("y.inner", "y.outer"):
        rows = group("x.inner y.inner y.outer", in_rows(p, "y.inner", level), tiles=(Tile("y", None),))
        assert by_points(assert_lowered_right(p, [rows], *REGIONS, sizes=SIZE)) == {"s1", "out"}


def test_a_stage_without_dims_has_no_rows() -> None:
    s1 = {"name": "s1", "dims": [], "value": "f(3, 4)"}
    p = loaded(s1, {"name": "out", "dims": ["x", "y"], "value": "s1() + f(x, y)"}, type="int32")
    assert_lowered_right(p, [group("x.inner y.inner", [Placement("s1", "inline", "inline")])], *REGIONS, sizes=SIZE)


def whole_image(parallel: str | None) -> tuple[Pipeline, list[Group]]:
    """A stage whose image lies in memory, made in tiles narrower than a vector."""
    p = chain("s0(x, y) * 3", "s1(x, y) + s1(x + 1, y)", "s2(x, y) + s2(x - 2, y)")
    tiles = {"tiles": (Tile("x", 5),), "parallel": parallel}
    first = Group("s1", ("x.inner", "y.inner"), (), None, Vector("x", 8), (), ())
    second = Group("s2", ("x.inner", "y.inner", "x.outer"), (Tile("x", 5),), parallel, Vector("x", 8), (), ())
    return p, [first, second, group("x.inner y.inner x.outer", **tiles)]


@pytest.mark.parametrize("parallel", [None, "x.outer"])
def test_tiles_of_one_image_do_not_reach_into_each_other(parallel: str | None) -> None:
    """The interpreter finds a race where they do, and wrong values where they are tiles of one thread."""
    p, groups = whole_image(parallel)
    assert "s2" in by_points(assert_lowered_right(p, groups, *REGIONS, sizes=SIZE))


def test_a_row_that_slides_along_itself_keeps_what_is_in_it() -> None:
    p = chain("s0(x, y) * 3", "s1(x, y) + s1(x + 1, y)", "s2(x - 2, y) + s2(x + 3, y)")
    tiles = (Tile("x", 5), Tile("y", 2))
    for level in ("x.outer", "y.outer"):
        g = group("x.inner y.inner x.outer y.outer", in_rows(p, "x.outer", level), tiles=tiles)
        found = by_points(assert_lowered_right(p, [g], *REGIONS, sizes=SIZE))
        assert ("s2" in found) == (level == "y.outer")


def test_what_a_part_of_a_row_reaches_into_is_stored_later() -> None:
    """An update writes the middle; values are those on both sides of it."""
    update = {"domain": {"r": [2, 3]}, "at": ["r", "y"], "value": "s1(r, y) + 1"}
    s2 = {"name": "s2", "dims": ["x", "y"], "value": "s1(x, y) * 2", "updates": [update]}
    s1 = {"name": "s1", "dims": ["x", "y"], "value": "f(x, y)"}
    p = loaded(s1, s2, {"name": "out", "dims": ["x", "y"], "value": "s2(x, y) + s2(x + 1, y)"}, type="int32")
    assert_lowered_right(p, [rows_of(p)], *REGIONS, sizes=SIZE)


def test_a_point_that_is_updated_is_updated_once() -> None:
    update = {"domain": {"r": [0, 2]}, "at": ["x", "y"], "value": "s2(x, y) * 2 + s1(x + r, y)"}
    s2 = {"name": "s2", "dims": ["x", "y"], "value": "s1(x, y) * 2", "updates": [update]}
    s1 = {"name": "s1", "dims": ["x", "y"], "value": "f(x, y)"}
    p = loaded(s1, s2, {"name": "out", "dims": ["x", "y"], "value": "s2(x, y) + s2(x + 1, y)"}, type="int32")
    assert_lowered_right(p, [rows_of(p)], *REGIONS, sizes=SIZE)


def test_rows_begin_as_far_into_a_line_as_without() -> None:
    """Margins are where vectors start at multiples of something, and nowhere else."""
    for type_ in ("uint8", "int16", "float64"):
        p = chain("s0(x, y)", "s1(x, y) + s1(x + 1, y)", "s2(x // 2, y)", "s3(x, y)", "s4(x + 1, y)", type_=type_)
        program = program_of(p, [rows_of(p)])
        margins = {
            s.buffer.stage: s.buffer.margin * s.buffer.type.bytes for s in walk(program.body) if isinstance(s, Stores)
        }
        assert margins == {"s1": 0, "s2": program.line_bytes, "s3": program.line_bytes, "s4": 0, "out": 0}
