"""Vectors of a row that are had once and used again, by halves of pairs and by the next iteration: the values are the
same."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.loop_text import changes
from support.machines import machine
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite


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


def assert_right(
    pipeline: Pipeline, schedule: Schedule, vector_bytes: int, most: int, rows: int = 10, low: int = 2, high: int = 8
) -> None:
    """Check rows of several lengths, in images that end where the rows do, or `high` columns after that."""
    source = source_of(pipeline, schedule, machine(vector_bytes=vector_bytes))
    library = build(source, vector_bytes=vector_bytes)
    type_ = pipeline.inputs[0].type.numpy
    for width in (5, 40, 64, 97, 200, 333):
        a = (np.random.default_rng(width).random((rows, most * width + low + high)) * 50).astype(type_)
        inputs, regions = {"a": Image(a, (-low, 0))}, {"out": ((0, width), (0, 9))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        expected = interpret(pipeline, inputs, {}, regions)["out"][0]
        np.testing.assert_allclose(got["out"][0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "type_", "vector_bytes", "kept"),
    [
        ("a(x, y) + a(x + 1, y) * 3 + a(x + 2, y)", "float32", 64, True),
        ("a(x, y) + a(x + 1, y) * 3 + a(x + 2, y)", "uint16", 64, True),
        ("a(x, y) + a(x + 1, y) * 3 - a(x + 2, y) + a(x + 4, y) * 5", "float32", 64, True),
        ("a(x, y) + a(x + 1, y) * 3", "float32", 64, False),  # there are only two
        ("a(x, y) + a(x + 1, y) * 3 + a(x + 2, y)", "float32", 32, False),  # of half a line
    ],
)
def test_vectors_that_are_kept_for_the_next_iteration(value: str, type_: str, vector_bytes: int, kept: bool) -> None:
    pipeline = pipeline_of(value, type_)
    schedule = schedule_of(vector_bytes // pipeline.inputs[0].type.bytes)
    check(rewrite(pipeline, schedule))
    assert changes("carry-vectors", pipeline, schedule, vector_bytes) == kept
    assert_right(pipeline, schedule, vector_bytes, 1)


@pytest.mark.parametrize(
    "value",
    [
        "a(x * 2, y) * 3 + a(x * 2 + 1, y)",
        "a(x * 2 - 1, y) + a(x * 2, y) * 3 + a(x * 2 + 1, y)",  # a pair, and one that is half of it, moved
        "a(x * 2 - 2, y) + a(x * 2 - 1, y) * 4 + a(x * 2, y) * 6 + a(x * 2 + 1, y) * 4 + a(x * 2 + 2, y)",
        "a(x * 2 - 1, y) + (a(x * 2, y) + a(x * 2 + 1, y)) * 3 + a(x * 2 + 2, y)",
        "a(x * 2 - 1, y) + a(x * 2 + 1, y)",
    ],
)
def test_even_and_odd_elements_of_the_same_vectors(value: str) -> None:
    pipeline = pipeline_of(value)
    schedule = schedule_of(8, inline=True)
    check(rewrite(pipeline, schedule))
    assert changes("share-strided-loads", pipeline, schedule, 32)
    assert_right(pipeline, schedule, 32, 2)


@pytest.mark.parametrize(
    ("places", "type_", "vector_bytes", "permuted"),
    [
        (range(-20, 21), "float32", 64, True),
        (range(0, 33, 2), "float32", 64, True),
        (range(0, 33, 2), "int32", 64, False),  # products are no part of sums
        (range(15), "float32", 64, False),  # none is a vector apart
        (range(41), "float32", 32, False),  # of half a line
    ],
)
def test_vectors_between_two_of_a_long_window(places: range, type_: str, vector_bytes: int, permuted: bool) -> None:
    pipeline = pipeline_of(" + ".join(f"a(x + ({p}), y) * {1 + p % 3}" for p in places), type_)
    schedule = schedule_of(16, inline=True)
    check(rewrite(pipeline, schedule))
    assert changes("permute-windows", pipeline, schedule, vector_bytes) == permuted
    assert_right(pipeline, schedule, vector_bytes, 1, low=20, high=40)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("rows", [11, 12])
def test_many_rows(rows: int, stream: bool) -> None:
    """Output rows, two at a time, read one row more each: as many as vectors are kept of, and one more."""
    pipeline = pipeline_of(f"sum(a(x, y + r) + a(x + 1, y + r) * 3 + a(x + 8, y + r) for r in range(0, {rows}))")
    schedule = schedule_of(16, inline=True)
    schedule = replace(schedule, groups=(replace(schedule.groups[0], stream=stream),))
    check(rewrite(pipeline, schedule))
    assert changes("carry-vectors", pipeline, schedule) == (rows > 11)
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
