"""Arrays that show nothing as pictures."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.app.runtime.visibility import is_clipped, is_dark, remark

RAMP = np.linspace(0, 1, 300).reshape(15, 20)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.uint16])
def test_a_ramp_is_seen_and_a_hundredth_of_it_is_dark(dtype: type) -> None:
    white = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    assert remark((RAMP * white).astype(dtype)) is None
    dark = (RAMP * white * 0.02).astype(dtype)
    assert is_dark(dark)
    assert "nearly black" in str(remark(dark))


def test_floats_as_large_as_bytes_are_clipped() -> None:
    assert is_clipped(RAMP * 255)
    assert "go up to 255" in str(remark(RAMP * 255))
    assert not is_clipped(RAMP)
    assert not is_clipped((RAMP * 255).astype(np.uint8))


@pytest.mark.parametrize(
    "array",
    [np.zeros((4, 4)), np.full((4, 4), np.nan), np.empty((0, 4)), np.ones((4, 4), bool), -np.ones((4, 4), np.int16)],
)
def test_arrays_that_stretching_would_not_help(array: np.ndarray) -> None:
    assert remark(array) is None


def test_values_that_are_no_numbers_are_not_looked_at() -> None:
    dark = (RAMP * 0.01).astype(np.float32)
    dark[0, 0], dark[0, 1] = np.inf, np.nan
    assert is_dark(dark)


@pytest.mark.parametrize(
    ("array", "dark"),
    [
        (np.linspace(0, 0.01, 5000, dtype=np.float32), True),
        (np.linspace(0, 1, 5000, dtype=np.float32), False),
        (np.zeros(5000, np.float32), False),
        (np.arange(5000).astype(np.uint16), False),
        ((np.arange(5000) % 9).astype(np.uint8), True),
        (np.full(10, np.nan, np.float32), False),
        (np.zeros(10, np.bool_), False),
    ],
)
def test_a_picture_is_dark_where_stretching_would_help(array: np.ndarray, dark: bool) -> None:
    assert is_dark(array) == dark
