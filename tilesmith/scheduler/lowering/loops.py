"""The pass `loops`: groups as loops, with the memory of what they compute; computations are not expanded yet."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.bounds_inference import Box, reads
from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.ir.index import const, maximum, sym
from tilesmith.scheduler.ir.loop.padding import buffer_bytes
from tilesmith.scheduler.ir.loop.program import Allocate, CopyOut, Extents, Free
from tilesmith.scheduler.ir.loop.signature import Argument
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Vector
from tilesmith.scheduler.lowering.bounds import values_of
from tilesmith.scheduler.lowering.group import GroupLowering
from tilesmith.scheduler.lowering.group_plan import GroupPlan
from tilesmith.scheduler.lowering.interleaved_channels import expect_channels
from tilesmith.scheduler.lowering.row_room import aligned, give_room, widest, with_room
from tilesmith.scheduler.lowering.unit import LoweringUnit


def with_loops(unit: LoweringUnit) -> LoweringUnit:
    """*Before*: a program with bounds and an empty body. *After*: the body has the loops of the groups, their boxes,
    sliding windows and buffers; what is computed in them is a `Compute` or a `FusedRow` each."""
    return _Loops(unit).run()


class _Loops:
    def __init__(self, unit: LoweringUnit) -> None:
        self.unit = unit
        self.builder = unit.builder()
        self.estimates = unit.estimates(self.builder)
        self.stages = {s.name: s for s in unit.pipeline.stages}
        program = unit.program
        images = dict(zip((b.pointer for b in program.buffers), program.buffers, strict=True))
        self.images = {a.c_name: images[p] for a in program.arguments if (p := Pointer(f"{a.c_name}_data")) in images}
        self.buffers = {(a.name, 0): self.images[a.c_name] for a in program.arguments if not a.output}
        self.freed: set[str] = set()
        self.declared: list[tuple[str, Extents, bool]] = []
        self.lanes = max(map(widest, unit.plan.schedule.groups), default=1)
        inlined = {p.stage for g in unit.plan.schedule.groups for p in g.placements if p.compute == INLINE}
        self.aligned = aligned(unit.pipeline.stages, inlined)

    def run(self) -> LoweringUnit:
        groups = [g for g in self.unit.plan.schedule.groups if g.output in self.unit.boxes]
        for n, group in enumerate(groups):
            self._group(group)
            self._free_after(n, groups)
        body = tuple(self.builder.scopes[0].statements)
        self.estimates.add(body)
        return replace(self.unit, program=replace(self.unit.program, body=body, estimates=self._bytes()))

    def _group(self, group: Group) -> None:
        b, boxes = self.builder, self.unit.boxes
        stage = self.stages[group.output]
        arguments = [self.images[a.c_name] for a in self._values_of(stage)]
        whole = len(pure_dims(stage)) < len(stage.dims)  # its updates may reach beyond what was asked for
        direct = bool(arguments) and not whole and not self._read_by_others(stage.name)
        if direct:
            buffers = tuple(arguments)
        else:
            components = range(len(stage.types))
            places = arguments if whole and arguments and stage.dims else [None for _ in components]
            box = boxes[stage.name]
            buffers = tuple(
                self._root_buffer(stage, n, box, group.vector, place)
                for n, place in zip(components, places, strict=True)
            )
        for n, buffer in enumerate(buffers):
            self.buffers[stage.name, n] = buffer
        inside = {p.stage for p in group.placements}
        inlined = {p.stage: self.stages[p.stage] for p in group.placements if p.compute == INLINE}
        members = tuple(s for s in self.unit.pipeline.stages if s.name in inside)

        def expected(name: str, dim: str) -> tuple[int, int]:
            return self.estimates.range(boxes[name][self.stages[name].dims.index(dim)])

        group = replace(group, stream=group.stream and self.unit.platform.streaming_stores)
        plan = GroupPlan(group, stage, members, boxes, expected)
        lowering = GroupLowering(b, inlined, self.buffers, plan, buffers, self.estimates.value, self.aligned)
        for extents in lowering.run():
            self.declared.append((extents.buffer.stage, extents, True))
        if arguments and not direct:
            for argument, buffer in zip(arguments, buffers, strict=True):
                b.emit(CopyOut(argument, buffer))

    def _values_of(self, stage: Stage) -> list[Argument]:
        return values_of(self.unit, self.unit.program.arguments, stage.name)

    def _read_by_others(self, name: str) -> bool:
        return any(r.producer == name for s in self.unit.pipeline.stages if s.name != name for r in reads(s))

    def _root_buffer(
        self, stage: Stage, component: int, box: Box, vector: Vector | None, place: Buffer | None
    ) -> Buffer:
        """The buffer of a stage at root, in the memory of the image `place` where that has its points."""
        b = self.builder
        unit = stage.dims.index(stage.storage[0]) if stage.dims else 0
        buffer = Buffer(stage.name, component, stage.types[component], stage.dims, unit, "call")
        if box:
            expect_channels(buffer, stage.storage, self.estimates.range(box[unit])[1])
        if place is None:
            give_room(b, buffer, vector, self.lanes, stage.name in self.aligned)
        buffer.pointer = Pointer(b.fresh(stage.name))
        extents = []
        for n, (d, (lo, hi)) in enumerate(zip(stage.dims, box, strict=True)):
            size = maximum(hi - lo + 1, const(1))
            extents.append(
                b.let(
                    with_room(buffer, size, vector) if n == unit and place is None else size, f"{stage.name}_{d}_size"
                )
            )
            buffer.origin.append(lo - buffer.margin if n == unit else lo)
            buffer.stride.append(const(1) if n == unit else sym(b.fresh(f"{stage.name}_stride")))
            buffer.ring.append(None)
        buffer.extent = list(extents)
        order = tuple(stage.dims.index(d) for d in stage.storage)
        memory = Extents(buffer, order, tuple(extents[d] for d in order))
        b.emit(Allocate(memory, place))
        self.declared.append((stage.name, memory, False))
        return buffer

    def _free_after(self, n: int, groups: list[Group]) -> None:
        """Frees what no later group reads."""
        waiting = [b for b in self.buffers.values() if b.where == "call" and b.stage not in self.freed]
        if not waiting:
            return
        later = {g.output for g in groups[n + 1 :]} | {p.stage for g in groups[n + 1 :] for p in g.placements}
        read = {r.producer for s in later for r in reads(self.stages[s])}
        for buffer in waiting:
            if buffer.stage not in read:
                self.builder.emit(Free(buffer))
                self.freed.add(buffer.stage)

    def _bytes(self) -> tuple[tuple[str, int], ...]:
        """Bytes of every declared buffer at the estimated sizes; scratch times the threads of the platform."""
        result, program = [], self.unit.program
        for name, memory, per_thread in self.declared:
            size = buffer_bytes(memory, self.estimates.value, program.line_bytes, program.crowded_bytes)
            result.append((name, size * (self.unit.platform.threads if per_thread else 1)))
        return tuple(result)
