"""The trace of every group: decisions of a search in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Factor, Group, UpdateLoops
from tilesmith.scheduler.search.ecm.partition import Partition, PartitionSearch
from tilesmith.scheduler.search.ecm.pricing import Finalised
from tilesmith.scheduler.search.taco2019.grouping import AtRoot, Found
from tilesmith.scheduler.search.tile_sizes import Tiling
from tilesmith.scheduler.search.trace import Decision, Infeasible, Rejected


def at_root_explained(name: str, here: Found | None, group: Group) -> list[Decision]:
    rejected: tuple[Rejected, ...] = ()
    if isinstance(here, Infeasible):
        reason, rejected = "no candidate is valid", (Rejected("a group", here.reason),)
    else:
        reason = here.reason if isinstance(here, AtRoot) else "no group has it"
    inlined = [p.stage for p in group.placements]
    source = "no loop to tile" if isinstance(here, AtRoot) else "METHOD: an answer always"
    chosen = "computed at root, alone" + (f", {', '.join(inlined)} inline in it" if inlined else "")
    return [
        Decision("group", name, chosen, reason, source, rejected=rejected),
        *updates_explained(name, group.updates),
    ]


def factor_explained(factor: Factor, pipeline: Pipeline) -> Decision:
    """The decision on one factor of a schedule of `pipeline`, which has its partial stage."""
    row = f" of {factor.neighbours} neighbours in turn" if factor.neighbours > 1 else ""
    kind = f"interleaved parts{row}" if factor.interleaved else "strips"
    why = "its terms lie along memory, its points do not" if factor.interleaved else "it has no other loop for threads"
    if factor.interleaved and any(s.name == factor.partial and s.updates for s in pipeline.stages):
        kind, why = "tables for neighbours", "those that go to the same place would wait for each other"
    chosen = f"{factor.parts} {kind} of {factor.variable} in {factor.partial}"
    return Decision("factor", factor.stage, chosen, why, "partial results")


def updates_explained(name: str, updates: tuple[UpdateLoops, ...]) -> list[Decision]:
    """One decision an update: its loops from the innermost, vectors and threads."""
    found = []
    for n, update in enumerate(updates):
        vector, why = "no vectors", "no loop that runs along memory is proved to be independent"
        if update.vector is not None:
            vector = f"{update.vector.lanes} lanes along {update.vector.dim}"
            why = f"{update.vector.dim} is proved to be independent, or a recurrence whose points registers join"
        threads = "" if update.parallel is None else f", threads over {update.parallel}"
        loops = " ".join(update.loops) or "none"
        found.append(Decision("final", name, f"update {n}: loops {loops}; {vector}{threads}", why, "TACO 2019, 4.4"))
    return found


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why a group and its tiling are what they are, and where that is from."""

    group: str
    group_source: str
    tiling: str
    tiling_source: str


OF_THE_PAPER = Grounds(
    "its buffers fit the caches",
    "TACO 2019, 4.3",
    "the least weighted loads and recomputation of all orders and valid tile sizes",
    "TACO 2019, Alg. 3",
)
BY_TIME = Grounds(
    "the split of the pipeline has it",
    "search over the DAG",
    "the least predicted time of the orders, levels and tile sizes that were tried",
    "cost model",
)


def tiling_explained(tiling: Tiling, group: Group, grounds: Grounds = OF_THE_PAPER) -> list[Decision]:
    members = tiling.members
    decisions = [
        Decision(
            "group",
            members.output,
            f"one group of {', '.join(members.names)}" if len(members.names) > 1 else "a group of its own",
            grounds.group,
            grounds.group_source,
            tiling.total,
        ),
        Decision(
            "tiling",
            members.output,
            tiling.describe(),
            grounds.tiling,
            grounds.tiling_source,
            tiling.total,
            tiling.rejected,
        ),
    ]
    for name in members.names[:-1]:
        choice = tiling.choices[name]
        if choice.levels is not None:
            chosen = tiling.order.name(choice.levels)
            decisions.append(Decision("level", name, chosen, choice.reason, choice.source))
        else:
            decisions.append(Decision("inline", name, "inline", choice.reason, choice.source))
    for p in group.placements:
        decisions += updates_explained(p.stage, p.updates)
    vector = "no vectors" if group.vector is None else f"{group.vector.lanes} lanes along {group.vector.dim}"
    threads = "no threads" if group.parallel is None else f"threads over {group.parallel}"
    decisions.append(
        Decision(
            "final", members.output, f"{vector}, {threads}", "the innermost and the outermost loop", "TACO 2019, 4.4"
        )
    )
    return decisions + updates_explained(members.output, group.updates)


def partition_explained(search: PartitionSearch, partition: Partition, paper: Partition | None) -> list[Decision]:
    """Why the stages are grouped as they are."""
    others = [Partition(search.forced), *([] if paper is None else [paper])]
    rejected = tuple(
        Rejected(f"groups of {', '.join(s.output for s in search.segments(p))}", "costs no less", _priced(search, p))
        for p in dict.fromkeys(others)
        if search.segments(p) != search.segments(partition)
    )
    outputs = [s.output for s in search.segments(partition)]
    name, count = search.facts.pipeline.name, len(outputs)
    chosen = f"groups of {', '.join(outputs)}" if count > 1 else "one group"
    tried = len(search.compared)
    reason = (
        f"the cheapest of {tried} ways to group that were tried, each estimated with few sizes of tiles"
        if tried > 1
        else "no other way came into question"
    )
    return [Decision("split", name, chosen, reason, "search over the DAG", search.cost(partition), rejected)]


def _priced(search: PartitionSearch, partition: Partition) -> float | None:
    cost = search.cost(partition)
    return cost if isfinite(cost) else None


def plan_explained(plan: Finalised) -> list[Decision]:
    """The decisions of one group."""
    if plan.why is not None:
        return [plan.why]
    if plan.tiling is None:
        inlined = [p.stage for p in plan.group.placements]
        chosen = "computed at root" + (f", {', '.join(inlined)} inline in it" if inlined else "")
        decision = Decision("group", plan.group.output, chosen, "no tiles cost less", "cost", float(plan.cost.total))
        return [decision, *updates_explained(plan.group.output, plan.group.updates)]
    return tiling_explained(plan.tiling, plan.group, BY_TIME)
