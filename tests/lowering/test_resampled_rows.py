"""Rows that are resampled by a factor known at run time: places near each other are lanes of two vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build, compiled, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.search import SearchOptions, autoschedule

pytestmark = pytest.mark.slow


def enlarged(type_: str) -> dict[str, object]:
    """Between two neighbours, by an inlined place."""
    place = "clamp(int32(floor(at(x))), -1000, 1000)"
    value = f"{type_}(float32(a({place}, y)) + float32(a({place} + 1, y)))"
    return {
        "format": 1,
        "name": "enlarged",
        "params": [{"name": "f", "type": "float32", "min": -5.0, "max": 5.0, "default": 0.7}],
        "inputs": [{"name": "a", "type": type_, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "at", "dims": ["x"], "value": "(float32(x) + 0.5) * f - 0.5"},
            {"name": "out", "dims": ["x", "y"], "value": value},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640], [0, 480]]},
    }


@pytest.mark.parametrize(
    ("type_", "vector_bytes", "compiler"),
    [
        ("uint8", 32, "gcc"),
        ("uint8", 32, "clang"),
        ("uint8", 64, "gcc"),
        ("uint16", 32, "gcc"),
        ("float32", 16, "gcc"),
        ("float32", 32, "gcc"),
        ("float32", 32, "clang"),
        ("float32", 64, "gcc"),
        ("float32", 64, "clang"),
    ],
)
def test_places_near_each_other_are_lanes_of_two_vectors_or_four(type_: str, vector_bytes: int, compiler: str) -> None:
    """Whatever the factor, and however short the row is that is read: two vectors reach for factors up to 2, four up to
    4, and where places go down."""
    pipeline, platform = load(enlarged(type_)), machine(vector_bytes=vector_bytes)
    source = source_of(pipeline, autoschedule(pipeline, platform, SearchOptions("default")).schedule, platform)
    by_windows = vector_bytes > 16 and (vector_bytes < 64 or type_ == "float32")
    assert ("ts_window" in source.code) == by_windows
    library = build(source, ("-O1",), compiler, vector_bytes)
    rng = np.random.default_rng(1)
    for width, factor in (
        (150, 0.3),
        (150, 1.0),
        (150, 1.9),
        (400, 2.3),
        (150, 3.7),
        (1200, 4.1),
        (150, -0.8),
        (9, 1.0),
        (33, 2.7),
    ):
        image = Image((rng.random((2, width)) * 100).astype(type_), (0, 0))
        regions, params = {"out": ((-3, 200), (0, 2))}, {"f": factor}
        status, got = call(library, source, pipeline, {"a": image}, params, regions)
        assert status == 0
        np.testing.assert_allclose(got["out"][0], interpreted(pipeline, {"a": image}, params, regions)["out"][0], 1e-5)


def test_vectors_of_several_registers_have_none_where_places_fill_part_of_one() -> None:
    """Nor anything in the C that only such would need."""
    pipeline, platform = load(enlarged("float64")), machine(vector_bytes=32)
    schedule = autoschedule(pipeline, platform, SearchOptions("default")).schedule
    (group,) = schedule.groups
    source = source_of(pipeline, replace(schedule, groups=(replace(group, vector=Vector("x", 8)),)), platform)
    assert "ts_window" not in source.code
    assert compiled(source, vector_bytes=32).exists()
