"""Neighbours that are gathered side by side and loaded in pairs, or are not: the values are the same."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.loop_text import changes
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

N = 61
AT = "clamp(int32(warp(x)), 0, 7)"


@pytest.mark.parametrize(
    ("value", "type_", "paired"),
    [
        (f"lerp(input(x // 2, {AT}), input(x // 2 + 1, {AT}), 0.25)", "float32", True),
        (f"input(x // 2, {AT}) * 3 - input(x // 2 + 1, {AT})", "int32", True),
        (f"input(x // 2 + 1, {AT}) * 3 - input(x // 2, {AT})", "int32", False),  # the right one comes first
        (f"input(x, {AT}) - input(x + 1, {AT}) + input(x + 2, {AT}) * 3 - input(x + 3, {AT})", "int32", True),
        (f"input(x // 2, {AT}) - input(x // 2 + 2, {AT})", "int32", False),
        (f"input(x // 2, {AT}) - input(x // 2, {AT} + 1)", "int32", False),
        (f"input(x // 2, {AT}) - input(x // 2 + 1, {AT})", "int64", False),
    ],
)
def test_neighbours_have_the_same_values(value: str, type_: str, paired: bool) -> None:
    document = {
        "format": 1,
        "name": "warped",
        "inputs": [
            {"name": "input", "type": type_, "dims": ["x", "y"]},
            {"name": "warp", "type": "float32", "dims": ["x"]},
        ],
        "stages": [{"name": "out", "dims": ["x"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, N]]},
    }
    pipeline = load(document)
    schedule = Schedule("warped", "hand", (Group("out", ("x.inner",), (), None, Vector("x", 8), (), ()),))
    check(rewrite(pipeline, schedule))
    assert changes("pair-gathers", pipeline, schedule) == paired
    source = source_of(pipeline, schedule, here())
    rng = np.random.default_rng(0)
    image = rng.integers(-100, 100, (9, N + 3)).astype(type_)
    inputs = {"input": Image(image, (0, 0)), "warp": Image(rng.uniform(-3, 12, N).astype("float32"), (0,))}
    regions = {"out": ((0, N),)}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])


def test_neighbours_in_a_table_that_begins_where_its_memory_does() -> None:
    document = {
        "format": 1,
        "name": "curve",
        "inputs": [{"name": "input", "type": "float32", "dims": ["x"]}],
        "stages": [
            {"name": "table", "dims": ["i"], "value": "float32(i * i)"},
            {"name": "out", "dims": ["x"], "value": f"table({AT}) * 3 - table({AT} + 1)".replace("warp", "input")},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, N]]},
    }
    pipeline = load(document)
    groups = (
        Group("table", ("i.inner",), (), None, Vector("i", 8), (), ()),
        Group("out", ("x.inner",), (), None, Vector("x", 8), (), ()),
    )
    schedule = Schedule("curve", "hand", groups)
    check(rewrite(pipeline, schedule))
    assert changes("pair-gathers", pipeline, schedule)
    source = source_of(pipeline, schedule, here())
    inputs = {"input": Image(np.random.default_rng(0).uniform(-3, 12, N).astype("float32"), (0,))}
    regions = {"out": ((0, N),)}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])


@pytest.mark.parametrize(("more", "paired"), [(1, True), (241, False)])
def test_sums_of_bytes_are_neighbours_where_they_do_not_wrap(more: int, paired: bool) -> None:
    """A stage that is at most 15, as cells of a grid are: 1 more is the next, 241 more may be 0."""
    document = {
        "format": 1,
        "name": "sliced",
        "inputs": [{"name": "input", "type": "uint8", "dims": ["x"]}],
        "stages": [
            {"name": "cell", "dims": ["x"], "value": "input(x) // 16"},
            {"name": "grid", "dims": ["z"], "value": "float32(z * z)"},
            {
                "name": "out",
                "dims": ["x"],
                "value": f"grid(cell(x) + {more - 1}) * 3.0 + grid(cell(x) + {more})",
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, N]]},
    }
    pipeline = load(document)
    groups = (
        Group("cell", ("x.inner",), (), None, Vector("x", 8), (), ()),
        Group("grid", ("z.inner",), (), None, Vector("z", 8), (), ()),
        Group("out", ("x.inner",), (), None, Vector("x", 8), (), ()),
    )
    schedule = Schedule("sliced", "hand", groups)
    check(rewrite(pipeline, schedule))
    assert changes("pair-gathers", pipeline, schedule) == paired
    source = source_of(pipeline, schedule, here())
    inputs = {"input": Image(np.random.default_rng(0).integers(0, 256, N).astype("uint8"), (0,))}
    regions = {"out": ((0, N),)}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])
