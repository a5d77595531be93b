"""Loops of updates: their order, vectors and threads, where these are proved to change nothing."""

from __future__ import annotations

from math import prod

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.dependence import default_order, independent, may_reorder
from tilesmith.scheduler.features.group_counts import SMALL_EXTENT
from tilesmith.scheduler.features.pipeline_features import Facts, StageFacts, UpdateFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector
from tilesmith.scheduler.search.params import PARAMS


@once
def _known(facts: Facts) -> dict[tuple[str, int, int, bool], tuple[UpdateLoops, ...]]:
    return {}


def update_loops(
    facts: Facts, name: str, computed_bytes: int, platform: Platform, strict: bool, threads: bool = False
) -> tuple[UpdateLoops, ...]:
    """The loops of every update of a stage. `threads`: at root, where no loop around the updates has them."""
    stage, definition = facts.stages[name], facts.definitions[name]
    if not stage.updates:
        return ()
    lanes, shared_by = platform.vector_bytes // max(1, computed_bytes), platform.threads if threads else 1
    known, key = _known(facts), (name, lanes, shared_by, strict)
    loops = known.get(key)
    if loops is None:
        loops = known[key] = tuple(
            _loops(definition, update, stage, found, lanes, _threads(facts, found, shared_by), strict)
            for update, found in zip(definition.updates, stage.updates, strict=True)
        )
    return loops


def _loops(
    definition: Stage, update: Update, stage: StageFacts, found: UpdateFacts, lanes: int, threads: int, strict: bool
) -> UpdateLoops:
    vector = _vector_loop(definition, update, found, lanes, strict)
    order = _order(definition, update, stage, found, vector, strict)
    if vector is None and found.scan is not None:
        scan, across = found.scan.loop, found.scan.vectors_across(found.trips, lanes)
        wanted = (scan, *((across,) if across else ()), *(n for n in order if n not in (scan, across)))
        if may_reorder(definition, update, wanted, strict):
            order, vector = wanted, across
    parallel = None
    if threads > 1:
        order, parallel = _threaded(definition, update, found, order, vector, threads, strict)
    if vector is not None and not independent(definition, update, order, vector):
        vector = None
    return UpdateLoops(order, None if vector is None else Vector(vector, lanes), parallel)


def _threads(facts: Facts, update: UpdateFacts, threads: int) -> int:
    """The threads that an update is worth."""
    return threads if arithmetic(update) >= facts.core.balance.fork_operations else 1


def arithmetic(found: UpdateFacts) -> float:
    """The cost of an update in operations: those of its arithmetic, and at least one an iteration."""
    operations = found.operations
    each = operations.add + operations.multiply + operations.select + operations.convert + 10 * operations.function
    return found.iterations * max(1.0, each)


def _vector_loop(definition: Stage, update: Update, found: UpdateFacts, lanes: int, strict: bool) -> str | None:
    """The loop that runs along memory: the fastest dim where the update goes through it whole, else the variable
    that stands alone in its place (give or take a constant). None where it is short, or must run in order."""
    if lanes < 2 or not definition.storage:
        return None
    fastest = definition.storage[0]
    place = update.at[definition.dims.index(fastest)]
    names = {n.name for n in walk(place) if isinstance(n, Var)}
    loops = dict(found.loops)
    for loop in names & loops.keys() if len(names) == 1 else ():
        if loops[loop] >= lanes and independent(definition, update, _outermost_last(definition, update, loop), loop):
            return loop
    return None


def _outermost_last(definition: Stage, update: Update, loop: str) -> tuple[str, ...]:
    """The defined order with `loop` innermost, where that is allowed; else as defined."""
    order = default_order(definition, update)
    moved = (loop, *(n for n in order if n != loop))
    return moved if may_reorder(definition, update, moved) else order


def _order(
    definition: Stage, update: Update, stage: StageFacts, found: UpdateFacts, vector: str | None, strict: bool
) -> tuple[str, ...]:
    """Innermost first: a short domain that adds up in place, dims of few iterations, the vectors, all else as it is
    defined. A long domain, or one that moves from place to place, is outside the vectors: rows are finished before
    the next ones are begun. As defined where that cannot be shown to be the same."""
    order = default_order(definition, update)
    if vector is None:
        return order
    domain = tuple(r.name for r in update.domain if r.name != vector)
    free = tuple(n for n in order if n not in domain and n != vector)
    few = tuple(n for n in free if found.trips(n) <= SMALL_EXTENT)
    rest = tuple(n for n in free if n not in few)
    moves = {n.name for e in update.at for n in walk(e) if isinstance(n, Var)}
    short = prod(found.trips(n) for n in domain) <= PARAMS.update_terms_inside_vectors
    # a place that has to be looked up is looked up once for the few that are there, whose sums are then in memory
    shared = _share_places(update, few)
    if short and not moves.intersection(domain):
        wanted = (*few, *domain, vector, *rest) if shared else (*domain, *few, vector, *rest)
    else:
        wanted = (*few, vector, *domain, *rest) if shared else (vector, *domain, *few, *rest)
    return wanted if may_reorder(definition, update, wanted, strict) else order


def _share_places(update: Update, dims: tuple[str, ...]) -> bool:
    """True if the update reads at places that are data, the same ones all along `dims`."""
    reads = [n for value in update.values for n in walk(value) if isinstance(n, Access)]
    places = [list(walk(i)) for read in reads for i in read.indices]
    return any(
        any(isinstance(n, Access) for n in place) and not any(isinstance(n, Var) and n.name in dims for n in place)
        for place in places
    )


def _threaded(
    definition: Stage,
    update: Update,
    found: UpdateFacts,
    order: tuple[str, ...],
    vector: str | None,
    threads: int,
    strict: bool,
) -> tuple[tuple[str, ...], str | None]:
    """The order with a loop outermost that threads may share, the longest if none is there already."""
    for loop in (*order[-1:], *sorted(order[:-1], key=found.trips, reverse=True)):
        if loop == vector or found.trips(loop) < threads:
            continue
        moved = (*(n for n in order if n != loop), loop)
        if may_reorder(definition, update, moved, strict) and independent(definition, update, moved, loop):
            return moved, loop
    return order, None
