"""Register tiles: points of a long reduction that are computed together, each with its sum in a register. What they
share is loaded once for all of them, and no sum waits for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.features.fusion_group import Members
from tilesmith.scheduler.features.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Expr, Reduce, RVar, Var, children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import inner

UNROLLED_TRIPS = 64
"""Reductions of at most this many terms, all bounds constant, are written out as vectors, ..."""
CONTRACTED_TRIPS = 8
"""... those of contractions, whose operands other points read again, of at most this many, ..."""
MOST_WRITTEN = 4096
"""... if with those of reductions inside of them no more are."""


def is_written_out(e: Reduce, most: int = UNROLLED_TRIPS) -> bool:
    """True if the terms of a reduction, at most so many, are written out; those of others are a loop."""
    terms = prod(map(trips, e.domain))
    if terms > CONTRACTED_TRIPS and is_contraction(e):
        return False
    return 0 < terms <= most and terms * sum(map(_written, children(e))) <= MOST_WRITTEN


def is_contraction(e: Reduce) -> bool:
    """True if a reduction runs along one variable through two operands, as a product of matrices does: each of them
    moves with a dim that the other does not move with, so that it is read again for every point along the other's."""
    if len(e.domain) != 1:
        return False
    (r,) = e.domain
    reads = [
        {v.name for i in a.indices for v in walk(i) if isinstance(v, Var)} for a in walk(e) if isinstance(a, Access)
    ]
    moving = [names - {r.name} for names in reads if r.name in names]
    return any(a - b and b - a for a, b in combinations(moving, 2))


def _written(e: Expr) -> int:
    """Terms of reductions that are written out for an expression; of a loop those of one iteration."""
    inside = sum(map(_written, children(e)))
    if not isinstance(e, Reduce):
        return inside
    terms = prod(map(trips, e.domain)) * max(1, inside)
    return terms if terms <= MOST_WRITTEN else max(1, inside)


def trips(r: RVar) -> int:
    """Iterations, where the range is constant; a great many where it is not."""
    return int(r.extent.value) if isinstance(r.extent, Const) and isinstance(r.lo, Const) else 1 << 30


def has_long_reduction(stage: Stage, inlined: Mapping[str, Stage]) -> bool:
    """True if a value of `stage`, or of a stage inlined in it, has a reduction that vectors run as a loop."""
    if _long(stage) or not inlined:
        return _long(stage) > 0
    reads = {a.producer for a in accesses(stage)} & inlined.keys()
    return any(has_long_reduction(inlined[name], inlined) for name in sorted(reads))


def long_sums(stage: Stage, inlined: Mapping[str, Stage], executed: Mapping[str, float]) -> float:
    """Reductions of a point of `stage` that vectors run as loops, with those of stages inlined in it, each as often as
    it is `executed` a point."""
    return _long(stage) + sum(n * _long(inlined[name]) for name, n in executed.items())


@once
def _long(stage: Stage) -> int:
    return sum(not is_written_out(e) for e in reductions(stage))


def shares_loads(stage: Stage, dim: str, along: str, inlined: Mapping[str, Stage]) -> bool:
    """True if points of `stage` that differ in `dim` only read a same vector along `along`, inlined stages included. Of
    a stage with long reductions what is read once beside them, as a bias, does not count."""
    return _shares(stage, dim, along, inlined, not has_long_reduction(stage, inlined))


def _shares(stage: Stage, dim: str, along: str, inlined: Mapping[str, Stage], counted: bool) -> bool:
    """The same; where a stage is not `counted` as a whole, that are the reads of its reductions."""
    for a in accesses(stage):
        names, inside, again = a.used, inlined.get(a.producer), counted or bool(a.reductions)
        if not any(along in n for n in names):
            continue
        if not any(dim in n for n in names):
            if again or (inside is not None and has_long_reduction(inside, inlined)):
                return True
            continue
        if inside is None:
            continue
        through = [d for d, n in zip(inside.dims, names, strict=True) if dim in n]
        moving = [d for d, n in zip(inside.dims, names, strict=True) if along in n]
        if len(through) == len(moving) == 1 and _shares(inside, through[0], moving[0], inlined, again):
            return True
    return False


def sums_alone(facts: Facts, name: str) -> bool:
    """True if the value of a stage is a long reduction that shares no loads with points of another dim, and whose
    vectors lie along rows of what it reads, wherever in these the reduction moves: only vectors of several registers
    give it sums that do not wait for each other, and read several lines of a row at a time."""
    stage, along = facts.definitions[name], facts.stages[name].row
    if along is None or _long(stage) != 1 or any(shares_loads(stage, d, along, {}) for d in stage.dims if d != along):
        return False
    summed = False
    for a in accesses(stage):
        if not any(along in used for used in a.used):
            continue
        producer, reduced = facts.stages[a.producer], {r.name for r in a.reductions}
        fastest = producer.dims.index(producer.storage[0])
        others = (used for n, used in enumerate(a.used) if n != fastest)
        if any(a.data) or a.used[fastest] - reduced != {along} or any(along in used for used in others):
            return False
        summed = summed or any(used & reduced for used in a.used)
    return summed


@once
def _with_long_reductions(facts: Facts) -> frozenset[str]:
    """The stages whose values have reductions that vectors run as loops."""
    return frozenset(name for name, stage in facts.definitions.items() if _long(stage))


def sums_together(
    members: Members, loops: Sequence[str], computed: Mapping[str, int], inlined: frozenset[str]
) -> dict[str, dict[str, int]]:
    """Register tiles that lowering makes where a schedule does not say them, by stage of a group: the dim of which
    points are computed together, and how many: of long reductions of neighbours that share what they load. `loops` are
    the group's, innermost first, and `computed` has the positions that stages are computed at."""
    facts, sums = members.facts, members.facts.core.registers.sums
    if _with_long_reductions(facts).isdisjoint(members.names):
        return {}
    inside = {n: facts.definitions[n] for n in inlined}
    found: dict[str, dict[str, int]] = {}
    for name in (*computed, members.output):
        stage, row = facts.definitions[name], facts.stages[name].row
        if row is None or not has_long_reduction(stage, inside):
            continue
        for dim in stage.dims:
            wide = dim != row and facts.stages[name].extent(dim) >= 2 * sums
            if wide and shares_loads(stage, dim, row, inside):
                if _is_inside(members, loops, computed, name, dim):
                    found[name] = {dim: sums}
                break
    return found


def _is_inside(members: Members, loops: Sequence[str], computed: Mapping[str, int], name: str, dim: str) -> bool:
    """True if all points of a stage along `dim` that an iteration of its level has are computed at once: there are no
    threads, and nothing else is computed, in the loop over them."""
    var = members.follows[name][dim].var
    if var is None:
        return True
    at = loops.index(inner(var))
    if name != members.output:
        return at < computed[name]
    return at < len(loops) - 1 and all(level > at for level in computed.values())
