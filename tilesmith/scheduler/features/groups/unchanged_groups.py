"""Groups of stages that are the same in two pipelines, one of which was made of the other by rewrites."""

from __future__ import annotations

from collections.abc import Sequence

from tilesmith.scheduler.analysis.stage_form import form
from tilesmith.scheduler.features.groups.circulating_bytes import circulate_alike
from tilesmith.scheduler.features.pipeline.interleaved_channels import fours
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once


def is_unchanged(facts: Facts, before: Facts, names: Sequence[str]) -> bool:
    """True if all that the cost of a group with these stages follows from is as it was `before`: the stages and what
    they read, what else is known of these, and how much the pipeline's images take."""
    changed = _changed(facts, before)
    return changed is not None and all(
        n not in changed and all(r.producer not in changed for r in facts.stages[n].reads) for n in names
    )


def _changed(facts: Facts, before: Facts) -> frozenset[str] | None:
    """The stages and images that are not as they were; None where groups of any may differ."""
    known = _known_changes(facts)
    if id(before) not in known:
        alike = circulate_alike(facts, before) and facts.estimates.symbols == before.estimates.symbols
        known[id(before)] = (before, _find_changed(facts, before) if alike else None)
    return known[id(before)][1]


@once
def _known_changes(facts: Facts) -> dict[int, tuple[Facts, frozenset[str] | None]]:
    return {}


def _find_changed(facts: Facts, before: Facts) -> frozenset[str]:
    def said(of: Facts, name: str) -> tuple[bool, ...]:
        return tuple(name in names for names in (of.graph.outputs, of.partial, of.strips, fours(of)))

    changed = (n for n in facts.stages if not _same(facts, before, n) or said(facts, n) != said(before, n))
    return frozenset(changed)


def _same(facts: Facts, before: Facts, name: str) -> bool:
    """True if all that is known of a stage or an input is as it was `before`, also where it was found anew."""
    stage, was = facts.stages[name], before.stages.get(name)
    if stage is was or stage != was:
        return stage is was
    return stage.is_input or (not stage.updates and form(facts.definitions[name]) == form(before.definitions[name]))
