"""Pipelines by the name of a shipped one or by the path of a document, at the sizes of its estimates or at others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from benchmarks.corpus import registry
from benchmarks.drawing import drawn
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

DRAWN = re.compile(r"drawn_(?P<seed>\d+)")
NEAR = 0.75
"""The share of the largest extent from which on what is longer is of the same level of a pyramid."""
TABLE = 16
"""The longest extent of a table in pixels' dims."""
SMALL = (96, 64)
"""The size of images of a random pipeline that the interpreter computes in reasonable time."""
SIZED = re.compile(r"(?P<name>.+)@(?P<x>\d+)x(?P<y>\d+)")


def pipeline_of(name_or_path: str) -> Pipeline:
    """The shipped pipeline of that name or that of the corpus, the random one that is drawn from the seed in
    `drawn_SEED`, or the document in that file; `NAME@WIDTHxHEIGHT` has its estimates changed to images of that size,
    `NAME@small` is one of the corpus or a random one at sizes for the interpreter. Raises DocumentError, OSError."""
    if name_or_path.endswith(registry.SMALL_SUFFIX):
        return _small(name_or_path.removesuffix(registry.SMALL_SUFFIX))
    if sized := SIZED.fullmatch(name_or_path):
        return at_size(pipeline_of(sized["name"]), int(sized["x"]), int(sized["y"]))
    if name_or_path in pipelines.names():
        return pipelines.load(name_or_path)
    if random := DRAWN.fullmatch(name_or_path):
        return drawn(int(random["seed"]))
    if name_or_path in registry.cases():
        return registry.cases()[name_or_path].pipeline()
    path = Path(name_or_path)
    return load_text(path.read_bytes(), yaml=path.suffix != ".json")


def _small(name: str) -> Pipeline:
    if random := DRAWN.fullmatch(name):
        return drawn(int(random["seed"]), SMALL)
    return registry.cases()[name].pipeline(small=True)


def drawn_name(seed: int) -> str:
    """The name of the random pipeline of that seed."""
    return f"drawn_{seed}"


def at_size(pipeline: Pipeline, width: int, height: int) -> Pipeline:
    """`pipeline` with its largest estimate in x of that width, in y of that height. Those near the largest keep their
    distance, a coarser level's keep their proportion to it, and tables stay as they are."""
    dims = {i.name: i.dims for i in pipeline.inputs} | {s.name: s.dims for s in pipeline.stages}
    spans = [(d, span) for name, region in pipeline.estimates for d, span in zip(dims[name], region, strict=True)]
    sizes = {
        along: (max(extent for d, (_, extent) in spans if d == along), size)
        for along, size in (("x", width), ("y", height))
        if any(d == along for d, _ in spans)
    }
    regions = {
        name: tuple(
            (low, _sized(extent, *sizes[d]) if d in sizes else extent)
            for d, (low, extent) in zip(dims[name], region, strict=True)
        )
        for name, region in pipeline.estimates
    }
    return replace(pipeline, estimates=tuple(regions.items()))


def _sized(extent: int, largest: int, size: int) -> int:
    """The extent where the largest is of that size."""
    if extent <= TABLE < largest:
        return extent
    return extent + size - largest if extent > NEAR * largest else -(-extent * size // largest)
