"""Scan specialisation: those whose readers say the level, and no others, are a stage a level, with the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret, required_regions
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

STEP = "max(f(x, r, t - 1), f(x, r + clamp(1 << (t - 1), 0, 8), t - 1))"
ROWS: list[object] = ["input.min.y - 2", "input.extent.y + 1"]
"""Not all that is read: above and below levels are what they began with."""


def pipeline_of(
    out: str = "f(x, y - 1, 2) - f(x, y, 3)", value: str = "input(x, y)", step: str = STEP, **more: Any
) -> Pipeline:
    """The scan `f` over levels t of an image, and `out`, which reads it."""
    update = {
        "domain": more.get("domain", {"r": ROWS, "t": [1, 3]}),
        "at": more.get("at", ["x", "r", "t"]),
        "value": step,
        **({"where": more["where"]} if "where" in more else {}),
    }
    image: dict[str, Any] = {"name": "input", "type": more.get("type", "float32"), "dims": ["x", "y"]}
    if more.get("boundary", True):
        image["boundary"] = {"kind": "repeat_edge"}
    stages = [
        {"name": "f", "dims": ["x", "y", "z"], "value": value, "updates": [update]},
        {"name": "heights", "dims": ["i"], "value": "int32(sqrt(float32(9 - i * i)))"},
        {"name": "open", "dims": ["i"], "value": "sum(a for a in range(0, k))"},
        {"name": "long", "dims": ["i"], "value": "sum(i + a * b for a in range(0, 90000) for b in range(0, 90000))"},
        {"name": "column", "dims": ["x", "y", "n"], "value": "min(f(x, y - n, clamp(n, 0, 3)), f(x, y + n, 1))"},
        {"name": "out", "dims": ["x", "y"], "value": out},
    ]
    outputs = more.get("outputs", ["out"])
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [image],
            "params": [{"name": "k", "type": "int32", "min": 0, "max": 3, "default": 1}],
            "stages": stages,
            "outputs": outputs,
            "estimates": {n: [[0, 32], [0, 32], [0, 4]][: 3 if n == "f" else 2] for n in outputs},
        }
    )


def levels(of: Pipeline, strict: bool = False) -> list[str]:
    """Checks the values, and what is required; the stages made of `f` and of `column`."""
    normal = normalise(of, strict)
    assert normalise(normal, strict) is normal
    rng = np.random.default_rng(3)
    data = rng.integers(-9, 9, (9, 14)).astype(of.inputs[0].type.numpy)
    images = {"input": Image(data, (-1, -2))}
    regions = {n: ((1, 11), (-6, 17), (0, 4))[: len(of.stage(n).dims)] for n in of.outputs}
    if of.inputs[0].boundary is not None:
        for name in of.outputs:
            (a,), (b,) = (interpret(p, images, {}, regions)[name] for p in (of, normal))
            np.testing.assert_array_equal(a, b)
        before, after = (required_regions(p, images, {}, regions)["input"] for p in (of, normal))
        for (low, extent), (first, all_of) in zip(after, before, strict=True):
            assert first <= low
            assert low + extent <= first + all_of
    return [s.name for s in normal.stages if s.name.startswith(("f_", "column_"))]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("type", ["float32", "int16"])
def test_levels_that_numbers_say(type: str, strict: bool) -> None:
    assert levels(pipeline_of(type=type), strict) == ["f_0", "f_1", "f_2", "f_3"]
    assert levels(pipeline_of("f(x, y, 5) + f(x, y, -1)", type=type), strict) == ["f_5", "f_minus1"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "out",
    [
        "max(f(x + i, y, clamp(heights(i), 0, 3)) for i in range(-3, 4))",
        "sum(f(x + i, y, clamp(heights(i), 0, 2)) for i in range(-3, 4))",
        "min(column(x + i, y, clamp(heights(i), 0, 9)) for i in range(-3, 4))",
        "sum(column(x, y + i + j, i) for i in range(0, 4) for j in range(0, 2))",
        "f(x, y, 3) + sum(f(x + i, y, 2) for i in range(0, 9))",
    ],
)
def test_levels_that_terms_and_tables_say(out: str, strict: bool) -> None:
    found = levels(pipeline_of(out), strict)
    assert {"f_0", "f_1", "f_2"} <= set(found)
    assert ("column_3" in found) == ("column" in out)


def test_a_sum_that_says_no_level_stays_one() -> None:
    normal = normalise(pipeline_of("f(x, y, 3) + sum(f(x + i, y, 2) for i in range(0, 9))"))
    assert "Reduce" in repr(normal.stage("out"))
    assert "Reduce" not in repr(normalise(pipeline_of("sum(f(x, y, i) for i in range(0, 4))")).stage("out"))


@pytest.mark.parametrize(
    "more",
    [
        {"where": "x > r"},
        {"where": "f(x, r, t - 1) > 2"},
        {"value": "input(x, y) * z"},
        {"step": "f(x, r, 0) + input(x, r) + t"},
        {"step": "f(x, 2 * r, t - 1) + f(x, r, t - 2)"},
        {"domain": {"r": [0, "k"], "t": [1, 3]}},
    ],
)
def test_updates_of_many_kinds(more: dict[str, Any]) -> None:
    assert {"f_2", "f_3"} <= set(levels(pipeline_of(**more)))


@pytest.mark.parametrize(
    "more",
    [
        {"out": "f(x, y, k)"},
        {"out": "f(x, y, clamp(int32(input(x, y)), 0, 3))"},
        {"out": "f(x, y, x)"},
        {"out": "sum(f(x, y, i) for i in range(0, 100))"},
        {"out": "sum(f(x, y, i) for i in range(0, 4) if i != k)"},
        {"out": "sum(f(x, y, i) for i in range(0, k))"},
        {"out": "f(x, y, clamp(open(2), 0, 3))"},
        {"out": "sum(sum(f(x, y, clamp(i + j, 0, 3)) for i in range(0, 60)) for j in range(0, 60))"},
        {"outputs": ["out", "f"]},
        {"boundary": False},  # rows above and below would be read
        {"domain": {"t": [1, 3], "r": ROWS}},  # level 3 of a row is made before level 2 of the next
        {"domain": {"r": ROWS, "t": [1, 40]}},
        {"domain": {"r": ROWS, "t": [1, "k"]}},
        {"domain": {"r": ROWS, "q": [0, 2], "t": [1, 3]}},  # each level is made of itself
        {"domain": {"t": [1, 3]}, "at": ["x", "y", "t"], "step": "f(x, y, t - 1) + 1.0"},
        {"step": "max(f(x, r, t - 1), f(x, r + 1, t))"},
        {"step": "f(x, r + clamp(int32(f(x, r, 0)), 0, 2), t - 1)"},
    ],
)
def test_what_stays(more: dict[str, Any]) -> None:
    assert levels(pipeline_of(**more)) == []
    assert normalise(pipeline_of(**more)).stage("f").updates


def test_tables_that_are_long_to_make_are_not_made() -> None:
    assert normalise(pipeline_of("f(x, y, clamp(long(1), 0, 3))")).stage("f").updates


def test_max_filter_is_stencils() -> None:
    normal = normalise(pipelines.load("max_filter"))
    assert not any(s.updates for s in normal.stages)
    assert [s.name for s in normal.stages if s.name.startswith("vert_log")] == [f"vert_log_{t}" for t in range(6)]
    assert sum(s.name.startswith("vert_") for s in normal.stages) == 6 + 16
