"""Rules about the loops of a stage: tiles, order, threads, vectors, unrolling, and how its results and reads pass
memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilesmith.scheduler.analysis.dependence import default_order
from tilesmith.scheduler.ir.schedule.schedule import Placement, Tile, UpdateLoops, Vector, dim_of, inner, outer
from tilesmith.scheduler.search.vectorize_and_parallelize import wide_vector_of
from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import State
from tilesmith.scheduler.strategies.steps.arguments import Bytes, Flag, Index, Lanes, Loop, Loops, Name, Names, Sizes
from tilesmith.scheduler.strategies.steps.members import each_placement, is_inline

NO_GROUP = "it has no loop nest of its own: it is computed inside of others"


@rule("tile", Example("blur", "[{at: {stage: blur_y, do: {tile: {sizes: {x: 64, y: 32}}}}}]"))
def tile(state: State, stage: str, sizes: Sizes) -> State | str:
    """Loops over tiles around the loops inside of them.

        for y:                  for y.outer in tiles of 32:
          for x:          ->      for y.inner in 32:
            f(x, y) = ...           for x.inner:
                                      f(x, y) = ...

    Of the output of a loop nest, along dims that every update keeps in place. A size of null is the whole extent.
    Threads stay at the outermost loop.
    """
    group = state.group(stage)
    if group is None:
        return NO_GROUP
    stages = state.definition(stage)
    unknown = [d for d in sizes if d not in stages.dims]
    if unknown:
        return f"it has no dim '{unknown[0]}'; dims: {', '.join(stages.dims)}"
    new = [d for d in stages.storage if d in sizes and group.tile(d) is None]
    tiles = {t.dim: t.size for t in group.tiles} | dict(sizes)
    loops = (*group.loops, *map(outer, new))
    made = replace(
        group,
        loops=loops,
        tiles=tuple(Tile(d, tiles[d]) for d in stages.storage if d in tiles),
        parallel=None if group.parallel is None else loops[-1],
    )
    return state.with_groups([made]).deciding(stage, "compute", *(f"tiles.{d}" for d in sizes))


@rule("reorder", Example("blur", "[{at: {stage: blur_y, do: {reorder: {loops: [y, x]}}}}]"))
def reorder(state: State, stage: str, loops: Loops, into: Name | None = None) -> State | str:
    """Loops in another order: those that are named, innermost first, in the places that they have together.

        for y:                for x:
          for x:         ->     for y:
            f(x, y) = ...         f(x, y) = ...

    Loops of a nest (`y.inner`, or `y` for it), or the dims of a stage that is computed inside of one (in all nests that
    have it, or in that of the output `into`).
    """
    group = state.group(stage)
    if group is None:
        dims = state.definition(stage).dims
        wrong = [loop for loop in loops if loop not in dims]
        if wrong:
            return f"it has no dim '{wrong[0]}'; dims: {', '.join(dims)}"

        def turned(p: Placement) -> Placement:
            return replace(p, order=_moved(p.order or state.definition(stage).storage, loops))

        return each_placement(state, stage, into, turned, "order")
    wanted = [loop if "." in loop else inner(loop) for loop in loops]
    wrong = [loop for loop in wanted if loop not in group.loops]
    if wrong:
        return f"it has no loop '{wrong[0]}'; loops, innermost first: {', '.join(group.loops) or 'none'}"
    made = replace(group, loops=_moved(group.loops, wanted))
    return state.with_groups([made]).deciding(stage, "compute", "loops")


@rule("parallel", Example("blur", "[{at: {stage: blur_y, do: [{tile: {sizes: {y: 32}}}, parallel]}}]"))
def parallel(state: State, stage: str, loop: Loop | None = None, threads: Flag = True) -> State | str:
    """The outermost loop, run by threads.

        for y:            ->    parallel for y:
          f(x, y) = ...           f(x, y) = ...

    Of the output of a loop nest; the loop, where one is named, is the outermost one. `threads: false` takes them away.
    """
    group = state.group(stage)
    if group is None:
        return NO_GROUP
    if threads and not group.loops:
        return "it has no loops"
    if loop is not None and loop != group.loops[-1:][0]:
        return f"'{loop}' is not its outermost loop, which is '{group.loops[-1]}'; reorder or tile it first"
    made = replace(group, parallel=group.loops[-1] if threads else None)
    return state.with_groups([made]).deciding(stage, "compute", "parallel")


@rule("vectorize", Example("blur", "[{at: {stage: blur_y, do: {vectorize: {lanes: 8}}}}]"))
def vectorize(
    state: State, stage: str, lanes: Lanes | None = None, dim: Name | None = None, into: Name | None = None
) -> State | str:
    """The innermost loop, by vectors.

        for x:            ->    for x by 8:
          f(x, y) = ...           f(x..x+7, y) = ...

    Along the innermost loop that is not unrolled; of a stage that is computed inside of others along any of its dims
    that is named. Without `lanes`: as many as registers of the machine have for what is computed; 1 is no vectors. Of
    a stage that is computed inside of nests: in all of them, or in that of `into`.
    """
    group = state.group(stage)
    if group is not None:
        rows = [dim_of(loop) for loop in group.loops if dim_of(loop) not in group.unroll]
        vector = _vector(state, stage, rows[:1], lanes, dim)
        if isinstance(vector, str):
            return vector
        return state.with_groups([replace(group, vector=vector)]).deciding(stage, "compute", "vector")
    placements = [p for g in state.groups_with(stage) if (p := g.placement(stage)) is not None]
    order = next((p.order for p in placements if p.order), state.definition(stage).storage)
    vector = _vector(state, stage, (dim,) if dim in order else order[:1], lanes, dim)
    if isinstance(vector, str):
        return vector
    said = () if vector is None else order
    return each_placement(state, stage, into, lambda p: replace(p, order=p.order or said, vector=vector), "vector")


@rule("unroll", Example("nl_means", "[{at: {stage: output, do: {unroll: {dims: [c]}}}}]"))
def unroll(state: State, stage: str, dims: Names) -> State | str:
    """Loops of few iterations, written out inside of all others: their points share what they read.

        for c in 3:                   for x:
          for x:               ->       f(x, 0) = ...
            f(x, c) = ...               f(x, 1) = ...
                                        f(x, 2) = ...

    Of the output of a loop nest, along dims of at most 32 iterations. No dims: nothing is unrolled.
    """
    group = state.group(stage)
    if group is None:
        return NO_GROUP
    stages = state.definition(stage)
    unknown = [d for d in dims if d not in stages.dims]
    if unknown:
        return f"it has no dim '{unknown[0]}'; dims: {', '.join(stages.dims)}"
    first = [inner(d) for d in reversed(stages.storage) if d in dims]
    loops = (*first, *(loop for loop in group.loops if loop not in first))
    made = replace(group, loops=loops, unroll=tuple(d for d in stages.storage if d in dims))
    return state.with_groups([made]).deciding(stage, "compute", "unroll")


@rule("stream", Example("blur", "[{at: {stage: blur_y, do: [vectorize, stream]}}]"))
def stream(state: State, stage: str, streaming: Flag = True) -> State | str:
    """Streaming (non-temporal) stores of whole vectors of the results.

        store f[x..x+7]    ->   store f[x..x+7], non-temporal

    Of the output of a loop nest that is vectorised along the dim that is fastest in memory, and has no updates.
    """
    group = state.group(stage)
    if group is None:
        return NO_GROUP
    return state.with_groups([replace(group, stream=streaming)]).deciding(stage, "compute", "stream")


@rule("prefetch", Example("blur", "[{at: {stage: blur_y, do: [vectorize, {prefetch: {bytes: 4096}}]}}]"))
def prefetch(state: State, stage: str, bytes: Bytes) -> State | str:
    """Software prefetch: elements of inputs and of other nests that a loop over vectors reads, so many bytes ahead.

        load g[x..x+7]     ->   prefetch g[x + ahead]; load g[x..x+7]

    Of the output of a loop nest; 0 leaves it to the machine.
    """
    group = state.group(stage)
    if group is None:
        return NO_GROUP
    return state.with_groups([replace(group, prefetch=bytes)]).deciding(stage, "compute", "prefetch")


@rule(
    "update_loops",
    Example("bilateral_grid", "[{at: {where: has updates, do: {update_loops: {update: 0, lanes: 1}}}}]"),
)
def update_loops(
    state: State,
    stage: str,
    update: Index,
    loops: Names = (),
    vector: Name | None = None,
    lanes: Lanes = 1,
    parallel: Name | None = None,
    into: Name | None = None,
) -> State | str:
    """The loops of an update, innermost first, by vectors along one of them and by threads over the outermost.

        for r:                     parallel for y:
          for y:            ->       for r:
            for x: f(x, y) += ...      for x by 8: f(x, y) += ...

    Every loop of the update once, in an order that computes the same; iterations of the loops for vectors and for
    threads are independent. Without `loops`: as they are.
    """
    definition = state.definition(stage)
    if update >= len(definition.updates):
        return f"it has {len(definition.updates)} updates"

    def scheduled(before: tuple[UpdateLoops, ...]) -> tuple[UpdateLoops, ...]:
        known = before or tuple(UpdateLoops(default_order(definition, u)) for u in definition.updates)
        own = UpdateLoops(
            loops or known[update].loops, Vector(vector, lanes) if vector and lanes > 1 else None, parallel
        )
        return (*known[:update], own, *known[update + 1 :])

    group = state.group(stage)
    if group is not None:
        return state.with_groups([replace(group, updates=scheduled(group.updates))])
    return each_placement(state, stage, into, lambda p: replace(p, updates=scheduled(p.updates)))


def lanes_of(state: State, stage: str) -> Vector | None:
    """The vector that the machine has for the stage, with what is inline in it."""
    pending, widest = [stage], 1
    while pending:
        facts = state.facts.stages[pending.pop()]
        widest = max(widest, facts.computed_bytes)
        pending += [r.producer for r in facts.reads if is_inline(state, r.producer)]
    return wide_vector_of(state.facts.stages[stage], widest, state.platform)


def _vector(
    state: State, stage: str, innermost: Iterable[str], lanes: int | None, dim: str | None
) -> Vector | str | None:
    """The vector along the innermost loop; why there is none."""
    row = next(iter(innermost), None)
    if lanes == 1:
        return None
    if row is None:
        return "it has no loop for vectors"
    if dim not in (None, row):
        return f"'{dim}' is not its innermost loop, which is over '{row}'; reorder first"
    if lanes is not None:
        return Vector(row, lanes)
    found = lanes_of(state, stage)
    if found is None or found.dim != row:
        return f"vectors of the machine do not fit along '{row}': name the lanes, or another loop innermost"
    return found


def _moved(loops: Iterable[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """The loops with those of `wanted` in its order, in the places that they have together."""
    rest = iter(wanted)
    named = set(wanted)
    return tuple(next(rest) if loop in named else loop for loop in loops)
