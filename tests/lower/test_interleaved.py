"""Images whose channels are side by side in memory, read and written in vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.machines import machine
from support.native import build, call, source_of

from scheduler.lang.document import load
from scheduler.lang.interpret import Image, interpret
from scheduler.search import SearchOptions, autoschedule

BY_LANES = re.compile(r"\{a_\d+\[")
"""A vector whose lanes are loaded one by one."""


def document(channels: int, type_: str) -> dict[str, object]:
    """A blur of an image of pixels, in two steps, the first in planes: its loop over channels is one."""
    return {
        "format": 1,
        "name": "pixels",
        "inputs": [{"name": "a", "type": type_, "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}],
        "stages": [
            {"name": "along", "dims": ["x", "y", "c"], "value": "float32(a(x, y, c)) + float32(a(x + 1, y, c))"},
            {
                "name": "out",
                "dims": ["x", "y", "c"],
                "storage": ["c", "x", "y"],
                "value": f"{type_}((along(x, y, c) + along(x, y + 1, c)) / 4.0)",
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640], [0, 480], [0, channels]]},
    }


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize(("channels", "type_"), [(3, "uint8"), (4, "uint8"), (3, "float32"), (2, "uint16")])
def test_pixels_are_vectors_along_their_row(channels: int, type_: str, vector_bytes: int) -> None:
    """Also where there are more channels in memory, or gaps between pixels: those are computed point by point."""
    pipeline, platform = load(document(channels, type_)), machine(vector_bytes=vector_bytes)
    schedule = autoschedule(pipeline, platform, SearchOptions("default")).schedule
    vector = schedule.groups[-1].vector
    assert vector is not None
    assert vector.dim == "x"
    source = source_of(pipeline, schedule, platform)
    assert not BY_LANES.search(source.code)
    library = build(source, vector_bytes=vector_bytes)
    for width, more in ((1, 0), (7, 0), (64, 0), (133, 0), (133, 1)):
        memory = (np.random.default_rng(width).random((6, width + 1, channels + more)) * 200).astype(type_)
        inputs = {"a": Image(memory.transpose(2, 0, 1)[:channels], (0, 0, 0))}
        regions = {"out": ((0, width), (0, 5), (0, channels))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        expected = interpret(pipeline, inputs, {}, regions)["out"][0]
        np.testing.assert_allclose(got["out"][0], expected, rtol=1e-5, atol=0 if type_ == "float32" else 1)
