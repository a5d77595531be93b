"""The problem of a contest: a pipeline, the data it runs on, the regions asked of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from tilesmith.app.runtime.estimates import largest_weight
from tilesmith.scheduler.analysis.estimated_bounds import estimated_regions
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.ir.pipeline.expressions import Cast
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.rewrites.passes import normalise

CHANNELS = 4
"""Channels of an image with a boundary, where nothing says how many."""
Region = tuple[tuple[int, int], ...]
"""(min, extent) per dim, in the order of the document."""


@dataclass(frozen=True)
class Problem:
    """A pipeline at the sizes of its estimates. Arrays have the axes reversed: dims [x, y] is shape (H, W)."""

    pipeline: Pipeline
    inputs: dict[str, np.ndarray]
    input_regions: dict[str, Region]
    params: dict[str, int | float | bool]
    output_regions: dict[str, Region]
    document: str = ""  # the name or path by which another process finds the pipeline

    @property
    def moved_bytes(self) -> int:
        """The bytes that have to move whatever the schedule: every input read once, every output written once."""
        return sum(a.nbytes for a in self.inputs.values()) + self.output_bytes

    @property
    def output_bytes(self) -> int:
        """The bytes of all outputs, every component of a tuple."""
        return sum(
            int(np.prod([n for _, n in region])) * t.bytes
            for name, region in self.output_regions.items()
            for t in self.pipeline.stage(name).types
        )


def at_estimates(pipeline: Pipeline, seed: int = 0) -> Problem:
    """The problem that the document's estimates describe, on random data that a seed fixes.

    Inputs without an estimate have what the outputs require; where a boundary makes any size good, the outputs' extents
    in dims of the same name, or what a schedule is made for if that is more.
    """
    outputs = {}
    for name in pipeline.outputs:
        region = pipeline.estimate(name)
        if region is None:
            raise ValueError(f"output {name} has no estimate")
        outputs[name] = region
    return at_regions(pipeline, outputs, seed)


def at_regions(pipeline: Pipeline, outputs: dict[str, Region], seed: int = 0, use_estimates: bool = True) -> Problem:
    """The problem of computing those regions of the outputs."""
    params = {p.name: p.default if p.default is not None else p.type.numpy.type(1).item() for p in pipeline.params}
    estimates = dict(pipeline.estimates) if use_estimates else {}
    regions: dict[str, Region] = {i.name: estimates[i.name] for i in pipeline.inputs if i.name in estimates}
    # Those that may have any size come first: what is required of the others may depend on it.
    for i in sorted((i for i in pipeline.inputs if i.name not in regions), key=lambda i: i.boundary is None):
        if i.boundary is not None:
            regions[i.name] = _like_outputs(pipeline, i, outputs)
        else:
            required = required_regions(normalise(pipeline), outputs, params, regions)
            regions[i.name] = required.get(i.name, ((0, 1),) * len(i.dims))  # nothing may read it
    inputs = {
        i.name: random_array(i.type, tuple(n for _, n in reversed(regions[i.name])), _seed(seed, i.name))
        for i in pipeline.inputs
    }
    return Problem(pipeline, inputs, regions, params, outputs)


def cut_from_floats(pipeline: Pipeline, output: str) -> bool:
    """True if the output is wide integers cut from floats: rounding takes them across a step now and then."""
    values = pipeline.stage(output).values
    return any(isinstance(v, Cast) and v.operand.type.is_float and v.type.bits >= 16 for v in values)


def random_array(t: ScalarType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Uniform values: all of an integer type of up to 16 bits, 16 bits of a wider one, [0, 1) of floats.

    Floats of more than three dims are taken for the weights of layers of a network: small, of either sign.
    """
    rng = np.random.default_rng(seed)
    if t.is_float and len(shape) > 3:
        limit = largest_weight(shape)
        return rng.uniform(-limit, limit, shape).astype(t.numpy)
    if t.is_float:
        return rng.random(shape, dtype=t.numpy.type)
    if t.kind == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    high = min(t.max, 65535)
    return rng.integers(max(t.min, -32768), high, shape, dtype=np.int64, endpoint=True).astype(t.numpy)


def _seed(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little")


def _like_outputs(pipeline: Pipeline, i: Input, outputs: dict[str, Region]) -> Region:
    """The extents that the outputs have in dims of the same name, CHANNELS where none has; what a schedule is made for
    if that is more."""
    known = {
        d: e
        for name in reversed(pipeline.outputs)
        for d, e in zip(pipeline.stage(name).dims, outputs[name], strict=True)
    }
    sized = normalise(replace(pipeline, estimates=tuple(outputs.items())))
    planned = dict(zip(i.dims, estimated_regions(sized).get(i.name, ()), strict=False))
    return tuple(max(known.get(d, (0, CHANNELS)), planned.get(d, (0, 1)), key=lambda region: region[1]) for d in i.dims)
