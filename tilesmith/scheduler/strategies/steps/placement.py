"""Rules about where a stage is computed and kept: inline, at a loop of a nest, in a ring of rows, in registers."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.reuse import FULL
from tilesmith.scheduler.features.groups.fusion_group import Members, members_of
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Vector, inner
from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import State
from tilesmith.scheduler.strategies.steps.arguments import Flag, Loop, Name
from tilesmith.scheduler.strategies.steps.members import at_loop, each_placement, is_inline, no_loop, placed

TILED = "{at: {stage: blur_y, do: [{tile: {sizes: {y: 32}}}, vectorize]}}"


@rule("inline", Example("blur", "[{at: {stage: blur_x, do: inline}}]"))
def inline(state: State, stage: str, into: Name | None = None) -> State | str:
    """A stage computed where it is read, in every nest that reads it, or in that of the output `into`.

        for y: for x: g(x, y) = a + b                for y: for x:
        for y: for x: f(x, y) = g(x, y) * 2    ->      f(x, y) = (a + b) * 2

    No output of the pipeline, without updates. Once for each time that it is read.
    """
    if state.definition(stage).updates:
        return "it has updates, which need memory"
    return placed(state, stage, into, lambda group, before, own: Placement(stage, INLINE, INLINE), "compute")


@rule("compute_at", Example("blur", "[{at: {stage: blur_x, do: {compute_at: {loop: y.inner}}}}]"))
def compute_at(state: State, stage: str, loop: Loop, into: Name | None = None) -> State | str:
    """A stage computed once an iteration of a loop of the nest that reads it: as much of it as this iteration needs.

        for y: for x: g(x, y) = ...             for y:
        for y: for x: f(x, y) = g(x, y)   ->      for x: g(x, y) = ...
                                                  for x: f(x, y) = g(x, y)

    In every nest that reads it, or in that of the output `into`; the nest has the loop, and what reads the stage is
    computed there or further in. It is stored there too, unless it was stored further out.
    """

    def made(group: Group, before: Placement | None, own: Group | None) -> Placement | str:
        if loop not in group.loops:
            return no_loop(group, loop)
        new = at_loop(state, stage, loop, before, own)
        kept = before is not None and before.compute != INLINE and _further_out(group, before.store, loop)
        return replace(new, store=before.store) if kept and before is not None else new

    return placed(state, stage, into, made, "compute")


@rule("fuse", Example("blur", "[{at: {stage: blur_x, do: fuse}}]"))
def fuse(state: State, stage: str, into: Name | None = None) -> State | str:
    """A stage in the nests that read it: computed once an iteration of their outermost loop.

        for y: for x: g(x, y) = ...             for y:
        for y: for x: f(x, y) = g(x, y)   ->      for x: g(x, y) = ...
                                                  for x: f(x, y) = g(x, y)

    In every nest that reads it, or in that of the output `into`; a nest has a loop.
    """

    def made(group: Group, before: Placement | None, own: Group | None) -> Placement | str:
        if not group.loops:
            return f"the nest of '{group.output}' has no loops"
        return at_loop(state, stage, group.loops[-1], before, own)

    return placed(state, stage, into, made, "compute")


@rule(
    "store_at",
    Example("blur", f"[{TILED}, {{at: {{stage: blur_x, do: [{{compute_at: {{loop: y.inner}}}}, "
                    "{store_at: {loop: y.outer}}]}}]"),
)  # fmt: skip
def store_at(state: State, stage: str, loop: Loop, fold: Flag = True, into: Name | None = None) -> State | str:
    """A stage kept for one iteration of a loop further out: what an iteration inside has left is not computed again.

        for yo:                                  for yo:
          for y:                                   allocate g
            allocate g                      ->     for y:
            for x: g(x, y) = ...                     for x: g(x, y) = ..., what is new of it
            for x: f(x, y) = g(x, y - 1..y)          for x: f(x, y) = g(x, y - 1..y)

    Of a stage that is computed at a loop; the loop is that one or one outside of it. `fold`: in a ring of the rows that
    are alive, where that is proved; otherwise whole.
    """
    for group in state.groups_with(stage):
        if into in (None, group.output) and loop not in group.loops:
            return no_loop(group, loop)
    return each_placement(state, stage, into, lambda p: replace(p, store=loop, fold=fold), "store")


@rule("store_circular", Example("blur", f"[{TILED}, {{at: {{stage: blur_x, do: {{store_circular: {{along: y}}}}}}}}]"))
def store_circular(
    state: State, stage: str, along: Name, compute: Loop | None = None, into: Name | None = None
) -> State | str:
    """A circular buffer of rows: a stage computed a row at a time, of which the rows that are read again are kept.

        for y: for x: g(x, y) = ...                   for yo:
        for yo:                                         allocate g, a ring of 3 rows
          for y:                                  ->    for y:
            for x: f(x, y) = g(x, y - 1..y + 1)           for x: g(x, y + 1) = ...
                                                          for x: f(x, y) = g(x, y - 1..y + 1)

    Its readers keep a window along the dim of the nest, and there is a loop outside of the inner one of that dim: the
    output is tiled. `compute`: a loop further in, where it is computed instead, such as the one over vectors.
    """

    def made(group: Group, before: Placement | None, own: Group | None) -> Placement | str:
        loop = inner(along)
        if loop not in group.loops:
            return no_loop(group, loop)
        outside = group.loops[group.loops.index(loop) + 1 :]
        if not outside:
            return f"there is no loop outside of '{loop}' to store it at: '{group.output}' is to be tiled first"
        if not _slides(state, _with_member(state, group, stage), stage, along):
            return f"its readers keep no window along '{along}'"
        if compute is not None and compute not in group.loops:
            return no_loop(group, compute)
        return replace(at_loop(state, stage, compute or loop, before, own), store=outside[0], fold=True)

    return placed(state, stage, into, made, "compute", "store")


@rule(
    "rotate_registers",
    Example(
        """
    format: 1
    name: row
    inputs: [{name: input, type: float32, dims: [x, y]}]
    stages:
      - {name: g, dims: [x, y], value: "2 * input(x, y) + input(x, y + 1)"}
      - {name: f, dims: [x, y], value: "g(x - 1, y) + g(x, y) + g(x + 1, y)"}
    outputs: [f]
    estimates: {f: [[0, 1000], [0, 1000]]}
    """,
        "[{at: {stage: f, do: [{tile: {sizes: {y: 32}}}, vectorize]}}, {rotate_registers: {stage: g}}]",
    ),
)
def rotate_registers(state: State, stage: str, into: Name | None = None) -> State | str:
    """A window of a stage along the row, kept in registers that rotate: computed once a vector, and never stored.

        for x:                              r0, r1 = g(x0 - 1), g(x0)
          f(x) = g(x - 1) + g(x) + g(x + 1)   ->   for x:
                                              r2 = g(x + 1)
                                              f(x) = r0 + r1 + r2
                                              r0, r1 = r1, r2

    In a nest that is vectorised, with a loop around the one over vectors; the stage has no updates and is read by
    shifts along the row, and so is all that is computed in that loop.
    """

    def made(group: Group, before: Placement | None, own: Group | None) -> Placement | str:
        if group.vector is None:
            return f"the nest of '{group.output}' is not vectorised"
        loop = inner(group.vector.dim)
        outside = group.loops[group.loops.index(loop) + 1 :]
        if not outside:
            return f"there is no loop around '{loop}'"
        members = _with_member(state, group, stage)
        row = state.facts.stages[stage].row
        follows = row is not None and members.followed(stage, row) == group.vector.dim
        vector = Vector(row, group.vector.lanes) if row is not None and follows else None
        return Placement(stage, loop, outside[0], True, "registers", (), vector)

    return placed(state, stage, into, made, "compute", "store", "storage")


def _further_out(group: Group, store: str, loop: str) -> bool:
    return store in group.loops and group.loops.index(store) > group.loops.index(loop)


def _with_member(state: State, group: Group, stage: str) -> Members:
    """The members of a nest, with a stage that joins it."""
    inside = {p.stage for p in group.placements} | {stage}
    return members_of(state.facts, group.output, (*(n for n in state.stages if n in inside), group.output))


def _slides(state: State, members: Members, stage: str, along: str) -> bool:
    """True if two iterations of the loop along a dim of the output read the same of the stage, but not all of it."""
    for reader in members.consumers[stage]:
        for loop, amount in members.facts.stages[reader].read_of[stage].reuse:
            own = loop in members.facts.stages[reader].dims
            if own and 0 < amount < FULL and members.followed(reader, loop) == along:
                return True
        if is_inline(state, reader) and _slides(state, members, reader, along):
            return True
    return False
