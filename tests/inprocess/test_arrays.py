"""Whatever holds an image: subclasses, lists, buffers, DLPack; copied only where the C cannot read it in place."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

import tilesmith as ts
from tilesmith.app.inprocess.images import as_array, image_array
from tilesmith.scheduler.ir.pipeline.pipeline import Input
from tilesmith.scheduler.ir.pipeline.types import TYPES

IMAGE = np.arange(3 * 4 * 20, dtype=np.uint8).reshape(3, 4, 20)


class Tensor:
    """A holder of memory that understands DLPack alone."""

    def __init__(self, held: np.ndarray) -> None:
        self.held = held

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.held.__dlpack_device__()


class OnDevice(Tensor):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("it is on a device")


class Tagged(np.ndarray):
    """A subclass whose arithmetic nobody knows."""


def wanted(type_: str = "uint8") -> Input:
    return Input("photo", TYPES[type_], ("x", "y", "c"), None, ("x", "y", "c"))


@pytest.mark.parametrize(
    "held", [IMAGE, IMAGE.view(Tagged), Tensor(IMAGE), memoryview(IMAGE), IMAGE[:, ::-1, ::2]], ids=lambda v: type(v)
)
def test_memory_is_shared(held: Any) -> None:
    found = image_array(held, wanted(), np.dtype(np.uint8))
    assert type(found) is np.ndarray
    assert np.shares_memory(found, IMAGE)


def test_what_the_c_cannot_read_is_copied() -> None:
    pixels = np.zeros((3, 4, 5), np.dtype([("tag", "u1"), ("value", "<f4")]))
    pixels["value"] = np.arange(60).reshape(3, 4, 5)
    for held in (pixels["value"], np.arange(60, dtype=">f4").reshape(3, 4, 5)):
        found = image_array(held, wanted("float32"), np.dtype(np.float32))
        assert found.flags.aligned
        assert found.dtype.isnative
        assert found.ravel().tolist() == list(range(60))


@pytest.mark.parametrize("type_", ["uint8", "float32", "int64"])
def test_lists_become_arrays_of_the_type(type_: str) -> None:
    found = image_array(IMAGE.tolist(), wanted(type_), np.dtype(type_))
    assert found.dtype == type_
    np.testing.assert_array_equal(found, IMAGE)


def test_other_buffers_and_pictures(shift: ts.CompiledPipeline) -> None:
    numbers = array.array("i", range(6))
    assert np.shares_memory(as_array(numbers, "it"), np.asarray(numbers))
    picture = Picture.fromarray(IMAGE.transpose(1, 2, 0))
    with pytest.raises(ts.ArgumentError, match=r"pass photo.transpose\(2, 0, 1\)"):
        shift(Picture.fromarray(np.zeros((9, 20, 3), np.uint8)))
    np.testing.assert_array_equal(shift(np.asarray(picture).transpose(2, 0, 1)), shift(IMAGE))
    np.testing.assert_array_equal(shift(Tensor(IMAGE)), shift(IMAGE))


def test_memory_of_a_device_is_refused() -> None:
    with pytest.raises(ts.ArgumentError, match=r"it is on a device; pass it in the memory .* \.detach\(\)\.cpu\(\)"):
        as_array(OnDevice(IMAGE), "input 'photo'")
