"""Rewrites of a pipeline before the search, told like the decisions of the search."""

from __future__ import annotations

from collections.abc import Iterator

from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.rewrites.names import in_place_of, listed
from tilesmith.scheduler.search.trace import Decision

_TOLD = {
    "hoist-reductions": ("what is reduced for many points alike is a stage: {}", "analysis.invariants"),
    "fold-updates": ("updates that an expression can say are part of the value: {}", "analysis.folding"),
    "forward-initial-values": ("scans begin with what their values are made of: {}", "analysis.scans"),
    "order-reductions": ("the loops of long reductions run along memory: {}", "analysis.reduction_order"),
    "eliminate-symmetric-pairs": (
        "half of what is the same from either end is computed, and read from both: {}",
        "analysis.symmetry",
    ),
    "propagate-boundaries": (
        "far beyond the edge that a stage inherits its last place is read: {}",
        "analysis.edges",
    ),
    "factor-exponentials": ("exponentials of sums are products, a factor a loop: {}", "analysis.separability"),
    "distribute-scatters": ("functions for where data is written are computed before: {}", "analysis.scatters"),
    "tabulate-weights": ("what takes functions of few loops, and no data, is a table: {}", "analysis.invariants"),
    "narrow-integers": ("integers have the bits that their values need: {}", "analysis.value_bounds"),
    "interleave-channels": ("channels lie side by side, as those of the images around: {}", "analysis.flat_rows"),
}
"""By rule what is told: chosen, with the stages that changed, or the new ones where there are; and who decided it."""


def rewriting_explained(plan: Plan) -> Iterator[Decision]:
    """One decision for each stage that others take the place of, and for each rule one for all that are rewritten by
    it. Boundaries and params that follow from others are no decisions."""
    for done in plan.rewrites:
        if done.rule == "specialize-scans":
            for name in done.removed:
                made = in_place_of(name, plan.pipeline.stages)
                chosen = f"a stage a level: {made}" if made else "its values are known numbers"
                yield Decision("rewriting", name, chosen, done.reason, "analysis.specialised")
        elif done.rule in _TOLD:
            chosen, source = _TOLD[done.rule]
            yield Decision(
                "rewriting", plan.written.name, chosen.format(listed(done.made or done.changed)), done.reason, source
            )
