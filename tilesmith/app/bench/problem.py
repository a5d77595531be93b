"""The problem of a contest: a pipeline, images for it, and the regions of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilesmith.app.runtime import estimates
from tilesmith.scheduler.ir.pipeline.arguments import Image, Region, Scalar
from tilesmith.scheduler.ir.pipeline.expressions import Cast
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Problem:
    """A pipeline with everything that a call of it needs. Arrays have the axes reversed: dims [x, y] is (H, W)."""

    pipeline: Pipeline
    inputs: Mapping[str, Image]
    params: Mapping[str, Scalar]
    regions: Mapping[str, Region]

    @property
    def cut(self) -> tuple[bool, ...]:
        """Flags of the output arrays: their integers are cut from floats, whose last bits are not defined."""
        return tuple(
            isinstance(value, Cast) and value.operand.type.is_float and not value.type.is_float
            for name in self.pipeline.outputs
            for value in self.pipeline.stage(name).values
        )

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The images, in the order of the inputs."""
        return tuple(self.inputs[i.name].array for i in self.pipeline.inputs)


def at_estimates(pipeline: Pipeline, params: Mapping[str, Scalar]) -> Problem:
    """The problem that a document's estimates describe, on random images, always the same ones. Raises NoEstimate."""
    known = {p.name: p.default for p in pipeline.params if p.default is not None} | dict(params)
    return Problem(pipeline, estimates.images(pipeline, known), known, estimates.output_regions(pipeline))
