"""Whether a schedule computes what the pipeline says: every rule, refused with the stage and the rule.

Legality is a property of the schedule, whoever made it. What passes here must be lowered to code that
computes the same values as the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.analysis.graph import StageGraph, is_plain, stage_graph
from scheduler.errors import IllegalSchedule
from scheduler.lang.expr import Access, walk
from scheduler.lang.pipeline import Pipeline, Stage
from scheduler.schedule import INLINE, Group, Placement, Schedule, Vector, dim_of, inner, outer

MAX_LANES = 256
MAX_UNROLL = 32


def check(pipeline: Pipeline, schedule: Schedule) -> None:
    """Raises IllegalSchedule, naming stage and rule, unless `schedule` is legal for `pipeline`."""
    graph = stage_graph(pipeline)
    if schedule.pipeline != pipeline.name:
        raise IllegalSchedule(f"the schedule is for pipeline '{schedule.pipeline}', not for '{pipeline.name}'")
    _check_cover(graph, schedule)
    _check_group_order(graph, schedule)
    stages = {s.name: s for s in pipeline.stages}
    for group in schedule.groups:
        _check_group(_Context(pipeline, graph, stages, group))


@dataclass(frozen=True, slots=True)
class _Context:
    pipeline: Pipeline
    graph: StageGraph
    stages: dict[str, Stage]
    group: Group

    @property
    def output(self) -> Stage:
        return self.stages[self.group.output]

    def refuse(self, stage: str, rule: str) -> IllegalSchedule:
        return IllegalSchedule(f"stage '{stage}' in the group of '{self.group.output}': {rule}")

    def position(self, loop: str) -> int:
        """0 for the innermost loop."""
        return self.group.loops.index(loop)


def _check_cover(graph: StageGraph, schedule: Schedule) -> None:
    """Every stage is scheduled once; one that is inline may be so in every group that reads it."""
    seen: dict[str, bool] = {}
    for group in schedule.groups:
        placed = [(p.stage, p.compute == INLINE) for p in group.placements]
        for name, inlined in (*placed, (group.output, False)):
            if name not in graph.consumers:
                raise IllegalSchedule(f"stage '{name}': no output of the pipeline needs a stage of this name")
            if name in seen and not (inlined and seen[name]):
                raise IllegalSchedule(f"stage '{name}': it is scheduled twice, and not inline both times")
            seen[name] = inlined
        if len({name for name, _ in placed}) != len(placed):
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
    if not is_plain(context.output):
        _check_special_output(context)
    done: set[str] = set()
    members = {p.stage for p in context.group.placements}
    for placement in context.group.placements:
        for producer in context.graph.producers[placement.stage]:
            if producer in members and producer not in done:
                raise context.refuse(placement.stage, f"placed before '{producer}', which it reads")
        done.add(placement.stage)
        _check_placement(context, placement)
    _check_nesting(context)


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
    if not 2 <= vector.lanes <= MAX_LANES or vector.lanes & (vector.lanes - 1):
        raise context.refuse(stage.name, f"{vector.lanes} lanes: it must be a power of two from 2 to {MAX_LANES}")


def _check_group_vector(context: _Context) -> None:
    group = context.group
    if group.vector is None:
        return
    _check_vector(context, context.output, group.vector)
    loops = [loop for loop in group.loops if dim_of(loop) not in group.unroll]
    if loops[0] != inner(group.vector.dim):
        raise context.refuse(group.output, "the vectorised loop is not the innermost one that is not unrolled")
    if group.parallel == inner(group.vector.dim):
        raise context.refuse(group.output, f"'{group.parallel}' is both vectorised and parallel")


def _check_special_output(context: _Context) -> None:
    """Updates and tuples run as plain loops at root; only the pure values of such a stage may inline others."""
    group, output = context.group, context.output
    what = "updates" if output.updates else "more than one value"
    if group.tiles or group.vector is not None or group.parallel is not None or group.unroll:
        raise context.refuse(output.name, f"it has {what}: it takes no tiles, threads, vectors or unrolling")
    for placement in group.placements:
        if placement.compute != INLINE:
            raise context.refuse(
                placement.stage, f"'{output.name}' has {what}: what it reads is inline or at root, never inside it"
            )
    inlined = {p.stage for p in group.placements}
    for update in output.updates:
        parts = [p for r in update.domain for p in (r.lo, r.extent)]
        parts += [*update.at, *update.values] + ([] if update.where is None else [update.where])
        for node in (n for part in parts for n in walk(part)):
            if isinstance(node, Access) and node.name in inlined:
                raise context.refuse(node.name, f"inline, but an update of '{output.name}' reads it")


def _check_placement(context: _Context, placement: Placement) -> None:
    name, group = placement.stage, context.group
    stage = context.stages[name]
    if not is_plain(stage):
        raise context.refuse(name, "a stage with updates or more than one value must be the output of a group")
    if (placement.compute == INLINE) != (placement.store == INLINE):
        raise context.refuse(name, "inline must be both its compute and its store level")
    if placement.compute == INLINE:
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
        if placement.order and placement.order[0] != placement.vector.dim:
            raise context.refuse(name, "its vectorised dim is not its innermost loop")
    if placement.storage == "registers":
        _check_registers(context, placement)


def _check_registers(context: _Context, placement: Placement) -> None:
    """Registers hold the window along the vectorised dim: computed per vector, kept across the row."""
    group = context.group
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
