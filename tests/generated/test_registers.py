"""Schedules written by hand that keep stages in registers: windows rotate along the row, and the values are right."""

from __future__ import annotations

import re

import pytest
from support.machines import machine
from support.native import build, call, source_of
from support.shipped import SIZES, assert_right, loaded, problem
from support.threads import threads

from scheduler.legality import check
from scheduler.schedule import INLINE, Group, Placement, Schedule, Tile, Vector


def registers(stage: str, lanes: int = 16) -> Placement:
    return Placement(stage, "x.inner", "y.inner", storage="registers", vector=Vector("x", lanes))


def ring(stage: str) -> Placement:
    """Computed in the same loop over vectors, its rows kept in a ring."""
    return Placement(stage, "x.inner", "x.outer", vector=Vector("x", 16))


def inline(*stages: str) -> tuple[Placement, ...]:
    return tuple(Placement(s, INLINE, INLINE) for s in stages)


def rows(
    pipeline: str, output: str, placements: tuple[Placement, ...], lanes: int = 16, planes: bool = False
) -> Schedule:
    """Strips of 128 rows, columns whole."""
    loops = ("x.inner", "y.inner", "x.outer", "y.outer")
    group = Group(
        output=output,
        loops=("c.inner", *loops) if planes else loops,
        tiles=(Tile("x", None), Tile("y", 128)),
        parallel="y.outer",
        vector=Vector("x", lanes),
        unroll=("c",) if planes else (),
        placements=placements,
    )
    return Schedule(pipeline, "by hand", (group,))


SCHEDULES = {
    "blur": rows("blur", "blur_y", (registers("blur_x", 32),), lanes=32),
    "unsharp": rows(
        "unsharp",
        "output",
        (*inline("kernel"), ring("gray"), registers("blur_y"), *inline("blur_x", "sharpen", "ratio")),
        planes=True,
    ),
    "harris": rows(
        "harris",
        "output",
        (
            *(ring(s) for s in ("gray", "Ix", "Iy")),
            *(registers(s) for s in ("Ixx", "Ixy", "Iyy")),
            *inline("Sxx", "Sxy", "Syy", "det", "trace"),
        ),
    ),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_schedule_with_registers_computes_what_the_pipeline_says(name: str, size: str) -> None:
    pipeline, schedule = loaded(name), SCHEDULES[name]
    check(pipeline, schedule)
    source = source_of(pipeline, schedule, machine())
    library = build(source, ("-O1", "-march=native"))
    p = problem(name, size)
    for count in (1, 2):
        with threads(count):
            status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0
        assert_right(got, p.expected)


def test_windows_rotate_and_need_no_memory() -> None:
    source = source_of(loaded("unsharp"), SCHEDULES["unsharp"], machine())
    assert {name for name, _ in source.buffers} == {"gray"}
    assert "__builtin_shufflevector(blur_y_before_0, " in source.code
    assert re.search(r"blur_y_before_0 = blur_y_\d+;|blur_y_before_0 = t_\d+;", source.code)
