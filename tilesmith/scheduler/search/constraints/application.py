"""Groups with the decisions that the caller has fixed put into them: as they are, and with what has to follow.

*Before*: a group that the search would make. *After*: one that has everything that is fixed of its stages, if that can
be; whether it is legal is `legality`'s question. What is open stays as it was, but for what hangs on it: a producer is
computed no further in than its consumers, the parallel loop is the outermost one, the vector runs along the innermost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.schedule.primitives.parallel import NONE
from tilesmith.scheduler.ir.schedule.primitives.primitive import R
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Tile, Vector, dim_of, inner, outer
from tilesmith.scheduler.search.constraints.constraints import Fixed, FixedStage
from tilesmith.scheduler.search.params import PARAMS


def imposed(facts: Facts, group: Group, fixed: Fixed, threads: int) -> Iterator[Group]:
    """The group with what is fixed, once for each of a few tile sizes of the dims that are open; with the rows of its
    registers, and without."""
    for whole in (group, without_registers(group)):
        own = [fixed.of(p.stage) for p in whole.placements]
        levels = frozenset(loop for f in own for loop in (f.compute, f.store) if loop is not None and "." in loop)
        settled = _with_loops(facts, whole, fixed.of(group.output), levels)
        for sized in _sizes(facts, settled, fixed, threads):
            yield _with_members(facts, sized, fixed)


def without_registers(group: Group) -> Group:
    """The group with its rows kept in memory: what was computed at the vectorised loop is computed one loop further
    out, once a row."""
    if group.vector is None or all(p.storage == "memory" for p in group.placements):
        return group
    loop = inner(group.vector.dim)
    outside = group.loops[group.loops.index(loop) + 1 :]
    if not outside:
        return group
    placements = tuple(
        replace(p, compute=outside[0], storage="memory") if p.compute == loop else p for p in group.placements
    )
    return replace(group, placements=placements)


def _with_loops(facts: Facts, group: Group, fixed: FixedStage, levels: frozenset[str]) -> Group:
    """Loops, unrolled dims, threads and vectors of the group; tiles are there for every dim that has a tile fixed or
    an inter-tile loop named, also as one of `levels`, which are no unrolled loops."""
    stage = facts.stages[group.output]
    named = (*fixed.loops, *((fixed.parallel,) if fixed.parallel not in (None, NONE) else ()))
    named = (*named, *sorted(loop for loop in levels if dim_of(loop) in stage.dims))
    dims = [d for d, size in fixed.tiles if size is not None] + [dim_of(n) for n in named if n.endswith(".outer")]
    missing = [d for d in stage.storage if d in dims and group.tile(d) is None]
    loops = (*group.loops, *(outer(d) for d in missing))
    tiles = (*group.tiles, *(Tile(d, None) for d in missing))
    if fixed.parallel not in (None, NONE) and str(fixed.parallel).endswith(".inner") and not dims:
        loops, tiles = tuple(loop for loop in loops if loop.endswith(".inner")), ()
    looped = {dim_of(loop) for loop in named if loop.endswith(".inner") and loop not in fixed.loops}
    open_again = looped | {d for d, _ in fixed.tiles if d in group.unroll and group.tile(d) is not None}
    loops = _around_the_row(loops, [inner(d) for d in group.unroll if d in open_again], len(group.unroll))
    unroll = tuple(d for d in group.unroll if d not in open_again)
    if fixed.unroll is not None:
        unroll = tuple(d for d in stage.storage if d in fixed.unroll)
    if fixed.unroll is not None:
        first = [inner(d) for d in reversed(stage.storage) if d in unroll]
        loops = (*first, *(loop for loop in loops if loop not in first))
    if fixed.parallel not in (None, NONE):
        loops = (*(loop for loop in loops if loop != fixed.parallel), str(fixed.parallel))
    loops = _reordered(loops, fixed.loops)
    loops = _reordered(loops, [inner(d) for d in fixed.order])
    threads = group.parallel is not None or missing or fixed.parallel is not None
    parallel = None if fixed.parallel == NONE or not threads or not loops else loops[-1]
    row = next((dim_of(loop) for loop in loops if dim_of(loop) not in unroll), None)
    vector = _vector(group.vector, row, stage.storage, fixed)
    could = vector is not None and vector.dim == stage.storage[0]
    stream = group.stream and could
    group = replace(group, loops=loops, tiles=tiles, unroll=unroll, parallel=parallel, vector=vector, stream=stream)
    return _with_others(group, fixed)


def _with_others(record: R, fixed: FixedStage) -> R:
    """The record with what is fixed that hangs on nothing else."""
    for primitive, value in fixed.given:
        if primitive.stands_alone and type(record) in primitive.records:
            record = primitive.put(record, primitive.of_fixed(value))
    return record


def _around_the_row(loops: tuple[str, ...], opened: Sequence[str], unrolled: int) -> tuple[str, ...]:
    """The loops with those that are no longer unrolled just outside of the innermost one that never was."""
    rest = [loop for loop in loops if loop not in opened]
    row = unrolled - len(opened) + 1
    return (*rest[:row], *opened, *rest[row:])


def _vector(vector: Vector | None, row: str | None, storage: tuple[str, ...], fixed: FixedStage) -> Vector | None:
    """The vector along the innermost loop: none where that does not run along memory, unless lanes are fixed."""
    if row is None or fixed.vector == 1:
        return None
    if fixed.vector is not None:
        return Vector(row, fixed.vector)
    return Vector(row, vector.lanes) if vector is not None and row == storage[0] else None


def _reordered(loops: tuple[str, ...], wanted: Iterable[str]) -> tuple[str, ...]:
    """The loops with those of `wanted` in its order, in the places that they have together."""
    named = [loop for loop in wanted if loop in loops]
    rest = iter(named)
    return tuple(next(rest) if loop in named else loop for loop in loops)


def _sizes(facts: Facts, group: Group, fixed: Fixed, threads: int) -> Iterator[Group]:
    """The tiles that are fixed, and of the outermost open dim some sizes."""
    stage = facts.stages[group.output]
    tiles = {t.dim: t.size for t in group.tiles}
    chosen = {d: _cut(fixed.tile(group.output, d, size), stage.extent(d)) for d, size in tiles.items()}
    named = {d for d, _ in fixed.of(group.output).tiles}
    free = [dim_of(loop) for loop in reversed(group.loops) if loop.endswith(".outer") and dim_of(loop) not in named]
    options: list[dict[str, int | None]] = [chosen]
    if free and named:
        extent = stage.extent(free[0])
        sizes = [_cut(n, extent) for n in (-(-extent // threads), extent, *PARAMS.fixed_other_tile_sizes)]
        options += [{**chosen, free[0]: n} for n in dict.fromkeys(sizes)]
    for option in options:
        yield replace(group, tiles=tuple(Tile(d, size) for d, size in option.items()))


def _cut(size: int | None, extent: int) -> int | None:
    return None if size is None or size >= extent else size


def _with_members(facts: Facts, group: Group, fixed: Fixed) -> Group:
    """Placements as they are fixed, from the output backwards; those that are open follow their consumers."""
    done: dict[str, Placement] = {}
    inside = {p.stage for p in group.placements} | {group.output}
    for p in reversed(group.placements):
        own = fixed.of(p.stage)
        levels = [_position(group, done, c, facts, inside) for c in facts.graph.consumers[p.stage] if c in inside]
        done[p.stage] = _placed(facts, group, p, own, fixed.inline(p.stage), max(levels, default=-1))
    return replace(group, placements=tuple(done[p.stage] for p in group.placements))


def _position(group: Group, done: dict[str, Placement], stage: str, facts: Facts, inside: set[str]) -> int:
    """The loop that a reader is computed at, -1 for the output; of one that is inline, that of its own readers."""
    if stage == group.output:
        return -1
    placement = done[stage]
    if placement.compute != INLINE:
        return group.loops.index(placement.compute) if placement.compute in group.loops else -1
    own = (_position(group, done, c, facts, inside) for c in facts.graph.consumers[stage] if c in inside)
    return max(own, default=-1)


def _placed(facts: Facts, group: Group, p: Placement, own: FixedStage, inline: bool | None, least: int) -> Placement:
    if inline or (inline is None and p.compute == INLINE):
        return Placement(p.stage, INLINE, INLINE)
    loops, stage = group.loops, facts.stages[p.stage]
    row = min(len(group.unroll) + 1, len(loops) - 1)
    compute = own.compute or (loops[max(row, least)] if p.compute == INLINE else p.compute)
    storage = own.storage or ("memory" if p.compute == INLINE else p.storage)
    if storage == "registers" and group.vector is not None and own.compute is None:
        compute = inner(group.vector.dim)
    if compute not in loops and own.compute is None:
        compute = loops[-1]
    if compute not in loops:
        return replace(p, compute=compute, store=compute)  # for legality to refuse
    at = loops.index(compute)
    if own.compute is None and at < least:
        compute, at, storage = loops[least], least, own.storage or "memory"
    store = own.store or (loops[at + 1] if storage == "registers" and at + 1 < len(loops) else p.store)
    if store not in loops or (own.store is None and loops.index(store) < at):
        store = compute
    order = p.order or stage.storage
    order = _reordered(tuple(order), own.order)
    vector = None if storage == "registers" else _row_vector(p, stage.storage, order, own, group.vector)
    fold = True if storage == "registers" else p.fold if p.compute != INLINE else True
    placed = Placement(p.stage, compute, store, fold, storage, order, vector, p.updates, p.attributes)
    return _with_others(placed, own)


def _row_vector(
    p: Placement, storage: tuple[str, ...], order: tuple[str, ...], own: FixedStage, group: Vector | None
) -> Vector | None:
    """Vectors along the stage's innermost loop, where it runs along memory; as many lanes as it had, or its group."""
    if not order or own.vector == 1:
        return None
    if own.vector is not None:
        return Vector(order[0], own.vector)
    known = p.vector or (group if p.compute == INLINE or p.storage == "registers" else None)
    return Vector(order[0], known.lanes) if known is not None and order[0] == storage[0] else None
