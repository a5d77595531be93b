"""Warnings of sizes: what the estimates of a pipeline do not go together with. Nothing is wrong of necessity: estimates
are estimates, and a buffer may have to be large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.bounds_inference import told, variables
from tilesmith.scheduler.analysis.estimated_bounds import Bounds, Estimates, Region, estimates, footprint_of
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.plan import Plan

_NAMED = 3
"""Buffers that a warning names, at most."""


def size_warnings(plan: Plan, buffers: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Sentences on what does not go together at the estimates of a plan: inputs, then `buffers`."""
    return (*input_warnings(plan.pipeline), *buffer_warnings(plan, buffers))


def input_warnings(pipeline: Pipeline) -> tuple[str, ...]:
    """One sentence for each dim of an input of a normal pipeline that is read beyond its estimate, with the index that
    reads furthest."""
    images = {i.name: i for i in pipeline.inputs if pipeline.estimate(i.name) is not None}
    if not images:
        return ()
    try:
        found = estimates(pipeline)
    except ScheduleError as error:
        return (str(error),)
    furthest: dict[tuple[str, int], tuple[int, str]] = {}
    for image, d, (lo, hi), where in _reads(pipeline, found, images):
        first, extent = (pipeline.estimate(image) or ())[d]
        beyond = max(first - lo, hi - (first + extent - 1))
        if beyond > furthest.get((image, d), (0, ""))[0]:
            last = first + extent - 1
            text = f"input '{image}' is needed from {lo} to {hi} in dim '{images[image].dims[d]}' at the estimates, "
            furthest[image, d] = beyond, f"{text}and is estimated to have {first} to {last}: {where}"
    order = [i.name for i in pipeline.inputs]
    return tuple(furthest[key][1] for key in sorted(furthest, key=lambda k: (order.index(k[0]), k[1])))


def _reads(pipeline: Pipeline, found: Estimates, images: Mapping[str, Input]) -> Iterable[tuple[str, int, Bounds, str]]:
    """The places of inputs that accesses read, dim by dim, with the words for where that is."""
    numbers = told(found.symbols)
    for stage in pipeline.stages:
        region = found.regions.get(stage.name)
        reading = [a for a in accesses(stage) if a.producer in images] if region is not None else []
        if region is None or not reading:
            continue
        env = {**numbers, **variables(stage, tuple((const(lo), const(lo + n - 1)) for lo, n in region))}
        for a in reading:
            for d, bounds in enumerate(footprint_of(a, env)):
                if bounds is not None:
                    yield a.producer, d, bounds, _where(a, d, stage.made_of or stage.name)


def _where(a: StageAccess, d: int, stage: str) -> str:
    return f"stage '{stage}' reads it at {to_text(a.access.indices[d])}"


def buffer_warnings(plan: Plan, buffers: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """A sentence on the `buffers` (name and bytes at the estimates) that are larger than all inputs and outputs
    together, if there are any; the largest of them by name. Those of stages that rewrites added are not among them: who
    wrote the pipeline cannot write them otherwise."""
    pipeline = plan.pipeline
    try:
        regions = estimates(pipeline).regions
    except ScheduleError:
        return ()
    held = {i.name: i.type.bytes for i in pipeline.inputs}
    held |= {name: sum(t.bytes for t in pipeline.stage(name).types) for name in pipeline.outputs}
    images = sum(points(regions[name]) * size for name, size in held.items() if name in regions)
    made_of = {s.name: s.made_of or s.name for s in pipeline.stages}
    names = {s.name for s in plan.written.stages}
    largest: dict[str, int] = {}
    for name, size in buffers:
        written = made_of.get(name, name)
        if written in names and size > images:
            largest[written] = max(size, largest.get(written, 0))
    large = sorted(((size, name) for name, size in largest.items()), key=lambda b: (-b[0], b[1]))
    if not large:
        return ()
    named = [f"that of stage '{name}' takes {in_words(size)}" for size, name in large[:_NAMED]]
    more = f", and {len(large) - _NAMED} more do" if len(large) > _NAMED else ""
    return (
        f"at the estimates {'a buffer takes' if len(large) == 1 else 'buffers take'} more memory than all inputs and "
        f"outputs together, {in_words(images)}: {', '.join(named)}{more}",
    )


def points(region: Region) -> int:
    """The points of a box."""
    return prod(n for _, n in region)


def in_words(size: int) -> str:
    """A number of bytes as people read it: of three digits, rounded."""
    value, unit = float(size), "bytes"
    for larger in ("KB", "MB", "GB", "TB", "PB", "EB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{size} bytes" if unit == "bytes" else f"{value:.3g} {unit}"
