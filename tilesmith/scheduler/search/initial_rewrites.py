"""Rewrites of a pipeline before the search, told like the decisions of the search."""

from __future__ import annotations

from collections.abc import Iterator

from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.rewrites.names import in_place_of, listed
from tilesmith.scheduler.search.trace import Decision

_TOLD = {
    "hoist-reductions": "what is reduced for many points alike is a stage",
    "fold-updates": "updates that an expression can say are part of the value",
    "forward-initial-values": "scans begin with what their values are made of",
    "order-reductions": "the loops of long reductions run along memory",
    "eliminate-symmetric-pairs": "half of what is the same from either end is computed, and read from both",
    "propagate-boundaries": "far beyond the edge that a stage inherits its last place is read",
    "factor-exponentials": "exponentials of sums are products, a factor a loop",
    "distribute-scatters": "functions for where data is written are computed before",
    "tabulate-weights": "what takes functions of few loops, and no data, is a table",
    "narrow-integers": "integers have the bits that their values need",
    "pair-terms": "long sums of products of 16 bits have two an iteration",
    "widen-factors": "what all lanes multiply by has 16 bits, two of which are one load",
    "interleave-channels": "channels lie side by side, as those of the images around",
}
"""By rule what is told of it, before the stages that changed, or the new ones where there are."""


def rewriting_explained(plan: Plan) -> Iterator[Decision]:
    """One decision for each stage that others take the place of, and for each rule one for all that are rewritten by
    it. Boundaries and params that follow from others are no decisions."""
    for done in plan.rewrites:
        if done.rule == "specialize-scans":
            for name in done.removed:
                made = in_place_of(name, plan.pipeline.stages)
                chosen = f"a stage a level: {made}" if made else "its values are known numbers"
                yield Decision("rewriting", name, chosen, done.reason, done.rule)
        elif done.rule in _TOLD:
            chosen = f"{_TOLD[done.rule]}: {listed(done.made or done.changed)}"
            yield Decision("rewriting", plan.written.name, chosen, done.reason, done.rule)
