"""Arguments of one call as the C interface has them: an array of pointers, `tilesmith_buffer`s, scalars."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

from tilesmith.scheduler.ir.pipeline.arguments import Region

BUFFER = struct.Struct("@Pi5i5i5q")
"""A `tilesmith_buffer`: data, dims, mins, extents, strides."""
SCALAR_BYTES = 8
_POINTER = struct.Struct("@P")
_MOST_DIMS = 5


def buffer_bytes(region: Region, strides: Sequence[int]) -> bytes:
    """A buffer without data, of a region ((min, extent) per dim), and strides in elements in the order of the dims."""
    rest = _MOST_DIMS - len(region)
    none = (0,) * rest
    mins, extents = (low for low, _ in region), (extent for _, extent in region)
    return BUFFER.pack(0, len(region), *mins, *none, *extents, *none, *strides, *none)


class Block:
    """Memory for the arguments of one call, for any number of calls one after the other: pointers to inputs, params and
    outputs, then the buffers of inputs and outputs, then the params."""

    __slots__ = ("_memory", "_params", "_places", "_view", "address")

    def __init__(self, inputs: int, params: int, outputs: int) -> None:
        buffers = inputs + outputs
        first = _POINTER.size * (buffers + params)
        self._params = first + BUFFER.size * buffers
        self._memory = ctypes.create_string_buffer(self._params + SCALAR_BYTES * params)
        self._view = memoryview(self._memory).cast("B")
        self.address = ctypes.addressof(self._memory)
        self._places = tuple(range(first, self._params, BUFFER.size))
        scalars = range(self._params, self._params + SCALAR_BYTES * params, SCALAR_BYTES)
        places = (*self._places[:inputs], *scalars, *self._places[inputs:])
        for number, place in enumerate(places):
            _POINTER.pack_into(self._view, number * _POINTER.size, self.address + place)

    def fill(self, buffers: bytes, data: Sequence[int], params: bytes) -> None:
        """Sets all buffers, the addresses of their data, and all params."""
        self._view[self._places[0] : self._params] = buffers
        for place, address in zip(self._places, data, strict=True):
            _POINTER.pack_into(self._view, place, address)
        if params:
            self._view[self._params :] = params

    def region(self, number: int) -> Region:
        """(min, extent) per dim of a buffer, as the call has left it."""
        _, dims, *numbers = BUFFER.unpack_from(self._view, self._places[number])
        return tuple(zip(numbers[:dims], numbers[_MOST_DIMS : _MOST_DIMS + dims], strict=True))
