"""Register tiles: points of a long reduction that are computed together, each with its sum in a register. What they
share is loaded once for all of them, and no sum waits for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction, long_reductions
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import inner


def shares_loads(stage: Stage, dim: str, along: str, inlined: Mapping[str, Stage]) -> bool:
    """True if points of `stage` that differ in `dim` only read a same vector along `along`, inlined stages included. Of
    a stage with long reductions what is read once beside them, as a bias, does not count."""
    return _shares(stage, dim, along, inlined, not has_long_reduction(stage, inlined))


def _shares(stage: Stage, dim: str, along: str, inlined: Mapping[str, Stage], counted: bool) -> bool:
    """`shares_loads` of all reads of a stage, or, where it is not `counted` as a whole, of those in its reductions."""
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
    if (
        along is None
        or long_reductions(stage) != 1
        or any(shares_loads(stage, d, along, {}) for d in stage.dims if d != along)
    ):
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
def with_long_reductions(facts: Facts) -> frozenset[str]:
    """The stages whose values have reductions that vectors run as loops."""
    return frozenset(name for name, stage in facts.definitions.items() if long_reductions(stage))


def sums_together(
    members: Members, loops: Sequence[str], computed: Mapping[str, int], inlined: frozenset[str]
) -> dict[str, dict[str, int]]:
    """Register tiles that lowering makes where a schedule does not say them, by stage of a group: the dim of which
    points are computed together, and how many: of long reductions of neighbours that share what they load. `loops` are
    the group's, innermost first, and `computed` has the positions that stages are computed at."""
    facts, sums = members.facts, members.facts.core.registers.sums
    if with_long_reductions(facts).isdisjoint(members.names):
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
