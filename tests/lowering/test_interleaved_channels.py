"""Images whose channels are side by side in memory, read and written in vectors."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from support.machines import machine
from support.native import build, call, loops_over_whole_vectors, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.search import SearchOptions, autoschedule

pytestmark = pytest.mark.slow

BY_LANES = re.compile(r"\{a_\d+\[|\bts_lanes\d")
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


def toned(boundary: str) -> dict[str, object]:
    """A picture less its blurred luminance: channels are read one by one in a row whose stages share a loop, and all
    of them are written there."""
    lum = "uint8((uint16(a(x, y, 0)) * 77 + uint16(a(x, y, 1)) * 150 + uint16(a(x, y, 2)) * 29) // 256)"
    soft = "uint8((uint16(lum(x - 1, y)) + uint16(lum(x + 1, y)) + uint16(lum(x, y - 1)) + uint16(lum(x, y + 1))) // 4)"
    image = {"name": "a", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}
    return {
        "format": 1,
        "name": "toned",
        "inputs": [{**image, "boundary": {"kind": boundary}}],
        "stages": [
            {"name": "lum", "dims": ["x", "y"], "value": lum},
            {"name": "soft", "dims": ["x", "y"], "value": soft},
            {
                "name": "out",
                "dims": ["x", "y", "c"],
                "storage": ["c", "x", "y"],
                "value": "uint8(clamp(int16(a(x, y, c)) + int16(lum(x, y)) - int16(soft(x, y)), 0, 255))",
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640], [0, 480], [0, 3]]},
    }


def fused(lanes: int) -> Schedule:
    """Luminance in a ring that is filled where it is read, its blur in registers."""
    group = Group(
        output="out",
        loops=("c.inner", "x.inner", "y.inner", "x.outer", "y.outer"),
        tiles=(Tile("x", None), Tile("y", 16)),
        parallel="y.outer",
        vector=Vector("x", lanes),
        unroll=("c",),
        placements=(
            Placement("lum", "x.inner", "x.outer", vector=Vector("x", lanes)),
            Placement("soft", "x.inner", "y.inner", storage="registers", vector=Vector("x", lanes)),
        ),
    )
    return Schedule("toned", "by hand", (group,))


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("boundary", ["repeat_edge", "mirror_interior", "repeat_image"])
def test_rows_of_several_stages_take_pixels_as_vectors(boundary: str, vector_bytes: int) -> None:
    """Also where there are fewer channels, or more of them in memory: there lanes are taken one by one."""
    pipeline, platform = load(toned(boundary)), machine(vector_bytes=vector_bytes)
    schedule = fused(vector_bytes // 2)
    source = source_of(pipeline, schedule, platform)
    whole = loops_over_whole_vectors(source.code)
    assert whole
    assert not BY_LANES.search(whole[0])
    assert whole[0].count("out_0_stride0") == 0  # no element is written by itself
    library = build(source, vector_bytes=vector_bytes)
    for width, inside, more in ((1, 3, 0), (7, 3, 0), (64, 3, 0), (133, 3, 0), (133, 1, 0), (133, 3, 1), (133, 2, 2)):
        memory = np.random.default_rng(width).integers(0, 256, (6, width, inside + more), "uint8")
        inputs = {"a": Image(memory.transpose(2, 0, 1)[:inside], (0, 0, 0))}
        regions = {"out": ((0, width), (0, 5), (0, 3))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])


@pytest.mark.parametrize("vector_bytes", [32, 64])
@pytest.mark.parametrize("type_", ["uint8", "float32"])
@pytest.mark.parametrize(
    ("place", "span"),
    [
        ("40 - x", lambda n: (41 - n, n)),
        ("x // 2", lambda n: (0, n // 2 + 1)),
        ("2 * x + 1", lambda n: (1, 2 * n - 1)),
    ],
)
def test_pixels_near_each_other_are_picked_from_vectors(
    place: str, span: Callable[[int], tuple[int, int]], type_: str, vector_bytes: int
) -> None:
    """Of an image that has no pixel beyond those."""
    image = {"name": "a", "type": type_, "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}
    stage = {"name": "out", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"], "value": f"a({place}, y, 2 - c)"}
    sizes = {"out": [[0, 640], [0, 480], [0, 3]]}
    pipeline = load(
        {"format": 1, "name": "near", "inputs": [image], "stages": [stage], "outputs": ["out"], "estimates": sizes}
    )
    platform = machine(vector_bytes=vector_bytes)
    schedule = autoschedule(pipeline, platform, SearchOptions("default")).schedule
    source = source_of(pipeline, schedule, platform)
    assert not BY_LANES.search(source.code)
    library = build(source, vector_bytes=vector_bytes)
    for width in (5, 130):
        first, extent = span(width)
        memory = np.random.default_rng(width).integers(0, 256, (3, extent, 3)).astype(type_)
        inputs = {"a": Image(memory.transpose(2, 0, 1), (first, 0, 0))}
        status, got = call(library, source, pipeline, inputs, {}, regions := {"out": ((0, width), (0, 3), (0, 3))})
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], interpret(pipeline, inputs, {}, regions)["out"][0])
