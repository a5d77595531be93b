"""Alg. 4 and 5 of TACO 2019: which stages make a group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from tilesmith.cost_models.interface import CostModel
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.groups.fusion_group import members_of
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.taco2019.inlining import is_trivial_shared
from tilesmith.scheduler.search.taco2019.tiling import no_loop_to_tile, tile_group
from tilesmith.scheduler.search.tile_sizes import Tiling
from tilesmith.scheduler.search.trace import Decision, Infeasible, Rejected


class Segment(NamedTuple):
    """Stages that are scheduled together: `names` in topological order, the output last. `shared` of them are in
    whatever other segment reads them, too."""

    output: str
    names: tuple[str, ...]
    shared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AtRoot:
    """A group of one stage that has no loop to tile, computed whole; `inlined` are computed where it reads them."""

    inlined: frozenset[str]
    reason: str


Found = Tiling | Infeasible | AtRoot
"""The outcome for a group: its tiles, why it has none, or that it needs none."""


@dataclass
class Grouping:
    """Groups the stages of a pipeline; segments are scheduled once and cached. So many `candidates` of tile sizes are
    costed for a loop order. `decisions` are added to."""

    facts: Facts
    platform: Platform
    model: CostModel
    expired: Callable[[], bool]
    candidates: int = PARAMS.paper_tile_sizes
    decisions: list[Decision] = field(default_factory=list)
    cache: dict[Segment, Tiling | Infeasible] = field(default_factory=dict)

    def schedule(self, segment: Segment) -> Tiling | Infeasible:
        """The segment as one group (Alg. 1 to 3). Once the deadline has passed nothing new is tried."""
        found = self.cache.get(segment)
        if found is None and self.cache and self.expired():
            return Infeasible("the deadline came first")
        if found is None:
            members = members_of(self.facts, segment.output, segment.names, segment.shared)
            found = self.cache[segment] = tile_group(members, self.platform, self.model, self.expired, self.candidates)
        return found

    def group(self) -> dict[str, Found]:
        """Every group of the pipeline by its output, in the order that they run.

        The whole pipeline is one group where it can be: outputs, and stages without a loop to tile and what these
        read, are outputs of groups in any case. A group that does not fit is cut by Alg. 4, then by Alg. 5.
        An Infeasible group is one of a single stage, or of a segment that no cut made fit.
        """
        result: dict[str, Found] = {}
        for segment in segments(self.facts, self.facts.graph.stages, forced_outputs(self.facts)):
            output = self.facts.stages[segment.output]
            if is_special(output):
                result[segment.output] = AtRoot(frozenset(segment.names[:-1]), no_loop_to_tile(output))
            else:
                result.update(self._fitted(segment))
        order = {name: n for n, name in enumerate(self.facts.graph.stages)}
        return dict(sorted(result.items(), key=lambda item: order[item[0]]))

    def _fitted(self, segment: Segment) -> dict[str, Tiling | Infeasible]:
        whole = self.schedule(segment)
        if len(segment.names) == 1 or (isinstance(whole, Tiling) and not self._computes_again(whole)):
            return {segment.output: whole}
        before = len(self.decisions)
        result = self._cut(segment, whole)
        if isinstance(whole, Tiling) and not _total(result.values()) < whole.total:
            del self.decisions[before:]
            return {segment.output: whole}
        return result

    def _computes_again(self, tiling: Tiling) -> bool:
        """True if halos and what is inlined are a good part of the work."""
        stages = (self.facts.stages[name] for name in tiling.members.names)
        once = sum(s.arithmetic * s.root_points for s in stages)
        return tiling.total > PARAMS.much_again_share * once

    def _cut(self, segment: Segment, whole: Tiling | Infeasible) -> dict[str, Tiling | Infeasible]:
        """Alg. 4, and Alg. 5 for what does not fit then."""
        shared = shared_stages(self.facts, segment)
        inlined = trivial_shared(self.facts, shared)
        parts = segments(self.facts, segment.names, {*shared.difference(inlined), segment.output}, inlined)
        if shared:
            kept = f"; inline wherever they are read: {', '.join(sorted(inlined))}" if inlined else ""
            if isinstance(whole, Tiling):
                one = Rejected("one group", "it computes much again", whole.total)
            else:
                one = Rejected("one group", whole.reason)
            self.decisions.append(
                Decision(
                    "split",
                    segment.output,
                    f"groups of their own for {', '.join(sorted(shared.difference(inlined)))}{kept}",
                    "stages with more than one consumer",
                    "TACO 2019, Alg. 4",
                    rejected=(one,),
                )
            )
        result: dict[str, Tiling | Infeasible] = {}
        for part in reversed(parts):
            if isinstance(whole, Tiling) and _total(result.values()) >= whole.total:
                break  # one group is cheaper in any case
            fitted = self.schedule(part)
            if isinstance(fitted, Tiling) or len(part.names) == 1:
                result[part.output] = fitted
            else:
                result.update(_Splitter(self, part, fitted).split())
        return result


def _total(groups: Iterable[Tiling | Infeasible]) -> float:
    """The cost of the groups together; infinite where one has no tiles."""
    return sum(g.total if isinstance(g, Tiling) else inf for g in groups)


class _Splitter:
    """Alg. 5 on one segment. `best` is memoised on the number of stages that are already cut off."""

    def __init__(self, grouping: Grouping, segment: Segment, whole: Infeasible) -> None:
        self.grouping, self.segment, self.whole = grouping, segment, whole
        self.order = tuple(n for n in depth_first(grouping.facts, segment) if n not in segment.shared)
        self.max_split = -(-len(self.order) // PARAMS.segmentations)
        self.found: dict[int, tuple[float, dict[str, Tiling]] | None] = {}
        self.ends: dict[int, tuple[int, ...]] = {}
        self.rejected: list[Rejected] = []

    def split(self) -> dict[str, Tiling | Infeasible]:
        """The groups of the cheapest segmentation; the segment itself, infeasible, where there is none."""
        best = self.best(0)
        if best is None:
            return {self.segment.output: self.whole}
        cost, groups = best
        self.grouping.decisions.append(
            Decision(
                "split",
                self.segment.output,
                f"groups of {', '.join(groups)}",
                f"the cheapest of the segmentations tried; max_split {self.max_split}",
                "TACO 2019, Alg. 5",
                cost,
                (Rejected("one group", self.whole.reason), *self.rejected),
            )
        )
        return dict(groups)

    def best(self, start: int) -> tuple[float, dict[str, Tiling]] | None:
        """Cost and groups of the cheapest segmentation of the stages from `start` on; None where there is none."""
        pending = [start]
        while pending:  # a loop, not a recursion: a chain may have thousands of stages
            at = pending[-1]
            missing = [end for end in self._ends(at) if end not in self.found]
            if at in self.found or not missing:
                pending.pop()
                if at not in self.found:
                    self.found[at] = self._combine(at)
            else:
                pending.extend(missing)
        return self.found[start]

    def _ends(self, start: int) -> tuple[int, ...]:
        """The ends at which a first segment from `start` fits; none where all the rest fits (the last segment is not
        split further)."""
        if start not in self.ends:
            self.ends[start] = self._find_ends(start)
        return self.ends[start]

    def _find_ends(self, start: int) -> tuple[int, ...]:
        """Segments grow from max_split stages in steps of it; where not even that fits, it is halved for good."""
        stages = len(self.order)
        while True:
            fitting: list[int] = []
            for end in range(start + self.max_split, stages, self.max_split):
                if self._part(start, end) is None:
                    break  # a segment that does not fit is not grown further
                fitting.append(end)
                if self.grouping.expired():
                    break
            else:
                if self._part(start, stages) is not None:
                    return ()
            if fitting or self.max_split == 1:
                return tuple(fitting)
            self.max_split = -(-self.max_split // 2)

    def _combine(self, start: int) -> tuple[float, dict[str, Tiling]] | None:
        ends = self._ends(start)
        best = None if ends else self._part(start, len(self.order))
        for end in ends:
            first, rest = self._part(start, end), self.found[end]
            if first is not None and rest is not None:
                best = self._cheaper(best, (first[0] + rest[0], {**first[1], **rest[1]}), start)
        return best

    def _cheaper(
        self, best: tuple[float, dict[str, Tiling]] | None, found: tuple[float, dict[str, Tiling]], start: int
    ) -> tuple[float, dict[str, Tiling]]:
        if best is None or found[0] < best[0]:
            worse, better = best, found
        else:
            worse, better = found, best
        if worse is not None and start == 0:
            self.rejected.append(Rejected(f"groups of {', '.join(worse[1])}", "costs no less", worse[0]))
        return better

    def _part(self, start: int, end: int) -> tuple[float, dict[str, Tiling]] | None:
        """Stages `start` to `end` as a segment: one group, or one for every stage that is read beyond."""
        graph, own = self.grouping.facts.graph, self.order[start:end]
        inlined = frozenset(p for n in own for p in graph.producers[n] if p in self.segment.shared)
        inside = {*own, *inlined}
        outputs = {n for n in own if not self._readers(n).issubset(own) or n == self.segment.output}
        groups: dict[str, Tiling] = {}
        for part in segments(self.grouping.facts, inside, outputs, inlined):
            tiling = self.grouping.schedule(part)
            if isinstance(tiling, Infeasible):
                return None
            groups[part.output] = tiling
        return sum(t.total for t in groups.values()), groups

    def _readers(self, name: str) -> set[str]:
        """The stages that read `name`, themselves or through what is inline in all of its readers."""
        consumers = self.grouping.facts.graph.consumers
        found, pending = set[str](), [name]
        while pending:
            for reader in consumers[pending.pop()]:
                if reader in self.segment.shared:
                    pending.append(reader)
                else:
                    found.add(reader)
        return found


def is_special(stage: StageFacts) -> bool:
    """True if the stage has no loop to tile: no dims, or none that all its updates keep in place."""
    return not stage.pure


def forced_outputs(facts: Facts) -> set[str]:
    """Stages that are the output of a group in any schedule: outputs, stages without a loop to tile, and what these
    read unless they can compute it where they read it."""
    graph = facts.graph
    forced = {*graph.outputs, *facts.strips, *(n for n in graph.stages if _is_read_whole(facts, n))}
    evaluations: dict[str, float] = {}
    for name in reversed(graph.stages):
        stage, readers = facts.stages[name], graph.consumers[name]
        if is_special(stage):
            forced.add(name)
        elif any(is_special(facts.stages[c]) or c in evaluations for c in readers):
            inline = sum(_evaluations(facts, c, name, evaluations) for c in readers)
            if (
                len(readers) > 1
                or not _may_be_inline(facts, name)
                or inline > stage.root_points * PARAMS.inlined_at_root_as_often
            ):
                forced.add(name)
            else:
                evaluations[name] = inline
    return forced


def _is_read_whole(facts: Facts, name: str) -> bool:
    """True if every point of every consumer reads the stage as a whole, and it is long in the making (a histogram of
    an image): no tile should do it again."""
    stage = facts.stages[name]
    if stage.root_points * stage.arithmetic < facts.core.balance.fork_operations:
        return False
    reads = [facts.stages[c].read_of[name] for c in facts.graph.consumers[name]]
    return all(s.var is None for read in reads for s in read.spans)


def _evaluations(facts: Facts, reader: str, name: str, evaluations: dict[str, float]) -> float:
    """Number of times that `reader` would compute `name` if it did so wherever it reads it."""
    stage = facts.stages[reader]
    return evaluations.get(reader, float(stage.root_points)) * stage.read_of[name].evaluated


def _may_be_inline(facts: Facts, name: str) -> bool:
    return not facts.stages[name].updates and name not in facts.partial and name not in facts.graph.outputs


def shared_stages(facts: Facts, segment: Segment) -> set[str]:
    """TACO 2019, Alg. 4: stages of the segment with more than one consumer."""
    inside = set(segment.names)
    return {
        name
        for name in segment.names
        if name != segment.output and len(inside.intersection(facts.graph.consumers[name])) > 1
    }


def trivial_shared(facts: Facts, shared: set[str]) -> frozenset[str]:
    """The shared stages that are trivial, and read no other such stage: not worth a trip through memory.

    The paper gives every shared stage a group; but its trivial stages are inlined before anything else."""
    found: set[str] = set()
    for name in facts.graph.stages:
        if (
            name in shared
            and _may_be_inline(facts, name)
            and is_trivial_shared(facts.stages[name])
            and not found.intersection(facts.graph.producers[name])
        ):
            found.add(name)
    return frozenset(found)


def segments(
    facts: Facts,
    names: Iterable[str],
    outputs: Collection[str],
    inlined: frozenset[str] = frozenset(),
) -> tuple[Segment, ...]:
    """The stages `names` as segments: one for every output, with the stages that only it reads. A stage that several
    segments read becomes an output too, unless it is one of `inlined`: that is in all of them, and inline
    there."""
    inside = {*names}
    listed = sorted(inside, key=places(facts).__getitem__)
    owners: dict[str, frozenset[str]] = {}
    for name in reversed(listed):
        owners[name] = frozenset((name,))
        readers = {owners[c] for c in facts.graph.consumers[name] if c in inside} if name not in outputs else ()
        if readers:
            found = frozenset(o for of in readers for o in of) if len(readers) > 1 else next(iter(readers))
            owners[name] = found if len(found) == 1 or name in inlined else owners[name]
    members: dict[str, list[str]] = {name: [] for name in listed if name in owners[name]}
    for name in listed:
        for owner in owners[name]:
            members[owner].append(name)
    return tuple(
        Segment(o, tuple(found), inlined.intersection(found) if inlined else inlined) for o, found in members.items()
    )


@once
def places(facts: Facts) -> dict[str, int]:
    """The places of the stages in topological order."""
    return {name: n for n, name in enumerate(facts.graph.stages)}


def depth_first(facts: Facts, segment: Segment) -> tuple[str, ...]:
    """The stages of the segment, producers first, each with its own producers just before it."""
    inside, done = set(segment.names), dict[str, None]()
    pending: list[tuple[str, bool]] = [(segment.output, False)]
    while pending:
        name, ready = pending.pop()
        if ready:
            done[name] = None
        elif name not in done:
            pending.append((name, True))
            pending.extend((p, False) for p in reversed(facts.graph.producers[name]) if p in inside and p not in done)
    return tuple(done)
