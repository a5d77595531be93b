"""Dims along a row: of a stage and of what is inline in it, those whose places differ from point to point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.ir.memo import once

DimsAlong = Mapping[str, frozenset[str]]
"""Dims of stages, by stage."""


@once
def _known(facts: Facts) -> dict[object, DimsAlong]:
    return {}


def dims_along(group: RunningGroup, name: str, told: bool) -> DimsAlong:
    """The dims of a stage and of what is inline in it that change along its row: those in whose index one is that does,
    be it in a remainder, as in `w(x % 32)`, the ends of which are the same for all points; those whose places have no
    ends; and, if `told`, those that data at such places tells."""
    facts, reads, row = group.facts, group.reads[name], group.running.stages[name].row
    known, key = _known(facts), (name, reads, row, told)
    if key not in known:
        known[key] = _found(facts, name, reads.with_inlined(name), row, told)
    return known[key]


def same_along_row(group: RunningGroup, name: str, run: Run) -> frozenset[str]:
    """The stages inline in a stage that are the same for a whole vector of it: none of whose dims changes along it."""
    if run.lanes == 1 or run.row is None or not group.reads[name].inlined:
        return frozenset()
    if run.row not in group.facts.stages[name].pure:  # it moves with no loop of the group
        return frozenset()
    return frozenset(p for p, dims in dims_along(group, name, told=True).items() if not dims and p != name)


def _found(facts: Facts, name: str, computed: Sequence[str], row: str | None, told: bool) -> DimsAlong:
    found: dict[str, set[str]] = {n: set() for n in computed}
    found[name] |= set() if row is None else {row}
    for stage in reversed(computed):
        for a in accesses(facts.definitions[stage]):
            if a.producer not in found or a.producer == stage:
                continue
            dims = facts.stages[a.producer].dims
            for dim, span, used, data in zip(dims, a.spans, a.used, a.data, strict=True):
                if not span.known or ((told or not data) and not used.isdisjoint(found[stage])):
                    found[a.producer].add(dim)
    return {n: frozenset(of) for n, of in found.items()}
