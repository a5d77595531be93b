"""What Halide computes: a pipeline run through its own compiler, every stage at root, in this process.

Correctness only; nothing here is fast.
"""

from __future__ import annotations

from collections.abc import Mapping

import halide as hl
import numpy as np

from benchmarks.contender import allocate
from benchmarks.contest import storage_order
from benchmarks.problem import Region
from benchmarks.to_halide import HalidePipeline, to_halide
from scheduler.lang.pipeline import Pipeline


class Judge:
    """A pipeline compiled by Halide, to be run at as many sizes as one likes. Raises what `to_halide` raises.

    Inline reductions stay reductions, so that they are judged too and not written out by us.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.halide: HalidePipeline = to_halide(pipeline, unroll_terms=0, defined=True)
        self.halide.compute_all_at_root()
        target = hl.get_host_target().with_feature(hl.TargetFeature.StrictFloat)
        self.halide.pipeline.compile_jit(target)
        self.target = target

    def run(
        self,
        inputs: Mapping[str, np.ndarray],
        input_regions: Mapping[str, Region],
        params: Mapping[str, int | float | bool],
        regions: Mapping[str, Region],
    ) -> dict[str, tuple[np.ndarray, ...]]:
        """The outputs over `regions`, one array a component, axes reversed as everywhere.

        Raises hl.HalideError where an input does not cover what is read of it.
        """
        keep = []
        for i in self.pipeline.inputs:
            low = [lo for lo, _ in input_regions[i.name]]
            extents = [n for _, n in input_regions[i.name]]
            array = allocate(i.type.numpy, extents, storage_order(i.dims, i.storage))
            array[...] = inputs[i.name]
            keep.append(array)
            buffer = as_buffer(array)
            buffer.set_min(low)
            self.halide.inputs[i.name].set(buffer)
        for p in self.pipeline.params:
            self.halide.params[p.name].set(params[p.name])
        results: dict[str, tuple[np.ndarray, ...]] = {}
        buffers = []
        for name in self.pipeline.outputs:
            stage = self.pipeline.stage(name)
            order = storage_order(stage.dims, stage.storage)
            arrays = tuple(allocate(t.numpy, [n for _, n in regions[name]], order) for t in stage.types)
            for array in arrays:
                buffer = as_buffer(array)
                buffer.set_min([lo for lo, _ in regions[name]])
                buffers.append(buffer)
            results[name] = arrays
        self.halide.pipeline.realize(buffers, self.target)
        return results


def as_buffer(array: np.ndarray) -> hl.Buffer:
    """Halide's view of the array's memory. (It knows 64-bit unsigned integers by one of NumPy's two names for them.)"""
    return hl.Buffer(array.view(np.ulonglong) if array.dtype == np.uint64 else array)
