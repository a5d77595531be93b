"""Which stages make a group, beyond TACO 2019: a local search over the whole DAG, priced by the cost model.

A partition is the set of stages that are outputs of groups, and of those that are inline in several. Everything else is
in the group of the only output that it is read for. The search starts from the groups of the paper and from one group
for every output of the pipeline, whichever costs less, and then joins and cuts groups as long as that pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import isfinite

from scheduler.analysis.facts import Facts
from scheduler.search.grouping import Segment, forced_outputs, is_special, segments
from scheduler.search.inlining import is_trivial_shared
from scheduler.search.planning import PAYS, Plan, Planner

AGAIN = 1.05
"""A stage computed more often than this, relative to once, is tried as the output of a group of its own."""
EFFORT = 6
"""Stages planned for each stage of the pipeline, at most, beyond those of the first partitions."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Outputs of groups, and stages that are inline in every group that reads them."""

    outputs: frozenset[str]
    inlined: frozenset[str] = frozenset()


@dataclass
class PartitionSearch:
    """Finds a partition of the pipeline; `tried` are the partitions that were priced, with their cost."""

    facts: Facts
    planner: Planner
    forced: frozenset[str] = field(init=False)
    cuts: dict[Partition, tuple[Segment, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forced = frozenset(forced_outputs(self.facts))

    def best(self, starts: Iterable[Partition]) -> Partition:
        """The cheapest partition found from any of `starts` (in their order, where equal)."""
        found = min((self.settled(s) for s in (*starts, Partition(self.forced))), key=self.cost)
        self.planner.keep_kinds(self.segments(found))
        limit = self.planner.planned + EFFORT * len(self.facts.graph.stages)
        while True:
            before = found
            for move in self._moves(found):
                if self.planner.expired() or self.planner.planned > limit:
                    return found
                moved = self.settled(move)
                if self.cost(moved) < self.cost(found) * PAYS:
                    found = moved
            if found == before:
                return found

    def cost(self, partition: Partition) -> float:
        """What all groups cost together."""
        return sum(self.planner.cost(s) for s in self.segments(partition))

    def segments(self, partition: Partition) -> tuple[Segment, ...]:
        """The groups of a partition, in the order that they run."""
        found = self.cuts.get(partition)
        if found is None:
            stages = self.facts.graph.stages
            found = segments(self.facts, stages, set(partition.outputs | self.forced), partition.inlined)
            found = self.cuts[partition] = tuple(s for s in found if s.output not in partition.inlined)
        return found

    def plans(self, partition: Partition) -> tuple[tuple[Plan, ...], ...]:
        """The plans of every group, in the order that they run."""
        return tuple(self.planner.plans(s) for s in self.segments(partition))

    def settled(self, partition: Partition) -> Partition:
        """The partition with all the outputs that it has, also those that no group could have alone."""
        return replace(partition, outputs=frozenset(s.output for s in self.segments(partition)))

    def _moves(self, partition: Partition) -> Iterator[Partition]:
        """Partitions a step away: from the outputs backwards a group joined to its readers, a stage inline in all of
        them, or a stage that is computed again and again cut off."""
        for segment in reversed(self.segments(partition)):
            name = segment.output
            if name not in self.forced:
                yield replace(partition, outputs=partition.outputs - {name})
                stage = self.facts.stages[name]
                if not stage.updates and name not in self.facts.partial and is_trivial_shared(stage):
                    yield Partition(partition.outputs - {name}, partition.inlined | {name})
            if len(segment.names) == 1 or not isfinite(self.planner.cost(segment)):
                continue
            for counts in self.planner.sketch(segment).counts.stages:
                again = not counts.inlined and float(counts.points) > AGAIN * counts.root_points
                if again and counts.stage != name and not is_special(self.facts.stages[counts.stage]):
                    yield Partition(partition.outputs | {counts.stage}, partition.inlined - {counts.stage})
