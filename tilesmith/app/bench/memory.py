"""Arrays as images lie in memory: in any order of the dims, aligned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ALIGNMENT = 128


def layout(extents: Sequence[int], storage: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements per dim, packed, the dims of `storage` fastest first."""
    strides = [0] * len(extents)
    step = 1
    for d in storage:
        strides[d] = step
        step *= extents[d]
    return tuple(strides)


def allocate(
    dtype: np.dtype,
    extents: Sequence[int],
    strides: Sequence[int],
    alignment: int = ALIGNMENT,
    offset: int = 0,
) -> np.ndarray:
    """A touched array with the axes reversed, of these strides in elements; its first element is `offset` bytes after
    an address that is aligned."""
    size = (1 + sum((n - 1) * s for n, s in zip(extents, strides, strict=True))) * dtype.itemsize
    raw = np.zeros(size + alignment + offset, dtype=np.uint8)
    raw.fill(0)
    start = -raw.ctypes.data % alignment + offset
    steps = tuple(s * dtype.itemsize for s in reversed(strides))
    return np.ndarray(tuple(reversed(extents)), dtype, buffer=raw.data, offset=start, strides=steps)


def storage_order(dims: tuple[str, ...], storage: tuple[str, ...]) -> list[int]:
    """The positions of the dims, fastest in memory first."""
    return [dims.index(d) for d in storage or dims]
