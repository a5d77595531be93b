"""Final choices (TACO 2019, 4.4): vectors, threads, the order of a member's own loops."""

from __future__ import annotations

from platforms.model import Platform
from scheduler.analysis.counts import Levels
from scheduler.analysis.facts import Facts, StageFacts, gather
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import INLINE, Group, Placement, Schedule, Tile, Vector, dim_of, inner
from scheduler.search.tiling import Tiling, few_iterations
from scheduler.search.updates import update_loops


def finished(tiling: Tiling, platform: Platform, strict: bool = False) -> Group:
    """The group that was decided: the innermost loop that is not unrolled is vectorised where it runs along memory,
    the outermost inter-tile loop is run by threads. Updates: see `search.updates`."""
    members, order = tiling.members, tiling.order
    output = members.facts.stages[members.output]
    inlined = {name for name, choice in tiling.choices.items() if choice.levels is None}
    computed_bytes = _computed_bytes(tiling, output.name, inlined)
    vector = None
    if dim_of(order.loops[order.unrolled]) == output.storage[0]:
        vector = vector_of(output, computed_bytes, platform)
    rings = {s.stage: s.folded for s in tiling.counts.stages}
    placements = []
    for name in members.names[:-1]:
        levels = tiling.choices[name].levels
        if levels is None:
            placements.append(Placement(name, INLINE, INLINE))
        else:
            size = _computed_bytes(tiling, name, inlined)
            placements.append(_placement(tiling, name, levels, rings[name], size, platform, strict))
    outermost = order.loops[-1]
    iterations = dict(tiling.counts.tile_counts)[dim_of(outermost)]
    return Group(
        members.output,
        order.loops,
        tuple(Tile(d, size) for d, size in tiling.sizes),
        outermost if float(iterations) > 1 else None,
        vector,
        tuple(dim_of(loop) for loop in order.loops[: order.unrolled]),
        tuple(placements),
        update_loops(members.facts, members.output, computed_bytes, platform, strict),
    )


def _placement(
    tiling: Tiling, name: str, levels: Levels, folded: bool, computed_bytes: int, platform: Platform, strict: bool
) -> Placement:
    """The stage's own loops: the smallest stride innermost, the dim of its compute level outermost (unless a vector of
    that is computed at once)."""
    members, loops = tiling.members, tiling.order.loops
    stage = members.facts.stages[name]
    along = dim_of(loops[levels.compute]) if levels.compute > tiling.order.innermost else None
    outermost = [d for d in stage.storage if along is not None and members.followed(name, d) == along]
    order = (*(d for d in stage.storage if d not in outermost), *outermost)
    vector = vector_of(stage, computed_bytes, platform)
    if vector is not None and order[0] != vector.dim:
        vector = None
    updates = update_loops(members.facts, name, computed_bytes, platform, strict)
    return Placement(name, loops[levels.compute], loops[levels.store], folded, "memory", order, vector, updates)


def _computed_bytes(tiling: Tiling, name: str, inlined: set[str]) -> int:
    """Bytes of the widest type that the stage computes with, and the stages inlined into it."""
    stages = tiling.members.facts.stages
    widest, pending, seen = 1, [name], {name}
    while pending:
        stage = stages[pending.pop()]
        widest = max(widest, stage.computed_bytes)
        for read in stage.reads:
            if read.producer in inlined and read.producer not in seen:
                seen.add(read.producer)
                pending.append(read.producer)
    return widest


def vector_of(stage: StageFacts, computed_bytes: int, platform: Platform) -> Vector | None:
    """As many lanes as a register of the platform has for the widest type, along the fastest dim; none where that
    is less than two, or the dim is shorter."""
    lanes = platform.vector_bytes // computed_bytes
    if not stage.storage or lanes < 2 or stage.extent(stage.storage[0]) < lanes:
        return None
    return Vector(stage.storage[0], lanes)


def root_group(
    facts: Facts,
    name: str,
    platform: Platform,
    inlined: frozenset[str] = frozenset(),
    strict: bool = False,
) -> Group:
    """The stage alone: whole extents, its outermost loop run by threads, vectorised along memory; those of `inlined`
    that it reads are computed in it. Threads share a dim that all updates keep in place, or else each update has
    threads of its own."""
    stage = facts.stages[name]
    here = _read_inline(facts, name, inlined)
    computed_bytes = max(facts.stages[n].computed_bytes for n in (name, *here))
    placements = tuple(Placement(p, INLINE, INLINE) for p in here)
    if not stage.dims:
        updates = update_loops(facts, name, computed_bytes, platform, strict, threads=True)
        return Group(name, (), (), None, None, (), placements, updates)
    unrolled = few_iterations(stage)
    whole = [d for d in stage.storage if d not in stage.pure]
    others = [d for d in stage.storage if d in stage.pure and d not in unrolled]
    first = [d for d in others if d == stage.storage[0]]
    looped = [*first, *whole, *(d for d in others if d not in first)]
    loops = (*(inner(d) for d in reversed(unrolled)), *map(inner, looped))
    shared = looped[-1] if len(looped) > 1 and looped[-1] in stage.pure else None
    parallel = inner(shared) if shared is not None and stage.extent(shared) > 1 else None
    vector = vector_of(stage, computed_bytes, platform)
    updates = update_loops(facts, name, computed_bytes, platform, strict, threads=parallel is None)
    return Group(name, loops, (), parallel, vector, unrolled, placements, updates)


def _read_inline(facts: Facts, name: str, inlined: frozenset[str]) -> tuple[str, ...]:
    """The stages of `inlined` that `name` reads, itself or through others of them, in topological order."""
    found: set[str] = set()
    pending = [name]
    while pending:
        new = [p for p in facts.graph.producers[pending.pop()] if p in inlined and p not in found]
        found.update(new)
        pending += new
    return tuple(n for n in facts.graph.stages if n in found)


def root_schedule(
    pipeline: Pipeline, platform: Platform, method: str = "root", strict: bool = False, degraded: str | None = None
) -> Schedule:
    """Every stage computed once, alone, in memory: the baseline, and the answer where there is no other."""
    return roots(gather(pipeline, strict=strict), platform, method, strict, degraded)


def roots(facts: Facts, platform: Platform, method: str, strict: bool, degraded: str | None) -> Schedule:
    """As `root_schedule`, of facts that are there already."""
    groups = tuple(root_group(facts, name, platform, strict=strict) for name in facts.graph.stages)
    return Schedule(facts.pipeline.name, method, groups, strict, degraded)
