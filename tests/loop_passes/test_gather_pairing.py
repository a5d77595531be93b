"""Neighbours that are gathered side by side are loaded in pairs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.machines import here, machine
from support.native import build, call, source_of

from scheduler.frontends.document.document import load
from scheduler.interpreter.interpreter import Image, interpret
from scheduler.ir.schedule.schedule import Group, Schedule, Vector
from scheduler.legality.verifier import check
from scheduler.rewrites.passes import rewrite

N = 61
AT = "clamp(int32(warp(x)), 0, 7)"


@pytest.mark.parametrize(
    ("value", "type_", "pairs"),
    [
        (f"lerp(input(x // 2, {AT}), input(x // 2 + 1, {AT}), 0.25)", "float32", 1),
        (f"input(x // 2, {AT}) * 3 - input(x // 2 + 1, {AT})", "int32", 1),
        (f"input(x // 2 + 1, {AT}) * 3 - input(x // 2, {AT})", "int32", 0),  # the right one comes first
        (f"input(x, {AT}) - input(x + 1, {AT}) + input(x + 2, {AT}) * 3 - input(x + 3, {AT})", "int32", 2),
        (f"input(x // 2, {AT}) - input(x // 2 + 2, {AT})", "int32", 0),
        (f"input(x // 2, {AT}) - input(x // 2, {AT} + 1)", "int32", 0),
        (f"input(x // 2, {AT}) - input(x // 2 + 1, {AT})", "int64", 0),
    ],
)
def test_neighbours_are_gathered_in_pairs(value: str, type_: str, pairs: int) -> None:
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
    source = source_of(pipeline, schedule, here())
    code = source_of(pipeline, schedule, machine()).code
    found = re.findall(r"__builtin_shufflevector\(\w+_pairs, \w+_more, 0, 2, 4, 6, 8, 10, 12, 14\)", code)
    assert len(found) == pairs
    rng = np.random.default_rng(0)
    image = rng.integers(-100, 100, (9, N + 3)).astype(type_)
    inputs = {"input": Image(image, (0, 0)), "warp": Image(rng.uniform(-3, 12, N).astype("float32"), (0,))}
    regions = {"out": ((0, N),)}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])


def test_neighbours_in_a_table_that_begins_where_its_memory_does_are_a_pair() -> None:
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
    assert "_pairs" in source_of(pipeline, schedule, machine()).code
    source = source_of(pipeline, schedule, here())
    inputs = {"input": Image(np.random.default_rng(0).uniform(-3, 12, N).astype("float32"), (0,))}
    regions = {"out": ((0, N),)}
    status, got = call(build(source), source, pipeline, inputs, {}, regions)
    assert status == 0
    np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])
