"""Halide as a judge of values: a pipeline run through its own compiler, every stage at root, in this process.

Correctness only; nothing here is fast.
"""

from __future__ import annotations

from collections.abc import Mapping

import halide as hl
import numpy as np

from benchmarks.problem import Region
from tilesmith.app.bench.halide_buffers import room
from tilesmith.app.bench.memory import storage_order
from tilesmith.app.bench.to_halide import HalidePipeline, to_halide
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


class Judge:
    """A pipeline compiled by Halide, to be run at as many sizes as one likes. Raises what `to_halide` raises.

    Inline reductions stay reductions, so that they are judged too and not written out by us. Code that is not
    `guarded` takes half of the time to compile, and nothing in it checks that inputs cover what is read of them.
    """

    def __init__(self, pipeline: Pipeline, guarded: bool = True) -> None:
        self.pipeline = pipeline
        self.halide: HalidePipeline = to_halide(pipeline, unroll_terms=0, defined=True)
        self.halide.compute_all_at_root()
        target = hl.get_host_target().with_feature(hl.TargetFeature.StrictFloat)
        if not guarded:
            target = target.with_feature(hl.TargetFeature.NoAsserts)
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

        Raises hl.HalideError where an input does not cover what is read of it, if the code is guarded.
        """
        keep = []
        for i in self.pipeline.inputs:
            array, buffer = room(i.type.numpy, input_regions[i.name], storage_order(i.dims, i.storage))
            array[...] = inputs[i.name]
            keep.append(array)
            self.halide.inputs[i.name].set(buffer)
        for p in self.pipeline.params:
            self.halide.params[p.name].set(params[p.name])
        results: dict[str, tuple[np.ndarray, ...]] = {}
        buffers = []
        for name in self.pipeline.outputs:
            stage = self.pipeline.stage(name)
            order = storage_order(stage.dims, stage.storage)
            rooms = [room(t.numpy, regions[name], order) for t in stage.types]
            buffers += [buffer for _, buffer in rooms]
            results[name] = tuple(array for array, _ in rooms)
        self.halide.pipeline.realize(buffers, self.target)
        return results
