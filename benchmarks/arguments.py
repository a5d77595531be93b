"""The arguments that libraries are called with, in the layouts that callers' images have."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.contender import tilesmith_buffer
from benchmarks.problem import Problem, Region
from tilesmith.app.bench.memory import ALIGNMENT, allocate, layout

PAGE, LINE = 4096, 64
SHORT = 16
"""Dims up to so long are no row of their own: the channels of an interleaved pixel."""


@dataclass(frozen=True)
class Layout:
    """The layout of the rows and planes of every image: without gaps, or where `padded`, rows at a multiple of a page
    from each other or not (`paged`), planes and images at the same place modulo a page or not (`alike`)."""

    name: str
    padded: bool = True
    paged: bool = False
    alike: bool = False

    def strides(self, extents: Sequence[int], storage: Sequence[int], size: int) -> tuple[int, ...]:
        """Per dim, in elements of `size` bytes, the dims of `storage` fastest first."""
        if not self.padded:
            return layout(extents, storage)
        strides, step, row, plane = [0] * len(extents), size, False, False
        for d in storage:
            if plane:
                step = self._padded(step, self.alike)
            elif row:
                step, plane = self._padded(step, self.paged), True
            strides[d] = step // size
            step *= extents[d]
            row = row or extents[d] > SHORT
        return tuple(strides)

    def offset(self, image: int) -> int:
        """Bytes from the beginning of a page to that of the image of that number."""
        return 0 if not self.padded or self.alike else image * 5 * LINE % PAGE

    @staticmethod
    def _padded(step: int, to_page: bool) -> int:
        """The least from `step` bytes on that is a multiple of a page, or that is not."""
        return -(-step // PAGE) * PAGE if to_page else step + LINE * (step % PAGE == 0)


LAYOUTS = {
    found.name: found
    for found in (
        Layout("dense", padded=False),
        Layout("alike", alike=True),
        Layout("apart"),
        Layout("paged-alike", paged=True, alike=True),
        Layout("paged-apart", paged=True),
    )
}


class Arguments:
    """Images and scalars of a problem as the array of `pointers` that a library's `<entry>_argv` takes. `outputs` are
    the images that it writes, in the order of the document."""

    def __init__(self, problem: Problem, images: Layout = LAYOUTS["dense"]) -> None:
        self.outputs: list[np.ndarray] = []
        self._layout = images
        self._keep: list[object] = []
        pipeline = problem.pipeline
        addresses: list[int] = []
        for i in pipeline.inputs:
            order = [i.dims.index(d) for d in i.storage or i.dims]
            data = problem.inputs[i.name]
            array, address = self._image(data.dtype, problem.input_regions[i.name], order, len(addresses))
            array[...] = data
            addresses.append(address)
        for p in pipeline.params:
            scalar = np.array([problem.params[p.name]], dtype=p.type.numpy)
            self._keep.append(scalar)
            addresses.append(scalar.ctypes.data)
        for name in pipeline.outputs:
            stage = pipeline.stage(name)
            order = [stage.dims.index(d) for d in stage.storage or stage.dims]
            for t in stage.types:
                array, address = self._image(np.dtype(t.numpy), problem.output_regions[name], order, len(addresses))
                self.outputs.append(array)
                addresses.append(address)
        self.pointers = (ctypes.c_void_p * len(addresses))(*addresses)

    def _image(self, dtype: np.dtype, region: Region, order: Sequence[int], number: int) -> tuple[np.ndarray, int]:
        extents = [n for _, n in region]
        strides = self._layout.strides(extents, order, dtype.itemsize)
        aligned = PAGE if self._layout.padded else ALIGNMENT
        array = allocate(dtype, extents, strides, aligned, self._layout.offset(number))
        buffer = tilesmith_buffer(array, region, strides)
        self._keep += [array, buffer]
        return array, ctypes.addressof(buffer)
