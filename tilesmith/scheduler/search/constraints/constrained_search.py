"""Constrained search: the space of the method `default`, filtered by what the caller has fixed.

The variants and partitions that the search has looked at without them are those that it starts from. Of each variant
that has all stages that are named, partitions are those with the outputs and inline stages that are fixed; of the plans
of their groups those stay that have what is fixed of them, and it is put into the others. So whatever the search finds
by itself is found, where that has what is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite

from tilesmith.scheduler.errors import DocumentError, FixedContradiction, IllegalSchedule, Problem
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.frontends.document.diagnostics import pointer
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.legality.verifier import check_group
from tilesmith.scheduler.search.constraints.application import imposed
from tilesmith.scheduler.search.constraints.constraints import Fixed
from tilesmith.scheduler.search.constraints.document import check, to_document
from tilesmith.scheduler.search.ecm.group_candidates import Planner
from tilesmith.scheduler.search.ecm.partition import Partition, PartitionSearch
from tilesmith.scheduler.search.ecm.pricing import Finalised, GroupCandidate
from tilesmith.scheduler.search.ecm.variants import Variant
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.grouping import Segment
from tilesmith.scheduler.search.trace import Decision

Refusals = list[DocumentError | FixedContradiction]


def constrained(known: Sequence[Variant], fixed: Fixed, close: float) -> list[Variant]:
    """The variants of which schedules have everything that is fixed, the cheapest first, each with the partitions that
    are `known` of it, the best first, and one that is found around what is fixed. Only those are worked out that cost
    no more than `close` times the cheapest, and the best.

    Raises FixedContradiction where there is none, DocumentError where no variant has all stages that are named.
    """
    refused: Refusals = []
    found: list[Variant] = []
    variants: dict[Schedule, list[Variant]] = {}
    for v in known:
        variants.setdefault(v.plan.schedule, []).append(v)
    for schedule in sorted(variants, key=lambda s: len(s.separations) + len(s.joinings) + len(s.packings)):
        try:
            found += _partitions(variants[schedule], fixed)
        except (DocumentError, FixedContradiction) as error:
            refused.append(error)
    best = (known[0].plan.schedule, known[0].partition)
    kept: list[Variant] = []
    for v in sorted(found, key=lambda v: v.cost):
        if not kept or v.cost <= kept[0].cost * close or (v.plan.schedule, v.partition) == best:
            try:
                v.search.plans(v.partition)
                kept.append(v)
            except FixedContradiction as error:
                refused.append(error)
    if not kept:
        raise next((e for e in refused if isinstance(e, FixedContradiction)), refused[0])
    return kept


def _partitions(variants: Sequence[Variant], fixed: Fixed) -> list[Variant]:
    """Variants of one plan, with the partitions that have what is fixed."""
    plan, search = variants[0].plan, variants[0].search
    check(fixed, plan.pipeline)
    space = Constrained(search.facts, search.planner, bounded(fixed, search.facts))
    start = space.settled(space.start())
    starts = [space.settled(v.partition) for v in variants]
    partitions = dict.fromkeys([*starts, space.best([*starts, start])])
    found = [Variant(plan, space, p) for p in partitions if isfinite(space.cost(p))]
    if not found:
        raise FixedContradiction(tuple(space.problems(start)))
    return found


def bounded(fixed: Fixed, facts: Facts) -> Fixed:
    """The decisions with tiles that are no smaller than the extent at the estimates as whole ones."""
    stages = []
    for name, stage in fixed.stages:
        extent = facts.stages[name].extent
        tiles = tuple((d, None if n is None or n >= extent(d) else n) for d, n in stage.tiles)
        stages.append((name, replace(stage, tiles=tiles)))
    return Fixed(tuple(stages))


class Constrained(PartitionSearch):
    """Partitions that have the outputs and inline stages that are fixed: any other costs infinitely much. Of their
    groups those plans are taken that have what is fixed of them; and it is put into the others."""

    def __init__(self, facts: Facts, planner: Planner, fixed: Fixed) -> None:
        super().__init__(facts, planner)
        self.fixed = fixed
        self.forced = self.forced | {name for name, _ in fixed.stages if fixed.root(name)}
        self.admitted: dict[Segment, tuple[GroupCandidate, ...]] = {}

    def start(self) -> Partition:
        """The partition with as few groups as there can be."""
        inlined = frozenset(name for name, _ in self.fixed.stages if self.fixed.inline(name))
        return Partition(self.forced, inlined - self.forced)

    def cost(self, partition: Partition, most: float = inf) -> float:
        return inf if any(self.problems(partition)) else super().cost(partition, most)

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

    def plans(self, partition: Partition) -> tuple[tuple[GroupCandidate, ...], ...]:
        """The plans of every group that have what is fixed. Raises FixedContradiction where a group has none."""
        segments, every = self.segments(partition), super().plans(partition)
        return tuple(self._admitted(s, plans) for s, plans in zip(segments, every, strict=True))

    def _admitted(self, segment: Segment, plans: tuple[GroupCandidate, ...]) -> tuple[GroupCandidate, ...]:
        if not any(name in segment.names for name, _ in self.fixed.stages):
            return plans
        found = self.admitted.get(segment)
        if found is None:
            legal, refused = self._filtered(plans, self.fixed)
            if not legal:
                raise FixedContradiction(tuple(self._contradictions(segment, plans, refused)))
            found = self.admitted[segment] = tuple(sorted(legal, key=lambda plan: plan.total)[: PARAMS.kept_candidates])
        return found

    def _filtered(self, plans: tuple[GroupCandidate, ...], fixed: Fixed) -> tuple[list[GroupCandidate], list[str]]:
        """The plans that have what is fixed, the legal ones that come of putting it into the others, and why others are
        none."""
        legal: dict[Group, GroupCandidate] = {}
        refused: dict[str, None] = {}
        for plan in plans:
            finalised = self.planner.finalise(plan)
            if fixed.admits_group(finalised.group) is None:
                legal.setdefault(finalised.group, replace(plan, total=float(finalised.cost.total), finalised=finalised))
                continue
            for group in imposed(self.facts, finalised.group, fixed, self.planner.platform.threads):
                reason = None if group in legal else self._refused(group, fixed)
                if reason is not None:
                    refused[reason] = None
                elif group not in legal:
                    legal[group] = self._made(plan.segment, group)
        return list(legal.values()), list(refused)

    def _refused(self, group: Group, fixed: Fixed) -> str | None:
        """Why the group cannot be, None where it can."""
        try:
            check_group(self.facts.pipeline, group, self.planner.strict)
        except IllegalSchedule as error:
            return str(error)
        return fixed.admits_group(group)

    def _made(self, segment: Segment, group: Group) -> GroupCandidate:
        """The group counted and priced."""
        platform = self.planner.platform
        counts = counts_of_group(self.facts, group, platform.threads)
        cost = self.planner.model.price(counts, platform)
        tiles = ", ".join(f"{t.dim} {'whole' if t.size is None else t.size}" for t in group.tiles) or "none"
        chosen = f"loops {' '.join(group.loops) or 'none'}; tiles {tiles}"
        reason = "the cheapest legal group that has what is fixed"
        why = Decision("tiling", group.output, chosen, reason, "fixed decisions", float(cost.total))
        return GroupCandidate(segment, float(cost.total), finalised=Finalised(group, counts, cost, None, why))

    def _contradictions(
        self, segment: Segment, plans: tuple[GroupCandidate, ...], refused: list[str]
    ) -> Iterator[Problem]:
        """A problem for every stage of the segment whose decisions no legal group has; where each by itself could be,
        one for all of them."""
        here = [(name, stage) for name, stage in self.fixed.stages if name in segment.names]
        alone = {name: self._filtered(plans, Fixed(((name, stage),))) for name, stage in here}
        documents = to_document(self.fixed)
        for name, (legal, reasons) in alone.items():
            if legal and not all(found for found, _ in alone.values()):
                continue
            why = ((refused if legal else reasons) or ["there is no such group"])[0]
            keys = ", ".join(documents[name])
            message = f"no legal group of '{segment.output}' has what is fixed of '{name}' ({keys}): {why}"
            yield Problem("fixed_contradiction", pointer(name), message)


def fixed_explained(fixed: Fixed) -> Iterator[Decision]:
    """Decisions of the caller, stage by stage."""
    for name, document in to_document(fixed).items():
        chosen = "; ".join(f"{key} {_words(value)}" for key, value in document.items())
        yield Decision("fixed", name, chosen, "the caller decided it", "fixed decisions")


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {'whole' if v is None else v}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
