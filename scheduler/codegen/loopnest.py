"""A schedule as a readable loop nest: what runs inside what, and where buffers live."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.analysis.dependence import default_order
from scheduler.ir.pipeline.pipeline import Pipeline, Stage
from scheduler.ir.plan import Plan
from scheduler.ir.schedule.schedule import INLINE, Group, Placement, UpdateLoops, dim_of, inner, outer

INDENT = "  "


def to_text(plan: Plan) -> str:
    """The loops of every group, outermost first, each stage at its compute level, each buffer at its store level.
    Stages that factors, separations and joinings make are there, updates that are folded into values are not."""
    pipeline, schedule = plan.pipeline, plan.schedule
    lines = [f"# {schedule.pipeline}, method {schedule.method}"]
    if schedule.degraded is not None:
        lines.append(f"# degraded: {' '.join(schedule.degraded.split())}")
    for s in schedule.separations:
        through = "" if s.through is None else f" with {s.through} put in"
        lines.append(f"# {s.partial}: window {s.window} of {s.stage}{through}, the part along {s.dim}")
    for j in schedule.joinings:
        lines.append(f"# {j.joint}: {', '.join(j.stages)}, computed together")
    for group in schedule.groups:
        lines += ["", *_group(pipeline, group)]
    return "\n".join(lines) + "\n"


def _group(pipeline: Pipeline, group: Group) -> Iterator[str]:
    inlined = [p.stage for p in group.placements if p.compute == INLINE]
    notes = [f"inline: {', '.join(inlined)}"] if inlined else []
    notes += [f"asks for what it reads {group.prefetch} bytes ahead"] if group.prefetch else []
    yield f"group {group.output}" + (f"  # {'; '.join(notes)}" if notes else "")
    yield f"{INDENT}{'produce' if _is_output(pipeline, group.output) else 'allocate and produce'} {group.output}:"
    depth = 2
    for loop in reversed(group.loops):
        yield f"{INDENT * depth}{_loop(group, loop)}:"
        depth += 1
        for placement in group.placements:
            if placement.store == loop:
                yield f"{INDENT * depth}{_allocation(placement)}"
        for placement in group.placements:
            if placement.compute == loop:
                yield from _produce(pipeline, placement, depth)
    stage = pipeline.stage(group.output)
    past = "  # past the caches" if group.stream else ""
    yield f"{INDENT * depth}{group.output}({', '.join(stage.dims)}) = ...{past}"
    tiled = sum(loop == outer(dim_of(loop)) for loop in group.loops)
    yield from _updates(stage, group.updates, 2 + tiled)


def _is_output(pipeline: Pipeline, name: str) -> bool:
    return name in pipeline.outputs


def _loop(group: Group, loop: str) -> str:
    dim = dim_of(loop)
    tile = group.tile(dim)
    words = ["parallel"] if loop == group.parallel else []
    if loop == inner(dim) and group.vector is not None and group.vector.dim == dim:
        words.append(f"vectorised by {group.vector.lanes}")
    if loop == inner(dim) and dim in group.unroll:
        words.append("unrolled")
    size = ""
    if tile is not None:
        whole = tile.size is None
        if loop == outer(dim):
            size = " in 1 tile" if whole else f" in tiles of {tile.size}"
        else:
            size = " in whole extent" if whole else f" in {tile.size}"
    return f"{' '.join([*words, 'for'])} {loop}{size}"


def _allocation(placement: Placement) -> str:
    if placement.storage == "registers":
        return f"keep {placement.stage} in registers, rotating along the vectorised loop"
    slides = placement.fold and placement.compute != placement.store
    return f"allocate {placement.stage}" + (", folded to its window" if slides else "")


def _produce(pipeline: Pipeline, placement: Placement, depth: int) -> Iterator[str]:
    stage = pipeline.stage(placement.stage)
    sliding = ", what is new of it" if placement.compute != placement.store else ""
    yield f"{INDENT * depth}produce {placement.stage}{sliding}:"
    for dim in reversed(placement.order or stage.storage):
        depth += 1
        vector = placement.vector
        words = f"vectorised by {vector.lanes} for" if vector is not None and vector.dim == dim else "for"
        yield f"{INDENT * depth}{words} {dim}:"
    yield f"{INDENT * (depth + 1)}{placement.stage}({', '.join(stage.dims)}) = ..."
    yield from _updates(stage, placement.updates, depth - len(stage.dims) + 1)


def _updates(stage: Stage, scheduled: tuple[UpdateLoops, ...], depth: int) -> Iterator[str]:
    """Every update with its loops, outermost first."""
    for n, update in enumerate(stage.updates):
        loops = scheduled[n] if scheduled else UpdateLoops(default_order(stage, update))
        yield f"{INDENT * depth}update {stage.name}:"
        for inside, loop in enumerate(reversed(loops.loops), start=1):
            words = ["parallel"] if loop == loops.parallel else []
            if loops.vector is not None and loops.vector.dim == loop:
                words.append(f"vectorised by {loops.vector.lanes}")
            yield f"{INDENT * (depth + inside)}{' '.join([*words, 'for'])} {loop}:"
        yield f"{INDENT * (depth + len(loops.loops) + 1)}{stage.name}(...) = ..."
