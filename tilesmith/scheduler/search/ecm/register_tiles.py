"""Register tiles of a group's output: which points of a long reduction are computed together, as a move of the search.

Of a product of matrices some rows times some vectors are: so many sums run side by side that none waits for itself,
and what is loaded is used by all of a row or a column of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from math import ceil, gcd, inf

from tilesmith.cost_models.interface import IN_CORE
from tilesmith.platforms import CpuPlatform, Platform
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.register_tiles import shares_loads
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction, long_sums
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner, outer
from tilesmith.scheduler.search.ecm.loop_structures import shapes
from tilesmith.scheduler.search.ecm.pricing import GroupCandidate, Pricing
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder, nested
from tilesmith.scheduler.search.taco2019.tiling import beside, tiled_dims
from tilesmith.scheduler.search.tile_sizes import LoopStructure, Sized, structure_of
from tilesmith.scheduler.search.vectorize_and_parallelize import output_vector


def register_tiles(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> Iterator[GroupCandidate]:
    """The plan with register tiles, of all sizes for which there are registers: along each dim whose points share
    vectors, in the orders of tiles in which what is shared by most of them stays near. Of those that take as long as
    the best, as far as a model can tell, it is the one that takes least where other programs have most of the caches
    that are shared: the others are left out that cost less than that."""
    found = _all_sizes(pricing, plan, members, sized)
    least = min((p.total for p in found), default=inf) * (1 + PARAMS.same_tiles)
    near = [p for p in found if p.total <= least and p.counts is not None]
    if len(near) > 1:
        crowded = _crowded(pricing.platform)
        best = min(near, key=lambda p: float(pricing.model.total(p.counts, crowded)) if p.counts else inf)
        found = [p for p in found if p is best or p.total > best.total]
    yield from found


@lru_cache(maxsize=64)
def _crowded(platform: Platform) -> Platform:
    """The machine with as much of the caches that are shared as other programs leave."""
    if not isinstance(platform, CpuPlatform):
        return platform
    caches = [
        c.model_copy(update={"size_bytes": int(c.size_bytes * PARAMS.left_of_shared_cache)})
        if c.shared_by_threads > platform.threads_per_core
        else c
        for c in platform.caches
    ]
    return platform.model_copy(update={"caches": tuple(caches)})


def _all_sizes(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> list[GroupCandidate]:
    """The plans with every register tile, in every order. In the first order all are priced; in the others, where
    nothing but the best is asked for, those for which the core alone does not take longer than the best plan: it takes
    as long in any order, and longer in panels, which have more rows."""
    steps = list(_steps(pricing, plan, members, sized))
    firsts: list[list[GroupCandidate]] = []
    for ways in steps:
        if pricing.expired():
            return [p for found in firsts for p in found]
        firsts.append(list(_priced(pricing, plan, members, sized, *ways[0])))
    least, found = min([plan.total, *(p.total for of in firsts for p in of)]), list[GroupCandidate]()
    for ways, first in zip(steps, firsts, strict=True):
        found += first
        core = min((_in_core(pricing, p) for p in first), default=0.0) if not pricing.alternatives else 0.0
        for order, tiles in ways[1:]:
            if core > least * (1 + PARAMS.same_tiles) or pricing.expired():
                break
            priced = list(_priced(pricing, plan, members, sized, order, tiles))
            least = min([least, *(p.total for p in priced)])
            found += priced
    return found


def _in_core(pricing: Pricing, plan: GroupCandidate) -> float:
    """The time that cores take for the output of a plan, were all data in the first level, and as much for each thread;
    0 where the model does not tell."""
    if plan.counts is None:
        return 0.0
    terms = pricing.model.price(plan.counts, _one_thread(pricing.platform)).stages[-1].terms
    return next((float(t.value) for t in terms if t.name == IN_CORE), 0.0) / pricing.platform.threads


@lru_cache(maxsize=64)
def _one_thread(platform: Platform) -> Platform:
    return platform.model_copy(update={"threads": 1}) if isinstance(platform, CpuPlatform) else platform


def _steps(
    pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized
) -> Iterator[list[tuple[LoopOrder, dict[str, int]]]]:
    """The orders of tiles of every register tile for which there are registers, with the sizes of these."""
    facts = pricing.facts
    output, row = facts.stages[members.output], facts.stages[members.output].row
    inside = {n: facts.definitions[n] for n, c in sized.shape.choices.items() if c.levels is None}
    stage = facts.definitions[members.output]
    if row is None or beside(output) or sized.shape.order.whole or not has_long_reduction(stage, inside):
        return
    tiled = tiled_dims(output)
    sums = max(1, ceil(long_sums(stage, inside, sized.shape.reads[members.output].executed)))
    for dim in (d for d in output.storage if d in output.pure):  # of few points, too
        if dim == row or row not in tiled or not shares_loads(stage, dim, row, inside):
            continue
        near = _rows_in_first_level(pricing, output, dim)
        for vectors in (1, 2, 4):
            for points in _points(output.extent(dim), vectors, sums, near, pricing):
                # where points are left, a thread would have two tiles: the last, and the one that it is moved back over
                left = output.extent(dim) % points > 0
                listed = _orders(output, sized.shape.order, dim, points, row, vectors)
                ways = [way for way in listed if not (left and way[0].loops[-1] == outer(dim))]
                if ways:
                    yield ways


def _rows_in_first_level(pricing: Pricing, output: StageFacts, dim: str) -> int:
    """The most rows of neighbours along a dim that the first level has a line of each of at once: where they lie a
    multiple of its sets apart, as many as it has ways."""
    first, most = pricing.platform.caches[0], PARAMS.register_tile_points
    for read in output.reads:
        producer = pricing.facts.stages[read.producer]
        for spans in (spans for spans, _ in read.several or ((read.roughly, 0.0),)):
            for d, span in zip(producer.dims, spans, strict=True):
                if span.known and span.var == dim:
                    step = int(abs(float(span.rate))) * producer.apart.get(d, 1) * producer.bytes_per_point
                    way = first.size_bytes // first.ways
                    most = min(most, first.ways * max(1, way // gcd(step, way)))
    return most


def _points(extent: int, vectors: int, sums: int, near: int, pricing: Pricing) -> list[int]:
    """Points along a dim of which each has so many vectors of so many sums in registers, beside one of each that they
    share and an element for all lanes: as many as cut the dim into the fewest tiles that there are registers for, or
    into one more, and as divide it. Not more than rows that are `near`."""
    most = (pricing.platform.vector_registers - vectors - 1) // (vectors * sums)
    if not 1 <= vectors <= pricing.platform.vector_unit.registers_per_value or most < 2:
        return []
    most = min(most, near)
    divisors = [n for n in range(most, 1, -1) if extent % n == 0][: PARAMS.register_tile_sizes]
    fewest = -(-extent // most)
    even = (-(-extent // tiles) for tiles in (fewest, fewest + 1))
    return sorted({*divisors, *(n for n in even if n > 1)}, reverse=True)


def _orders(
    output: StageFacts, order: LoopOrder, dim: str, points: int, row: str, vectors: int
) -> Iterator[tuple[LoopOrder, dict[str, int]]]:
    """Orders with the points unrolled inside of the row's vectors, and sizes of tiles that they have beside those of
    the plan: the order as it is, with dims of few iterations outside of the vectors; with tiles of the row outermost,
    of as many points as a step has, which is a panel (size 0); and with all other dims outside of the tiles, so that
    one point of those has all tiles in turn, which read again what that point needs; each of them outermost, as threads
    share that loop."""
    intra = [loop for loop in order.loops if loop == inner(dim_of(loop))]
    inter = [loop for loop in order.loops if loop != inner(dim_of(loop))]
    if outer(dim) not in inter:  # of few points, that were computed together
        inter.insert(0, outer(dim))
    short = [loop for loop in intra[: order.unrolled] if loop not in (inner(dim), inner(row))]
    others = [loop for loop in intra[order.unrolled :] if loop not in (inner(dim), inner(row))]
    inside = (inner(dim), inner(row), *others, *short)
    apart = [loop for loop in inter if loop not in (outer(dim), outer(row))]
    whole: dict[str, int] = {}
    panel = {row: 0}
    ways: list[tuple[tuple[str, ...], dict[str, int]]] = [
        (tuple(inter), whole),
        ((outer(row), outer(dim), *apart), whole),
        ((outer(row), *apart, outer(dim)), whole),
        ((outer(dim), *apart, outer(row)), panel),
        ((outer(dim), outer(row), *apart), panel),
    ]
    around = [d for d in output.storage if d in output.pure and d not in (dim, row) and output.extent(d) > 1]
    for last in around:
        outside = [outer(d) for d in (*(d for d in around if d != last), last)]
        ways.append(((outer(row), outer(dim), *outside), dict.fromkeys(around, 1)))
    known = []
    for way in ways:
        if way not in known:
            known.append(way)
            yield LoopOrder((*inside, *way[0]), 1, rows=((dim, points),), vectors=vectors), way[1]


def _priced(
    pricing: Pricing,
    plan: GroupCandidate,
    members: Members,
    sized: Sized,
    order: LoopOrder,
    tiles: Mapping[str, int],
) -> Iterator[GroupCandidate]:
    output = pricing.facts.stages[members.output]
    for _, shape in shapes(members, order, (plan.kind,), pricing.platform):
        shape = _with_panels(members, shape)
        vector = output_vector(members, order, shape.choices, pricing.platform)
        if vector is None or output.extent(vector.dim) < vector.lanes or _has_rows_inside(shape):
            continue
        sizes = {**sized.sizes, vector.dim: output.extent(vector.dim), **dict(order.rows)}
        sizes |= {d: n or _panel(output.extent(d), vector.lanes) for d, n in tiles.items()}
        yield pricing.priced(plan.segment, members, replace(shape, prefetch=0), sizes, plan.kind)


def _panel(extent: int, lanes: int) -> int:
    """The columns of the narrowest panel of which the last has a vector, too: with fewer it would have none."""
    return next((n for n in range(lanes, extent, lanes) if extent % n == 0 or extent % n >= lanes), extent)


def _with_panels(members: Members, shape: LoopStructure) -> LoopStructure:
    """The shape with what does not move with loops over tiles computed outside of these: a panel for all their
    tiles."""
    order, choices = shape.order, dict(shape.choices)
    first = len(order.intra_loops)
    for name, choice in shape.choices.items():
        if choice.levels is None or choice.levels.registers or choice.levels.compute < first:
            continue
        moving = {span.var for span in members.follows[name].values()}
        at = choice.levels.compute
        while at < len(order.loops) - 1 and dim_of(order.loops[at]) not in moving:
            at += 1
        if at > choice.levels.compute:
            reason = f"{choice.reason}; it is the same for all tiles inside of {order.loops[at]}: a panel for these"
            choices[name] = Choice(order.levels(at, max(at, choice.levels.store)), reason, "register tiles")
    return shape if choices == shape.choices else structure_of(members, order, nested(members, choices, order))


def _has_rows_inside(shape: LoopStructure) -> bool:
    """True if something is computed in the loop over vectors, which has no registers left."""
    return any(levels.compute <= shape.order.innermost for levels in shape.levels.values())
