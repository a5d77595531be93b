"""Legality of schedules: the rules by which a schedule computes what the pipeline says; who breaks one is told the
stage and the rule.

Legality is a property of the schedule, whoever made it. What passes here must be lowered to code that
computes the same values as the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from scheduler.analysis.dependence import default_order, independent, may_reorder, pure_dims
from scheduler.analysis.register_windows import FusedRow
from scheduler.analysis.sliding_windows import shifted_along
from scheduler.analysis.stage_graph import StageGraph, stage_graph
from scheduler.errors import IllegalSchedule
from scheduler.ir.pipeline.pipeline import Pipeline, Stage
from scheduler.ir.plan import Plan
from scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, UpdateLoops, Vector, dim_of, inner, outer
from scheduler.rewrites.names import in_place_of

MAX_LANES = 256
MAX_UNROLL = 32


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
    pipeline: Pipeline
    graph: StageGraph
    stages: dict[str, Stage]
    group: Group
    strict: bool

    @property
    def output(self) -> Stage:
        return self.stages[self.group.output]

    def refuse(self, stage: str, rule: str) -> IllegalSchedule:
        return IllegalSchedule(f"stage '{stage}' in the group of '{self.group.output}': {rule}")

    def position(self, loop: str) -> int:
        """0 for the innermost loop."""
        return self.group.loops.index(loop)


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
    _check_loops(context)
    _check_unroll(context)
    _check_group_vector(context)
    _check_updates(context, context.output, context.group.updates, is_output=True)
    done: set[str] = set()
    members = {p.stage for p in context.group.placements}
    for placement in context.group.placements:
        for producer in context.graph.producers[placement.stage]:
            if producer in members and producer not in done:
                raise context.refuse(placement.stage, f"placed before '{producer}', which it reads")
        done.add(placement.stage)
        _check_placement(context, placement)
    _check_pure_loops(context)
    _check_nesting(context)
    _check_row(context)


def _check_loops(context: _Context) -> None:
    group, output = context.group, context.output
    tiled = [t.dim for t in group.tiles]
    for tile in group.tiles:
        if tile.dim not in output.dims:
            raise context.refuse(output.name, f"tiled in '{tile.dim}', which is none of its dims")
        if tile.size is not None and tile.size < 1:
            raise context.refuse(output.name, f"the tile of '{tile.dim}' is smaller than 1")
    if len(set(tiled)) != len(tiled):
        raise context.refuse(output.name, "a dim has two tiles")
    expected = {inner(d) for d in output.dims} | {outer(d) for d in tiled}
    if len(group.loops) != len(expected) or set(group.loops) != expected:
        raise context.refuse(
            output.name, f"its loops must be {', '.join(sorted(expected)) or 'none'}: each once, no others"
        )
    kinds = [loop.endswith(".outer") for loop in group.loops]
    if kinds != sorted(kinds):
        raise context.refuse(output.name, "intra-tile and inter-tile loops mix")
    if group.parallel is not None and (not group.loops or group.parallel != group.loops[-1]):
        raise context.refuse(output.name, "the parallel loop is not its outermost loop")


def _check_unroll(context: _Context) -> None:
    group, output = context.group, context.output
    if len(set(group.unroll)) != len(group.unroll):
        raise context.refuse(output.name, "a dim is unrolled twice")
    for dim in group.unroll:
        if dim not in output.dims:
            raise context.refuse(output.name, f"unrolled in '{dim}', which is none of its dims")
        if group.vector is not None and group.vector.dim == dim:
            raise context.refuse(output.name, f"'{dim}' is both unrolled and vectorised")
        if group.parallel == inner(dim):
            raise context.refuse(output.name, f"'{dim}' is both unrolled and parallel")
        extent = _known_extent(context, dim)
        if extent is None or extent > MAX_UNROLL:
            raise context.refuse(output.name, f"unrolled in '{dim}', which has more than {MAX_UNROLL} iterations")


def _known_extent(context: _Context, dim: str) -> int | None:
    """Iterations of the intra-tile loop of `dim`: its tile, or the estimate; 1 where nothing is known."""
    tile = context.group.tile(dim)
    if tile is not None and tile.size is not None:
        return tile.size
    estimate = context.pipeline.estimate(context.group.output)
    return 1 if estimate is None else estimate[context.output.dims.index(dim)][1]


def _check_vector(context: _Context, stage: Stage, vector: Vector) -> None:
    if vector.dim not in stage.dims:
        raise context.refuse(stage.name, f"vectorised in '{vector.dim}', which is none of its dims")
    _check_lanes(context, stage, vector)


def _check_lanes(context: _Context, stage: Stage, vector: Vector) -> None:
    if not 2 <= vector.lanes <= MAX_LANES or vector.lanes & (vector.lanes - 1):
        raise context.refuse(stage.name, f"{vector.lanes} lanes: it must be a power of two from 2 to {MAX_LANES}")


def _check_group_vector(context: _Context) -> None:
    group = context.group
    if group.stream and (group.vector is None or context.output.updates):
        raise context.refuse(group.output, "written past the caches, but it has no vectors, or updates")
    if group.prefetch < 0:
        raise context.refuse(group.output, "prefetch is a number of bytes ahead")
    if group.vector is None:
        return
    _check_vector(context, context.output, group.vector)
    if group.stream and group.vector.dim != context.output.storage[0]:
        raise context.refuse(
            group.output, f"written past the caches, but '{group.vector.dim}' is not fastest in memory"
        )
    loops = [loop for loop in group.loops if dim_of(loop) not in group.unroll]
    if loops[0] != inner(group.vector.dim):
        raise context.refuse(group.output, "the vectorised loop is not the innermost one that is not unrolled")
    if group.parallel == inner(group.vector.dim):
        raise context.refuse(group.output, f"'{group.parallel}' is both vectorised and parallel")


def _check_pure_loops(context: _Context) -> None:
    """Around values and updates together there are only loops over dims that every update keeps in place."""
    group, output = context.group, context.output
    pure = pure_dims(output)
    if len(pure) == len(output.dims):
        return
    used = [("tiled", outer(t.dim)) for t in group.tiles]
    used += [("run by threads", group.parallel)] if group.parallel is not None else []
    for p in group.placements:
        if p.compute != INLINE and p.compute in group.loops and p.store in group.loops:
            used += [(f"the level of '{p.stage}'", p.compute), (f"the level of '{p.stage}'", p.store)]
    for what, loop in used:
        for outside in group.loops[context.position(loop) :]:
            if dim_of(outside) not in pure:
                raise context.refuse(
                    output.name,
                    f"'{loop}' is {what}, but '{outside}' runs along a dim that an update does not keep in place",
                )


def _check_updates(context: _Context, stage: Stage, updates: tuple[UpdateLoops, ...], is_output: bool) -> None:
    """Every loop of every update once, in an order that keeps what depends on what; vectors and threads only over
    loops whose iterations are independent."""
    if updates and len(updates) != len(stage.updates):
        raise context.refuse(stage.name, f"it has {len(stage.updates)} updates, and the schedule {len(updates)}")
    for n, (update, loops) in enumerate(zip(stage.updates, updates, strict=False)):
        what = f"update {n}"
        expected = default_order(stage, update)
        if sorted(loops.loops) != sorted(expected):
            raise context.refuse(
                stage.name, f"{what}: its loops must be {', '.join(expected) or 'none'}: each once, no others"
            )
        if not may_reorder(stage, update, loops.loops, context.strict):
            raise context.refuse(stage.name, f"{what}: in this order of loops it would read other values")
        if loops.vector is not None:
            _check_lanes(context, stage, loops.vector)
            if loops.vector.dim not in loops.loops:
                raise context.refuse(stage.name, f"{what}: vectorised in '{loops.vector.dim}', which is no loop of it")
        if loops.parallel is not None:
            if not loops.loops or loops.parallel != loops.loops[-1]:
                raise context.refuse(stage.name, f"{what}: the parallel loop is not its outermost loop")
            if not is_output or context.group.parallel is not None:
                raise context.refuse(stage.name, f"{what}: threads inside of what threads may already run")
            if loops.vector is not None and loops.vector.dim == loops.parallel:
                raise context.refuse(stage.name, f"{what}: '{loops.parallel}' is both vectorised and parallel")
        for loop in (loops.parallel, None if loops.vector is None else loops.vector.dim):
            if loop is not None and not independent(stage, update, loops.loops, loop):
                raise context.refuse(
                    stage.name, f"{what}: that iterations of '{loop}' are independent cannot be proved"
                )


def _check_placement(context: _Context, placement: Placement) -> None:
    name, group = placement.stage, context.group
    stage = context.stages[name]
    _check_updates(context, stage, placement.updates, is_output=False)
    if (placement.compute == INLINE) != (placement.store == INLINE):
        raise context.refuse(name, "inline must be both its compute and its store level")
    if placement.compute == INLINE:
        if stage.updates:
            raise context.refuse(name, "inline, but it has updates, which need memory")
        if placement.vector is not None or placement.storage != "memory":
            raise context.refuse(name, "an inline stage has neither vectors nor storage")
        return
    for what, loop in (("compute", placement.compute), ("store", placement.store)):
        if loop not in group.loops:
            raise context.refuse(name, f"its {what} level '{loop}' is no loop of the group")
        if loop == inner(dim_of(loop)) and dim_of(loop) in group.unroll:
            raise context.refuse(name, f"its {what} level '{loop}' is unrolled")
    if context.position(placement.store) < context.position(placement.compute):
        raise context.refuse(name, "its store level is inside its compute level")
    if placement.order and sorted(placement.order) != sorted(stage.dims):
        raise context.refuse(name, "its loop order is not a permutation of its dims")
    if placement.vector is not None:
        _check_vector(context, stage, placement.vector)
        row = None if group.vector is None else inner(group.vector.dim)
        if placement.compute == row and placement.order and placement.order[0] != placement.vector.dim:
            raise context.refuse(
                name, "its vectorised dim is not its innermost loop, as it is computed in one of vectors"
            )
    if placement.storage == "registers":
        _check_registers(context, placement)


def _check_registers(context: _Context, placement: Placement) -> None:
    """Registers hold the window along the vectorised dim: computed per vector, kept across the row."""
    group = context.group
    if context.stages[placement.stage].updates or context.output.updates:
        raise context.refuse(placement.stage, "updates are not kept in registers, nor beside them")
    if group.vector is None:
        raise context.refuse(placement.stage, "registers need a group that is vectorised")
    loop = inner(group.vector.dim)
    if placement.compute != loop:
        raise context.refuse(placement.stage, f"in registers it must be computed at the vectorised loop '{loop}'")
    if context.position(placement.store) != context.position(loop) + 1:
        raise context.refuse(placement.stage, "in registers its store level must be exactly one loop further out")
    if not placement.fold:
        raise context.refuse(placement.stage, "in registers its storage is folded")
    if placement.vector is not None and placement.vector.lanes != group.vector.lanes:
        raise context.refuse(placement.stage, "in registers it must have as many lanes as the group")


def _check_row(context: _Context) -> None:
    """Beside registers everything of the vectorised loop is computed a vector at a time: windows rotate, and what lives
    for one vector is in registers too. They hold the output's place along the row, shifted; any other read would
    compute the stage where it stands, and all that it reads."""
    group = context.group
    if group.vector is None or all(p.storage != "registers" for p in group.placements):
        return
    members = [context.stages[p.stage] for p in group.placements]
    row = FusedRow(shifted_along(context.output, members, group.vector.dim))
    placed = {p.stage: p for p in group.placements}
    for p in (placed[name] for name in reversed(context.graph.stages) if name in placed):
        if p.compute not in (INLINE, inner(group.vector.dim)):
            continue
        if context.stages[p.stage].updates:
            raise context.refuse(p.stage, "updates are not computed at the vectorised loop beside registers")
        held = p.compute != INLINE and (p.storage == "registers" or p.store == p.compute)
        if held and p.stage not in row.shifted:
            raise context.refuse(
                p.stage, f"in registers, but it is read by other than shifts along '{group.vector.dim}', rate 1"
            )
        readers = [context.stages[r] for r in context.graph.consumers[p.stage] if r in placed or r == group.output]
        wrong = row.add(
            context.stages[p.stage], readers, "registers" if held else "inline" if p.compute == INLINE else "memory"
        )
        if wrong is not None:
            raise context.refuse(p.stage, f"beside registers {wrong}")


def _check_nesting(context: _Context) -> None:
    """A producer is computed at its consumers' level or further out; registers are read in their own loop."""
    for placement in context.group.placements:
        if placement.compute == INLINE:
            continue
        for consumer in _real_consumers(context, placement.stage):
            other = context.group.placement(consumer)
            level = -1 if other is None else context.position(other.compute)
            if context.position(placement.compute) < level:
                raise context.refuse(
                    placement.stage,
                    f"computed at '{placement.compute}', inside the level of its consumer '{consumer}'",
                )
            if placement.storage == "registers" and other is not None and other.compute != placement.compute:
                raise context.refuse(
                    placement.stage, f"in registers, but its consumer '{consumer}' is not computed at the same loop"
                )


def _real_consumers(context: _Context, name: str) -> Iterable[str]:
    """The stages of the group that read `name`, itself or through stages that are inline."""
    group = context.group
    inlined = {p.stage for p in group.placements if p.compute == INLINE}
    members = {p.stage for p in group.placements} | {group.output}
    found: dict[str, None] = {}
    pending, seen = [name], {name}
    while pending:
        for consumer in context.graph.consumers[pending.pop()]:
            if consumer in members and consumer not in seen:
                seen.add(consumer)
                if consumer in inlined:
                    pending.append(consumer)
                else:
                    found[consumer] = None
    return found
