"""Register tiles: points of a long reduction that are computed together, each with its sum in a register. What they
share is loaded once for all of them, and no sum waits for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.features.fusion_group import Members
from tilesmith.scheduler.features.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Const, Expr, Reduce, RVar, children
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import inner

UNROLLED_TRIPS = 64
"""Reductions of at most this many terms, all bounds constant, are written out as vectors, ..."""
MOST_WRITTEN = 4096
"""... if with those of reductions inside of them no more are."""


def is_written_out(e: Reduce, most: int = UNROLLED_TRIPS) -> bool:
    """True if the terms of a reduction, at most so many, are written out; those of others are a loop."""
    terms = prod(map(trips, e.domain))
    return 0 < terms <= most and terms * sum(map(_written, children(e))) <= MOST_WRITTEN


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
    """True if points of `stage` that differ in `dim` only read a same vector along `along`, inlined stages included."""
    for a in accesses(stage):
        names = a.used
        if not any(along in n for n in names):
            continue
        if not any(dim in n for n in names):
            return True
        inside = inlined.get(a.producer)
        if inside is None:
            continue
        through = [d for d, n in zip(inside.dims, names, strict=True) if dim in n]
        moving = [d for d, n in zip(inside.dims, names, strict=True) if along in n]
        if len(through) == len(moving) == 1 and shares_loads(inside, through[0], moving[0], inlined):
            return True
    return False


def reduces_rows(facts: Facts, name: str) -> bool:
    """True if the value of a stage is a long reduction across rows of what it reads, whose vectors lie along these and
    no other points share: of each row so much is read at a time as vectors are long."""
    stage, along = facts.definitions[name], facts.stages[name].row
    if along is None or _long(stage) != 1 or any(shares_loads(stage, d, along, {}) for d in stage.dims if d != along):
        return False
    moving = [a for a in accesses(stage) if any(along in used for used in a.used)]
    for a in moving:
        producer = facts.stages[a.producer]
        used = dict(zip(producer.dims, a.used, strict=True))
        others = (used[d] for d in producer.dims if d != producer.storage[0])
        if used[producer.storage[0]] != {along} or all(u.isdisjoint(r.name for r in a.reductions) for u in others):
            return False
    return bool(moving)


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
