"""A schedule as a readable loop nest: what runs inside what, and where buffers live."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilesmith.scheduler.analysis.dependence import default_order
from tilesmith.scheduler.analysis.row_scans import paired_scans
from tilesmith.scheduler.analysis.update_sweeps import Sweep, sweeps, words_of_blocks
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives_of
from tilesmith.scheduler.ir.schedule.primitives.update_loops import update_words
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, UpdateLoops, dim_of, outer

INDENT = "  "
_HEAD = re.compile(r"(?:allocate and produce|produce|allocate|keep|update|group) (\w+)|(\w+)\(")


def to_text(plan: Plan) -> str:
    """The loops of every group, outermost first, each stage at its compute level, each buffer at its store level.
    Stages that factors, separations and joinings make are there, updates that are folded into values are not."""
    pipeline, schedule = plan.pipeline, plan.schedule
    lines = [f"# {schedule.pipeline}, method {schedule.method}"]
    if schedule.degraded is not None:
        lines.append(f"# degraded: {' '.join(schedule.degraded.split())}")
    lines += [f"# {note}" for p in primitives_of(Schedule) for note in p.notes(p.of(schedule))]
    for group in schedule.groups:
        lines += ["", *_group(pipeline, group)]
    return "\n".join(lines) + "\n"


def stages_of_lines(text: str) -> tuple[str, ...]:
    """The stage that each line of a `to_text` is of: the one that the line names, or else that of the line around it;
    "" for lines outside of groups."""
    found: list[str] = []
    around: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.lstrip(" ")
        depth, head = len(line) - len(words), _HEAD.match(words)
        while around and (not words or around[-1][0] >= depth):
            around.pop()
        stage = head[1] or head[2] if head else around[-1][1] if around else ""
        around.append((depth, stage))
        found.append(stage)
    return tuple(found)


def _group(pipeline: Pipeline, group: Group) -> Iterator[str]:
    inlined = [p.stage for p in group.placements if p.compute == INLINE]
    notes = [f"inline: {', '.join(inlined)}"] if inlined else []
    notes += [note for p in primitives_of(Group) for note in p.notes(p.of(group))]
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
    beside = "; ".join(filter(None, (p.assignment_note(p.of(group)) for p in primitives_of(Group))))
    yield f"{INDENT * depth}{group.output}({', '.join(stage.dims)}) = ...{f'  # {beside}' if beside else ''}"
    tiled = sum(loop == outer(dim_of(loop)) for loop in group.loops)
    yield from _updates(stage, group.updates, 2 + tiled)


def _is_output(pipeline: Pipeline, name: str) -> bool:
    return name in pipeline.outputs


def _loop(group: Group, loop: str) -> str:
    said = [(p, p.of(group)) for p in primitives_of(Group)]
    words = [word for p, value in said for word in p.loop_words(value, loop)]
    return f"{' '.join([*words, 'for'])} {loop}{''.join(p.loop_size(value, loop) for p, value in said)}"


def _allocation(placement: Placement) -> str:
    line = f"allocate {placement.stage}"
    for primitive in primitives_of(Placement):
        line = primitive.allocation(placement, line)
    return line


def _produce(pipeline: Pipeline, placement: Placement, depth: int) -> Iterator[str]:
    stage = pipeline.stage(placement.stage)
    sliding = ", what is new of it" if placement.compute != placement.store else ""
    yield f"{INDENT * depth}produce {placement.stage}{sliding}:"
    for dim in reversed(placement.order or stage.storage):
        depth += 1
        words = [word for p in primitives_of(Placement) for word in p.loop_words(p.of(placement), dim)]
        yield f"{INDENT * depth}{' '.join([*words, 'for'])} {dim}:"
    yield f"{INDENT * (depth + 1)}{placement.stage}({', '.join(stage.dims)}) = ..."
    yield from _updates(stage, placement.updates, depth - len(stage.dims) + 1)


def _updates(stage: Stage, scheduled: tuple[UpdateLoops, ...], depth: int) -> Iterator[str]:
    """Every update with its loops, outermost first, and what runs block by block with it."""
    every = scheduled or tuple(UpdateLoops(default_order(stage, update)) for update in stage.updates)
    paired, swept = paired_scans(stage, every), {n: s for s in sweeps(stage, every) for n in s.updates}
    for n, loops in enumerate(every):
        with_others = []
        if n - 1 in paired:
            with_others.append(f"each block of rows after update {n - 1}")
        if n in swept:
            with_others.append(_block(swept[n], n))
        note = f"  # {'; '.join(with_others)}" if with_others else ""
        yield f"{INDENT * depth}update {stage.name}:{note}"
        for inside, loop in enumerate(reversed(loops.loops), start=1):
            yield f"{INDENT * (depth + inside)}{' '.join([*update_words(loops, loop), 'for'])} {loop}:"
        yield f"{INDENT * (depth + len(loops.loops) + 1)}{stage.name}(...) = ..."


def _block(found: Sweep, update: int) -> str:
    """The blocks that an update has with others."""
    behind = found.behind[update - found.first]
    late = f", {behind} behind" if behind else ""
    first = f"update {found.first}" if found.first else "the values"
    return f"{words_of_blocks(found)}{late}, as all from {first} to update {found.updates[-1]}"
