"""Arguments of a pipeline: images, scalars and regions, checked to fit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tilesmith.scheduler.errors import TilesmithError
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Param, Pipeline
from tilesmith.scheduler.ir.pipeline.semantics import Array
from tilesmith.scheduler.ir.pipeline.types import INT32

Scalar: TypeAlias = int | float | bool
Region: TypeAlias = tuple[tuple[int, int], ...]  # (min, extent) per dim


class RegionError(TilesmithError):
    """An input has no boundary and does not cover what the pipeline reads of it."""

    code = "region_outside_input"


class ArgumentError(TilesmithError):
    """An image, a parameter or a region does not fit the pipeline."""

    code = "bad_argument"


@dataclass(frozen=True)
class Image:
    """Pixels and the point of the grid that they start at.

    `array`'s axes are the reverse of the dims (dims [x, y, c] is shape (C, H, W)); `min` is in the order of the dims.
    """

    array: Array
    min: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """Sizes in the order of the dims."""
        return tuple(reversed(self.array.shape))


def table_of(image: Input) -> Image | None:
    """The values that the document has of an input, None where it has none."""
    if image.table is None:
        return None
    shape = tuple(extent for _, extent in reversed(image.table.region))
    array = np.array(image.table.values, image.type.numpy).reshape(shape)
    return Image(array, tuple(lo for lo, _ in image.table.region))


def checked_images(pipeline: Pipeline, inputs: Mapping[str, Image]) -> dict[str, Image]:
    """`inputs` and tables that are not among them, or ArgumentError where they are not the pipeline's: names, types,
    dims."""
    inputs = {i.name: image for i in pipeline.inputs if (image := table_of(i)) is not None} | dict(inputs)
    _same_names("input", {i.name for i in pipeline.inputs}, set(inputs))
    for i in pipeline.inputs:
        image = inputs[i.name]
        if image.array.dtype != i.type.numpy:
            raise ArgumentError(f"input {i.name} is {i.type}, the image is {image.array.dtype}")
        if image.array.ndim != len(i.dims) or len(image.min) != len(i.dims):
            raise ArgumentError(f"input {i.name} has {len(i.dims)} dims, the image has {image.array.ndim}")
        if image.array.size == 0:
            raise ArgumentError(f"input {i.name}: the image is empty")
        for dim, place in zip(i.dims, zip(image.min, image.extent, strict=True), strict=True):
            _within_grid(f"input {i.name}", dim, *place)
    return inputs


def checked_params(pipeline: Pipeline, params: Mapping[str, Scalar]) -> dict[str, Array]:
    """Every param's value as a 0-d array of its type, defaults filled in, or ArgumentError: it is not of the type or
    outside of what the param's `min` and `max` allow, as NaN is wherever there is one of them."""
    passed = [p for p in pipeline.params if p.value is None]
    given = {p.name: p.default for p in passed if p.default is not None} | dict(params)
    _same_names("param", {p.name for p in passed}, set(given))
    for p in passed:
        value = given[p.name]
        if not p.type.is_float and not (p.type.min <= value <= p.type.max and int(value) == value):
            raise ArgumentError(f"param {p.name} is {p.type}, the value is {value}")
        lo, hi = p.ends
        made = float(semantics.constant(value, p.type)) if p.type.is_float else value
        if (lo is not None and not made >= lo) or (hi is not None and not made <= hi):
            raise ArgumentError(f"param {p.name}: {value} is outside of {_range(p)}")
    return {p.name: semantics.constant(given[p.name], p.type) for p in passed}


def _range(p: Param) -> str:
    return f"{'' if p.min is None else p.min}..{'' if p.max is None else p.max}"


def checked_regions(pipeline: Pipeline, regions: Mapping[str, Region]) -> dict[str, Region]:
    """`regions`, or ArgumentError where they are not regions of the pipeline's outputs."""
    for name, region in regions.items():
        if name not in pipeline.outputs:
            raise ArgumentError(f"{name} is not an output of {pipeline.name}")
        stage = pipeline.stage(name)
        if len(region) != len(stage.dims):
            raise ArgumentError(f"output {name} has {len(stage.dims)} dims, the region has {len(region)}")
        for dim, (lo, extent) in zip(stage.dims, region, strict=True):
            if extent < 1:
                raise ArgumentError(f"output {name}, dim {dim}: the region is empty")
            _within_grid(f"output {name}", dim, lo, extent)
    return dict(regions)


def _within_grid(what: str, dim: str, lo: int, extent: int) -> None:
    if lo < INT32.min or lo + extent - 1 > INT32.max:
        raise ArgumentError(f"{what}, dim {dim}: {lo}..{lo + extent - 1} is beyond 32-bit coordinates")


def _same_names(what: str, wanted: set[str], given: set[str]) -> None:
    for name in sorted(wanted - given):
        raise ArgumentError(f"{what} {name} is missing")
    for name in sorted(given - wanted):
        raise ArgumentError(f"there is no {what} {name}")
