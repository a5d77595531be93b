"""Buffers that a pipeline of Halide has inside, as arrays."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilesmith.scheduler.frontends.halide.serialized import HalideBuffer
from tilesmith.scheduler.ir.pipeline.types import BOOL, TYPES


def array_of(buffer: HalideBuffer) -> np.ndarray[Any, np.dtype[Any]] | None:
    """The values of a buffer, axes the reverse of its dims; None of a type that there is none of, and where the bytes
    are not those of all points."""
    of = TYPES.get(str(buffer.type))
    if of is None:
        return None
    size = max(1, of.bits // 8)
    extents, strides = [n for _, n, _ in buffer.dims], [s for _, _, s in buffer.dims]
    last = sum((n - 1) * s for n, s in zip(extents, strides, strict=True))
    flat = np.frombuffer(buffer.data, "u1" if of == BOOL else of.numpy, len(buffer.data) // size)
    if min(extents, default=1) < 1 or min(strides, default=0) < 0 or last >= len(flat) or prod(extents) > len(flat):
        return None
    steps = [s * size for s in reversed(strides)]
    found = np.lib.stride_tricks.as_strided(flat, extents[::-1], steps, writeable=False)
    return found.astype(of.numpy)
