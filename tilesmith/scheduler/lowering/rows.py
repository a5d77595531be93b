"""The pass `rows`: computations become loops over vectors and points.

It walks a program as it is, and builds it again: what computations define is hoisted to the outermost block where its
operands exist, past the statements that it finds there already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.analysis.dead_points import Half, halves
from tilesmith.scheduler.analysis.dependence import default_order
from tilesmith.scheduler.analysis.flat_rows import is_flat
from tilesmith.scheduler.analysis.periodic_indices import block_points
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.computations import Compute, FusedRow, Reads, UnrolledDim
from tilesmith.scheduler.ir.loop.program import Apart, AssignIndex, Body, Function, If, Loop, MutableIndex, Statement
from tilesmith.scheduler.ir.loop.traversal import defined_inside
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops
from tilesmith.scheduler.lowering.estimates import Estimates
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.interleaved_channels import layouts, pixels_along
from tilesmith.scheduler.lowering.loop_nest import run
from tilesmith.scheduler.lowering.nest import Nest, values_of
from tilesmith.scheduler.lowering.prefetches import Ahead
from tilesmith.scheduler.lowering.rotating_windows import RowLoop, fused_row
from tilesmith.scheduler.lowering.row_room import begins_rows
from tilesmith.scheduler.lowering.term_rows import TermRows, rows_of_terms
from tilesmith.scheduler.lowering.transposed_reads import transposed_dims
from tilesmith.scheduler.lowering.unit import LoweringUnit
from tilesmith.scheduler.lowering.unrolled_dims import in_blocks, written_out
from tilesmith.scheduler.lowering.updates import StagePasses, left_to_values, run_passes


def with_rows(unit: LoweringUnit) -> LoweringUnit:
    """*Before*: computations of boxes and rows in the loops of groups. *After*: every one is expanded."""
    b = unit.builder()
    stages = {s.name: s for s in unit.pipeline.stages}
    estimates = unit.estimates(b)
    estimates.add(unit.program.body)
    rows = _Rows(b, stages, unit.params(), unit.boxes, estimates, halves(unit.pipeline), unit.platform)
    rows.block(unit.program.body)
    return replace(unit, program=replace(unit.program, body=tuple(b.scopes[0].statements)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Expands into the open scope of a builder. `boxes` are those of the whole image."""

    builder: Builder
    stages: Mapping[str, Stage]
    params: Mapping[str, str]
    boxes: Mapping[str, Box]
    estimates: Estimates
    halves: Mapping[str, Half]
    platform: Platform

    def block(self, body: Body) -> None:
        """Appends a block. What a loop moves begins right before the loop, after what is hoisted out of it."""
        begun: list[MutableIndex] = []
        for s in body:
            if isinstance(s, MutableIndex):
                begun.append(s)
            else:
                self._statement(s, begun)

    def _statement(self, s: Statement, begun: list[MutableIndex]) -> None:
        b = self.builder
        match s:
            case Compute():
                self._compute(s)
            case FusedRow():
                self._fused_row(s)
            case Loop():
                with b.scope() as inside:
                    for name in (s.var, *(x.name for x in s.body if isinstance(x, AssignIndex))):
                        b.declare(name)  # nothing that depends on what the loop moves may leave it
                    self.block(s.body)
                while begun:
                    b.emit(begun.pop(0))
                b.emit(replace(s, body=tuple(inside)))
            case Function():
                with b.function(defined_inside(s)) as inside:
                    self.block(s.body)
                b.emit(replace(s, body=tuple(inside)))
            case If():
                with b.condition() as met:
                    self.block(s.body)
                with b.condition() as otherwise:
                    self.block(s.otherwise)
                b.emit(replace(s, body=tuple(met), otherwise=tuple(otherwise)))
            case _:
                b.replay(s)

    def _sources(self, reads: Reads) -> Sources:
        rows: dict[str, dict[int, int]] = {}
        for x in reads.ahead:
            rows.setdefault(x.stage, {})[x.dim] = x.rows
        inlined = {name: self.stages[name] for name in reads.inlined}
        buffers = {(buffer.stage, buffer.component): buffer for buffer in reads.buffers}
        return Sources(inlined, buffers, self.params, Ahead(reads.prefetch, rows))

    # boxes ------------------------------------------------------------

    def _compute(self, s: Compute) -> None:
        """A box of a stage, or what is read of it: its values, then its updates."""
        b, stage, estimate, sources = self.builder, self.stages[s.stage], self.estimates.value, self._sources(s.reads)
        unroll = _unroll(s.unroll)
        if s.vector is not None and (unroll or s.block):
            terms = tuple(t for t in rows_of_terms(stage, s.vector.dim, sources.inlined) if self._are_late(t, sources))
            sources = replace(sources, ahead=replace(sources.ahead, terms=terms))
        blocks = {} if s.block is None else {s.block.dim: s.block.points}
        across, long = (sources.inlined, sources.buffers), has_long_reduction(stage, sources.inlined)
        nest = Nest(
            stage.name,
            values_of(b, stage, s.buffers),
            {},
            s.order,
            s.vector,
            unroll,
            blocks,
            past=(s.buffers[0], stage.dims) if s.stream else None,
            half=self._half(s),
            estimate=estimate,
            sums=long,
            register=b.register_lanes(s.buffers[0].type) if long else 0,
            flat=_flat_channels(stage, s, sources.inlined, sources.buffers),
            transposed=bool(s.vector and blocks.keys() & transposed_dims(stage, s.vector.dim, *across).keys()),
            aligned=self._blocks(stage, _tiles(s.unroll) | blocks),
        )
        box = tuple(x.ends for x in s.box)

        def fill(points: Box) -> None:
            for part in left_to_values(b, sources, stage, s.updates, points):
                roomy = s.vector is not None and begins_rows(s.buffers, s.vector, part)
                run(b, sources, replace(nest, bounds=dict(zip(stage.dims, part, strict=True)), roomy=roomy))

        whole = zip(stage.dims, self.boxes[stage.name], strict=True)
        expected = {d: self.estimates.range(ends) for d, ends in whole}
        loops = s.updates or tuple(UpdateLoops(default_order(stage, update)) for update in stage.updates)
        machine = self.platform.l2_bytes, self.platform.threads, self.platform.threads_wait
        run_passes(b, sources, StagePasses(stage, s.buffers, loops, fill, expected, estimate, *machine), box)

    def _blocks(self, stage: Stage, points: Mapping[str, int]) -> dict[str, int]:
        """The points of the blocks that a stage reads, by the dim of which so many points are computed together, where
        these are whole blocks, as a rule: the stage begins with one at the estimates."""
        sizes = {d: block_points(stage, d) for d in points}
        first = {d: self.estimates.value(lo) for d, (lo, _) in zip(stage.dims, self.boxes[stage.name], strict=True)}
        return {d: n for d, n in sizes.items() if n > 1 and points[d] % n == 0 and first[d] % n == 0}

    def _are_late(self, t: TermRows, sources: Sources) -> bool:
        """True if nothing fetches ahead the rows of an image, or of a stage at root, that a reduction comes to."""
        buffer = sources.buffers.get((t.producer, 0))
        if buffer is None or buffer.where == "thread" or t.dim == buffer.unit or buffer.ring[t.dim] is not None:
            return False
        apart = self.estimates.value(buffer.stride[t.dim]) * buffer.type.bytes
        return t.are_late(apart, self.builder.core.pages)

    def _half(self, s: Compute) -> Half | None:
        """The half of the box that is read, where loops run over both of its dims point by point."""
        half = self.halves.get(s.stage)
        apart = (
            {x.dim for x in s.unroll} | ({s.block.dim} if s.block else set()) | ({s.vector.dim} if s.vector else set())
        )
        return None if half is None or apart & {half.slow, half.fast} else half

    # rows ------------------------------------------------------------

    def _fused_row(self, s: FusedRow) -> None:
        """The row with its output; in iterations that only fill windows, without."""
        b, sources = self.builder, self._sources(s.reads)
        fused = RowLoop(
            output=self.stages[s.output],
            output_buffers=s.buffers,
            order=s.order,
            dim=s.vector.dim,
            lanes=s.vector.lanes,
            box={x.dim: x.ends for x in s.box},
            streams=[self.stages[x.stage] for x in s.stages],
            moving={x.stage: x.moving for x in s.stages},
            rings={x.stage: (x.ring, x.at) for x in s.stages if x.ring},
            anchor=s.anchor,
            stream=s.stream,
            room=s.room,
        )
        unroll = _unroll(s.unroll)
        waiting = [fused.box[d] for d in s.waiting if d in fused.box and fused.box[d][0] != fused.box[d][1]]
        if not waiting:
            self._output_row(sources, fused, unroll, _tiles(s.unroll))
            return
        box = {d: (hi, hi) if (lo, hi) in waiting else (lo, hi) for d, (lo, hi) in fused.box.items()}
        # rows ahead of the first that is due are left behind
        due = {name: (ring, tuple(_last_row(ring, fused.moving[name]))) for name, (ring, _) in fused.rings.items()}
        with b.scope() as whole:
            self._output_row(sources, replace(fused, box=box, rings=due), unroll, _tiles(s.unroll))
        with b.scope() as filling:
            if fused.rings:
                fused_row(b, sources, replace(fused, box=box, emit_output=False))
        b.emit(If(tuple(hi - lo for lo, hi in waiting), tuple(whole), None, tuple(filling)))

    def _output_row(
        self,
        sources: Sources,
        fused: RowLoop,
        unroll: Mapping[str, tuple[int | None, int]],
        tiles: Mapping[str, int],
    ) -> None:
        """The row, its dims to unroll written out where they have the extents expected, else as loops."""
        b = self.builder
        known = written_out(fused.box, unroll)
        if known is None:
            fused_row(b, sources, fused)
            return
        fixed, asked = in_blocks(b, known, self._blocks(fused.output, tiles))
        unrolled = replace(fused, box={**fused.box, **fixed}, unroll=frozenset(fixed))
        if not asked:
            fused_row(b, sources, unrolled)
            return
        with b.scope() as as_expected:
            fused_row(b, sources, unrolled)
        with b.scope(seldom=True) as otherwise:
            fused_row(b, sources, replace(fused, seldom=True))
        b.emit(If(asked, tuple(as_expected), None, (Apart(tuple(otherwise), seldom=True),)))


def _flat_channels(
    stage: Stage, s: Compute, inlined: Mapping[str, Stage], buffers: Mapping[tuple[str, int], Buffer]
) -> str | None:
    """The dim of channels of a stage whose rows are flat, all of which vectors compute together."""
    pixels = pixels_along(s.buffers[0], s.vector)
    if pixels is None:
        return None
    return pixels.channel if is_flat(stage, pixels, inlined, layouts(buffers, s.buffers[0].channels)) else None


def _unroll(dims: tuple[UnrolledDim, ...]) -> dict[str, tuple[int | None, int]]:
    return {x.dim: (x.start, x.extent) for x in dims}


def _tiles(dims: tuple[UnrolledDim, ...]) -> dict[str, int]:
    """The dims to unroll that begin anywhere, with their points."""
    return {x.dim: x.extent for x in dims if x.start is None}


def _last_row(box: Box, moving: int) -> list[Index]:
    return [hi for d, (_, hi) in enumerate(box) if d != moving]
