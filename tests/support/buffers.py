"""Generated code called with buffers that a test lays out itself: views with any strides, queries, mistakes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from support.calls import Buffer, Region

from tilesmith.scheduler.codegen.artifact import CSource

OK, E_REGION, E_ARGUMENT, E_MEMORY = range(4)


def view(array: np.ndarray, low: Sequence[int]) -> Buffer:
    """The buffer of an array (axes reversed) with whatever strides it has; `low` is the min per dim."""
    b = Buffer(array.ctypes.data, array.ndim)
    for d in range(array.ndim):
        axis = array.ndim - 1 - d
        b.min[d], b.extent[d] = low[d], array.shape[axis]
        b.stride[d] = array.strides[axis] // array.itemsize
    return b


def query(region: Region) -> Buffer:
    """A buffer without data."""
    b = Buffer(None, len(region))
    for d, (lo, extent) in enumerate(region):
        b.min[d], b.extent[d] = lo, extent
    return b


def region_of(b: Buffer) -> Region:
    return tuple((b.min[d], b.extent[d]) for d in range(b.dims))


def invoke(library: ctypes.CDLL, source: CSource, arguments: Sequence[object]) -> int:
    """The status of `<entry>_argv` for buffers, scalars (ctypes objects) and None for NULL."""
    f = getattr(library, source.entry + "_argv")
    f.restype = ctypes.c_int32
    pointers = [None if a is None else ctypes.addressof(a) for a in arguments]
    return int(f((ctypes.c_void_p * len(pointers))(*pointers)))
