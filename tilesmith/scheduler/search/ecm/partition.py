"""Partition into groups, beyond TACO 2019: a local search over the whole DAG, priced by the cost model.

A partition is the set of stages that are outputs of groups, and of those that are in several, inline unless one of
these does better to keep its own for a row. Everything else is in the group of the only output that it is read for. The
search starts from the groups of the paper and from one group for every output of the pipeline, whichever costs less,
and then joins and cuts groups as long as that pays; where every stage at root still costs less, from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile
from math import inf, isfinite
from operator import itemgetter
from typing import Literal

from tilesmith.cost_models.taco2019 import arithmetic_cost
from tilesmith.records import record
from tilesmith.scheduler.features.operations.operation_counts import total
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction
from tilesmith.scheduler.features.pipeline.interleaved_channels import fours
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.search.ecm.group_candidates import Planner
from tilesmith.scheduler.search.ecm.pricing import GroupCandidate
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.grouping import Segment, forced_outputs, is_special, places, segments
from tilesmith.scheduler.search.taco2019.inlining import is_trivial_shared


@record(frozen=True, slots=True)
class Partition:
    """Outputs of groups, and stages that are in every group that reads them, first of all inline."""

    outputs: frozenset[str]
    inlined: frozenset[str] = frozenset()


@dataclass
class PartitionSearch:
    """Finds a partition of the pipeline; `cuts` are the groups of all partitions that were worked out, and `compared`
    the partitions by their groups whose cost was asked for."""

    facts: Facts
    planner: Planner
    forced: frozenset[str] = field(init=False)
    cuts: dict[Partition, tuple[Segment, ...]] = field(default_factory=dict)
    compared: dict[tuple[Segment, ...], Partition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forced = frozenset(forced_outputs(self.facts))

    def best(self, starts: Iterable[Partition]) -> Partition:
        """The cheapest partition found from any of `starts` (in their order, where equal), or from as few groups as
        there can be; or from every stage at root, where that is not too far from what is found, and ends in what costs
        less by more than the model may be wrong by between few groups and many. Weights begin in groups of their
        own."""
        weights = frozenset(n for n in self.facts.graph.stages if _is_weight(self.facts, n))
        alone = (replace(s, outputs=s.outputs | weights - s.inlined) for s in (*starts, Partition(self.forced)))
        found = self._descended(self._cheapest(map(self.settled, alone)))
        root = self.settled(Partition(frozenset(self.facts.graph.stages)))
        most = PARAMS.from_root_most * self.cost(found)
        if self.cost(root, most) > most:
            return found
        kinds = self.planner.kinds
        other = self._descended(root)
        if self.cost(other) < PARAMS.from_root_gain * self.cost(found):
            self.planner.keep_kinds(self.segments(other))
            return other
        self.planner.kinds = kinds
        return found

    def _cheapest(self, partitions: Iterable[Partition]) -> Partition:
        first, *others = partitions
        least = self.cost(first)
        for partition in others:
            cost = self.cost(partition, least)
            if cost < least:
                first, least = partition, cost
        return first

    def _descended(self, found: Partition) -> Partition:
        """The partition with every change that pays, and with several joins at once where each of these steps gains
        more than the model may be wrong by, worked out, too. Other such steps are not remembered: `near` has none of
        them."""
        self.planner.keep_kinds(self.segments(found))
        gain = PARAMS.from_root_gain
        while True:
            found = self._stepped(found)
            known, enough = dict(self.compared), gain * self.cost(found)
            leaps = (p for p in self._joined_at_once(found) if self.cost(p, enough) < enough)
            leap = next((p for p in leaps if self.worked_out(p) < gain * self.worked_out(found)), None)
            self.compared = known
            if leap is None:
                return found
            found = self.settled(leap)

    def _stepped(self, found: Partition) -> Partition:
        """The partition with every single change that pays; joins along a chain of stages are tried several at once
        (see `_Stride`)."""
        limit = self.planner.planned + PARAMS.planned_stages_per_stage * len(self.facts.graph.stages)
        least = self.cost(found)
        while True:
            before, moves, stride = found, [*self._inlinings(found), *self._moves(found)], _Stride()
            while moves:
                if self.planner.expired() or self.planner.planned > limit:
                    return found
                chain = list(takewhile(self._is_along_chain, moves[: stride.joins]))
                tried = chain or moves[:1]
                moved, enough = reduce(self.moved, tried, found), least * PARAMS.pays ** len(tried)
                if moved != found and (cost := self.cost(moved, enough)) < enough:
                    found, least = moved, cost
                    stride = stride.longer(len(chain)) if chain else _Stride()
                elif len(tried) > 1:
                    stride = stride.shorter()
                    continue
                else:
                    stride = stride.anew() if chain else _Stride()
                del moves[: len(tried)]
            if found == before:
                return found

    def _joined_at_once(self, partition: Partition) -> Iterator[Partition]:
        """The partition with all groups joined that a group reads, which may pay only together: what they read alike is
        read less often only where none of them is left. From the outputs backwards."""
        segments, producers = self.segments(partition), self.facts.graph.producers
        free = {s.output: n for n, s in enumerate(segments) if s.output not in self.forced}
        read = [free.keys() & {p for stage in s.names for p in producers[stage]} for s in reversed(segments)]
        for joined in dict.fromkeys(tuple(sorted(names, key=free.__getitem__)) for names in read):
            if len(joined) > 1 and not self.planner.expired():
                yield reduce(self.moved, [Move("join", name) for name in joined], partition)

    def worked_out(self, partition: Partition) -> float:
        """The cost of all groups with their best tile sizes and moves; infinite where one of them cannot be."""
        return sum(next((p.total for p in plans), inf) for plans in self.plans(partition))

    def _is_along_chain(self, move: Move) -> bool:
        """True if a group is joined to its only reader."""
        return move.how == "join" and len(self.facts.graph.consumers[move.stage]) == 1

    def near(self, partition: Partition, most: float, least: float) -> Iterator[Partition]:
        """Others that were compared, the cheapest first: that cost at most `most`, and at least `least` by groups that
        one of both has and the other one has not, as their outputs are computed elsewhere."""
        own = {s.output: s for s in self.segments(partition)}

        def moved(segments: Iterable[Segment]) -> float:
            other = {s.output: s for s in segments}
            every = own | other
            return sum(self.planner.cost(s) for name, s in every.items() if (name in own) != (name in other))

        others = [(self.cost(p, most), cut, p) for cut, p in list(self.compared.items())]
        for _, cut, other in sorted((o for o in others if o[0] <= most), key=itemgetter(0)):
            if moved(cut) >= least:
                yield other

    def cost(self, partition: Partition, most: float = inf) -> float:
        """The cost of all groups together; infinite where it is more than `most`."""
        segments = self.segments(partition)
        self.compared.setdefault(segments, partition)
        return self.planner.cost_of_all(segments, most)

    def paper_cost(self, partition: Partition, most: float = inf) -> float:
        """The cost of all groups as the paper schedules them; as they are planned first where it does not. Infinite
        where it is more than `most`."""
        total = 0.0
        for segment in self.segments(partition):
            total += self.planner.paper_cost(segment)
            if total > most:
                return inf
        return total

    def paper_plans(self, partition: Partition) -> tuple[GroupCandidate, ...]:
        """The plan of every group as the paper has it, in the order that they run."""
        return tuple(self.planner.paper_plan(s) for s in self.segments(partition))

    def segments(self, partition: Partition) -> tuple[Segment, ...]:
        """The groups of a partition, in the order that they run."""
        found = self.cuts.get(partition)
        if found is None:
            found = self.cuts[partition] = self._cut(partition, self.facts.graph.stages)
        return found

    def _cut(self, partition: Partition, names: Iterable[str]) -> tuple[Segment, ...]:
        """The groups of these stages; what is the output of one in any schedule is in no other."""
        inlined = partition.inlined - self.forced
        found = segments(self.facts, names, partition.outputs | self.forced, inlined)
        return tuple(s for s in found if s.output not in inlined)

    def moved(self, partition: Partition, move: Move) -> Partition:
        """The partition, which is settled, with this change, settled."""
        changed = move.of(partition)
        if changed not in self.cuts:
            self.cuts[changed] = self._cut_anew(partition, changed, move.stage)
        result = self.settled(changed)
        self.cuts.setdefault(result, self.cuts[changed])
        return result

    def _cut_anew(self, partition: Partition, changed: Partition, stage: str) -> tuple[Segment, ...]:
        """The groups of the partition as it is `changed`: those that have neither the stage nor a reader of it are as
        they were."""
        near, place = {stage, *self.facts.graph.consumers[stage]}, places(self.facts)
        others, touched = [], set[str]()
        for segment in self.segments(partition):
            if near.isdisjoint(segment.names):
                others.append(segment)
            else:
                touched.update(segment.names)
        return tuple(sorted([*others, *self._cut(changed, touched)], key=lambda s: place[s.output]))

    def plans(self, partition: Partition) -> tuple[tuple[GroupCandidate, ...], ...]:
        """The plans of every group, in the order that they run."""
        least = PARAMS.negligible_group_share * self.cost(partition)
        return tuple(self.planner.plans(s, least) for s in self.segments(partition))

    def settled(self, partition: Partition) -> Partition:
        """The partition with all the outputs that it has, also those that no group could have alone."""
        return Partition(frozenset([s.output for s in self.segments(partition)]), partition.inlined - self.forced)

    def _inlinings(self, partition: Partition) -> list[Move]:
        """Outputs of groups that may be worth to be computed wherever they are read, those first that take the most
        memory."""
        stages, segments = self.facts.stages, self.segments(partition)
        sizes = {s.output: stages[s.output].root_points * stages[s.output].bytes_per_point for s in segments}
        least = PARAMS.inlined_least_memory_share * sum(sizes.values())
        trip, found = self.facts.core.balance.memory_operations_per_byte, []
        for name, size in sizes.items():
            stage = stages[name]
            if name in self.forced or stage.updates or name in self.facts.partial:
                continue
            reads = ((stages[c], stages[c].read_of[name]) for c in self.facts.graph.consumers[name])
            again = sum(r.points * c.root_points for c, r in reads) - stage.root_points
            if is_trivial_shared(stage) or (size >= least and again * _operations(stage) <= size * trip):
                found.append((-size, name))
        return [Move("inline", name) for _, name in sorted(found)]

    def _moves(self, partition: Partition) -> Iterator[Move]:
        """Steps away from a partition: from the outputs backwards a group joined to its readers, or a stage cut off
        that is computed again and again, or whose channels lie side by side then."""
        looked_up, matters = fours(self.facts), (1 - PARAMS.pays) * self.cost(partition)
        for segment in reversed(self.segments(partition)):
            name = segment.output
            if name not in self.forced:
                yield Move("join", name)
            if len(segment.names) == 1 or not isfinite(self.planner.cost(segment)):
                continue
            again = self.planner.computed_again(segment, matters)
            for stage in dict.fromkeys((*again, *(n for n in segment.names[:-1] if n in looked_up))):
                if not is_special(self.facts.stages[stage]):
                    yield Move("cut", stage)


@record(frozen=True, slots=True)
class Move:
    """A change of a partition: the group of a stage joined to its readers, the stage inline in all of them, or cut
    off."""

    how: Literal["join", "inline", "cut"]
    stage: str

    def of(self, partition: Partition) -> Partition:
        """The partition with this change."""
        name, outputs, inlined = {self.stage}, partition.outputs, partition.inlined
        match self.how:
            case "join":
                return Partition(outputs - name, inlined)
            case "inline":
                return Partition(outputs - name, inlined | name)
            case "cut":
                return Partition(outputs | name, inlined - name)


@record(frozen=True, slots=True)
class _Stride:
    """The number of `joins` along a chain of stages that are tried at once: one, after many that `paid` in a row two,
    four, and so on until they do not, and then half of the last each time. A group that takes in a long chain is not
    priced anew for each stage. The group after one that many joins paid for begins with as many."""

    joins: int = 1
    paid: int = 0
    grows: bool = True

    def longer(self, paid: int) -> _Stride:
        """The next stride where so many joins have paid."""
        paid += self.paid
        grown = self.grows and paid >= PARAMS.joins_one_by_one
        return _Stride(2 * self.joins if grown else max(1, self.joins // 2), paid, self.grows)

    def shorter(self) -> _Stride:
        """The next stride where several joins did not pay."""
        return _Stride(self.joins // 2, self.paid, False)

    def anew(self) -> _Stride:
        """The stride of the next group, which is likely to end in as many stages as this one."""
        many = self.paid >= PARAMS.joins_one_by_one
        return _Stride(1 << self.paid.bit_length() - 1, 0, False) if many else _Stride()


def _is_weight(facts: Facts, name: str) -> bool:
    """True if a stage is the same for all points of its readers, one of which has a loop of many terms at each of
    several points, and takes more than to load it: computed where it is read it would be computed for each vector."""
    stage, readers = facts.stages[name], facts.graph.consumers[name]
    reads = [facts.stages[c].read_of[name] for c in readers]
    still = all(s.var is None for r in reads for s in r.spans) and not any(r.looked_up or r.computed for r in reads)
    long = (has_long_reduction(facts.definitions[c], {}) for c in readers if not is_special(facts.stages[c]))
    return still and not is_trivial_shared(stage) and any(long)


def _operations(stage: StageFacts) -> float:
    """The cost of a point in a row, in operations."""
    return arithmetic_cost(total(stage.typed)) + stage.loads
