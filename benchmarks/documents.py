"""Pipelines by the name of a shipped one or by the path of a document, at the sizes of its estimates or at others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from benchmarks.drawing import drawn
from scheduler import pipelines
from scheduler.lang.document import load_text
from scheduler.lang.pipeline import Pipeline

DRAWN = re.compile(r"drawn_(?P<seed>\d+)")
SIZED = re.compile(r"(?P<name>.+)@(?P<x>\d+)x(?P<y>\d+)")


def pipeline_of(name_or_path: str) -> Pipeline:
    """The shipped pipeline of that name, the random one that is drawn from the seed in `drawn_SEED`, or the document in
    that file; `NAME@WIDTHxHEIGHT` has its estimates changed to images of that size. Raises DocumentError, OSError."""
    if sized := SIZED.fullmatch(name_or_path):
        return at_size(pipeline_of(sized["name"]), int(sized["x"]), int(sized["y"]))
    if name_or_path in pipelines.names():
        return pipelines.load(name_or_path)
    if random := DRAWN.fullmatch(name_or_path):
        return drawn(int(random["seed"]))
    path = Path(name_or_path)
    return load_text(path.read_bytes(), yaml=path.suffix != ".json")


def drawn_name(seed: int) -> str:
    """The name of the random pipeline of that seed."""
    return f"drawn_{seed}"


def at_size(pipeline: Pipeline, width: int, height: int) -> Pipeline:
    """`pipeline` with its largest estimate in x of that width, in y of that height; all others keep their distance."""
    dims = {i.name: i.dims for i in pipeline.inputs} | {s.name: s.dims for s in pipeline.stages}
    spans = [(d, span) for name, region in pipeline.estimates for d, span in zip(dims[name], region, strict=True)]
    grown = {
        along: size - max(extent for d, (_, extent) in spans if d == along)
        for along, size in (("x", width), ("y", height))
        if any(d == along for d, _ in spans)
    }
    regions = {
        name: tuple((low, extent + grown.get(d, 0)) for d, (low, extent) in zip(dims[name], region, strict=True))
        for name, region in pipeline.estimates
    }
    return replace(pipeline, estimates=tuple(regions.items()))
