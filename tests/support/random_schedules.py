"""Random legal schedules of a pipeline, as broad as the rules of legality allow; the same seed gives the same one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from scheduler.analysis.graph import StageGraph, expressions, is_plain, stage_graph
from scheduler.lang.expr import Access, walk
from scheduler.lang.pipeline import Pipeline, Stage
from scheduler.legality import MAX_UNROLL
from scheduler.schedule import INLINE, Group, Placement, Schedule, Tile, Vector, inner, outer

TILE_SIZES = (None, None, 1, 2, 3, 4, 5, 7, 8, 13, 16, 32, 64)
LANES = (2, 4, 8, 16)


def random_schedule(pipeline: Pipeline, seed: int, registers: bool = False) -> Schedule:
    """A legal schedule of `pipeline`: grouping, levels, stores, tiles, orders, vectors, unrolling, threads,
    folding and inlining are all drawn; `registers` draws registers as storage too."""
    random = Random(seed)
    graph = stage_graph(pipeline)
    stages = {s.name: s for s in pipeline.stages}
    members, shared = _groups(random, graph, stages)
    groups = tuple(
        _group(random, pipeline, graph, stages, output, members[output], shared, registers) for output in members
    )
    return Schedule(pipeline.name, "random", groups, strict=random.random() < 0.3)


def _groups(
    random: Random, graph: StageGraph, stages: dict[str, Stage]
) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """Group outputs in order, each with its members; and the stages that are inline in several groups. Other stages
    that two groups read are outputs of their own."""
    cut = random.choice((0.0, 0.2, 0.5, 1.0))
    owners: dict[str, set[str]] = {}
    shared: set[str] = set()
    for name in reversed(graph.stages):
        readers = {o for c in graph.consumers[name] for o in owners[c]}
        alone = not is_plain(stages[name]) or name in graph.outputs or random.random() < cut
        alone = alone or not all(_may_hold(stages[o], name) for o in readers)
        if not alone and len(readers) > 1:
            alone = random.random() < 0.6
            if not alone:
                shared.add(name)
        owners[name] = {name} if alone else readers
    members: dict[str, list[str]] = {name: [] for name in graph.stages if owners[name] == {name}}
    for name in graph.stages:
        for owner in sorted(owners[name] - {name}):
            members[owner].append(name)
    return {output: tuple(names) for output, names in members.items()}, frozenset(shared)


def _may_hold(output: Stage, name: str) -> bool:
    """Whether `name` may be in the group of `output`: inside its loops, or inline in its pure values."""
    if is_plain(output):
        return True
    updates = replace(output, values=()) if output.updates else None
    return updates is None or not any(
        isinstance(node, Access) and node.name == name for e in expressions(updates) for node in walk(e)
    )


def _group(
    random: Random,
    pipeline: Pipeline,
    graph: StageGraph,
    stages: dict[str, Stage],
    output: str,
    members: tuple[str, ...],
    shared: frozenset[str],
    registers: bool,
) -> Group:
    stage = stages[output]
    if not is_plain(stage):
        inlined = tuple(Placement(name, INLINE, INLINE) for name in members)
        return Group(output, tuple(inner(d) for d in stage.storage), (), None, None, (), inlined)
    tiles = tuple(Tile(d, random.choice(TILE_SIZES)) for d in stage.dims if random.random() < 0.7)
    unroll = _unroll(random, pipeline, stage, tiles)
    vector = _vector(random, [d for d in stage.storage if d not in unroll])
    loops = _loops(random, stage, tiles, unroll, vector)
    free = [loop for loop in loops if loop not in {inner(d) for d in unroll}]
    parallel = None
    if free and loops[-1] == free[-1] and not (vector and loops[-1] == inner(vector.dim)) and random.random() < 0.6:
        parallel = loops[-1]
    placements: dict[str, Placement] = {}
    for name in reversed(members):
        if name in shared:
            placements[name] = Placement(name, INLINE, INLINE)
            continue
        consumers = _real_consumers(graph, name, placements, {*members, output})
        placements[name] = _placement(random, stages[name], free, loops, consumers, vector, registers)
    ordered = tuple(placements[name] for name in members)
    return Group(output, loops, tiles, parallel, vector, unroll, ordered)


def _unroll(random: Random, pipeline: Pipeline, stage: Stage, tiles: tuple[Tile, ...]) -> tuple[str, ...]:
    estimate = pipeline.estimate(stage.name)
    sizes = {d: 1 if estimate is None else estimate[n][1] for n, d in enumerate(stage.dims)}
    sizes.update({t.dim: t.size for t in tiles if t.size is not None})
    return tuple(d for d in stage.dims if sizes[d] <= min(8, MAX_UNROLL) and random.random() < 0.4)


def _vector(random: Random, dims: list[str]) -> Vector | None:
    if not dims or random.random() < 0.3:
        return None
    dim = dims[0] if random.random() < 0.85 else random.choice(dims)
    return Vector(dim, random.choice(LANES))


def _loops(
    random: Random, stage: Stage, tiles: tuple[Tile, ...], unroll: tuple[str, ...], vector: Vector | None
) -> tuple[str, ...]:
    intra = [inner(d) for d in stage.storage]
    inter = [outer(t.dim) for t in tiles]
    if random.random() < 0.6:
        random.shuffle(intra)
    if random.random() < 0.6:
        random.shuffle(inter)
    if random.random() < 0.6:  # unrolled loops innermost, as the search has them; anywhere otherwise
        intra.sort(key=lambda loop: loop not in {inner(d) for d in unroll})
    if vector is not None:
        loop = inner(vector.dim)
        intra.remove(loop)
        first = next((n for n, other in enumerate(intra) if other not in {inner(d) for d in unroll}), len(intra))
        intra.insert(random.randint(0, first), loop)
    return (*intra, *inter)


def _real_consumers(
    graph: StageGraph, name: str, placements: dict[str, Placement], inside: set[str]
) -> list[Placement | None]:
    """Placements of the readers of `name` that are not inline, None for the group's output."""
    found: list[Placement | None] = []
    pending, seen = [name], {name}
    while pending:
        for consumer in graph.consumers[pending.pop()]:
            if consumer in seen or consumer not in inside:
                continue
            seen.add(consumer)
            placement = placements.get(consumer)
            if placement is not None and placement.compute == INLINE:
                pending.append(consumer)
            else:
                found.append(placement)
    return found


def _placement(
    random: Random,
    stage: Stage,
    free: list[str],
    loops: tuple[str, ...],
    consumers: list[Placement | None],
    vector: Vector | None,
    registers: bool,
) -> Placement:
    """`free` are the loops of the group that are not unrolled: a level is one of these."""
    least = max(-1 if c is None else loops.index(c.compute) for c in consumers)
    levels = [loop for loop in free if loops.index(loop) >= least]
    if not levels or random.random() < 0.25:
        return Placement(stage.name, INLINE, INLINE)
    if registers and vector is not None and random.random() < 0.5:
        row = inner(vector.dim)
        at = loops.index(row)
        together = all(c is None or c.compute == row for c in consumers)
        further = loops[at + 1] if at + 1 < len(loops) else None
        if together and further in free:
            return Placement(stage.name, row, further, storage="registers", vector=_same(stage, vector))
    at = random.randrange(len(levels))
    store = at if random.random() < 0.3 else random.randrange(at, min(len(levels), at + 3))
    own = _vector(random, list(stage.storage))
    order = list(stage.storage)
    if random.random() < 0.5:
        random.shuffle(order)
    if own is not None:
        order.sort(key=lambda d: d != own.dim)
    return Placement(
        stage.name,
        levels[at],
        levels[store],
        fold=random.random() < 0.8,
        order=tuple(order) if own is not None or random.random() < 0.8 else (),
        vector=own,
    )


def _same(stage: Stage, vector: Vector) -> Vector | None:
    return Vector(vector.dim, vector.lanes) if vector.dim in stage.dims else None
