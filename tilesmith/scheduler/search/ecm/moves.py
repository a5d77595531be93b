"""Moves of the local search around the best plan of a group. Each yields the plans that it priced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, inf, log2

import numpy as np

from tilesmith.cost_models.ecm import waits
from tilesmith.platforms import Platform
from tilesmith.platforms.base import in_flight_bytes
from tilesmith.scheduler.features.groups.circulating_bytes import circulating_bytes
from tilesmith.scheduler.features.groups.fusion_group import FEW, Members
from tilesmith.scheduler.features.groups.inlined_places import INLINED_READS, inlined_places
from tilesmith.scheduler.features.groups.unroll_and_jam import ROWS_TOGETHER
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.features.pipeline.streaming_stores import line_vectors
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Vector, dim_of
from tilesmith.scheduler.search.ecm.loop_structures import FUSED_FIRST, neighbours, shapes
from tilesmith.scheduler.search.ecm.pricing import GroupCandidate, Pricing
from tilesmith.scheduler.search.ecm.register_tiles import register_tiles
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.levels import LoopOrder
from tilesmith.scheduler.search.taco2019.tiling import in_bands, side_by_side, tiled_dims
from tilesmith.scheduler.search.tile_sizes import LoopStructure, Sized, structure_of
from tilesmith.scheduler.search.vectorize_and_parallelize import output_vector


def reordered(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> Iterator[GroupCandidate]:
    """In the other orders of the loops, where strips are too few for the threads, or of more than two dims."""
    segment, shape = plan.segment, sized.shape
    output = pricing.facts.stages[segment.output]
    enough = output.extent(dim_of(shape.order.loops[-1])) >= pricing.platform.threads * PARAMS.strips_per_thread
    if enough and len(tiled_dims(output)) <= 2:
        return
    for order in pricing.orders(members, output):
        if order.loops == shape.order.loops:
            continue
        if pricing.expired():
            return
        sizes = pricing.strips(members, order)
        for _, other in shapes(members, order, (plan.kind,), pricing.platform):
            yield pricing.priced(segment, members, other, sizes, plan.kind)


def resized(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> Iterator[GroupCandidate]:
    """The plan with the best of all tile sizes."""
    if sized.shape.order.rows:
        return
    found = pricing.sizing(members).cheapest(sized.shape)
    if isinstance(found, Sized) and (not found.shape.prefetch or whole_rows(pricing, plan, found)):
        yield replace(plan, total=found.total, sized=found)


def refined(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> Iterator[GroupCandidate]:
    """One stage after the other done differently, as long as that pays."""
    shape, sizes = sized.shape, sized.sizes
    tries = max(PARAMS.fewest_single_changes, PARAMS.single_changes // len(members.names))
    for name in reversed(members.names[:-1]):
        for other in neighbours(members, shape, name, pricing.platform):
            if tries == 0 or pricing.expired():
                return
            tries -= 1
            tried = pricing.priced(plan.segment, members, other, sizes, plan.kind)
            simpler = other.choices[name].levels is None  # without a buffer: whatever it pays
            if tried.total < plan.total * (1.0 if simpler else PARAMS.pays):
                plan, shape = tried, other
                yield plan


def past_caches(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> Iterator[GroupCandidate]:
    """The plan with software prefetch, and with streaming stores of its output, which it must not have for less than a
    model can tell: whoever reads it next waits for memory."""
    if _vector(pricing, members, sized.shape) is None:
        return
    asking, gains = _asking(pricing, plan, members, sized), _gains(pricing, plan)
    if asking is not None and gains:
        yield asking
    best = plan if asking is None else min(plan, asking, key=lambda p: p.total)
    shape = sized.shape if best.sized is None else best.sized.shape
    if not _streams(pricing, members, shape):
        return
    past = pricing.priced(plan.segment, members, replace(shape, stream=True), sized.sizes, plan.kind)
    if best.total * PARAMS.pays <= past.total and (past.total < best.total or not gains):
        return
    if shape.prefetch and not _gains(pricing, past):
        past = pricing.priced(plan.segment, members, replace(sized.shape, stream=True), sized.sizes, plan.kind)
    yield past


def _asking(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> GroupCandidate | None:
    """The plan with software prefetch; None where that asks for what is another tile's, or for what hardware brings
    from the last level."""
    if not whole_rows(pricing, plan, sized) or (_hindered(pricing) and _found_near(pricing, members)):
        return None
    ahead = replace(sized.shape, prefetch=ahead_bytes(pricing.platform, _rows_at_once(plan)))
    return pricing.priced(plan.segment, members, ahead, sized.sizes, plan.kind)


def _gains(pricing: Pricing, plan: GroupCandidate) -> bool:
    """False if requests come in the way of hardware and the plan walks along many rows, which hardware follows. Those
    that it stores past the caches are none of these."""
    return not (_hindered(pricing) and PARAMS.asked_rows < _rows_at_once(plan) <= pricing.platform.core.prefetch.rows)


def rows_side_by_side(
    pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized
) -> Iterator[GroupCandidate]:
    """Several rows in one loop over vectors, so that they share what they load, and what is computed for them: of each
    dim that can be the loop around that one."""
    shape = sized.shape
    vector, output = _vector(pricing, members, shape), pricing.facts.stages[plan.segment.output]
    if vector is None or output.extent(vector.dim) < PARAMS.side_by_side_row_vectors * vector.lanes:
        return
    for order in _around_first(shape.order, tiled_dims(output)):
        yield from _side_by_side_in(pricing, plan, members, sized, order)


def _around_first(order: LoopOrder, tiled: Sequence[str]) -> Iterator[LoopOrder]:
    """The order, and those with each other tiled dim in the loop around the innermost one."""
    yield order
    at = order.innermost + 1
    for loop in order.intra_loops[at + 1 :]:
        if dim_of(loop) in tiled and not order.whole:
            others = [other for other in order.loops if other != loop]
            yield replace(order, loops=(*others[:at], loop, *others[at:]))


def _side_by_side_in(
    pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized, around: LoopOrder
) -> Iterator[GroupCandidate]:
    """Several rows of the loop around the innermost one of that order. None is written past the caches: images lie
    alike in their pages, so that what is read for a row lies where a row before was written, and a load that agrees
    with a store in the bits within a page waits until that has left the core: past the caches tens of cycles. Rows that
    hardware follows are not asked for."""
    followed = pricing.platform.core.prefetch.asked_rows_factor > 1.0
    shape, output = sized.shape, pricing.facts.stages[plan.segment.output]
    for n in PARAMS.rows_side_by_side:
        order = side_by_side(members, around, tiled_dims(output), n)
        # of each stage that is kept there a vector is held for each row
        if order is None or n * len(shape.levels) >= pricing.platform.vector_registers or pricing.expired():
            continue
        sizes = {**sized.sizes, **dict(order.rows)}
        # a band in memory holds little of what the next one reads
        made = shapes(members, order, FUSED_FIRST, pricing.platform)
        found = next((m for m in made if all(at.registers for at in m[1].levels.values())), None)
        if found is None:
            return
        kind, other = found
        inlined = {name for name, choice in other.choices.items() if choice.levels is None}
        if n * inlined_places(members, inlined) > INLINED_READS:
            continue
        asks = not followed and whole_rows(pricing, plan, Sized(other, sizes, inf))
        ahead = ahead_bytes(pricing.platform) if asks else 0
        ways = [replace(other, prefetch=n) for n in dict.fromkeys((ahead, 0))]
        tried = [pricing.priced(plan.segment, members, way, sizes, kind) for way in ways]
        enough = plan.total * PARAMS.rows_pay
        yield from (t for t in tried if t.total <= enough)
        if not enough < min(t.total for t in tried) <= plan.total * PARAMS.rows_far:
            return


def bands(pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized) -> Iterator[GroupCandidate]:
    """The plan with stages that slide along rows sliding along a few rows at a time: in bands as wide as they can be
    shared out evenly, and narrower ones as long as that pays."""
    shape = sized.shape
    output = pricing.facts.stages[plan.segment.output]
    found = in_bands(members, shape.order, shape.choices, tiled_dims(output), ROWS_TOGETHER)
    if found is None:
        return
    order, choices = found
    other = replace(structure_of(members, order, choices), stream=shape.stream)
    whole = {d: output.extent(d) for d in tiled_dims(output)}
    shared = pricing.sizing(members).axes.of(dim_of(order.loops[order.innermost]))[dim_of(order.loops[-1])]
    even = np.ravel(shared.sizes)[np.ravel(shared.counts) % pricing.platform.threads == 0]
    least = inf
    for size in even.tolist():
        sizes = {**whole, **dict(order.rows), shared.dim: size}
        tried = pricing.priced(plan.segment, members, other, sizes, plan.kind)
        yield tried
        if tried.total >= least:
            return
        least = tried.total


def two_vectors_a_step(
    pricing: Pricing, plan: GroupCandidate, members: Members, sized: Sized
) -> Iterator[GroupCandidate]:
    """Twice as many lanes in each step of the loop over vectors, where steps wait for their own operations for longer
    than they compute: a core looks too little ahead to begin the next one meanwhile, but finds the other half of this
    one. Points that are unrolled, and long sums, are side by side as they are."""
    shape, output = sized.shape, pricing.facts.stages[members.output]
    vector, inside = _vector(pricing, members, shape), _inlined_stages(members, shape)
    if vector is None or output.extent(vector.dim) < 2 * PARAMS.wide_row_vectors * vector.lanes or shape.order.unrolled:
        return
    definition = members.facts.definitions[members.output]
    if definition.updates or has_long_reduction(definition, inside):
        return
    if plan.counts is None or not waits(plan.counts, pricing.platform):
        return
    for n in range(2, pricing.platform.vector_unit.registers_per_value + 1):
        other = replace(shape, order=replace(shape.order, vectors=n))
        wider = _vector(pricing, members, other)
        if wider is not None and wider.lanes == 2 * vector.lanes:
            other = replace(other, stream=shape.stream and _streams(pricing, members, other))
            tried = pricing.priced(plan.segment, members, other, sized.sizes, plan.kind)
            if tried.total < plan.total * PARAMS.pays:
                yield tried


def _inlined_stages(members: Members, shape: LoopStructure) -> dict[str, Stage]:
    return {n: members.facts.definitions[n] for n, c in shape.choices.items() if c.levels is None}


def _vector(pricing: Pricing, members: Members, shape: LoopStructure) -> Vector | None:
    return output_vector(members, shape.order, shape.choices, pricing.platform)


def _streams(pricing: Pricing, members: Members, shape: LoopStructure) -> bool:
    """Legality and use of streaming stores of the output: by whole lines, which several vectors of a row with stages in
    registers make together, of what nobody finds in the caches afterwards, on machines whose copies gain by them: what
    stores save in the caches is in that time."""
    p = pricing.platform.ecm_parameters
    if p.streaming_store_factor >= p.write_allocate_factor:
        return False
    output, vector = members.facts.definitions[members.output], _vector(pricing, members, shape)
    if vector is None or vector.dim != output.storage[0] or output.updates:
        return False
    line, streamed = pricing.platform.line_bytes, pricing.platform.vector_unit.streamed_bytes
    lines = {line_vectors(vector.lanes * t.bytes, line, streamed) for t in output.types}
    together = any(at.registers for at in shape.levels.values())
    return _leaves_caches(pricing, members) and (min(lines) > 0 if together else lines == {1})


def whole_rows(pricing: Pricing, plan: GroupCandidate, sized: Sized) -> bool:
    """True if rows are read in order, as far as is known, and whole: what lies ahead of a shorter one is another
    tile's."""
    output = pricing.facts.stages[plan.segment.output]
    along = output.row or ""
    few = inf if _rows_at_once(plan) > pricing.platform.core.prefetch.rows else FEW
    for found in sized.shape.reads.values():
        for read in found.reads:
            if read.producer not in plan.segment.names and not _in_order(pricing, read, few):
                return False
    return pricing.platform.prefetcher and sized.sizes.get(along, output.extent(along)) >= output.extent(along)


def _in_order(pricing: Pricing, read: Read, few: float) -> bool:
    """True if no dim of what is read of more than `few` points is gone through anew, or anywhere, for each point. Rows
    of a loop that walks along many go on side by side."""
    few = FEW if read.looked_up else few
    producer = pricing.facts.stages[read.producer]
    spans = zip(producer.dims, read.spans, strict=True)
    return all(producer.extent(d) <= FEW or (s.known and (s.var or s.extent(1) <= few)) for d, s in spans)


def _leaves_caches(pricing: Pricing, members: Members) -> bool:
    """True if nobody finds the output in the caches after its group: it is too large, or the caller has it, and it
    does not stay until the next call."""
    stage, llc = pricing.facts.stages[members.output], pricing.platform.llc_bytes
    large = stage.root_points * stage.bytes_per_point > llc
    return large or (
        stage.name in pricing.facts.graph.outputs
        and circulating_bytes(members) > llc * PARAMS.stays_share_of_last_level
    )


def _hindered(pricing: Pricing) -> bool:
    """True if requests come in the way of prefetchers of hardware."""
    return pricing.platform.core.prefetch.asked_rows_factor > 1.0


def _found_near(pricing: Pricing, members: Members) -> bool:
    """True if the last level surely has from call to call what the group reads, whatever others have of that, so that
    hardware brings it from there by itself; or probably, of rows that it follows best."""
    platform = pricing.platform
    if platform.caches[-1].shared_by_threads == 1:
        kept = PARAMS.stays_share_of_last_level
    elif _read_in_order(members):
        kept = PARAMS.found_share_of_shared_cache
    else:
        kept = PARAMS.left_of_shared_cache
    return circulating_bytes(members) <= platform.llc_bytes * kept


def _read_in_order(members: Members) -> bool:
    """True if no row from outside of the group is read backwards, or but for some of its elements."""
    stages = members.facts.stages
    reads = (r for name in members.names for r in stages[name].reads if not members.is_local(r.producer))
    return all(0 <= s.rate <= 1 for r in reads for s in r.spans if s.known)


def ahead_bytes(platform: Platform, rows: float = 0.0) -> int:
    """The distance along a row, in bytes, of a software prefetch, where so many rows are walked along at once: a power
    of two that covers what memory has on its way to a thread. Of more rows than hardware follows as far as all of them
    stay in the second level until they are read, in whole lines."""
    core, line = platform.core.prefetch, max(1, platform.line_bytes)
    if rows <= core.rows:
        return min(1 << ceil(log2(max(in_flight_bytes(platform), line))), core.furthest_bytes)
    each = int(platform.l2_bytes / PARAMS.prefetched_rows_parts_of_l2 / rows)
    return min(each // line * line, core.furthest_bytes)


def _rows_at_once(plan: GroupCandidate) -> float:
    """The most rows of images that a loop of the plan walks along side by side."""
    works = [] if plan.counts is None else [s.work for s in plan.counts.stages if s.work is not None]
    return max([sum(w.walked for w in works if w.in_output), *(w.walked for w in works)], default=0.0)


MOVES = (reordered, resized, refined, past_caches, rows_side_by_side, register_tiles, bands, two_vectors_a_step)
