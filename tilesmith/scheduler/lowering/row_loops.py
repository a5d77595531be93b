"""The innermost loop over vectors of a group with stages in registers: which stages join it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import Index, maximum
from tilesmith.scheduler.ir.loop.program import Apart, If
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.group_plan import Level
from tilesmith.scheduler.lowering.loop_nest import written_out
from tilesmith.scheduler.lowering.open_group import OpenGroup
from tilesmith.scheduler.lowering.rotating_windows import RowLoop, fused_row


def joined_row(g: OpenGroup, n: int, level: Level, boxes: Mapping[str, Box]) -> None:
    """A row whose stages share the loop over vectors. Stages in rings join it where an iteration of the loop
    around computes one row of each; otherwise they are computed before it. Stages in registers that do not
    move along the row at its rate are computed where they are read."""
    here = [s for s in g.plan.stages if s.name in g.plan.members and g.plan.index(g.plan.members[s.name].compute) >= n]
    moving = {s.name: d for s in here if (d := _moving_dim(g, s, level.dim)) is not None}
    registers = [s for s in here if s.name in g.plan.registers]
    stored = [s for s in here if s.name not in g.plan.registers]
    inlined = {**g.sources.inlined, **{s.name: s for s in registers}}
    sources = Sources(inlined, g.sources.buffers, g.sources.params)
    rows = {s.name: _single_row(g, boxes[s.name], moving[s.name]) for s in stored if s.name in moving}
    rings = {
        name: (boxes[name], at)
        for name, at in rows.items()
        if at is not None and _fixed_margins(g, boxes, name, moving[name], level.dim)
    }
    if len(rings) < len(stored):
        rings = {}
        for stage in stored:
            g.compute(stage, g.plan.members[stage.name], boxes[stage.name], sources)
    streams = [s for s in here if s.name in rings or (s.name in g.plan.registers and s.name in moving)]
    order = tuple(dim_of(v.name) for v in reversed(g.plan.levels[n:]) if v.name == inner(v.dim))
    fused = RowLoop(
        output=g.plan.output,
        output_buffers=g.output_buffers,
        order=(*order, *(d for d in g.plan.output.dims if d not in order)),
        dim=level.dim,
        lanes=level.step or 1,
        box=dict(zip(g.plan.output.dims, boxes[g.plan.output.name], strict=True)),
        streams=streams,
        moving={s.name: moving[s.name] for s in streams},
        rings=rings,
        anchor=g.anchor,
        stream=g.plan.group.stream,
        room=g.plan.room,
    )
    _rows(g, sources, fused)


def _rows(g: OpenGroup, sources: Sources, fused: RowLoop) -> None:
    """The row with its output; in iterations that only fill windows, without."""
    b = g.builder
    waiting = [fused.box[d] for d in g.warm if d in fused.box and fused.box[d][0] != fused.box[d][1]]
    if not waiting:
        _output_row(g, sources, fused)
        return
    box = {d: (hi, hi) if (lo, hi) in waiting else (lo, hi) for d, (lo, hi) in fused.box.items()}
    # rows ahead of the first that is due are left behind
    due = {name: (ring, tuple(_last_row(ring, fused.moving[name]))) for name, (ring, _) in fused.rings.items()}
    with b.scope() as whole:
        _output_row(g, sources, replace(fused, box=box, rings=due))
    with b.scope() as filling:
        if fused.rings:
            fused_row(b, sources, replace(fused, box=box, emit_output=False))
    b.emit(If(tuple(hi - lo for lo, hi in waiting), tuple(whole), None, tuple(filling)))


def _output_row(g: OpenGroup, sources: Sources, fused: RowLoop) -> None:
    """The row, its dims to unroll written out where they have the extents expected, else as loops."""
    b = g.builder
    known = written_out(fused.box, g.plan.unrolled())
    if known is None:
        fused_row(b, sources, fused)
        return
    fixed, asked = known
    unrolled = replace(fused, box={**fused.box, **fixed}, unroll=frozenset(fixed))
    if not asked:
        fused_row(b, sources, unrolled)
        return
    with b.scope() as as_expected:
        fused_row(b, sources, unrolled)
    with b.scope() as otherwise:
        fused_row(b, sources, replace(fused, seldom=True))
    b.emit(If(asked, tuple(as_expected), None, (Apart(tuple(otherwise), seldom=True),)))


def _moving_dim(g: OpenGroup, stage: Stage, dim: str) -> int | None:
    """The one dim of `stage` that follows `dim` step for step."""
    follow = [d for d, dims in enumerate(g.plan.follows[stage.name]) if dim in dims]
    if len(follow) != 1:
        return None
    span = g.plan.spans[stage.name][follow[0]]
    return follow[0] if span.known and span.var == dim and span.rate == 1 else None


def _fixed_margins(g: OpenGroup, boxes: Mapping[str, Box], name: str, d: int, dim: str) -> bool:
    """Whether a row of `name` reaches beyond the output's by the same elements at every size."""
    row = boxes[g.plan.output.name][g.plan.output.dims.index(dim)]
    return all((a - b).is_const for a, b in zip(boxes[name][d], row, strict=True))


def _last_row(box: Box, moving: int) -> list[Index]:
    return [hi for d, (_, hi) in enumerate(box) if d != moving]


def _single_row(g: OpenGroup, box: Box, moving: int) -> tuple[Index, ...] | None:
    """The coordinates, in the dims other than `moving`, of the one row of `box` that is new; None where there
    may be several. Before its first row is due a stage computes that row ahead of time."""
    at = []
    for d, (lo, hi) in enumerate(box):
        if d == moving:
            continue
        if lo == hi:
            at.append(hi)
        elif (start := g.row_by_row.get(lo)) is not None:
            at.append(g.builder.let(maximum(hi, start), "row"))
        else:
            return None
    return tuple(at)
