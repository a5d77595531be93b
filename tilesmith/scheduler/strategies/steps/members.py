"""Members of loop nests: where a stage is computed inside of others, changed in one nest or in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, dim_of
from tilesmith.scheduler.strategies.state import State


def is_inline(state: State, stage: str) -> bool:
    """True if the stage is computed where it is read, in some nest."""
    return any(p.compute == INLINE for g in state.groups_with(stage) if (p := g.placement(stage)) is not None)


def each_placement(
    state: State, stage: str, into: str | None, change: Callable[[Placement], Placement], *keys: str
) -> State | str:
    """The state with the stage's placements changed, in the nest of `into` or in every nest that has it."""
    groups = [g for g in state.groups_with(stage) if into in (None, g.output)]
    if not groups:
        return f"it is not computed in the nest of '{into}'" if into else "it is not computed inside of a nest"
    made = [_with(g, change(p)) for g in groups if (p := g.placement(stage)) is not None]
    return state.with_groups(made).deciding(stage, *keys)


def placed(
    state: State,
    stage: str,
    into: str | None,
    make: Callable[[Group, Placement | None, Group | None], Placement | str],
    *keys: str,
) -> State | str:
    """The state with the stage inside of the nests that read it, or of that of `into`, and no longer at root.

    `make` gives its placement, of the nest, of the placement that it has there, and of the nest that it had to itself.
    What is inline in that nest comes along.
    """
    if stage in state.graph.outputs:
        return "it is an output of the pipeline, which is at root"
    own = state.group(stage)
    inside = () if own is None else tuple(p for p in own.placements if p.compute != INLINE)
    if inside:
        return f"'{inside[0].stage}' is computed inside of its loops: readers are placed before what they read"
    groups = [g for g in state.readers(stage) if into in (None, g.output)]
    if not groups:
        return f"the nest of '{into}' does not read it" if into else "no nest reads it"
    made = []
    for group in groups:
        placement = make(group, group.placement(stage), own)
        if isinstance(placement, str):
            return placement
        for p in () if own is None else own.placements:
            group = group if group.placement(p.stage) is not None else _with(group, p)
        made.append(_with(group, placement))
    return state.with_groups(made, () if own is None else (stage,)).deciding(stage, *keys)


def at_loop(state: State, stage: str, loop: str, before: Placement | None, own: Group | None) -> Placement:
    """The placement of a stage at a loop, stored there: with the order, the vectors and the updates that it had."""
    if before is not None and before.compute != INLINE:
        return replace(before, compute=loop, store=loop, storage="memory")
    if own is None:
        return Placement(stage, loop, loop, order=state.definition(stage).storage)
    order = tuple(dim_of(inside) for inside in own.loops if inside.endswith(".inner"))
    updates = tuple(replace(u, parallel=None) for u in own.updates)
    return Placement(stage, loop, loop, order=order, vector=own.vector, updates=updates)


def no_loop(group: Group, loop: str) -> str:
    """The reason that a nest has no such loop."""
    there = ", ".join(group.loops) or "none"
    return f"the nest of '{group.output}' has no loop '{loop}'; loops, innermost first: {there}"


def _with(group: Group, placement: Placement) -> Group:
    others = tuple(p for p in group.placements if p.stage != placement.stage)
    return replace(group, placements=(*others, placement))
