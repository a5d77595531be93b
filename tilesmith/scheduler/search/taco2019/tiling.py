"""Alg. 3 of TACO 2019: the order of the loops of a group, with the best tile sizes for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice, permutations
from math import prod

from tilesmith.cost_models.interface import CostModel
from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.reuse import FULL
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT, Levels
from tilesmith.scheduler.features.groups.unroll_and_jam import rows_together
from tilesmith.scheduler.features.pipeline.pipeline_features import StageFacts
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner, outer
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.inlining import levels_of
from tilesmith.scheduler.search.taco2019.levels import Choice, LoopOrder
from tilesmith.scheduler.search.tile_sizes import Axes, LoopStructure, Sized, Sizing, Tiling, structure_of
from tilesmith.scheduler.search.trace import Infeasible, Rejected


def tile_group(
    members: Members,
    platform: Platform,
    model: CostModel,
    expired: Callable[[], bool],
    candidates: int = PARAMS.paper_tile_sizes,
) -> Tiling | Infeasible:
    """TACO 2019, Alg. 3: for every order of the intra-tile and of the inter-tile loops Alg. 1 and 2, then the
    cheapest valid tile sizes; the cheapest of all orders. Equal costs are settled by larger tiles, and by the
    order whose fastest dim is innermost. Orders whose innermost loop does not run along memory have no vectors, which
    the cost does not know: they are for groups of one stage that has no other valid tile. When `expired`, the best of
    the orders that were costed."""
    output = members.facts.stages[members.output]
    few = few_iterations(output)
    tiled = tuple(d for d in output.storage if d in output.pure and d not in few)
    unrolled = unrolled_dims(members, few)
    if not tiled:
        return Infeasible(no_loop_to_tile(output))
    best: Sized | None = None
    failed: list[Rejected] = []
    beaten: list[Rejected] = []
    sizing = Sizing(members, platform, model, Axes(members, tiled, platform, candidates))
    shapes: dict[tuple[str, ...], LoopStructure] = {}
    for order in orders(output, tiled, few, unrolled):
        if best is not None and expired():
            break
        if not order.vectorised and (best is not None or len(members.names) > 1):
            failed.append(Rejected(" ".join(order.loops), "its innermost loop does not run along memory"))
            continue
        found = sizing.cheapest(_paper_shape(members, order, shapes))
        if isinstance(found, Infeasible):
            failed.append(Rejected(" ".join(order.loops), found.reason))
        elif best is None or found.total < best.total * (1 - PARAMS.paper_same_cost) - PARAMS.paper_same_cost:
            if best is not None:
                beaten.append(Rejected(best.describe(output), "costs more", best.total))
            best = found
        else:
            beaten.append(Rejected(found.describe(output), "costs no less", found.total))
    if best is None:
        return Infeasible(failed[0].reason)
    return Tiling(sizing, best, (*beaten, *failed))


def no_loop_to_tile(output: StageFacts) -> str:
    """Why a stage without pure dims is no group of tiles."""
    why = "has no dims" if not output.dims else "has updates that keep none of its dims in place"
    return f"'{output.name}' {why}: it has no loop to tile"


def few_iterations(output: StageFacts) -> tuple[str, ...]:
    """Dims of the output that are unrolled: channels and the like, of at most 16 iterations together.

    Those inside of the row that vectors run along, and never all outside of it: of these the largest stays a loop. Nor
    dims that an update does not keep in place; and none where updates pass over the output: these find more of it in a
    cache where each of such points has tiles of its own.
    """
    found = list(beside(output))
    if output.passes:
        return tuple(found)
    others = [d for d in output.storage if d != output.row and d in output.pure and d not in found]
    small = [d for d in others if output.extent(d) <= SMALL_EXTENT]
    if small and len(small) == len(others):
        small.remove(max(small, key=output.extent))
    iterations = prod(map(output.extent, found))
    for dim in sorted(small, key=output.extent):
        iterations *= output.extent(dim)
        if iterations <= PARAMS.unrolled_iterations:
            found.append(dim)
    return tuple(d for d in output.storage if d in found)


def beside(output: StageFacts) -> tuple[str, ...]:
    """The dim whose elements lie side by side in each place of the output's row, if there is one."""
    return () if output.row is None or output.row == output.storage[0] else output.storage[:1]


def unrolled_dims(members: Members, few: tuple[str, ...]) -> tuple[str, ...]:
    """The dims of `few` that are unrolled, inside of the innermost loop."""
    together = beside(members.facts.stages[members.output])
    return tuple(d for d in few if d in together or not keeps_apart(members, d))


def tiled_dims(output: StageFacts) -> tuple[str, ...]:
    """The dims of a group's output that are cut into tiles."""
    few = few_iterations(output)
    return tuple(d for d in output.storage if d in output.pure and d not in few)


def keeps_apart(members: Members, dim: str) -> bool:
    """True if neighbours along `dim` of the output share nothing in a group of several stages: every stage reads other
    elements for each, but for tables, which move with no dim of the output. Unrolled inside the innermost loop, such a
    dim would only have the buffers of all its points in use at once."""
    for name in members.names if len(members.names) > 1 else ():
        stage = members.facts.stages[name]
        moving = {d: s.var for d, s in members.follows[name].items() if s.var is not None and stage.extent(d) > 1}
        along = [d for d, followed in moving.items() if followed == dim]
        for read in stage.reads if along else ():
            overlaps = dict(read.reuse)
            if any(d in overlaps for d in along) and not all(overlaps.get(d) == FULL for d in moving):
                return False
    return len(members.names) > 1


def orders(
    output: StageFacts, tiled: tuple[str, ...], few: tuple[str, ...], unrolled: tuple[str, ...]
) -> tuple[LoopOrder, ...]:
    """Orders of the tiled loops, the memory order first; of those of few iterations the unrolled ones are innermost,
    the others outside of the tiled ones. Groups of more than three tiled dims have the first 36 orders only. Loops over
    dims that an update does not keep in place are inside all others but one that runs along memory."""
    whole = tuple(d for d in output.storage if d not in output.pure)
    return _orders(output.row or output.storage[0], whole, tiled, few, unrolled)


@lru_cache(maxsize=1024)
def _orders(
    fastest: str, whole: tuple[str, ...], tiled: tuple[str, ...], few: tuple[str, ...], unrolled: tuple[str, ...]
) -> tuple[LoopOrder, ...]:
    """See `orders`; `fastest` is the dim that vectors run along, `whole` are dims that some update does not keep in
    place."""
    found = []
    first_of_all = tuple(inner(d) for d in reversed(unrolled))
    apart = tuple(inner(d) for d in few if d not in unrolled)
    pairs = ((a, b) for a in permutations(tiled) for b in permutations(tiled))
    for intra, inter in islice(pairs, PARAMS.loop_orders):
        first = intra[:1] if intra[0] == fastest else ()
        held = (*first, *whole, *(d for d in intra if d not in first)) if whole else intra
        loops = (*first_of_all, *map(inner, held), *apart, *map(outer, inter))
        found.append(LoopOrder(loops, len(unrolled), frozenset(whole), held[0] == fastest))
    return tuple(found)


def side_by_side(members: Members, order: LoopOrder, tiled: tuple[str, ...], rows: int) -> LoopOrder | None:
    """The order with tiles of so many rows along the loop around the innermost one, unrolled inside it; None where
    neighbours in that dim share nothing, or points along another one are side by side already."""
    at = order.innermost + 1
    dim = dim_of(order.loops[at])
    if not order.vectorised or order.unrolled or order.loops[at] != inner(dim) or dim not in tiled:
        return None
    if members.facts.stages[members.output].extent(dim) < 2 * rows or not shares_along(members, dim):
        return None
    loops = (inner(dim), *(loop for loop in order.loops if loop != inner(dim)))
    return replace(order, loops=loops, unrolled=order.unrolled + 1, rows=((dim, rows),))


def in_bands(
    members: Members, order: LoopOrder, choices: Mapping[str, Choice], tiled: tuple[str, ...], rows: int
) -> tuple[LoopOrder, dict[str, Choice]] | None:
    """The order in which stages that slide along the outermost intra-tile loop slide along tiles of `rows` of its
    iterations instead, inside of the tiles of the other dims: rows whose windows overlap are computed together. None
    where there are none, or nothing slides."""
    at = len([loop for loop in order.loops if loop == inner(dim_of(loop))]) - 1
    dim = dim_of(order.loops[at])
    others = [loop for loop in order.loops[at + 1 :] if loop != outer(dim)]
    if order.rows or dim not in tiled or not others or at <= order.innermost or order.whole:
        return None
    if members.facts.stages[members.output].extent(dim) < 2 * rows:
        return None
    result, sliding = {}, False
    for name, choice in choices.items():
        levels = choice.levels
        if levels is not None:
            if levels.registers or levels.compute != at or levels.store > at + 1:
                return None
            sliding = sliding or levels.store > at
            moved = Levels(at + 1, levels.store + 1)
            choice = replace(choice, levels=moved, reason=f"{choice.reason}; {rows} rows at a time")
        result[name] = choice
    loops = (*order.loops[: at + 1], outer(dim), *others)
    computed = {name: c.levels.compute for name, c in result.items() if c.levels is not None}
    if not sliding or not rows_together(members, loops, computed):
        return None
    return replace(order, loops=loops, rows=((dim, rows),)), result


def shares_along(members: Members, dim: str) -> bool:
    """True if neighbours along `dim` of the output read the same of anything."""
    for name in members.names:
        stage = members.facts.stages[name]
        along = {d for d in stage.dims if members.followed(name, d) == dim}
        if any(d in along for read in stage.reads for d, _ in read.reuse):
            return True
    return False


def _paper_shape(members: Members, order: LoopOrder, known: dict[tuple[str, ...], LoopStructure]) -> LoopStructure:
    """TACO 2019, Alg. 1 and 2, found once for orders that differ in their inter-tile loops only."""
    found = known.get(order.intra_loops)
    if found is not None:
        return replace(found, order=order)
    _, choices = levels_of(members, order)
    found = structure_of(members, order, choices, shared=False)
    if all(levels.store <= len(order.intra_loops) for levels in found.levels.values()):
        known[order.intra_loops] = found
    return found
