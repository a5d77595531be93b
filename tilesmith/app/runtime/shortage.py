"""Shortage of memory: the error of a call whose buffers there is no room for, with the largest of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilesmith.app.runtime.errors import RunError
from tilesmith.scheduler.analysis.estimated_bounds import estimated_regions
from tilesmith.scheduler.analysis.size_warnings import in_words, points
from tilesmith.scheduler.features.pipeline.required_regions import UnknownSize, required_regions
from tilesmith.scheduler.ir.pipeline.arguments import Region, Scalar
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise


def no_memory(
    pipeline: Pipeline,
    buffers: Iterable[tuple[str, int]],
    regions: Mapping[str, Region],
    params: Mapping[str, Scalar],
    images: Mapping[str, Region],
) -> RunError:
    """The error for a call that got no memory for its `buffers` (name and bytes at the estimates): the regions of its
    outputs and images, and its params, say what the largest one takes. Where a param is not told it is that of the
    estimates."""
    normal = normalise(pipeline)
    estimated = estimated_regions(normal)
    defaults = {p.name: p.default for p in pipeline.params if p.default is not None}
    try:
        needed = required_regions(normal, regions, {**defaults, **params}, images)
    except UnknownSize:
        needed = {}
    element = {s.name: max(t.bytes for t in s.types) for s in normal.stages}
    sizes: dict[str, int] = {}
    for name, size in buffers:
        whole = name in element and size >= points(estimated.get(name, ())) * element[name]  # no tile of a thread
        sizes[name] = points(needed[name]) * element[name] if whole and name in needed else size
    message = "the compiled code got no memory for its buffers"
    if sizes:
        largest = max(sizes, key=lambda name: (sizes[name], name))
        message += f": that of stage '{largest}' takes {in_words(sizes[largest])}"
    return RunError("out_of_memory", message)
