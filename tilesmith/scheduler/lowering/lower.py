"""Pipeline and schedule to a loop program: bounds of the whole image first, then group after group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.bounds_inference import Box, bound_symbol, param_symbol, reads, required_boxes
from tilesmith.scheduler.analysis.dead_points import halves
from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.analysis.index_overflow import Held, reach
from tilesmith.scheduler.ir.index import Index, const, maximum, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Copy
from tilesmith.scheduler.ir.loop.program import (
    Allocate,
    Argument,
    CopyOut,
    Extents,
    Free,
    Let,
    Loop,
    OverflowGuard,
    Parameter,
    Program,
    Statement,
)
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Param, Stage
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group
from tilesmith.scheduler.lowering.channel_layout import laid_out
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.group import GroupLowering
from tilesmith.scheduler.lowering.group_plan import GroupPlan
from tilesmith.scheduler.lowering.interleaved_channels import expect_channels


def lower(plan: Plan, platform: Platform) -> Program:
    """The loop program of a legal plan (see `tilesmith.scheduler.legality.verifier`).

    Sizes stay symbols: the program runs for every region of the outputs. The platform gives the line size, the size
    of a register and the number of threads that the declared buffers are counted for.
    """
    return _Lowering(plan, platform).run()


class _Lowering:
    def __init__(self, plan: Plan, platform: Platform) -> None:
        self.original = plan.written
        self.schedule = schedule = plan.schedule
        self.pipeline = laid_out(plan.pipeline, schedule)
        self.platform = platform
        self.builder = Builder(schedule.strict, platform.vector_unit, platform.line_bytes)
        self.stages = {s.name: s for s in self.pipeline.stages}
        self.halves = halves(self.pipeline)
        self.joint = {name: j.joint for j in schedule.joinings for name in j.stages}
        self.params = {p.name: self.builder.fresh(p.name) for p in self.original.params}
        self.arguments = self._arguments()
        self.buffers: dict[tuple[str, int], Buffer] = {}
        self.images: list[Buffer] = []
        self.freed: set[str] = set()
        self.declared: list[tuple[str, Extents, bool]] = []
        self.held = self._held_by_inputs()
        self.derived = self._derived()

    def run(self) -> Program:
        b = self.builder
        outputs = {name: self._asked(self.stages[name]) for name in self.pipeline.outputs}
        boxes = required_boxes(self.pipeline, outputs, b.let, self._stays_within)
        required = self._required(boxes, outputs)
        bounds = tuple(b.scopes[0].statements)
        self.estimated = _Estimated(self._estimated_symbols(), bounds, b.ranges)
        b.expected = self.estimated.value
        b.scopes[0].statements.clear()
        self._input_buffers(boxes)
        groups = [g for g in self.schedule.groups if g.output in boxes]
        for n, group in enumerate(groups):
            self._group(group, boxes, outputs)
            self._free_after(n, groups)
        return Program(
            name=self.pipeline.name,
            doc=self.pipeline.doc,
            method=self.schedule.method,
            arguments=self.arguments,
            params=tuple(self._parameter(p) for p in self.original.params),
            derived=tuple(self._parameter(p) for p in self.pipeline.params if p.value is not None),
            derivation=self.derived,
            buffers=tuple(self.images),
            bounds=bounds,
            required=required,
            body=tuple(b.scopes[0].statements),
            estimates=self._estimates(),
            strict=self.schedule.strict,
            line_bytes=self.platform.line_bytes,
            register_bytes=self.platform.vector_unit.register_bytes,
            architecture=self.platform.architecture,
        )

    # arguments ------------------------------------------------------------

    def _parameter(self, p: Param) -> Parameter:
        return Parameter(p.name, self.params[p.name], p.type, *p.ends)

    def _derived(self) -> tuple[Statement, ...]:
        """The statements that compute the params that follow from others."""
        b = self.builder
        evaluator = Evaluator(b, Sources({}, {}, self.params), None)
        for p in self.pipeline.params:
            if p.value is not None:
                value = evaluator.value(p.value, evaluator.frame({}))
                self.params[p.name] = b.define(Copy(value), p.type, pinned=True, hint="derived").name
        found = tuple(b.scopes[0].statements)
        b.scopes[0].statements.clear()
        return found

    def _arguments(self) -> tuple[Argument, ...]:
        arguments = [
            Argument(i.name, self.builder.fresh(i.name), i.type, i.dims, i.storage, False) for i in self.pipeline.inputs
        ]
        for name in self.original.outputs:
            stage = self.original.stage(name)
            for type_ in stage.types:
                c_name, made = self.builder.fresh(name), self.joint.get(name, name)
                arguments.append(Argument(name, c_name, type_, stage.dims, stage.storage, True, made))
        return tuple(arguments)

    def _asked(self, stage: Stage) -> Box:
        """The region of an output that the caller asks for."""
        lead = next(a.name for a in self.arguments if a.made_by == stage.name)
        ends = []
        for d in stage.dims:
            lo, extent = sym(bound_symbol(lead, "min", d)), sym(bound_symbol(lead, "extent", d))
            ends.append((lo, self.builder.let(lo + extent - 1, f"{stage.name}_{d}_hi")))
        self.held.add(ends)  # by the checks of buffers
        return tuple(ends)

    def _held_by_inputs(self) -> Held:
        held = Held()
        for image in self.pipeline.inputs:
            for d in image.dims:
                lo, extent = sym(bound_symbol(image.name, "min", d)), sym(bound_symbol(image.name, "extent", d))
                held.add([(lo, lo + extent - 1), (extent, extent)])
        return held

    def _stays_within(self, owner: Stage | Input, box: Box) -> None:
        """Nothing may be needed that lies beyond 32 bits."""
        intervals, wide = (list(box), ()) if isinstance(owner, Input) else reach(owner, box)
        low, high = self.held.add(intervals)
        if low or high or wide:
            self.builder.emit(OverflowGuard(low, high, wide))

    def _required(
        self, boxes: Mapping[str, Box], outputs: Mapping[str, Box]
    ) -> tuple[tuple[str, tuple[tuple[Index, Index], ...]], ...]:
        return tuple((i.name, boxes[i.name]) for i in self.pipeline.inputs if i.name in boxes)

    def _argument_buffer(self, argument: Argument, component: int, box: Box) -> Buffer:
        dims, c = argument.dims, argument.c_name
        unit = dims.index(argument.storage[0]) if dims else 0
        buffer = Buffer(
            argument.name,
            component,
            argument.type,
            dims,
            unit,
            "argument",
            pointer=Pointer(f"{c}_data"),
            origin=[sym(f"{c}.origin.{d}") for d in dims],
            stride=[const(1) if n == unit else sym(f"{c}.stride.{d}") for n, d in enumerate(dims)],
            ring=[None] * len(dims),
            extent=[sym(f"{c}.extent.{d}") for d in dims],
        )
        if dims:
            region = self.pipeline.estimate(argument.name)
            expect_channels(buffer, argument.storage, region[unit][1] if region else self._expected(box[unit])[1])
        self.images.append(buffer)
        return buffer

    def _input_buffers(self, boxes: Mapping[str, Box]) -> None:
        for argument in self.arguments:
            if not argument.output:
                box = boxes.get(argument.name, ((const(0), const(0)),) * len(argument.dims))
                self.buffers[argument.name, 0] = self._argument_buffer(argument, 0, box)

    # groups ------------------------------------------------------------

    def _group(self, group: Group, boxes: Mapping[str, Box], outputs: Mapping[str, Box]) -> None:
        b = self.builder
        stage = self.stages[group.output]
        arguments = [self._argument_buffer(a, n, boxes[stage.name]) for n, a in enumerate(self._values_of(stage))]
        whole = len(pure_dims(stage)) < len(stage.dims)  # its updates may reach beyond what was asked for
        direct = bool(arguments) and not whole and not self._read_by_others(stage.name)
        if direct:
            buffers = tuple(arguments)
        else:
            buffers = tuple(self._root_buffer(stage, n, boxes[stage.name]) for n in range(len(stage.types)))
        for n, buffer in enumerate(buffers):
            self.buffers[stage.name, n] = buffer
        inside = {p.stage for p in group.placements}
        inlined = {p.stage: self.stages[p.stage] for p in group.placements if p.compute == INLINE}
        sources = Sources(inlined, self.buffers, self.params)
        members = tuple(s for s in self.pipeline.stages if s.name in inside)

        def expected(name: str, dim: str) -> tuple[int, int]:
            return self._expected(boxes[name][self.stages[name].dims.index(dim)])

        group = replace(group, stream=group.stream and self.platform.streaming_stores)
        plan = GroupPlan(group, stage, members, boxes, expected)
        for extents in GroupLowering(b, sources, plan, buffers, halves=self.halves).run():
            self.declared.append((extents.buffer.stage, extents, True))
        if arguments and not direct:
            for argument, buffer in zip(arguments, buffers, strict=True):
                b.emit(CopyOut(argument, buffer))

    def _values_of(self, stage: Stage) -> list[Argument]:
        """The arguments for the values of an output, in their order."""
        joining = next((j.stages for j in self.schedule.joinings if j.joint == stage.name), (stage.name,))
        found = [a for a in self.arguments if a.made_by == stage.name]
        return sorted(found, key=lambda a: joining.index(a.name))

    def _read_by_others(self, name: str) -> bool:
        return any(r.producer == name for s in self.pipeline.stages if s.name != name for r in reads(s))

    def _root_buffer(self, stage: Stage, component: int, box: Box) -> Buffer:
        b = self.builder
        unit = stage.dims.index(stage.storage[0]) if stage.dims else 0
        buffer = Buffer(stage.name, component, stage.types[component], stage.dims, unit, "call")
        if box:
            expect_channels(buffer, stage.storage, self._expected(box[unit])[1])
        buffer.pointer = Pointer(b.fresh(stage.name))
        extents = []
        for n, (d, (lo, hi)) in enumerate(zip(stage.dims, box, strict=True)):
            extents.append(b.let(maximum(hi - lo + 1, const(1)), f"{stage.name}_{d}_size"))
            buffer.origin.append(lo)
            buffer.stride.append(const(1) if n == unit else sym(b.fresh(f"{stage.name}_stride")))
            buffer.ring.append(None)
        buffer.extent = list(extents)
        order = tuple(stage.dims.index(d) for d in stage.storage)
        memory = Extents(buffer, order, tuple(extents[d] for d in order))
        b.emit(Allocate(memory))
        self.declared.append((stage.name, memory, False))
        return buffer

    def _free_after(self, n: int, groups: list[Group]) -> None:
        """Frees what no later group reads."""
        waiting = [
            buffer for buffer in self.buffers.values() if buffer.where == "call" and buffer.stage not in self.freed
        ]
        if not waiting:
            return
        later = {g.output for g in groups[n + 1 :]} | {p.stage for g in groups[n + 1 :] for p in g.placements}
        read = {r.producer for s in later for r in reads(self.stages[s])}
        for buffer in waiting:
            if buffer.stage not in read:
                self.builder.emit(Free(buffer))
                self.freed.add(buffer.stage)

    # estimates ------------------------------------------------------------

    def _expected(self, bounds: tuple[Index, Index]) -> tuple[int, int]:
        """(min, extent) of a range at the estimates."""
        lo, hi = (self.estimated.value(x) for x in bounds)
        return lo, hi - lo + 1

    def _estimates(self) -> tuple[tuple[str, int], ...]:
        """Bytes of every declared buffer at the estimated sizes; scratch times the threads of the platform."""
        self.estimated.add(tuple(self.builder.scopes[0].statements))
        result = []
        for name, memory, per_thread in self.declared:
            elements = prod(self.estimated.value(e) for e in memory.extents)
            threads = self.platform.threads if per_thread else 1
            result.append((name, elements * memory.buffer.type.bytes * threads))
        return tuple(result)

    def _estimated_symbols(self) -> dict[str, int]:
        env: dict[str, int] = {}
        by_dim: dict[str, tuple[int, int]] = {}
        for name in self.original.outputs:
            region = self.original.estimate(name)
            for d, (lo, extent) in zip(self.original.stage(name).dims, region or (), strict=False):
                env[bound_symbol(name, "min", d)], env[bound_symbol(name, "extent", d)] = lo, extent
                by_dim[d] = (lo, extent)
        for image in self.pipeline.inputs:
            region = self.pipeline.estimate(image.name) or tuple(by_dim.get(d, (0, 1)) for d in image.dims)
            for d, (lo, extent) in zip(image.dims, region, strict=True):
                env[bound_symbol(image.name, "min", d)], env[bound_symbol(image.name, "extent", d)] = lo, extent
        for p in self.pipeline.params:
            env[param_symbol(p.name)] = int(p.default or 0)
        return env


class _Estimated:
    """Indices as numbers: symbols have their estimates, what a Let defines has what that gives, loops with known
    `ranges` are in the middle; the rest is 1."""

    def __init__(
        self,
        symbols: Mapping[str, int],
        statements: tuple[Statement, ...],
        ranges: Mapping[str, tuple[Index, Index]],
    ) -> None:
        self._known = dict(symbols)
        self._ranges = ranges
        self._lets: dict[str, Index] = {}
        self.add(statements)

    def add(self, statements: tuple[Statement, ...]) -> None:
        """Takes in the definitions of `statements`."""
        for s in statements:
            if isinstance(s, Let):
                self._lets[s.name] = s.value
            elif isinstance(s, Loop):
                self.add(s.body)

    def value(self, x: Index) -> int:
        """The number that `x` is."""
        return x.value(self._look)

    def _look(self, name: str) -> int:
        if name in self._known:
            return self._known[name]
        if name in self._ranges:
            return sum(map(self.value, self._ranges[name])) // 2
        if name not in self._lets:
            return 1
        found = self._known[name] = self._lets[name].value(self._look)
        return found
