"""What the search knows of a pipeline: stages, reads, boxes and arithmetic, found once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cost_models.counts import Operations
from scheduler.analysis.accesses import StageAccess, accesses
from scheduler.analysis.arithmetic import element_bytes_used, operations
from scheduler.analysis.graph import StageGraph, stage_graph
from scheduler.analysis.normalise import normalise
from scheduler.analysis.regions import Region, estimated_regions
from scheduler.analysis.spans import Span, compose, hull
from scheduler.lang.pipeline import Input, Pipeline, Stage


@dataclass(frozen=True, slots=True)
class Read:
    """What one stage reads of one producer, all its accesses together.

    `spans` has one span per dim of the producer, in the stage's own dims; not known where the accesses do not
    move together. `points` counts the different elements read for one point of the stage, at most.
    """

    producer: str
    spans: tuple[Span, ...]
    points: int


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage or input: `region` is its (min, extent) per dim at the estimates, `bytes_per_point` of all its
    values in memory, `computed_bytes` those of the widest type that it computes with."""

    name: str
    is_input: bool
    dims: tuple[str, ...]
    storage: tuple[str, ...]
    region: Region
    bytes_per_point: int
    computed_bytes: int
    operations: Operations
    reads: tuple[Read, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(extent for _, extent in self.region)

    @property
    def root_points(self) -> int:
        """Points of the whole stage, each computed once (TACO 2019, Eq. 4)."""
        points = 1
        for extent in self.extents:
            points *= extent
        return points

    def extent(self, dim: str) -> int:
        return self.extents[self.dims.index(dim)]


@dataclass(frozen=True, slots=True)
class Facts:
    """A normalised pipeline, its graph of live stages, and the facts of every live stage and input read."""

    pipeline: Pipeline
    graph: StageGraph
    stages: dict[str, StageFacts]
    definitions: dict[str, Stage]


def gather(pipeline: Pipeline) -> Facts:
    """The facts of `pipeline` (with boundaries or without: they are normalised here)."""
    pipeline = normalise(pipeline)
    graph = stage_graph(pipeline)
    found = {s.name: accesses(s) for s in pipeline.stages if s.name in graph.consumers}
    regions = estimated_regions(pipeline, found)
    definitions = {s.name: s for s in pipeline.stages}
    stages = {i.name: _of_input(i, regions[i.name]) for i in pipeline.inputs if i.name in regions}
    for name in graph.stages:
        stages[name] = _of_stage(definitions[name], regions[name], found[name])
    return Facts(pipeline, graph, stages, definitions)


def _of_input(image: Input, region: Region) -> StageFacts:
    size = image.type.bytes
    return StageFacts(image.name, True, image.dims, image.storage, region, size, size, Operations(), ())


def _of_stage(stage: Stage, region: Region, found: tuple[StageAccess, ...]) -> StageFacts:
    return StageFacts(
        stage.name,
        False,
        stage.dims,
        stage.storage,
        region,
        sum(t.bytes for t in stage.types),
        element_bytes_used(stage),
        operations(stage),
        _merged(a for a in found if a.producer != stage.name),
    )


def _merged(found: Iterable[StageAccess]) -> tuple[Read, ...]:
    """One read a producer. Clamps are left out: what the search wants is where an index goes inside the image."""
    merged: dict[str, Read] = {}
    for a in found:
        spans = tuple(replace(s, clamps=()) if s.clamps else s for s in a.spans)
        read = Read(a.producer, spans, a.points if a.points is not None else 1)
        merged[a.producer] = together(merged[a.producer], read) if a.producer in merged else read
    return tuple(merged.values())


def together(a: Read, b: Read) -> Read:
    """Two reads of the same producer as one."""
    spans = tuple(s if s == t else hull(s, t) for s, t in zip(a.spans, b.spans, strict=True))
    return Read(a.producer, spans, a.points + b.points)


def inlined_read(read: Read, via: Read, dims: tuple[str, ...]) -> Read:
    """What a stage reads of `read.producer` through `via.producer` (with `dims`), which it computes inline and
    whose own read `read` is. Distinct positions: at most the product, and at most the box."""
    own = dict(zip(dims, via.spans, strict=True))
    spans = composed(read.spans, own)
    return Read(read.producer, spans, int(min(read.points * via.points, box_points(spans))))


def composed(spans: tuple[Span, ...], own: dict[str, Span]) -> tuple[Span, ...]:
    """`spans`, in the variables of a stage, in the variables that the stage's dims follow by `own`."""
    return tuple(s if s.var is None else compose(s, own[s.var]) for s in spans)


def box_points(spans: tuple[Span, ...]) -> float:
    """Elements of the box that one iteration reads; infinite where that is not known."""
    points = 1.0
    for s in spans:
        if not s.known:
            return float("inf")
        points *= s.extent(1)
    return points
