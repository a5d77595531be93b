"""Images whose channels lie side by side in memory: the same values, however they lie, and nothing else is touched."""

from __future__ import annotations

import ctypes
import mmap
import re

import numpy as np
import pytest
from support.buffers import invoke, view
from support.interpreted import interpreted
from support.machines import here, machine
from support.native import build, source_of

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Vector

COMPILERS = ("gcc", "clang")
WIDTH, HEIGHT = 71, 5


def pipeline_of(type_: str, channels: int, to: str, inside: bool = False) -> Pipeline:
    """Neighbours added up, between images of `channels`: "cc" from and to interleaved ones, "cp" to planes."""
    storage = [["c", "x", "y"] if side == "c" else ["x", "y", "c"] for side in to]
    middle = {"name": "half", "dims": ["x", "y", "c"], "value": "image(x, y, c) // 2", "storage": storage[0]}
    if type_ == "float32":
        middle["value"] = "image(x, y, c) * 0.5"
    return load(
        {
            "format": 1,
            "name": "neighbours",
            "inputs": [{"name": "image", "type": type_, "dims": ["x", "y", "c"], "storage": storage[0]}],
            "stages": [
                middle,
                {
                    "name": "out",
                    "dims": ["x", "y", "c"],
                    "value": f"half(x, y, c) + half(x + 1, y, {channels - 1} - c)",
                    "storage": storage[1],
                },
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 640], [0, 480], [0, channels]]},
        }
    )


def source_by_vectors(pipeline: Pipeline, lanes: int, compute: str = INLINE, wide: bool = False) -> CSource:
    """C for the host, or for a machine with wide vectors."""
    half = Placement("half", compute, compute, vector=None if compute == INLINE else Vector("x", lanes))
    group = Group("out", ("c.inner", "x.inner", "y.inner"), (), None, Vector("x", lanes), ("c",), (half,))
    return source_of(pipeline, Schedule("neighbours", "by hand", (group,)), machine() if wide else here())


def at_the_end(array: np.ndarray) -> tuple[np.ndarray, mmap.mmap]:
    """A copy whose last element is the last of a page, after which nothing may be touched."""
    page = mmap.PAGESIZE
    span = max(sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize, 1)
    pages = -(-span // page)
    memory = mmap.mmap(-1, (pages + 1) * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + pages * page), ctypes.c_size_t(page), 0) == 0
    copy = np.ndarray(array.shape, array.dtype, memory, pages * page - span, array.strides)
    copy[...] = array
    return copy, memory


def random_image(type_: str, channels: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 200, (channels, HEIGHT, WIDTH + 1))
    return values.astype(type_)


def laid_out(array: np.ndarray, way: str) -> np.ndarray:
    """Values (axes c, y, x) in other layouts: pixels packed, a channel more in memory than in the image, or planes."""
    c, h, w = array.shape
    size = array.itemsize
    n = {"packed": c, "padded": c + 1, "planes": 1}[way]
    strides = (h * w * size, w * size, size) if way == "planes" else (size, w * n * size, n * size)
    room = np.zeros(h * w * (c + 1) + 8, array.dtype)
    laid = np.ndarray(array.shape, array.dtype, room.data, 0, strides)
    laid[...] = array
    return laid


@pytest.mark.parametrize("way", ["packed", "padded", "planes"])
@pytest.mark.parametrize("to", ["cc", "cp", "pc"])
@pytest.mark.parametrize(("type_", "channels"), [("uint8", 3), ("uint8", 4), ("float32", 3), ("uint16", 2)])
def test_values(type_: str, channels: int, to: str, way: str) -> None:
    pipeline = pipeline_of(type_, channels, to)
    source = source_by_vectors(pipeline, 32 // np.dtype(type_).itemsize)
    array = random_image(type_, channels)
    regions = {"out": ((0, WIDTH), (0, HEIGHT), (0, channels))}
    expected = interpreted(pipeline, {"image": Image(array, (0, 0, 0))}, {}, regions)["out"][0]
    image, _mapped = at_the_end(laid_out(array, way))
    out, _mapped_too = at_the_end(laid_out(np.zeros_like(expected), way))
    for compiler in COMPILERS:
        out[...] = 0
        assert invoke(build(source, compiler=compiler), source, [view(image, (0, 0, 0)), view(out, (0, 0, 0))]) == 0
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("channels", [2, 3, 4])
def test_short_vectors(channels: int, lanes: int) -> None:
    """Of two pixels of four channels no vector is cut: half of one would be no vector."""
    pipeline = pipeline_of("uint16", channels, "cc")
    source = source_by_vectors(pipeline, lanes)
    array = random_image("uint16", channels)
    regions = {"out": ((0, WIDTH), (0, HEIGHT), (0, channels))}
    expected = interpreted(pipeline, {"image": Image(array, (0, 0, 0))}, {}, regions)["out"][0]
    image, out = laid_out(array, "packed"), laid_out(np.zeros_like(expected), "packed")
    for compiler in COMPILERS:
        assert invoke(build(source, compiler=compiler), source, [view(image, (0, 0, 0)), view(out, (0, 0, 0))]) == 0
        np.testing.assert_array_equal(out, expected)


def test_a_stage_in_memory_is_interleaved_too() -> None:
    pipeline = pipeline_of("uint8", 3, "cp")
    source = source_by_vectors(pipeline, 32, "y.inner")
    array = random_image("uint8", 3)
    regions = {"out": ((0, WIDTH), (0, HEIGHT), (0, 3))}
    expected = interpreted(pipeline, {"image": Image(array, (0, 0, 0))}, {}, regions)["out"][0]
    image, out = laid_out(array, "packed"), np.zeros_like(expected)
    assert invoke(build(source), source, [view(image, (0, 0, 0)), view(out, (0, 0, 0))]) == 0
    np.testing.assert_array_equal(out, expected)


def test_channels_outside_the_image_are_not_read() -> None:
    """Of an image of one channel in a picture of three only that may be read: by scalars."""
    document = {
        "format": 1,
        "name": "red",
        "inputs": [{"name": "image", "type": "uint8", "dims": ["x", "c"], "storage": ["c", "x"]}],
        "stages": [{"name": "out", "dims": ["x"], "value": "image(x, 0) + 1"}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640]], "image": [[0, 640], [0, 3]]},
    }
    pipeline = load(document)
    group = Group("out", ("x.inner",), (), None, Vector("x", 32), (), ())
    source = source_of(pipeline, Schedule("red", "by hand", (group,)), here())
    picture = np.arange(3 * WIDTH, dtype=np.uint8).reshape(WIDTH, 3)
    red, _mapped = at_the_end(picture.T[:1])
    out = np.zeros(WIDTH, np.uint8)
    assert invoke(build(source), source, [view(red, (0, 0)), view(out, (0,))]) == 0
    np.testing.assert_array_equal(out, picture[:, 0] + 1)


def test_pixels_are_loaded_and_stored_as_whole_vectors() -> None:
    code = source_by_vectors(pipeline_of("uint8", 3, "cc"), 64, wide=True).code
    vectors = [line for line in code.splitlines() if re.search(r"u8x64", line)]
    assert len([line for line in vectors if "STORE(u8x64, " in line]) == 3
    # of two neighbours, once in parts of registers for all channels, once for one that a loop moves, where others are
    # asked for
    assert code.count("LOAD(u8x16, ") == 2 * 3 * 4
    assert len([line for line in vectors if " = LOAD(u8x64, " in line]) == 6
