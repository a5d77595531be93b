"""Variants: the plan of a question as it is, with its separable windows in two steps, with its outputs together, and
the best partition that is found of each; and the best of these with operands packed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from types import MappingProxyType

from tilesmith.cost_models.taco2019 import Taco2019
from tilesmith.scheduler.features.groups.stages_alike import group_form
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Factor, Joining, Packing
from tilesmith.scheduler.rewrites.passes import with_factors, with_joinings, with_packings
from tilesmith.scheduler.search.ecm.group_candidates import Planner
from tilesmith.scheduler.search.ecm.loop_structures import KINDS, Kind
from tilesmith.scheduler.search.ecm.partition import Partition, PartitionSearch
from tilesmith.scheduler.search.ecm.pricing import GroupCandidate
from tilesmith.scheduler.search.k_best import best_combinations
from tilesmith.scheduler.search.method import Question
from tilesmith.scheduler.search.output_fusion import ways
from tilesmith.scheduler.search.packing_choice import packings
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.separable_choice import Separated, separate
from tilesmith.scheduler.search.taco2019.grouping import AtRoot, Found, Grouping, Segment
from tilesmith.scheduler.search.tile_sizes import Tiling

NO_TILINGS: Mapping[Segment, Tiling] = MappingProxyType({})
GroupCandidates = tuple[GroupCandidate, ...]
"""One plan for every group, in the order that they run."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The plan as it is, or with its separable windows computed in two steps, its outputs one by one or together, its
    operands packed, and a partition of it."""

    plan: Plan
    search: PartitionSearch
    partition: Partition

    @property
    def cost(self) -> float:
        """The cost of the partition, about: with few sizes of tiles."""
        return self.search.cost(self.partition)

    def others(self, most: float, least: float) -> list[Variant]:
        """The variant with other partitions, that cost no more than `most`, and differ in groups that cost no less than
        `least`."""
        near = self.search.near(self.partition, most, least)
        return [replace(self, partition=p) for p in islice(near, PARAMS.other_partitions)]

    def ranked(self, count: int, cost: float) -> Iterator[tuple[float, GroupCandidates]]:
        """The cheapest combinations of plans with what they cost, the cheapest first; of plans that are alike, for a
        pipeline that costs `cost`, the cheapest only."""
        choices = [_apart(plans, cost) for plans in self.search.plans(self.partition)]
        for plans in best_combinations(choices, count):
            yield sum(p.total for p in plans), plans


Ranked = list[tuple[float, int, GroupCandidates]]


def ranked(variants: Sequence[Variant], count: int, cost: float) -> Ranked:
    """The best combinations of plans of each variant, with what they cost and the number of the variant, the cheapest
    first. See Variant.ranked."""
    found = ((total, n, plans) for n, v in enumerate(variants) for total, plans in v.ranked(count, cost))
    return sorted(found, key=itemgetter(0, 1))


def _apart(plans: Sequence[GroupCandidate], cost: float) -> list[GroupCandidate]:
    """The plans of a group, the cheapest first, that differ in what they cost from all before, or are another way to
    make a group that matters, where the pipeline costs `cost`."""
    kept: list[GroupCandidate] = []
    for p in plans:
        near = [k for k in kept if p.total - k.total < PARAMS.apart_share * cost]
        if not near or (plans[0].total >= PARAMS.matters_share * cost and all(k.way != p.way for k in near)):
            kept.append(p)
    return kept


@dataclass(frozen=True, slots=True)
class Explored:
    """The variants of a question, the cheapest first, as far as is known, and its windows. `as_paper` is the plan as it
    is with the groups of the paper, `papers`."""

    variants: tuple[Variant, ...]
    as_paper: Variant
    papers: Partition
    separated: Separated


@dataclass
class _Planners:
    """The planners of the variants of a question. What is the same in a variant as in one before, the `last` one or
    another, is priced and worked out once."""

    question: Question
    last: Planner | None = None
    factored: dict[tuple[Factor, ...], tuple[Plan, Facts]] = field(default_factory=dict)

    def facts_with(self, factors: tuple[Factor, ...]) -> tuple[Plan, Facts]:
        """The plan of the question with these factors, and the facts of its pipeline."""
        found = self.factored.get(factors)
        if found is None:
            plan, of = with_factors(self.question.plan, factors), self.question.facts
            strips = frozenset(f.partial for f in factors if not f.interleaved)
            partial = frozenset(f.partial for f in factors)
            facts = gather(plan.pipeline, partial, strips, of)
            found = self.factored[factors] = plan, facts
        return found

    def made(
        self, facts: Facts, known: Mapping[Segment, Tiling] = NO_TILINGS, kinds: tuple[Kind, ...] = KINDS
    ) -> Planner:
        """A planner of these kinds of shape, with the tilings that are `known` of the paper's groups."""
        q, b = self.question, self.last
        alternatives = q.top > 1 or bool(q.fixed)
        self.last = Planner(
            facts,
            q.platform,
            q.model,
            q.strict,
            q.deadline.expired,
            known,
            kinds=kinds,
            wanted=q.top,
            before=b,
            alternatives=alternatives,
        )
        return self.last


def explore(q: Question) -> Explored:
    """All variants, but of a plan that is final: that one as it is."""
    planners = _Planners(q)
    paper = Grouping(q.facts, q.platform, Taco2019(), q.deadline.expired)
    papers = partition_of(q.facts, paper.group())
    tilings = {s: t for s, t in paper.cache.items() if isinstance(t, Tiling)}

    def searched(plan: Plan, start: Partition, planner: Planner) -> Variant:
        search = PartitionSearch(planner.facts, planner)
        return Variant(plan, search, search.best([start]))

    def with_outputs_together(v: Variant, joinings: tuple[Joining, ...]) -> Variant:
        before = v.search.facts
        plan = with_joinings(v.plan, joinings)
        after = gather(plan.pipeline, before.partial, before.strips, before)
        return searched(plan, _with(v.partition, joinings), planners.made(after))

    plain = searched(q.plan, papers, planners.made(q.facts, tilings))
    as_paper = replace(plain, partition=plain.search.settled(papers))
    if q.final:
        return Explored((plain,), as_paper, papers, Separated(q.plan, q.facts))
    variants = [plain]
    separated = separate(q.plan, q.facts)
    if separated.plan.schedule.separations and not q.deadline.expired():
        # where fused rows are best, they are with more steps to fuse
        fused = tuple(k for k in KINDS if k.fused or not all(best.fused for best in plain.search.planner.kinds))
        planner = planners.made(separated.facts, kinds=fused)
        variants.append(searched(separated.plan, plain.partition, planner))
    if not q.deadline.expired():
        variants += [with_outputs_together(v, joinings) for v in variants for joinings in ways(v.plan.pipeline)]
    if not q.deadline.expired():
        variants += _with_packings_that_pay(q, planners, min(variants, key=lambda v: v.cost))
        variants += _with_packings_for_factors(q, planners, plain)
        variants += _without_parts(q, planners, plain)
    return Explored(tuple(sorted(variants, key=lambda v: v.cost)), as_paper, papers, separated)


def _with_packings_that_pay(q: Question, planners: _Planners, v: Variant) -> list[Variant]:
    """The variant with operands packed of all groups that cost less with them, in these groups and in their own, which
    are computed once for all tiles; none where there are no such groups."""
    copies = packings(v.search.facts, q.platform)
    if not copies:
        return []
    every = _with_packings(planners, v, copies)
    groups = {s.output: s for s in every.search.segments(every.partition)}
    paying: set[str] = set()
    known: dict[Hashable, bool] = {}
    compared: set[str] = set()
    for without in v.search.segments(v.partition):
        group = groups.get(without.output, without)
        if group.names != without.names:
            key = group_form(every.search.facts, group.names)
            if key not in known:
                compared.add(without.output)
                before = v.search.planner.worked_out(without)
                known[key] = every.search.planner.worked_out(group) < PARAMS.pays * before
            if known[key]:
                paying.update(group.names)
    kept = tuple(p for p in copies if p.packed in paying)
    if not kept:
        return []
    some = every if kept == copies else _with_packings(planners, v, kept)
    packed = {p.packed for p in kept}
    cut = Partition(some.partition.outputs | packed, some.partition.inlined)
    apart = replace(some, partition=some.search.settled(cut))
    near = compared | packed | {s.output for s in some.search.segments(some.partition) if packed & {*s.names}}
    for of in (some, apart):  # as they are in the variant without
        for segment in of.search.segments(of.partition):
            if segment.output in near:
                of.search.planner.worked_out(segment)
    return [some, apart]


def _with_packings_for_factors(q: Question, planners: _Planners, v: Variant) -> list[Variant]:
    """The variant with packed operands in place of interleaved partial results: both are there for terms that lie along
    memory where points do not; with its groups, with those that have such operands cut from their readers, and from
    what else they read, too: panels are then packed for all points. None where there are no such operands."""
    factors = q.plan.schedule.factors
    parted = {f.stage for f in factors if f.interleaved}
    if not parted:
        return []
    _, without = planners.facts_with(tuple(f for f in factors if not f.interleaved))
    copies = tuple(p for p in packings(without, q.platform) if p.stage in parted)
    if not copies:
        return []
    packed = {p.stage for p in copies}
    kept = tuple(f for f in factors if not (f.interleaved and f.stage in packed))
    gone = {f.partial for f in factors if f not in kept}
    plan, facts = planners.facts_with(kept)
    partition = Partition(v.partition.outputs - gone, v.partition.inlined - gone)
    unpacked = Variant(plan, PartitionSearch(facts, planners.made(facts)), partition)
    other = _with_packings(planners, unpacked, copies)
    # beside partial results it matters little which group a stage is in
    graph = other.search.facts.graph
    read = {n for s in packed for n in graph.producers[s] if n in graph.stages} - {p.packed for p in copies}
    parts = [other.partition]
    for cut in (packed, packed | read):
        part = Partition(other.partition.outputs | cut, other.partition.inlined - cut)
        parts.append(other.search.settled(part))
    found = [replace(other, partition=p) for p in dict.fromkeys(parts)]
    for of in (v, *found):
        for segment in of.search.segments(of.partition):
            if not packed.union(gone).isdisjoint(segment.names):
                of.search.planner.worked_out(segment)
    return found


def _without_parts(q: Question, planners: _Planners, v: Variant) -> list[Variant]:
    """The variant without interleaved partial results, which are chosen by where terms and points lie, before anything
    is priced: points may have vectors where the terms lie along memory, as of a gather. None where there are none, or
    of fewer points than they are parts: those have no vectors. Tables of scatters stay."""
    factors, known = q.plan.schedule.factors, q.facts
    scattered = {name for name, definition in known.definitions.items() if definition.updates}
    parted = [f for f in factors if f.interleaved and known.stages[f.stage].root_points >= f.parts]
    parted = [f for f in parted if f.partial not in scattered]
    gone = {f.partial for f in parted}
    if not gone:
        return []
    plan, facts = planners.facts_with(tuple(f for f in factors if f not in parted))
    search = PartitionSearch(facts, planners.made(facts))
    return [Variant(plan, search, search.best([Partition(v.partition.outputs - gone, v.partition.inlined - gone)]))]


def _with_packings(planners: _Planners, v: Variant, copies: tuple[Packing, ...]) -> Variant:
    """The variant with these operands packed, in the groups that it has."""
    before, plan = v.search.facts, with_packings(v.plan, copies)
    partial = before.partial | {p.packed for p in copies}  # computed where it is read, a copy would be none
    facts = gather(plan.pipeline, partial, before.strips, before)
    planner = planners.made(facts, kinds=v.search.planner.kinds)
    search = PartitionSearch(facts, planner)
    return Variant(plan, search, search.settled(v.partition))


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
