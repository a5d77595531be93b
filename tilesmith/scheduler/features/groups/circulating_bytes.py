"""Bytes that circulate between the groups of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.features.groups.fusion_group import Members
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once


@once
def circulating_bytes(members: Members) -> float:
    """Bytes of all inputs and outputs of the pipeline, and of what else the group reads from outside and writes."""
    facts, (whole, ends) = members.facts, _ends(members.facts)
    inside = ends.intersection(members.names) - {members.output}
    read = {r.producer for name in members.names for r in facts.stages[name].reads}
    more = {n for n in read if n not in members.follows} | {members.output}
    return float(whole - _bytes(facts, inside) + _bytes(facts, more - ends))


def circulate_alike(a: Facts, b: Facts) -> bool:
    """True if what goes in and out of two pipelines is as many bytes."""
    return _ends(a)[0] == _ends(b)[0]


@once
def _ends(facts: Facts) -> tuple[int, frozenset[str]]:
    """The bytes and the names of all inputs and outputs of the pipeline."""
    names = frozenset(n for n, s in facts.stages.items() if s.is_input or n in facts.graph.outputs)
    return _bytes(facts, names), names


def _bytes(facts: Facts, names: Iterable[str]) -> int:
    return sum(facts.stages[n].root_points * facts.stages[n].bytes_per_point for n in names)


def share_past(members: Members, past: frozenset[str]) -> float:
    """The share of what the group reads from outside that other groups have written `past` the caches."""
    if not past:
        return 0.0
    stages = members.facts.stages
    names = {r.producer for name in members.names for r in stages[name].reads if not members.is_local(r.producer)}
    sizes = {n: stages[n].root_points * stages[n].bytes_per_point for n in names}
    return sum(size for n, size in sizes.items() if n in past) / max(1, sum(sizes.values()))
