"""Memory that NumPy and Halide share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import halide as hl
import numpy as np

from tilesmith.app.bench.memory import allocate, layout

Region = tuple[tuple[int, int], ...]
"""(min, extent) per dim, in the order of the document."""


def room(dtype: np.dtype, region: Region, storage: Sequence[int]) -> tuple[np.ndarray, hl.Buffer]:
    """Memory for `region`, laid out as `storage` says: as an array with the axes reversed, and as Halide sees it.

    Halide wants elements that are next to each other even along a single one, where NumPy gives away any stride: such
    a dim is cut out of two. (Halide knows 64-bit unsigned integers by one of NumPy's two names for them.)
    """
    extents = [n for _, n in region]
    whole = [max(n, 2) if d == storage[0] else n for d, n in enumerate(extents)]
    array = allocate(dtype, whole, layout(whole, storage))
    buffer = hl.Buffer(array.view(np.ulonglong) if dtype == np.uint64 else array)
    for d, n in enumerate(extents):
        buffer.crop(d, 0, n)
    buffer.set_min([lo for lo, _ in region])
    asked: tuple[Any, ...] = (..., *(slice(n) for n in reversed(extents)))  # a view, of no dims, too
    return array[asked], buffer
