"""Interleaving of channels: stages between images whose channels lie side by side lie like these, where all of them
compute all channels alike. Their rows are flat (see `analysis.flat_rows`): no vector is taken apart into channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.estimated_bounds import Region, estimates
from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS, PixelRead, Pixels, pixel_reads
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage


def interleaved(pipeline: Pipeline) -> Pipeline:
    """*Before*: stages lie as they were written. *After*: those that are no outputs, and that read and are read by
    stages with flat rows alone, lie as the interleaved images around them. *Legal when* always: the values are the
    same. *Ignores* images of so many channels, at the estimates, that vectors run along these."""
    images: tuple[Input | Stage, ...] = (*pipeline.inputs, *(s for s in pipeline.stages if s.name in pipeline.outputs))
    if all(len(i.dims) < len(Pixels._fields) or i.storage == i.dims for i in images):
        return pipeline
    moved = {
        n: replace(s, storage=(*pixels, *(d for d in s.storage if d not in pixels)))
        for n, pixels in _flat_stages(pipeline).items()
        if n not in pipeline.outputs and (s := pipeline.stage(n)).storage[:2] != pixels
    }
    regions = estimates(pipeline).regions if moved else {}
    few = {n: s for n, s in moved.items() if n in regions and 2 <= _channels(s, regions[n]) <= MOST_CHANNELS}
    return replace(pipeline, stages=tuple(few.get(s.name, s) for s in pipeline.stages)) if few else pipeline


def _channels(stage: Stage, region: Region) -> int:
    return region[stage.dims.index(stage.storage[0])][1]


def _flat_stages(pipeline: Pipeline) -> dict[str, Pixels]:
    """The stages with flat rows, and how the pixels of each then lie: the largest set in which each reads images that
    lie so, or others of it, and each that is no output is read by others of it alone."""
    owners: dict[str, Input | Stage] = {i.name: i for i in pipeline.inputs}
    owners.update((s.name, s) for s in pipeline.stages)
    layouts = {i.name: Pixels(*i.storage[:2]) for i in pipeline.inputs if len(i.dims) > 1 and i.storage != i.dims}
    stages: dict[str, Pixels] = {}
    for s in pipeline.stages:
        pixels = (
            Pixels(*s.storage[:2]) if s.name in pipeline.outputs and len(s.dims) > 1 else _followed(s, layouts, owners)
        )
        if pixels is not None and pixel_reads(s, pixels) is not None:
            layouts[s.name] = stages[s.name] = pixels
    readers: dict[str, set[str]] = {}
    for s in pipeline.stages:
        for a in accesses(s):
            readers.setdefault(a.producer, set()).add(s.name)
    while True:
        wrong = [n for n, p in stages.items() if not _fits(n, p, pipeline, stages, layouts, owners, readers)]
        if not wrong:
            return stages
        for name in wrong:
            del stages[name], layouts[name]


def _fits(
    name: str,
    pixels: Pixels,
    pipeline: Pipeline,
    stages: Mapping[str, Pixels],
    layouts: Mapping[str, Pixels],
    owners: Mapping[str, Input | Stage],
    readers: Mapping[str, set[str]],
) -> bool:
    stage = pipeline.stage(name)
    reads = pixel_reads(stage, pixels) or ()
    if name not in pipeline.outputs and not readers.get(name, set()) <= stages.keys():
        return False
    return bool(reads) and all(layouts.get(r.producer) == _names(r, owners) for r in reads)


def _names(read: PixelRead, owners: Mapping[str, Input | Stage]) -> Pixels:
    dims = owners[read.producer].dims
    return Pixels(dims[read.channel], dims[read.place])


def _followed(stage: Stage, layouts: Mapping[str, Pixels], owners: Mapping[str, Input | Stage]) -> Pixels | None:
    """The dims of `stage` that follow the pixels of the first image or stage with a layout that it reads."""
    for a in accesses(stage):
        of = layouts.get(a.producer)
        if of is None:
            continue
        dims = owners[a.producer].dims
        used = [[d for d in stage.dims if d in a.used[dims.index(own)]] for own in of]
        return Pixels(*(names[0] for names in used)) if all(len(names) == 1 for names in used) else None
    return None
