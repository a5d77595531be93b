"""Layout of a call: what follows from the shapes and strides of its images, worked out once for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from tilesmith.app.inprocess.block import buffer_bytes
from tilesmith.app.inprocess.images import Array, check_shape
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.axes import channel_dim
from tilesmith.app.runtime.regions import default_regions
from tilesmith.scheduler.analysis.bounds_inference import bound_symbol, param_symbol, required_boxes
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.ir.index import Index, sym
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Region, Scalar
from tilesmith.scheduler.ir.pipeline.expressions import ParamRef, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.rewrites.passes import normalise

Shape: TypeAlias = tuple[int, ...]
_KEPT, _STRIDES_KEPT = 256, 16


@dataclass(frozen=True, slots=True)
class Output:
    """One array of results, a component of an output; `what` is its name in errors. `stored` is its shape in memory,
    the fastest dim last, `axes` the order that makes `shape` of it, None where they are in order."""

    name: str
    component: int | None
    what: str
    dtype: np.dtype[Any]
    shape: Shape
    stored: Shape
    axes: tuple[int, ...] | None

    def array(self) -> Array:
        """Memory for it."""
        made: Array = np.empty(self.stored, self.dtype)
        return made if self.axes is None else made.transpose(self.axes)


class Layout:
    """The regions of a call, of its `images` and of its outputs (`regions`); `outputs`, its arrays of results."""

    __slots__ = ("_item_bytes", "buffers", "images", "outputs", "regions")

    def __init__(self, pipeline: Pipeline, images: dict[str, Region], regions: dict[str, Region]) -> None:
        self.images, self.regions = images, regions
        self.outputs = tuple(_outputs(pipeline, regions))
        self._item_bytes = (*(i.type.bytes for i in pipeline.inputs), *(o.dtype.itemsize for o in self.outputs))
        self.buffers = lru_cache(_STRIDES_KEPT)(self._buffers)

    def _buffers(self, strides: tuple[Shape, ...]) -> bytes:
        """The buffers of images and results with these strides, in bytes; they have no data."""
        regions = [*self.images.values(), *(self.regions[output.name] for output in self.outputs)]
        parts = zip(regions, strides, self._item_bytes, strict=True)
        return b"".join([buffer_bytes(region, _elements(own, count)) for region, own, count in parts])


def _outputs(pipeline: Pipeline, regions: Mapping[str, Region]) -> Iterator[Output]:
    for name in pipeline.outputs:
        stage = pipeline.stage(name)
        extents = dict(zip(stage.dims, (n for _, n in regions[name]), strict=True))
        order = stage.storage[::-1]
        axes = tuple(order.index(d) for d in reversed(stage.dims))
        shape, stored = tuple(extents[d] for d in reversed(stage.dims)), tuple(extents[d] for d in order)
        for number, type_ in enumerate(stage.types):
            component = number if len(stage.types) > 1 else None
            what = f"output {name!r}" + ("" if component is None else f"[{component}]")
            in_order = order == stage.dims[::-1]
            yield Output(name, component, what, type_.numpy, shape, stored, None if in_order else axes)


class Layouts:
    """The layouts of calls of a pipeline. `bounds` are the params that regions may depend on."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.normal = normalise(pipeline)
        self.bounds = _params_of_bounds(self.normal) if pipeline.params else ()
        self.of = lru_cache(_KEPT)(self._of)

    def _of(
        self,
        shapes: tuple[Shape, ...],
        origins: tuple[tuple[str, tuple[int, ...]], ...],
        bounds: tuple[Scalar, ...],
        given: tuple[tuple[str, Region], ...],
    ) -> Layout:
        """The layout of images of these shapes, which begin at 0 where they have no origin, with these values of the
        params of bounds, for the regions that are given and the largest that there are of other outputs. Raises
        ArgumentError and RegionError."""
        for image, shape in zip(self.pipeline.inputs, shapes, strict=True):
            channels = estimates.channels(self.pipeline, image, self._values(bounds))
            check_shape(shape, image, channels, self._reads_all(image))
        begin, regions = dict(origins), dict(given)
        every = zip(self.pipeline.inputs, shapes, strict=True)
        images = {i.name: region_of(shape, begin.get(i.name)) for i, shape in every}
        for name, place in images.items():
            if any(low < INT32.min or low + extent - 1 > INT32.max for low, extent in place):
                raise ArgumentError(f"input {name!r} lies beyond 32-bit coordinates: pass a part of it")
        if len(regions) < len(self.pipeline.outputs):
            regions = self.largest(images, bounds) | regions
        return Layout(self.pipeline, images, regions)

    def _values(self, bounds: tuple[Scalar, ...]) -> dict[str, Scalar]:
        """Values of all params: those that bounds do not depend on may have any."""
        some = {p.name: next((v for v in (p.default, p.min) if v is not None), 1) for p in self.pipeline.params}
        return some | dict(zip(self.bounds, bounds, strict=True))

    def largest(self, images: Mapping[str, Region], bounds: tuple[Scalar, ...]) -> dict[str, Region]:
        """The largest regions of the outputs that images of these regions allow. Raises RegionError."""
        values = self._values(bounds)

        def query(regions: Mapping[str, Region]) -> Mapping[str, Region]:
            return required_regions(self.normal, regions, values, images)

        return default_regions(query, self.pipeline, images, values)

    def _reads_all(self, image: Input) -> bool:
        """True if the channels that are read of an image do not follow from the region that is asked for: no output has
        such a dim."""
        dim = channel_dim(image.dims)
        return not any(dim in self.pipeline.stage(name).dims for name in self.pipeline.outputs)


def region_of(shape: Shape, origin: tuple[int, ...] | None = None) -> Region:
    """(min, extent) per dim of an array of that shape, which begins at `origin`, or at 0."""
    return tuple(zip(origin or (0,) * len(shape), reversed(shape), strict=True))


def _elements(strides: Shape, item_bytes: int) -> tuple[int, ...]:
    """Strides in elements, in the order of the dims."""
    return tuple(stride // item_bytes for stride in reversed(strides))


def _params_of_bounds(normal: Pipeline) -> tuple[str, ...]:
    """The params that the regions which a normal pipeline needs may depend on."""
    symbols: set[str] = set()
    number = count()

    def seen(bound: Index, _: str) -> Index:
        symbols.update(bound.symbols())
        return bound if bound.is_short else sym(f"bound.{next(number)}")

    outputs = {}
    for name in normal.outputs:
        ends = [tuple(sym(bound_symbol(name, which, d)) for which in ("min", "max")) for d in normal.stage(name).dims]
        outputs[name] = tuple((low, high) for low, high in ends)
    required_boxes(normal, outputs, seen)
    found: set[str] = set()
    for p in normal.params:
        if param_symbol(p.name) in symbols:
            found |= {p.name} if p.value is None else {n.name for n in walk(p.value) if isinstance(n, ParamRef)}
    return tuple(sorted(found))
