"""Arrays that show nothing as pictures: nearly black ones, and floats that are beyond the range of a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

SAMPLES = 4096
"""Values of an array that are looked at."""
DARK = 1 / 16
"""Share of the range of a picture: where all but the lightest hundredth is below, nothing is seen."""
STRETCH = "--stretch writes the darkest value black and the lightest white"

Array = np.ndarray[Any, np.dtype[Any]]


def is_dark(array: Array) -> bool:
    """True if a picture of the array is nearly black, and stretching would show something."""
    values = _sample(array)
    if values.size == 0 or values.max() <= values.min():
        return False
    return bool(np.percentile(values, 99) < DARK * _white(array))


def is_clipped(array: Array) -> bool:
    """True if most of the values of an array of floats are above the white of a picture."""
    values = _sample(array)
    return bool(array.dtype.kind == "f" and values.size and np.median(values) > _white(array))


def remark(array: Array) -> str | None:
    """A sentence about an array that is written as a picture and shows nothing, None of one that does."""
    if is_dark(array):
        return f"it is nearly black: its largest value is {_sample(array).max():.3g} of {_white(array):g}; {STRETCH}"
    if is_clipped(array):
        return f"most of it is white: floats of pictures are 0..1, these go up to {_sample(array).max():.3g}; {STRETCH}"
    return None


def _sample(array: Array) -> Array:
    """Finite values of an array, SAMPLES of them; none of bools or signed integers, which no picture shows."""
    if array.dtype.kind not in "fu":
        return np.empty(0)
    values = array.reshape(-1)[:: max(1, array.size // SAMPLES)]
    return values[np.isfinite(values)]


def _white(array: Array) -> float:
    return 1.0 if array.dtype.kind == "f" else float(np.iinfo(array.dtype).max)
