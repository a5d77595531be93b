"""Vectors of a row that are had once and used again: by halves of pairs, and by the next iteration."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.machines import machine
from support.native import build, call, source_of

from scheduler.frontends.document.document import load
from scheduler.interpreter.interpreter import Image, interpret
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from scheduler.legality.verifier import check
from scheduler.rewrites.passes import rewrite

LOAD = re.compile(r"= \*\(const \w+_at \*\)\(a_")


def pipeline_of(value: str, type_: str = "float32") -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "row",
            "inputs": [{"name": "a", "type": type_, "dims": ["x", "y"]}],
            "stages": [
                {"name": "along", "dims": ["x", "y"], "value": value},
                {"name": "out", "dims": ["x", "y"], "value": "along(x, y) + along(x, y + 1)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 600], [0, 48]]},
        }
    )


def schedule_of(lanes: int, inline: bool = False) -> Schedule:
    """Two rows side by side, or one after the other."""
    along = Placement("along", "x.inner", "x.outer", storage="registers", vector=Vector("x", lanes))
    if inline:
        along = Placement("along", INLINE, INLINE)
        group = Group("out", ("x.inner", "y.inner"), (), "y.inner", Vector("x", lanes), (), (along,))
    else:
        loops, tiles = ("y.inner", "x.inner", "x.outer", "y.outer"), (Tile("x", None), Tile("y", 2))
        group = Group("out", loops, tiles, "y.outer", Vector("x", lanes), ("y",), (along,))
    return Schedule("row", "by hand", (group,))


def loads_of_loops(code: str) -> list[int]:
    """The number of vectors of `a` that the innermost loops load, by loop that loads any."""
    loops = re.findall(r"(?<=\n)( *)for \(int64_t x[^\n]*\{\n(.*?)\n\1\}", code, re.DOTALL)
    return [n for _, body in loops if "for (" not in body and (n := len(LOAD.findall(body)))]


def assert_right(pipeline: Pipeline, schedule: Schedule, vector_bytes: int, most: int, rows: int = 10) -> None:
    """Check rows of several lengths, in images that end where the rows do."""
    source = source_of(pipeline, schedule, machine(vector_bytes=vector_bytes))
    library = build(source, vector_bytes=vector_bytes)
    type_ = pipeline.inputs[0].type.numpy
    for width in (5, 40, 64, 97, 200, 333):
        low = 2
        a = (np.random.default_rng(width).random((rows, most * width + low + 8)) * 50).astype(type_)
        inputs, regions = {"a": Image(a, (-low, 0))}, {"out": ((0, width), (0, 9))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        expected = interpret(pipeline, inputs, {}, regions)["out"][0]
        np.testing.assert_allclose(got["out"][0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "type_", "vector_bytes", "loads"),
    [
        ("a(x, y) + a(x + 1, y) * 3 + a(x + 2, y)", "float32", 64, [6, 9]),  # the first of the next for the second
        ("a(x, y) + a(x + 1, y) * 3 + a(x + 2, y)", "uint16", 64, [6, 9]),
        ("a(x, y) + a(x + 1, y) * 3 - a(x + 2, y) + a(x + 4, y) * 5", "float32", 64, [6, 12]),
        ("a(x, y) + a(x + 1, y) * 3", "float32", 64, [6]),  # there are only two
        ("a(x, y) + a(x + 1, y) * 3 + a(x + 2, y)", "float32", 32, [9]),  # of half a line
    ],
)
def test_what_the_next_iteration_begins_with_is_kept(
    value: str, type_: str, vector_bytes: int, loads: list[int]
) -> None:
    pipeline = pipeline_of(value, type_)
    schedule = schedule_of(vector_bytes // pipeline.inputs[0].type.bytes)
    check(rewrite(pipeline, schedule))
    code = source_of(pipeline, schedule, machine(vector_bytes=vector_bytes)).code
    whole = code.split("/* whole vectors */")[1].split("/* the end of the row */")[0]
    assert loads_of_loops(whole) == loads
    assert_right(pipeline, schedule, vector_bytes, 1)


@pytest.mark.parametrize(
    ("value", "loads"),
    [
        ("a(x * 2, y) * 3 + a(x * 2 + 1, y)", 2),
        ("a(x * 2 - 1, y) + a(x * 2, y) * 3 + a(x * 2 + 1, y)", 3),  # a pair, and one that is half of it, moved
        ("a(x * 2 - 2, y) + a(x * 2 - 1, y) * 4 + a(x * 2, y) * 6 + a(x * 2 + 1, y) * 4 + a(x * 2 + 2, y)", 4),
        ("a(x * 2 - 1, y) + (a(x * 2, y) + a(x * 2 + 1, y)) * 3 + a(x * 2 + 2, y)", 4),
        ("a(x * 2 - 1, y) + a(x * 2 + 1, y)", 3),
    ],
)
def test_even_and_odd_elements_are_of_the_same_vectors(value: str, loads: int) -> None:
    pipeline = pipeline_of(value)
    schedule = schedule_of(8, inline=True)
    check(rewrite(pipeline, schedule))
    found = loads_of_loops(source_of(pipeline, schedule, machine(vector_bytes=32)).code)
    assert found == [2 * loads]  # of two rows
    assert_right(pipeline, schedule, 32, 2)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("rows", "loads"), [(11, [36]), (12, [26, 39])])
def test_of_many_rows_neighbours_are_of_two_vectors(rows: int, loads: list[int], stream: bool) -> None:
    """More rows than vectors could be kept of: two loads a row instead of three, and as before where a row ends."""
    pipeline = pipeline_of(f"sum(a(x, y + r) + a(x + 1, y + r) * 3 + a(x + 8, y + r) for r in range(0, {rows}))")
    schedule = schedule_of(16, inline=True)
    schedule = replace(schedule, groups=(replace(schedule.groups[0], stream=stream),))
    check(rewrite(pipeline, schedule))
    assert loads_of_loops(source_of(pipeline, schedule, machine(vector_bytes=64)).code) == loads
    assert_right(pipeline, schedule, 64, 1, rows + 10)


@pytest.mark.parametrize("type_", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("apart", [3, 4, 5, 8])
def test_elements_some_way_apart_are_picked_from_whole_vectors(apart: int, type_: str) -> None:
    """No lane is loaded by itself, as long as there are fewer vectors than lanes."""
    pipeline = pipeline_of(f"float32(a(x * {apart} - 1, y))", type_)
    schedule = schedule_of(16, inline=True)
    source = source_of(pipeline, schedule, machine(vector_bytes=64)).code
    assert not re.search(r"\{a_\d+\[", source)
    assert_right(pipeline, schedule, 64, apart)
