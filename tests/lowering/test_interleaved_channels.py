"""Images whose channels are side by side in memory, read and written in vectors."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import machine
from support.native import build, loops_over_whole_vectors, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
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
        expected = interpreted(pipeline, inputs, {}, regions)["out"][0]
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
        np.testing.assert_array_equal(got["out"][0], interpreted(pipeline, inputs, {}, regions)["out"][0])


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
        np.testing.assert_array_equal(got["out"][0], interpreted(pipeline, inputs, {}, regions)["out"][0])


def flat(channels: int, boundary: str) -> dict[str, object]:
    """A filter in two steps, and a table: channels are computed alike, so that none is told from another."""
    image = {"name": "a", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}
    along = "sum(uint16(a(x + k, y, c)) for k in range(-2, 3)) + uint16(a(x, y, c)) * 3"
    return {
        "format": 1,
        "name": "flat",
        "inputs": [{**image, "boundary": {"kind": boundary}}, {"name": "table", "type": "uint8", "dims": ["i"]}],
        "stages": [
            {"name": "along", "dims": ["x", "y", "c"], "value": along},
            {
                "name": "out",
                "dims": ["x", "y", "c"],
                "storage": ["c", "x", "y"],
                "value": "table(int32(uint8((along(x, y - 1, c) + along(x, y, c) * 2 + along(x, y + 1, c)) >> 5)))",
            },
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640], [0, 480], [0, channels]], "table": [[0, 256]]},
    }


@pytest.mark.parametrize(
    ("vector_bytes", "channels", "boundary"),
    [(16, 2, "mirror_image"), (32, 3, "repeat_edge"), (32, 4, "mirror_interior"), (64, 3, "mirror_interior")],
)
def test_no_channel_is_taken_out_of_flat_rows(vector_bytes: int, channels: int, boundary: str) -> None:
    """Points are computed one by one where the image has more channels, or gaps between pixels."""
    pipeline, platform = load(flat(channels, boundary)), machine(vector_bytes=vector_bytes)
    schedule = autoschedule(pipeline, platform, SearchOptions("default")).schedule
    source = source_of(pipeline, schedule, platform)
    usual = source.code[source.code.index(f"int32_t {source.entry}(") :]  # what is seldom stands before it
    assert not re.search(r"\bLANES_\d", usual)
    library, random = build(source, vector_bytes=vector_bytes), np.random.default_rng(vector_bytes)
    for width, more in ((3, 0), (40, 0), (133, 0), (133, 1)):
        memory = random.integers(0, 256, (9, width, channels + more), np.uint8)
        pixels = Image(memory.transpose(2, 0, 1)[:channels], (0, 0, 0))
        inputs = {"a": pixels, "table": Image(random.integers(0, 256, 256, np.uint8), (0,))}
        regions = {"out": ((0, width), (0, 9), (0, channels))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], interpreted(pipeline, inputs, {}, regions)["out"][0])


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("place", ["x", "639 - x"])
def test_elements_of_pixels_that_differ_in_channel_are_picked_from_vectors(place: str, vector_bytes: int) -> None:
    """The luma of a packed 4:2:2 image, every other byte of a row, also from right to left."""
    pipeline = load(
        {
            "format": 1,
            "name": "packed_422",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["i", "x", "y"]}],
            "stages": [
                {
                    "name": "luma",
                    "dims": ["x", "y"],
                    "value": f"int16(a(1 + 2 * (({place}) % 2), ({place}) // 2, y)) - 16",
                }
            ],
            "outputs": ["luma"],
            "estimates": {"luma": [[0, 640], [0, 48]], "a": [[0, 4], [0, 320], [0, 48]]},
        }
    )
    platform = machine(vector_bytes=vector_bytes)
    source = source_of(pipeline, autoschedule(pipeline, platform, SearchOptions("default")).schedule, platform)
    assert not BY_LANES.search(source.code)
    library = build(source, vector_bytes=vector_bytes)
    for first, width, more in ((0, 640, 0), (3, 130, 0), (1, 7, 0), (0, 640, 1)):
        memory = np.random.default_rng(width).integers(0, 256, (5, 320, 4 + more), dtype=np.uint8)
        inputs = {"a": Image(memory[..., :4], (0, 0, 0))}
        regions = {"luma": ((first, width), (0, 5))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        np.testing.assert_array_equal(got["luma"][0], interpreted(pipeline, inputs, {}, regions)["luma"][0])
