"""Register tiles by hand: convolutions over channels, whose rows end in vectors of fewer registers, and whose loops ask
for the rows that they come to."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from support.calls import call
from support.machines import machine
from support.native import build, source_of
from support.shipped import assert_right

from benchmarks.problem import at_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Tile, Vector
from tilesmith.scheduler.search.driver import autoschedule

WIDTH, HEIGHT, CHANNELS = 52, 40, 26
Estimates = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


def convolution(kind: str = "float32", channels: int = CHANNELS) -> Pipeline:
    terms = f"a(x + p, y + q, r) * w(p, q, r, c) for r in range({channels}) for q in range(3) for p in range(3)"
    return load(
        {
            "format": 1,
            "name": "conv",
            "inputs": [
                {"name": "a", "type": kind, "dims": ["x", "y", "c"]},
                {"name": "w", "type": kind, "dims": ["p", "q", "r", "c"]},
            ],
            "stages": [{"name": "out", "dims": ["x", "y", "c"], "value": f"sum({terms})"}],
            "outputs": ["out"],
            "estimates": {name: [*map(list, ends)] for name, ends in estimates(WIDTH, HEIGHT, 8, channels)},
        }
    )


def estimates(width: int, height: int, out: int, channels: int = CHANNELS) -> Estimates:
    """Estimates of a convolution of so many points, to `out` channels."""
    extents = {
        "out": (width, height, out),
        "a": (width + 2, height + 2, channels),
        "w": (3, 3, channels, out),
    }
    return tuple((name, tuple((0, n) for n in of)) for name, of in extents.items())


def tiled(lanes: int, points: int = 4) -> Schedule:
    loops = ("c.inner", "x.inner", "y.inner", "x.outer", "c.outer", "y.outer")
    tiles = (Tile("x", None), Tile("y", 1), Tile("c", points))
    return Schedule("conv", "by hand", (Group("out", loops, tiles, "y.outer", Vector("x", lanes), ("c",), ()),))


@pytest.mark.parametrize(("kind", "lanes"), [("float32", 16), ("float32", 32), ("int32", 32)])
def test_rows_of_every_width(kind: str, lanes: int) -> None:
    """At the estimates 4 columns are left by 16 lanes, and 20 by 32: a register, and three of four. Calls leave
    none, fewer and more, and have rows that are shorter than a vector."""
    pipeline = convolution(kind)
    source = source_of(pipeline, tiled(lanes), machine(vector_bytes=32))
    library = build(source, vector_bytes=32)
    for width in (3, 8, 15, 16, 24, 32, 40, 51, 52, 53, 64, 70):
        regions = {"out": ((1, width), (0, 2), (0, 8))}
        p = at_regions(pipeline, regions, use_estimates=False)
        inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        assert_right(got, interpret(pipeline, inputs, {}, regions))


@pytest.mark.parametrize(("lanes", "shorter"), [(16, [8]), (32, [24])])
def test_rows_end_in_vectors_of_as_few_registers_as_have_room(lanes: int, shorter: list[int]) -> None:
    code = source_of(convolution(), tiled(lanes), machine(vector_bytes=32)).code
    steps = re.findall(r"x_step_\d+ \+= (\d+)\) \{", code)
    assert [int(n) for n in steps if int(n) < lanes] == shorter


@pytest.mark.parametrize(("channels", "lines"), [(CHANNELS, 2), (20, 0)])
def test_rows_of_the_next_channel_are_asked_for_where_they_are_in_many_pages(channels: int, lines: int) -> None:
    """Each row once, not for every column of the window, by the lines that a vector may lie in: of 78 rows in as many
    pages, not of 60, which the TLB finds."""
    code = source_of(convolution(channels=channels), tiled(16), machine(vector_bytes=32)).code
    asked = re.findall(r"__builtin_prefetch\(a_\d+ \+ (.*)\);", code)
    whole = ["a_0_stride2", "(a_0_stride2 + 16)"]
    assert asked[:2] == whole[:lines]
    assert len(asked) == 2 * lines, "of whole vectors, and of the shorter one at the end"


@pytest.mark.parametrize(("width", "lanes"), [(5, 4), (7, 4), (14, 8)])
@pytest.mark.parametrize("vector_bytes", [32, 64])
def test_rows_shorter_than_a_register_have_shorter_vectors(width: int, lanes: int, vector_bytes: int) -> None:
    """Last layers of networks have them: the second vector of a row begins where it ends with the row."""
    pipeline = replace(convolution(), estimates=estimates(width, 14, 32))
    platform = machine(vector_bytes=vector_bytes)
    schedule = autoschedule(pipeline, platform).schedule
    vector = schedule.groups[-1].vector
    assert vector is not None
    assert (vector.dim, vector.lanes) == ("x", lanes)
    source = source_of(pipeline, schedule, platform)
    library = build(source, vector_bytes=vector_bytes)
    for w in (3, width, width + 1, 40):
        regions = {"out": ((1, w), (0, 3), (0, 8))}
        p = at_regions(pipeline, regions, use_estimates=False)
        inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        assert_right(got, interpret(pipeline, inputs, {}, regions))
