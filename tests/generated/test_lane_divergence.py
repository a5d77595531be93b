"""Lanes and rows that compute different things: mosaics, points between those of a coarser level."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.machines import here, machine
from support.native import build, source_of
from support.random_pipelines import random_inputs
from support.random_schedules import random_schedule

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite

A = {"name": "a", "dims": ["x", "y"], "value": "sqrt(f(x, y)) + f(x + 1, y)"}
B = {"name": "b", "dims": ["x", "y"], "value": "f(x, y) * f(x, y + 1) - f(x - 1, y)"}
C = {"name": "c", "dims": ["x", "y"], "value": "select(x % 2 == 0, f(x, y), f(x + 1, y) * 2)"}
D = {"name": "d", "dims": ["i", "u", "y"], "value": "sum(f(4 * u + i + k, y) for k in range(0, 3)) * f(i, 0)"}
VALUES = {
    "columns": "select(x % 2 == 0, a(x // 2, y), b(x // 2, y))",
    "columns from 1": "a((x + 1) // 2, y) if not x % 2 == 1 else b((x - 1) // 2, y) * 2",
    "sites": "mux(x % 2 + 2 * (y % 2), a(x // 2, y // 2), b(x // 2, y // 2), f(x // 2, y // 2), a(x // 2 + 1, y // 2))",
    "sites, nested": "select(y % 2 == 0, select(x % 2 == 1, a(x, y), b(x, y)), select(x % 2 == 1, f(x, y), 1))",
    "up": "a(x // 2, y) + a((x + 1) // 2, y) * 2",
    "up both ways": "a(x // 2, y // 2) + b((x + 1) // 2, (y + 1) // 2)",
    "up by 4": "a(x // 4, y) * (4 - x % 4) + a(x // 4 + 1, y) * (x % 4)",
    "with what is next": "0.25 * a(x // 2 - 1 + 2 * (x % 2), y) + 0.75 * a(x // 2, y)",
    "four columns": "mux(x % 4, a(x // 4, y), b(x // 4, y), a(x // 4 + 1, y), f(x, y))",
    "three": "mux(y % 3, a(x, y), b(x, y), f(x, y // 3)) + select(x % 3 == 1, a(x // 3, y), 1)",
    "many rows": "select(y % 2 == 0, a(x, y), 0) + select(y % 3 == 0, b(x, y), 1) + select((y + 1) % 4 < 2, 3, 2)",
    "rows of eight": "mux(y % 8, " + ", ".join(f"{g}({x}, y)" for g in "ab" for x in ("x", "x+1", "-x", "x-1")) + ")",
    "rows of two kinds, and others": "select(y % 8 < 3, a(x, y), b(x, y)) * select(y % 5 == 0, f(x, y), a(x, y + 1))",
    "blocks": "d(x % 4, x // 4, y) + d(x % 4 + 4, x // 4 - 1, y)",
    "one lane of all": "select(x % 8 == 3, a(x, y), b(x, y)) + select(x % 1 == 0, a(x, y), 0)",
    "whole numbers": "float32(select(x % 2 == 0, x // 2, -x)) + f(x, y)",
    "truth": "f(x, y) if (a(x // 2, y) > 1 if x % 2 == 0 else f(x, y) > 0.5) else b(x, y)",
    "remainders of data": "c(clamp(int32(f(3, y) * 4.0), 0, 9), y) + a(x, y)",
    "remainders of data, in lanes": "c(clamp(int32(f(x, y) * 4.0), 0, 9), y) + a(x, y)",
    "tables": "f(clamp(int32(a(x // 2, y)) + select(x % 2 == 0, 0, 3), 0, 9), y)",
}  # fmt: skip


def pipeline_of(value: str) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "mosaic",
            "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [A, B, C, D, {"name": "out", "dims": ["x", "y"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 256], [0, 64]]},
        }
    )


def rows(pipeline: Pipeline, lanes: int = 16) -> Schedule:
    """All in one, by vectors."""
    inlined = tuple(Placement(s.name, INLINE, INLINE) for s in pipeline.stages if s.name != "out")
    group = Group("out", ("x.inner", "y.inner"), (), None, Vector("x", lanes), (), inlined)
    return Schedule("mosaic", "by hand", (group,))


def assert_right(pipeline: Pipeline, source: CSource) -> None:
    library = build(source)
    for region in (((0, 70), (0, 7)), ((-3, 41), (-5, 4)), ((1, 1), (1, 1))):
        regions = {"out": region}
        places = {"f": ((0, 50), (0, 9))}
        required = required_regions(normalise(pipeline), regions, {}, places)
        image = random_inputs(pipeline, 1, regions, {}, {"f": required.get("f", places["f"])})["f"]
        inputs = {"f": Image(np.abs(image.array), image.min)}
        expected = interpret(pipeline, inputs, {}, regions)["out"][0]
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        np.testing.assert_allclose(got["out"][0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values(value: str) -> None:
    pipeline = pipeline_of(value)
    assert_right(pipeline, source_of(pipeline, rows(pipeline), here()))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["sites", "up both ways", "four columns", "three"])
def test_under_any_schedule(name: str, seed: int) -> None:
    pipeline = pipeline_of(VALUES[name])
    schedule = random_schedule(pipeline, seed)
    check(rewrite(pipeline, schedule))
    assert_right(pipeline, source_of(pipeline, schedule, here()))


def vectors_of(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if re.search(r"[fiu]\d+x\d+", line))


def test_rows_of_eight_kinds_have_a_loop_for_each() -> None:
    """The vectors of a row are of its own kind: nothing is chosen between them."""
    pipeline = pipeline_of(VALUES["rows of eight"])
    code = source_of(pipeline, rows(pipeline), machine()).code.partition("tilesmith_mosaic(")[2]
    assert " ? " not in vectors_of(code)
    assert len(re.findall(r"for \(int64_t x_step_", code)) == 8


def test_sites_are_computed_where_they_are() -> None:
    """A row computes its own two of the four kinds, half a vector each; nothing is compared or chosen."""
    pipeline = pipeline_of(VALUES["sites"])
    code = source_of(pipeline, rows(pipeline), machine()).code.partition("tilesmith_mosaic(")[2]
    assert code.count("const int64_t remainder_") == 1
    assert len(re.findall(r"sqrt_f32x8\(", code)) == 2
    assert not re.search(r"sqrt_f32x16|\(i32x\d+\)\{0\}\) &", code)


def test_a_point_of_a_coarser_level_is_computed_once_for_its_neighbours() -> None:
    pipeline = pipeline_of("a(x // 2, y) * 2 + 1")
    code = source_of(pipeline, rows(pipeline), machine()).code.partition("tilesmith_mosaic(")[2]
    assert len(re.findall(r"sqrt_f32x8\(", code)) == 1
    assert "sqrt_f32x16" not in code
