"""The innermost loop over vectors of a group with stages in registers: which stages join it."""

from __future__ import annotations

from collections.abc import Mapping

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import Index, maximum
from tilesmith.scheduler.ir.loop.computations import DimRange, FusedRow, RowStage, UnrolledDim
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Vector, dim_of, inner
from tilesmith.scheduler.lowering.group_plan import Level
from tilesmith.scheduler.lowering.open_group import OpenGroup


def joined_row(g: OpenGroup, n: int, level: Level, boxes: Mapping[str, Box]) -> None:
    """A row whose stages share the loop over vectors. Stages in rings join it where an iteration of the loop
    around computes one row of each; otherwise they are computed before it. Stages in registers that do not
    move along the row at its rate are computed where they are read."""
    here = [s for s in g.plan.stages if s.name in g.plan.members and g.plan.index(g.plan.members[s.name].compute) >= n]
    moving = {s.name: d for s in here if (d := _moving_dim(g, s, level.dim)) is not None}
    registers = [s for s in here if s.name in g.plan.registers]
    stored = [s for s in here if s.name not in g.plan.registers]
    inlined = {**g.inlined, **{s.name: s for s in registers}}
    rows = {s.name: _single_row(g, boxes[s.name], moving[s.name]) for s in stored if s.name in moving}
    rings = {
        name: (boxes[name], at)
        for name, at in rows.items()
        if at is not None and _fixed_margins(g, boxes, name, moving[name], level.dim)
    }
    if len(rings) < len(stored):
        rings = {}
        for stage in stored:
            g.compute(stage, g.plan.members[stage.name], boxes[stage.name], inlined)
    streams = [s for s in here if s.name in rings or (s.name in g.plan.registers and s.name in moving)]
    order = tuple(dim_of(v.name) for v in reversed(g.plan.levels[n:]) if v.name == inner(v.dim))
    box = boxes[g.plan.output.name]
    g.builder.emit(
        FusedRow(
            g.plan.output.name,
            g.output_buffers,
            tuple(DimRange(d, *ends) for d, ends in zip(g.plan.output.dims, box, strict=True)),
            (*order, *(d for d in g.plan.output.dims if d not in order)),
            Vector(level.dim, level.step or 1),
            tuple(RowStage(s.name, moving[s.name], *rings.get(s.name, ())) for s in streams),
            g.reads([g.plan.output, *streams], inlined),
            g.anchor,
            g.plan.room,
            unrolled_dims(g.plan.unrolled()),
            tuple(g.warm),
            g.plan.group.stream,
        )
    )


def unrolled_dims(unroll: Mapping[str, tuple[int | None, int]]) -> tuple[UnrolledDim, ...]:
    """Dims to write out, with the (min, extent) that they are expected to have."""
    return tuple(UnrolledDim(d, extent, start) for d, (start, extent) in unroll.items())


def _moving_dim(g: OpenGroup, stage: Stage, dim: str) -> int | None:
    """The one dim of `stage` that follows `dim` step for step."""
    follow = [d for d, dims in enumerate(g.plan.follows[stage.name]) if dim in dims]
    if len(follow) != 1:
        return None
    span = g.plan.spans[stage.name][follow[0]]
    return follow[0] if span.known and span.var == dim and span.rate == 1 else None


def _fixed_margins(g: OpenGroup, boxes: Mapping[str, Box], name: str, d: int, dim: str) -> bool:
    """True if a row of `name` reaches beyond the output's by the same elements at every size."""
    row = boxes[g.plan.output.name][g.plan.output.dims.index(dim)]
    return all((a - b).is_const for a, b in zip(boxes[name][d], row, strict=True))


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
