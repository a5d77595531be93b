"""Sums of neighbours in generated code."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.search import SearchOptions, autoschedule

pytestmark = pytest.mark.slow

SUMS = {
    "pairs": (
        "uint8",
        2,
        1,
        "uint8((sum(uint16(a(2 * x + i, 2 * y + j)) for i in range(2) for j in range(2)) + 2) >> 2)",
    ),
    "fours": ("uint8", 4, 1, "sum(uint16(a(4 * x + i - 1, y + j)) for i in range(4) for j in range(3))"),
    "words": ("uint16", 4, 1, "sum(uint32(a(4 * x + i, y)) for i in range(4))"),
    "eights": (
        "uint8",
        8,
        3,
        "sum(uint16(absd(a(8 * x + i, y + j), a(8 * x + i + u, y))) for i in range(8) for j in range(9))",
    ),
    "displaced": (
        "uint8",
        8,
        9,
        "sum(uint16(absd(a(8 * x + i, y + j), a(8 * x + i + u % 3 - 1, y + j + u // 3 - 1)))"
        " for i in range(8) for j in range(8))",
    ),
    "least": (
        "uint8",
        8,
        1,
        "argmin(sum(int32(absd(a(8 * x + i, y + j), a(8 * x + i + k % 5 - 2, y + j + k // 5 - 2))) for i in range(8)"
        " for j in range(8)) for k in range(25))[0]",
    ),
    "sixteens": ("uint8", 16, 3, "sum(uint16(absd(a(16 * x + i, y), a(16 * x + i + u - 1, y))) for i in range(16))"),
}


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("name", SUMS)
def test_neighbours_are_read_in_order_and_summed(name: str, vector_bytes: int) -> None:
    type_, step, shifts, value = SUMS[name]
    pipeline = load(
        {
            "format": 1,
            "name": name,
            "inputs": [{"name": "a", "type": type_, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [{"name": "f", "dims": ["x", "y", "u"], "value": value}],
            "outputs": ["f"],
            "estimates": {"f": [[0, 256], [0, 64], [0, shifts]], "a": [[0, 256 * step], [0, 64]]},
        }
    )
    platform = machine(vector_bytes=vector_bytes)
    schedule = autoschedule(pipeline, platform, SearchOptions("default")).schedule
    source = source_of(pipeline, schedule, platform)
    assert re.search("ts_s(ums|ads)_", source.code)
    library, random = build(source, vector_bytes=vector_bytes), np.random.default_rng(step)
    for width in (1, 7, 70):
        pixels = random.integers(0, np.iinfo(type_).max, (11, width * step - 1), type_, endpoint=True)
        inputs, regions = {"a": Image(pixels, (0, 0))}, {"f": ((0, width), (0, 11), (0, shifts))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        np.testing.assert_array_equal(got["f"][0], interpreted(pipeline, inputs, {}, regions)["f"][0])
