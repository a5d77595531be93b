"""The pass `bounds`: what a call is given, the regions that its outputs need of everything, and the checks of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilesmith.scheduler.analysis.bounds_inference import Box, bound_symbol, required_boxes
from tilesmith.scheduler.analysis.index_overflow import Held, reach
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Copy
from tilesmith.scheduler.ir.loop.program import OverflowGuard, Statement
from tilesmith.scheduler.ir.loop.signature import Argument, Parameter, Table
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.arguments import table_of
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Param, Stage
from tilesmith.scheduler.lowering.estimates import Estimates
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.float_ends import calls
from tilesmith.scheduler.lowering.interleaved_channels import expect_channels
from tilesmith.scheduler.lowering.unit import LoweringUnit


def with_bounds(unit: LoweringUnit) -> LoweringUnit:
    """*Before*: a program without arguments. *After*: it has them, what params derive, the region of every image and
    stage that the outputs need, and what has to hold of these; its body is empty."""
    return _Bounds(unit).run()


class _Bounds:
    def __init__(self, unit: LoweringUnit) -> None:
        self.unit = unit
        p = unit.platform
        self.builder = Builder(p.vector_unit, p.line_bytes, p.core, unit.program.strict)
        self.stages = {s.name: s for s in unit.pipeline.stages}
        self.params = {p.name: self.builder.fresh(p.name) for p in unit.plan.written.params}
        self.builder.call = calls(self.params)
        self.arguments = self._arguments()
        self.held = self._held_by_inputs()

    def run(self) -> LoweringUnit:
        b, unit = self.builder, self.unit
        written = unit.plan.written
        derivation = self._derivation()
        outputs = {name: self._asked(self.stages[name]) for name in unit.pipeline.outputs}
        boxes = required_boxes(unit.pipeline, outputs, b.let, self._stays_within)
        program = replace(
            unit.program,
            arguments=self.arguments,
            tables=self._tables(),
            params=tuple(map(self._parameter, written.params)),
            derived=tuple(self._parameter(p) for p in unit.pipeline.params if p.value is not None),
            derivation=derivation,
            bounds=tuple(b.scopes[0].statements),
            required=tuple((i.name, boxes[i.name]) for i in unit.pipeline.inputs if i.name in boxes),
        )
        found = replace(unit, program=program, boxes=boxes, rounded=b.rounded)
        return replace(found, program=replace(program, buffers=self._images(found.estimates(b), boxes)))

    def _parameter(self, p: Param) -> Parameter:
        return Parameter(p.name, self.params[p.name], p.type, *p.ends)

    def _derivation(self) -> tuple[Statement, ...]:
        """The statements that compute the params that follow from others."""
        b = self.builder
        evaluator = Evaluator(b, Sources({}, {}, self.params), None)
        for p in self.unit.pipeline.params:
            if p.value is not None:
                value = evaluator.value(p.value, evaluator.frame({}))
                self.params[p.name] = b.define(Copy(value), p.type, pinned=True, hint="derived").name
        found = tuple(b.scopes[0].statements)
        b.scopes[0].statements.clear()
        return found

    def _arguments(self) -> tuple[Argument, ...]:
        b, written = self.builder, self.unit.plan.written
        inputs = self.unit.pipeline.inputs
        arguments = [Argument(i.name, b.fresh(i.name), i.type, i.dims, i.storage, False) for i in inputs]
        joint = {name: j.joint for j in self.unit.plan.schedule.joinings for name in j.stages}
        for name in written.outputs:
            stage = written.stage(name)
            for type_ in stage.types:
                c_name, made = b.fresh(name), joint.get(name, name)
                arguments.append(Argument(name, c_name, type_, stage.dims, stage.storage, True, made))
        return tuple(arguments)

    def _tables(self) -> tuple[Table, ...]:
        """The values of inputs that the pipeline has itself, in the order of their storage."""
        found = []
        for image, argument in zip(self.unit.pipeline.inputs, self.arguments, strict=False):
            if image.table is None or (values := table_of(image)) is None:
                continue
            axes = [len(image.dims) - 1 - image.dims.index(d) for d in reversed(image.storage)]
            stored = values.array.transpose(axes)
            extent = dict(zip(image.dims, values.extent, strict=True))
            stride, step = {}, 1
            for d in image.storage:
                stride[d], step = step, step * extent[d]
            numbers = tuple(n if image.type.is_float else int(n) for n in stored.reshape(-1).tolist())
            by_dim = tuple(stride[d] for d in image.dims)
            found.append(Table(argument.c_name, image.type, values.min, values.extent, by_dim, numbers))
        return tuple(found)

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
        for image in self.unit.pipeline.inputs:
            for d in image.dims:
                lo, extent = sym(bound_symbol(image.name, "min", d)), sym(bound_symbol(image.name, "extent", d))
                held.add([(lo, lo + extent - 1), (extent, extent)])
        return held

    def _stays_within(self, owner: Stage | Input, box: Box) -> None:
        """Nothing may be needed that lies beyond 32 bits."""
        intervals, wide = (list(box), ()) if isinstance(owner, Input) else reach(owner, box)
        low, high = self.held.add(intervals)
        if low or high or wide:
            plain = self.builder.plain
            self.builder.emit(OverflowGuard(*(tuple(map(plain, ends)) for ends in (low, high, wide))))

    # buffers ------------------------------------------------------------

    def _images(self, estimates: Estimates, boxes: Mapping[str, Box]) -> tuple[Buffer, ...]:
        """The buffers of the arguments: of inputs, then of what the groups put out, in their order."""
        order = {g.output: n for n, g in enumerate(self.unit.plan.schedule.groups)}
        outputs = [a for a in self.arguments if a.output and a.made_by in boxes]
        inputs = [a for a in self.arguments if not a.output]
        found = []
        for a in (*inputs, *sorted(outputs, key=lambda a: (order[a.made_by or ""], self._component(a)))):
            box = boxes.get(a.made_by or a.name, ((const(0), const(0)),) * len(a.dims))
            found.append(self._image(a, box, estimates))
        return tuple(found)

    def _image(self, argument: Argument, box: Box, estimates: Estimates) -> Buffer:
        dims, c = argument.dims, argument.c_name
        unit = dims.index(argument.storage[0]) if dims else 0
        buffer = Buffer(
            argument.name,
            self._component(argument),
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
            region = self.unit.pipeline.estimate(argument.name)
            expected = region[unit][1] if region else estimates.range(box[unit])[1]
            expect_channels(buffer, argument.storage, expected)
        return buffer

    def _component(self, argument: Argument) -> int:
        """The number of the value, of the stage that made it an output."""
        if not argument.output:
            return 0
        return [a.c_name for a in values_of(self.unit, self.arguments, argument.made_by or "")].index(argument.c_name)


def values_of(unit: LoweringUnit, arguments: tuple[Argument, ...], stage: str) -> list[Argument]:
    """The arguments for the values of an output, in their order."""
    joining = next((j.stages for j in unit.plan.schedule.joinings if j.joint == stage), (stage,))
    found = [a for a in arguments if a.made_by == stage]
    return sorted(found, key=lambda a: joining.index(a.name))
