"""Rewrites of a pipeline before the search, told like the decisions of the search."""

from __future__ import annotations

from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.rewrites.names import in_place_of, listed
from scheduler.rewrites.normalize import Pass
from scheduler.search.trace import Decision

_TOLD: dict[Pass, tuple[str, str, str]] = {
    "folding": (
        "updates that an expression can say are part of the value: {}",
        "a stage without updates may be inlined, kept in registers, and slid",
        "analysis.folding",
    ),
    "order": (
        "the loops of long reductions run along memory: {}",
        "their results do not depend on the order",
        "analysis.reduction_order",
    ),
    "halves": (
        "half of what is the same from either end is computed, and read from both: {}",
        "the value of a pair of points does not depend on which comes first",
        "analysis.symmetry",
    ),
    "edges": (
        "far beyond the edge that a stage inherits its last place is read: {}",
        "beyond it the values repeat; a stage is computed on little more than the image",
        "analysis.edges",
    ),
}
"""By pass what is told: chosen, with the stages that changed; why; and who decided it."""


def rewriting_explained(done: Pass, before: Pipeline, after: Pipeline) -> list[Decision]:
    """One decision for each stage that others take the place of, or one for all that are rewritten in a like way.
    Boundaries and params that follow from others are no decisions."""
    if done == "levels":
        kept = {s.name for s in after.stages}
        return [
            Decision(
                "rewriting",
                name,
                f"a stage a level: {made}" if made else "its values are known numbers",
                "who reads it says which level: each may be inlined, slid, or kept in registers",
                "analysis.specialised",
            )
            for name in (s.name for s in before.stages if s.name not in kept)
            for made in (in_place_of(name, after.stages),)
        ]
    if done not in _TOLD:
        return []
    chosen, reason, source = _TOLD[done]
    known = {id(s) for s in before.stages}
    changed = [s.name for s in after.stages if id(s) not in known]
    return [Decision("rewriting", before.name, chosen.format(listed(changed)), reason, source)]
