"""The method `default`: everything that TACO 2019 decides, decided by a cost model in time among more candidates.

Beyond the paper it groups stages over the whole DAG, inlines by cost, keeps windows in registers, sizes tiles and
strips by predicted time, and keeps the best k schedules. The paper's own schedule is always among the candidates, so
that what is returned is never worse by the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from cost_models.model import CostModel, combined
from cost_models.taco2019 import Taco2019
from platforms import Platform
from scheduler.features.pipeline_features import Facts, gather
from scheduler.ir.plan import Plan
from scheduler.ir.schedule.schedule import Group, Joining
from scheduler.rewrites.passes import with_joinings
from scheduler.search.candidates import Candidate, candidate
from scheduler.search.deadline import Deadline
from scheduler.search.ecm.group_candidates import SIZES, GroupCandidate, Planner
from scheduler.search.ecm.loop_structures import KINDS, Kind
from scheduler.search.ecm.partition import Partition, PartitionSearch
from scheduler.search.group_trace import factor_explained, partition_explained, plan_explained
from scheduler.search.k_best import best_combinations
from scheduler.search.output_fusion import together
from scheduler.search.rfactor_choice import Factored
from scheduler.search.separable_choice import Separated, separate
from scheduler.search.taco2019.grouping import AtRoot, Found, Grouping, Segment
from scheduler.search.taco2019.method import degraded_by
from scheduler.search.tile_sizes import Tiling
from scheduler.search.trace import Decision, Rejected, Trace
from scheduler.search.trace import Kind as DecisionKind

NAME = "default"

CLOSE = 1.03
"""A variant that costs more than this, relative to the cheapest, with the first tile sizes, is not looked into."""
GAINS = 0.97
"""The paper's groups are left where what is found costs no more than this, relative to its schedule: less is what the
model may be wrong by between any two groupings."""
ALTERNATIVES, NEAR = 3, 1.1
"""Other partitions of each variant that may have schedules among the best k, at most: those that cost no more than
this, relative to the cheapest, before all sizes are tried."""
LOOKED_AT = 8
"""Combinations of plans that are looked at for each schedule that is wanted: different plans may be the same groups."""

APART = 0.01
"""Share of a pipeline's cost by which schedules must differ that decide numbers alone otherwise, such as tile sizes:
the model calls them equal, and who lists or times the best ones wants others."""
MATTERS = 0.05
"""Share of a pipeline's cost up to which a group that is made otherwise does not matter: such schedules must differ as
those that decide numbers alone."""

GroupCandidates = tuple[GroupCandidate, ...]
"""One plan for every group, in the order that they run."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The plan as it is, or with its separable windows computed in two steps, its outputs one by one or together,
    and the best partition of it."""

    plan: Plan
    search: PartitionSearch
    partition: Partition

    def others(self, most: float, least: float) -> list[Variant]:
        """The variant with other partitions, that cost no more than `most`, and differ in groups that cost no less than
        `least`."""
        return [replace(self, partition=p) for p in self.search.near(self.partition, most, least)[:ALTERNATIVES]]

    def ranked(self, count: int, cost: float) -> Iterator[tuple[float, GroupCandidates]]:
        """The cheapest combinations of plans with what they cost, the cheapest first; of plans that are alike, for a
        pipeline that costs `cost`, the cheapest only."""
        choices = [_apart(plans, cost) for plans in self.search.plans(self.partition)]
        for plans in best_combinations(choices, count):
            yield sum(p.total for p in plans), plans


def default(
    factored: Factored, platform: Platform, model: CostModel, deadline: Deadline, top: int
) -> tuple[tuple[Candidate, ...], Trace]:
    """The best `top` schedules under `model`, the best first, and the trace of the first."""
    facts, strict = factored.facts, factored.plan.schedule.strict
    paper = Grouping(facts, platform, Taco2019(), deadline.expired, SIZES)
    papers = partition_of(facts, paper.group())
    tilings = {s: t for s, t in paper.cache.items() if isinstance(t, Tiling)}

    def searched(
        plan: Plan, facts: Facts, start: Partition, known: Mapping[Segment, Tiling], kinds: tuple[Kind, ...] = KINDS
    ) -> Variant:
        planner = Planner(facts, platform, model, strict, deadline.expired, known, kinds=kinds, wanted=top)
        search = PartitionSearch(facts, planner)
        return Variant(plan, search, search.best([start]))

    def with_outputs_together(v: Variant) -> Variant:
        before, joinings = v.search.facts, together(v.plan.pipeline)
        plan = with_joinings(v.plan, joinings)
        after = gather(plan.pipeline, before.partial, before.strips, before)
        return searched(plan, after, _with(v.partition, joinings), {})

    plain = searched(factored.plan, facts, papers, tilings)
    variants = [plain]
    separated = separate(factored.plan, facts)
    if separated.plan.schedule.separations and not deadline.expired():
        # where fused rows are best, they are with more steps to fuse
        fused = tuple(k for k in KINDS if k.fused or not all(best.fused for best in plain.search.planner.kinds))
        variants.append(searched(separated.plan, separated.facts, plain.partition, {}, fused))
    if together(facts.pipeline) and not deadline.expired():
        variants += [with_outputs_together(v) for v in variants]
    costs = {id(v): v.search.cost(v.partition) for v in variants}
    variants.sort(key=lambda v: costs[id(v)])
    decisions = [*map(factor_explained, factored.plan.schedule.factors), *_separations_explained(variants, separated)]
    decisions += _joinings_explained(variants)
    variants = [v for v in variants if costs[id(v)] <= costs[id(variants[0])] * CLOSE]
    cost = costs[id(variants[0])]
    least, first, chosen = _ranked(variants, 1, cost)[0]
    as_paper = replace(plain, partition=plain.search.settled(papers))
    if least > as_paper.search.paper_cost(as_paper.partition) * GAINS and not deadline.expired():
        variants = [as_paper]
        least, first, chosen = _ranked(variants, 1, cost)[0]
    best = variants[first]
    if top > 1:
        variants += [other for v in variants for other in v.others(NEAR * cost, MATTERS * cost)]
    degraded = degraded_by({}, deadline)
    candidates: dict[tuple[Group, ...], tuple[float, Candidate]] = {}
    # those that differ first, then, where they are too few, all
    for total, n, plans in (found for apart in (cost, 0.0) for found in _ranked(variants, top * LOOKED_AT, apart)):
        if len(candidates) == top:
            break
        if total < least:
            continue  # what is chosen does not depend on how many others are wanted
        search = variants[n].search
        worked = [search.planner.settle(p) for p in plans]
        groups = tuple(p.group for p in worked)
        if groups in candidates:
            continue
        plan = variants[n].plan.scheduled(groups, degraded)
        predicted = combined(p.cost for p in worked)
        candidates[groups] = total, candidate(search.facts, plan, [p.counts for p in worked], predicted)
    decisions += partition_explained(best.search, best.partition, papers if best.search is plain.search else None)
    for group in chosen:
        decisions += plan_explained(best.search.planner.settle(group))
    found = sorted(candidates.values(), key=itemgetter(0))
    return tuple(c for _, c in found), Trace(NAME, model.unit, tuple(decisions))


def _ranked(variants: Sequence[Variant], count: int, cost: float) -> list[tuple[float, int, GroupCandidates]]:
    """The best combinations of plans of each variant, with what they cost and the number of the variant, the cheapest
    first. See Variant.ranked."""
    found = ((total, n, plans) for n, v in enumerate(variants) for total, plans in v.ranked(count, cost))
    return sorted(found, key=itemgetter(0, 1))


def _apart(plans: Sequence[GroupCandidate], cost: float) -> list[GroupCandidate]:
    """The plans of a group, the cheapest first, that differ in what they cost from all before, or are another way to
    make a group that matters, where the pipeline costs `cost`."""
    kept: list[GroupCandidate] = []
    for p in plans:
        near = [k for k in kept if p.total - k.total < APART * cost]
        if not near or (plans[0].total >= MATTERS * cost and all(k.way != p.way for k in near)):
            kept.append(p)
    return kept


def _separations_explained(variants: Sequence[Variant], separated: Separated) -> list[Decision]:
    """The windows, and the one of both ways to compute them that costs less."""
    parts = ", ".join(s.partial for s in separated.plan.schedule.separations)
    ways = (f"windows in two steps, with {parts}", "windows as they are")
    found = _way_explained("separation", variants, [bool(v.plan.schedule.separations) for v in variants], ways)
    return [*found, *(separated.decisions if not found or variants[0].plan.schedule.separations else ())]


def _joinings_explained(variants: Sequence[Variant]) -> list[Decision]:
    """True if outputs are computed together, where they can be."""
    joinings = [v.plan.schedule.joinings for v in variants]
    listed = "; ".join(f"{', '.join(j.stages)} together, as {j.joint}" for j in next(filter(None, joinings), ()))
    return _way_explained("joining", variants, list(map(bool, joinings)), (listed, "outputs one by one"))


def _way_explained(
    kind: DecisionKind, variants: Sequence[Variant], yes: Sequence[bool], ways: tuple[str, str]
) -> list[Decision]:
    """The way of two that the best variant goes, and the cost of the best of those that go the other one."""
    other = next((v for v, way in zip(variants, yes, strict=True) if way != yes[0]), None)
    if other is None:
        return []
    chosen, rejected = ways if yes[0] else ways[::-1]
    costs = [v.search.cost(v.partition) for v in (variants[0], other)]
    name = variants[0].search.facts.pipeline.name
    rejections = (Rejected(rejected, "costs more", costs[1]),)
    return [Decision(kind, name, chosen, "it costs less", "search over the DAG", costs[0], rejections)]


def _with(partition: Partition, joinings: tuple[Joining, ...]) -> Partition:
    """The partition with the outputs that are joined in one group each."""
    gone = {name for j in joinings for name in j.stages}
    return Partition((partition.outputs - gone) | {j.joint for j in joinings}, partition.inlined - gone)


def partition_of(facts: Facts, found: dict[str, Found]) -> Partition:
    """The partition that the method of the paper decided on: what no group of its has is computed at root."""
    tilings = [t for t in found.values() if isinstance(t, Tiling)]
    inside = {name for t in tilings for name in t.members.names}
    inside |= {name for t in found.values() if isinstance(t, AtRoot) for name in t.inlined}
    alone = set(facts.graph.stages) - inside
    return Partition(frozenset({*found, *alone}), frozenset(name for t in tilings for name in t.members.shared))
