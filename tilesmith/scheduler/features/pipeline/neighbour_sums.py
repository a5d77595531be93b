"""Sums of neighbours of stages (see `analysis.neighbour_sums`): what they read in the order of memory."""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.analysis.neighbour_sums import summed_variable
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Reduce, children


def summed_producers(facts: Facts, name: str, inlined: Iterable[str]) -> frozenset[str]:
    """The images and stages of which a stage, by way of stages `inlined` too, reads nothing but what it sums in
    groups of neighbours."""
    known = _known(facts)
    found: set[str] = set()
    inside = {*inlined}
    for reader in (name, *inside):
        if reader not in known:
            known[reader] = _of(facts, reader)
        found |= known[reader]
    through = [r.producer for n in sorted(found & inside) for r in facts.stages[n].reads]
    return frozenset({*found, *through}) - inside if found else frozenset()


@once
def _known(facts: Facts) -> dict[str, frozenset[str]]:
    """Memoised results of `_of`."""
    return {}


def _of(facts: Facts, name: str) -> frozenset[str]:
    along, stage = facts.stages[name].row, facts.definitions[name]
    if along is None or stage.updates or not reductions(stage):
        return frozenset()

    def fastest(producer: str) -> int | None:
        of = facts.stages[producer]
        return of.dims.index(of.storage[0]) if of.storage else None

    summed: set[str] = set()
    others: set[str] = set()
    pending = [(value, False) for value in stage.values]
    while pending:
        e, inside = pending.pop()
        inside = inside or (isinstance(e, Reduce) and summed_variable(e, along, {}, fastest) is not None)
        if isinstance(e, Access):
            (summed if inside else others).add(e.name)
        pending += ((child, inside) for child in children(e))
    return frozenset(summed - others)
