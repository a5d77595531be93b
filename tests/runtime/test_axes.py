"""Channels of arrays that are not where the dims have them, and the transposition that mends it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesmith.app.runtime import images
from tilesmith.app.runtime.axes import misplaced_channels, transposed
from tilesmith.scheduler.ir.pipeline.pipeline import Input
from tilesmith.scheduler.ir.pipeline.types import TYPES


@given(
    st.permutations(("x", "y", "c")),
    st.integers(0, 2),
    st.integers(1, 4),
    st.integers(5, 99),
    st.integers(5, 99),
    st.booleans(),
)
def test_the_transposition_brings_channels_to_their_place(dims, axis, channels, one, other, known) -> None:
    shape = [one, other]
    shape.insert(axis, channels)
    place = 2 - dims.index("c")
    order = misplaced_channels(tuple(shape), tuple(dims), channels if known else None)
    if axis == place:
        assert order is None
    else:
        mended = np.empty(shape).transpose(order)
        assert mended.shape[place] == channels
        assert [n for n in mended.shape if n > 4] == [one, other]


@pytest.mark.parametrize(
    ("shape", "dims", "channels"),
    [
        ((480, 640), ("x", "y"), 1),
        ((3, 480, 3), ("x", "y", "c"), 3),
        ((4, 480, 640), ("x", "y", "c"), 3),
        ((64, 32, 128), ("x", "y", "c"), 128),
        ((1, 3, 640), ("x", "y", "c"), 3),
        ((480, 2, 3), ("x", "y", "c"), None),
        ((8, 480, 640, 3), ("x", "y", "c", "n"), 3),
    ],
)
def test_nothing_is_said_where_nothing_is_known(shape, dims, channels) -> None:
    assert misplaced_channels(shape, dims, channels) is None


def test_an_array_file_with_channels_last_is_refused_with_the_transposition(tmp_path) -> None:
    np.save(tmp_path / "photo.npy", np.zeros((48, 64, 3), np.float32))
    wanted = Input("photo", TYPES["float32"], ("x", "y", "c"), None, ("x", "y", "c"))
    with pytest.raises(images.ImageError, match="shape \\(48, 64, 3\\)") as caught:
        images.read(tmp_path / "photo.npy", wanted, 3)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"array{transposed((2, 0, 1))}")
    np.save(tmp_path / "photo.npy", np.zeros((48, 64, 3), np.float32).transpose(2, 0, 1))
    assert images.read(tmp_path / "photo.npy", wanted, 3).shape == (3, 48, 64)
