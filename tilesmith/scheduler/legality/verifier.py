"""Legality of schedules: the rules by which a schedule computes what the pipeline says; who breaks one is told the
stage and the rule.

Legality is a property of the schedule, whoever made it. What passes here must be lowered to code that
computes the same values as the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tilesmith.scheduler.analysis.dependence import default_order, independent, may_reorder, pure_dims
from tilesmith.scheduler.analysis.register_windows import FusedRow
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.sliding_windows import shifted_along
from tilesmith.scheduler.analysis.stage_graph import StageGraph, stage_graph
from tilesmith.scheduler.analysis.update_sweeps import sweeps
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives_of
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, UpdateLoops, inner
from tilesmith.scheduler.rewrites.names import in_place_of


def check(plan: Plan) -> None:
    """Raises IllegalSchedule, naming stage and rule, unless the schedule of `plan` is legal for its pipeline."""
    pipeline, schedule = plan.pipeline, plan.schedule
    graph = stage_graph(pipeline)
    if schedule.pipeline != pipeline.name:
        raise IllegalSchedule(f"the schedule is for pipeline '{schedule.pipeline}', not for '{pipeline.name}'")
    stages = {s.name: s for s in pipeline.stages}
    _check_cover(graph, schedule, pipeline.stages)
    _check_group_order(graph, schedule)
    for group in schedule.groups:
        _check_group(_Context(pipeline, graph, stages, group, schedule.strict))


def check_group(pipeline: Pipeline, group: Group, strict: bool = False) -> None:
    """Check one group alone of a rewritten pipeline, as `check` does; the order of groups is not looked at."""
    stages = {s.name: s for s in pipeline.stages}
    _check_group(_Context(pipeline, stage_graph(pipeline), stages, group, strict))


@dataclass(frozen=True, slots=True)
class _Context:
    """A stage of a group: its output, or that of `placement`. What primitives ask of it is in `primitives.Site`."""

    pipeline: Pipeline
    graph: StageGraph
    stages: dict[str, Stage]
    group: Group
    strict: bool
    placement: Placement | None = None

    @property
    def output(self) -> Stage:
        return self.stages[self.group.output]

    @property
    def stage(self) -> Stage:
        return self.output if self.placement is None else self.stages[self.placement.stage]

    def refuse(self, rule: str) -> IllegalSchedule:
        return IllegalSchedule(f"stage '{self.stage.name}' in the group of '{self.group.output}': {rule}")

    def refuse_of(self, stage: str, rule: str) -> IllegalSchedule:
        return IllegalSchedule(f"stage '{stage}' in the group of '{self.group.output}': {rule}")

    def readers(self) -> tuple[str, ...]:
        inlined = {p.stage for p in self.group.placements if p.compute == INLINE}
        members = {p.stage for p in self.group.placements} | {self.group.output}
        found: dict[str, None] = {}
        pending, seen = [self.stage.name], {self.stage.name}
        while pending:
            for consumer in self.graph.consumers[pending.pop()]:
                if consumer in members and consumer not in seen:
                    seen.add(consumer)
                    if consumer in inlined:
                        pending.append(consumer)
                    else:
                        found[consumer] = None
        return tuple(found)

    def pure_dims(self, stage: Stage) -> frozenset[str]:
        return pure_dims(stage)

    def default_order(self, update: Update) -> tuple[str, ...]:
        return default_order(self.stage, update)

    def may_reorder(self, update: Update, order: tuple[str, ...]) -> bool:
        return may_reorder(self.stage, update, order, self.strict)

    def shared_blocks(self, loops: tuple[UpdateLoops, ...]) -> tuple[str | None, int]:
        found = next((s for s in sweeps(self.stage, loops) if s.shared), None)
        return (None, 0) if found is None else (found.dim, len(found.ways))

    def independent(self, update: Update, order: tuple[str, ...], loop: str, together: int | None = None) -> bool:
        return independent(self.stage, update, order, loop, together)

    def along_recurrence(self, update: Update, loops: UpdateLoops) -> bool:
        return along_recurrence(self.stage, update, loops, self.strict) is not None


def _check_cover(graph: StageGraph, schedule: Schedule, stages: Collection[Stage]) -> None:
    """Every stage is scheduled: as the output of a group, or in the groups that read it. Each of several computes its
    own, somewhere or inline."""
    seen: dict[str, bool] = {}
    updated = {s.name for s in stages if s.updates}
    for group in schedule.groups:
        placed = [p.stage for p in group.placements]
        for name in (*placed, group.output):
            if name not in graph.consumers:
                instead = in_place_of(name, stages)
                if instead is not None:
                    raise IllegalSchedule(f"stage '{name}': it is computed as others, a stage a level: {instead}")
                joint = next((j.joint for j in schedule.joinings if name in j.stages), None)
                if joint is not None:
                    raise IllegalSchedule(f"stage '{name}': it is computed as a value of '{joint}', which joins it")
                raise IllegalSchedule(f"stage '{name}': no output of the pipeline needs a stage of this name")
            member = name != group.output
            if name in seen and not (member and seen[name]):
                raise IllegalSchedule(f"stage '{name}': it is scheduled twice, and the output of a group")
            if name in seen and name in updated:
                raise IllegalSchedule(f"stage '{name}': it is in several groups, but has updates")
            seen[name] = member
        if len(set(placed)) != len(placed):
            raise IllegalSchedule(f"group of '{group.output}': a stage has two placements")
    for name in graph.stages:
        if name not in seen:
            raise IllegalSchedule(f"stage '{name}': no group has it")


def _check_group_order(graph: StageGraph, schedule: Schedule) -> None:
    """Every stage is read inside its group, or is a group's output and read by later groups."""
    done: set[str] = set()
    for group in schedule.groups:
        members = tuple(p.stage for p in group.placements)
        for name in (*members, group.output):
            for producer in graph.producers[name]:
                if producer not in members and producer not in done:
                    raise IllegalSchedule(
                        f"stage '{name}' in the group of '{group.output}': it reads '{producer}', which is not in the "
                        "group and not the output of an earlier group"
                    )
        done.add(group.output)
    for name in graph.outputs:
        if name not in done:
            raise IllegalSchedule(f"stage '{name}': an output of the pipeline must be the output of a group")


def _check_group(context: _Context) -> None:
    """Every primitive of the group, of each of its members, and of the row that they share."""
    for primitive in primitives_of(Group):
        primitive.check(primitive.of(context.group), context)
    done: set[str] = set()
    members = {p.stage for p in context.group.placements}
    for placement in context.group.placements:
        here = replace(context, placement=placement)
        for producer in context.graph.producers[placement.stage]:
            if producer in members and producer not in done:
                raise here.refuse(f"placed before '{producer}', which it reads")
        done.add(placement.stage)
        for primitive in primitives_of(Placement):
            primitive.check(primitive.of(placement), here)
    _check_row(context)


def _check_row(context: _Context) -> None:
    """Checks the row of a group with stages in registers. All of its vectorised loop is computed a vector at a time:
    windows rotate, and what lives for one vector is in registers too. They hold the output's place along the row,
    shifted; any other read would compute the stage where it stands, and all that it reads."""
    group = context.group
    if group.vector is None or all(p.storage != "registers" for p in group.placements):
        return
    members = [context.stages[p.stage] for p in group.placements]
    row = FusedRow(shifted_along(context.output, members, group.vector.dim), group.vector.lanes)
    placed = {p.stage: p for p in group.placements}
    for p in (placed[name] for name in reversed(context.graph.stages) if name in placed):
        if p.compute not in (INLINE, inner(group.vector.dim)):
            continue
        if context.stages[p.stage].updates:
            raise context.refuse_of(p.stage, "updates are not computed at the vectorised loop beside registers")
        held = p.compute != INLINE and (p.storage == "registers" or p.store == p.compute)
        if held and p.stage not in row.shifted:
            raise context.refuse_of(
                p.stage, f"in registers, but it is read by other than shifts along '{group.vector.dim}', rate 1"
            )
        readers = [context.stages[r] for r in context.graph.consumers[p.stage] if r in placed or r == group.output]
        wrong = row.add(
            context.stages[p.stage], readers, "registers" if held else "inline" if p.compute == INLINE else "memory"
        )
        if wrong is not None:
            raise context.refuse_of(p.stage, f"beside registers {wrong}")
