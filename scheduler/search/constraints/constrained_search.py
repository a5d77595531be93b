"""Constrained search: the method `default` around decisions that the caller has fixed.

Groups are found as always, among the partitions that have the outputs and the inline stages that are fixed. Then what
is fixed is put into the best plans of every group that it is about, and of those that are legal the cheapest is taken.
Windows are not separated: the stages are those that the caller knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, isfinite

from cost_models.counts import GroupCounts
from cost_models.model import Breakdown, CostModel, combined
from platforms import Platform
from scheduler.errors import FixedContradiction, IllegalSchedule, Problem
from scheduler.features.pipeline_features import Facts
from scheduler.features.schedule_features import counts_of_group
from scheduler.frontends.document.diagnostics import pointer
from scheduler.ir.schedule.schedule import Group
from scheduler.legality.verifier import check_group
from scheduler.search.candidates import Candidate, candidate
from scheduler.search.constraints.application import imposed
from scheduler.search.constraints.constraints import Fixed
from scheduler.search.constraints.document import to_document
from scheduler.search.deadline import Deadline
from scheduler.search.ecm.group_candidates import Planner, Settled
from scheduler.search.ecm.partition import Partition, PartitionSearch
from scheduler.search.group_trace import factor_explained, partition_explained, plan_explained
from scheduler.search.k_best import best_combinations
from scheduler.search.rfactor_choice import Factored
from scheduler.search.taco2019.grouping import Segment
from scheduler.search.taco2019.method import degraded_by
from scheduler.search.trace import Decision, Trace

KEPT = 8
"""Groups that are kept of each segment, for the best k schedules."""


def decide(
    factored: Factored,
    platform: Platform,
    model: CostModel,
    deadline: Deadline,
    top: int,
    fixed: Fixed,
) -> tuple[tuple[Candidate, ...], Trace]:
    """The best `top` schedules that have all of `fixed`, the best first, and the trace of the first.

    Raises FixedContradiction where there is none.
    """
    facts, strict = factored.facts, factored.plan.schedule.strict
    fixed = bounded(fixed, facts)
    planner = Planner(facts, platform, model, strict, deadline.expired, {})
    search = Constrained(facts, planner, fixed)
    partition = search.best([search.start()])
    if not isfinite(search.cost(partition)):
        raise FixedContradiction(tuple(search.problems(partition)))
    making = _Making(facts, platform, model, strict, planner, fixed)
    choices = [making.groups(segment) for segment in search.segments(partition)]
    degraded = degraded_by({}, deadline)
    found = []
    for made in best_combinations(choices, top):
        groups = tuple(g.group for g in made)
        plan = factored.plan.scheduled(groups, degraded)
        found.append(candidate(facts, plan, [g.counts for g in made], combined(g.cost for g in made)))
    decisions = [*map(factor_explained, factored.plan.schedule.factors), *_fixed_explained(fixed)]
    decisions += partition_explained(search, partition, None)
    for first in (made[0] for made in choices):
        decisions += first.explained
    return tuple(found), Trace(factored.plan.schedule.method, model.unit, tuple(decisions))


def bounded(fixed: Fixed, facts: Facts) -> Fixed:
    """The decisions with tiles that are no smaller than the extent at the estimates as whole ones."""
    stages = []
    for name, stage in fixed.stages:
        extent = facts.stages[name].extent
        tiles = tuple((d, None if n is None or n >= extent(d) else n) for d, n in stage.tiles)
        stages.append((name, replace(stage, tiles=tiles)))
    return Fixed(tuple(stages))


class Constrained(PartitionSearch):
    """Partitions that have the outputs and inline stages that are fixed; any other costs infinitely much."""

    def __init__(self, facts: Facts, planner: Planner, fixed: Fixed) -> None:
        super().__init__(facts, planner)
        self.fixed = fixed
        self.forced = self.forced | {name for name, _ in fixed.stages if fixed.root(name)}

    def start(self) -> Partition:
        """The partition with as few groups as there can be."""
        inlined = frozenset(name for name, _ in self.fixed.stages if self.fixed.inline(name))
        return Partition(self.forced, inlined - self.forced)

    def best(self, starts: list[Partition]) -> Partition:  # type: ignore[override]
        """The best partition that is found from `starts`; the first of them, which has everything that is fixed, where
        none has a cost."""
        found = super().best(starts)
        return found if isfinite(self.cost(found)) else self.settled(starts[0])

    def cost(self, partition: Partition) -> float:
        return inf if any(self.problems(partition)) else super().cost(partition)

    def problems(self, partition: Partition) -> Iterator[Problem]:
        """The contradictions of a partition to what is fixed."""
        for segment in self.segments(partition):
            name = segment.output
            if self.fixed.root(name) is False:
                why = "it is read by more than one" if name not in self.forced else "it has no loop to tile, or is long"
                message = f"'{name}' has to be the output of a group: {why}"
                yield Problem("fixed_contradiction", pointer(name, "compute"), message)
        for name in sorted(partition.inlined):
            if self.fixed.inline(name) is False:
                yield Problem("fixed_contradiction", pointer(name), f"'{name}' is inline in several groups")


@dataclass(frozen=True, slots=True)
class Made:
    """A group with its counts and its cost, and what there is to say about it."""

    group: Group
    counts: GroupCounts
    cost: Breakdown
    explained: tuple[Decision, ...]

    @property
    def total(self) -> float:
        return float(self.cost.total)


@dataclass
class _Making:
    """Makes groups that have what is fixed."""

    facts: Facts
    platform: Platform
    model: CostModel
    strict: bool
    planner: Planner
    fixed: Fixed

    def groups(self, segment: Segment) -> list[Made]:
        """The best groups of a segment, best first; FixedContradiction where none is legal."""
        plans = [self.planner.settle(p) for p in self.planner.plans(segment)]
        if all(name not in dict(self.fixed.stages) for name in segment.names):
            return [self._as_planned(p) for p in plans]
        legal, refused = self._imposed(plans, self.fixed)
        if not legal:
            raise FixedContradiction(tuple(self._problems(segment, plans, refused)))
        return sorted(map(self._made, legal), key=lambda made: made.total)[:KEPT]

    def _imposed(self, plans: list[Settled], fixed: Fixed) -> tuple[list[Group], list[str]]:
        """The legal groups that come of the plans with what is fixed, and why others are none."""
        legal: dict[Group, None] = {}
        refused: dict[str, None] = {}
        for plan in plans:
            for group in imposed(self.facts, plan.group, fixed, self.platform.threads):
                reason = None if group in legal else self._refused(group, fixed)
                if reason is None:
                    legal[group] = None
                else:
                    refused[reason] = None
        return list(legal), list(refused)

    def _refused(self, group: Group, fixed: Fixed) -> str | None:
        """Why the group cannot be, None where it can."""
        try:
            check_group(self.facts.pipeline, group, self.strict)
        except IllegalSchedule as error:
            return str(error)
        return fixed.admits_group(group)

    def _as_planned(self, plan: Settled) -> Made:
        return Made(plan.group, plan.counts, plan.cost, tuple(plan_explained(plan)))

    def _made(self, group: Group) -> Made:
        counts = counts_of_group(self.facts, group, self.platform.threads)
        cost = self.model.price(counts, self.platform)
        tiles = ", ".join(f"{t.dim} {'whole' if t.size is None else t.size}" for t in group.tiles) or "none"
        chosen = f"loops {' '.join(group.loops) or 'none'}; tiles {tiles}"
        reason = "the cheapest legal group that has what is fixed"
        decision = Decision("tiling", group.output, chosen, reason, "fixed decisions", float(cost.total))
        return Made(group, counts, cost, (decision,))

    def _problems(self, segment: Segment, plans: list[Settled], refused: list[str]) -> Iterator[Problem]:
        """A problem for every stage of the segment whose decisions no legal group has; where each by itself could be,
        one for all of them."""
        here = [(name, stage) for name, stage in self.fixed.stages if name in segment.names]
        alone = {name: self._imposed(plans, Fixed(((name, stage),))) for name, stage in here}
        documents = to_document(self.fixed)
        for name, (legal, reasons) in alone.items():
            if legal and not all(found for found, _ in alone.values()):
                continue
            why = ((refused if legal else reasons) or ["there is no such group"])[0]
            keys = ", ".join(documents[name])
            message = f"no legal group of '{segment.output}' has what is fixed of '{name}' ({keys}): {why}"
            yield Problem("fixed_contradiction", pointer(name), message)


def _fixed_explained(fixed: Fixed) -> Iterator[Decision]:
    for name, document in to_document(fixed).items():
        chosen = "; ".join(f"{key} {_words(value)}" for key, value in document.items())
        yield Decision("fixed", name, chosen, "the caller decided it", "fixed decisions")


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {'whole' if v is None else v}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
