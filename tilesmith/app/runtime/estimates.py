"""Inputs made up for a pipeline, of the sizes it is planned for: the same ones every time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tilesmith.app.runtime.axes import channel_dim
from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.features.pipeline.required_regions import UnknownSize, required_regions
from tilesmith.scheduler.ir.pipeline.arguments import Image, Region, Scalar, table_of
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.rewrites.passes import normalise


class NoEstimate(TilesmithError):
    """The size of an input can be neither inferred nor read from the document."""

    code = "bad_argument"


def input_regions(pipeline: Pipeline, params: Mapping[str, Scalar]) -> dict[str, Region]:
    """(min, extent) per dim of every input at the estimates: the document's own, otherwise what the estimated
    outputs read, with the surroundings that a boundary would have filled in."""
    params = {p.name: p.default for p in pipeline.params if p.default is not None} | dict(params)
    known = {i.name: e for i in pipeline.inputs if (e := pipeline.estimate(i.name)) is not None}
    bare = replace(pipeline, inputs=tuple(i if i.name in known else replace(i, boundary=None) for i in pipeline.inputs))
    try:
        required = required_regions(normalise(bare), output_regions(pipeline), params, known)
    except UnknownSize:
        names = ", ".join(i.name for i in pipeline.inputs if i.name not in known)
        raise NoEstimate(
            f"what is read of {names} depends on its own size: add it to the document's estimates"
        ) from None
    nothing = {i.name: ((0, 1),) * len(i.dims) for i in pipeline.inputs}
    return nothing | {i.name: required[i.name] for i in pipeline.inputs if i.name in required} | known


def channels(pipeline: Pipeline, image: Input, params: Mapping[str, Scalar]) -> int | None:
    """The number of channels that the pipeline is planned for in a picture passed as `image`; None where that is not
    known."""
    dim = channel_dim(image.dims)
    if dim is None:
        return None
    try:
        low, extent = input_regions(pipeline, params)[image.name][image.dims.index(dim)]
    except NoEstimate:
        return None
    return low + extent


def output_regions(pipeline: Pipeline) -> dict[str, Region]:
    """(min, extent) per dim of every output at the estimates."""
    return {name: region for name in pipeline.outputs if (region := pipeline.estimate(name)) is not None}


def images(pipeline: Pipeline, params: Mapping[str, Scalar]) -> dict[str, Image]:
    """A random image for every input: floats in [0, 1), integers over their whole range, seeded by the names.

    A float input of more than three dims is taken for the weights of layers of a network.
    """
    made = {}
    for name, region in input_regions(pipeline, params).items():
        if (table := table_of(pipeline.input(name))) is not None:
            made[name] = table
            continue
        digest = hashlib.sha256(f"{pipeline.name}/{name}".encode()).digest()
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))
        shape = tuple(extent for _, extent in reversed(region))
        made[name] = Image(_random(rng, pipeline.input(name).type, shape), tuple(low for low, _ in region))
    return made


def largest_weight(shape: tuple[int, ...]) -> float:
    """Weights from its negative to it keep the magnitude from layer to layer, where the last three axes are summed over
    (He et al. 2015, Delving Deep into Rectifiers)."""
    return math.sqrt(6 / math.prod(shape[-3:]))


def _random(rng: np.random.Generator, type_: ScalarType, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[Any]]:
    if type_.is_float and len(shape) > 3:
        return (largest_weight(shape) * (2 * rng.random(shape, dtype=np.float32) - 1)).astype(type_.numpy)
    if type_.is_float:
        return rng.random(shape, dtype=np.float32).astype(type_.numpy)
    if type_.kind == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    integers: np.ndarray[Any, np.dtype[Any]] = rng.integers(type_.min, type_.max, shape, type_.numpy, endpoint=True)
    return integers
