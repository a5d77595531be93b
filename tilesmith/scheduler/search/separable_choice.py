"""Choice of separable windows that are computed in two steps: those of which that takes fewer operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod

from tilesmith.cost_models.taco2019 import cost_of_values
from tilesmith.scheduler.analysis.access_functions import hull
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.flat_rows import FURTHEST_PIXELS, MOST_CHANNELS
from tilesmith.scheduler.analysis.separability import Window, windows
from tilesmith.scheduler.analysis.stage_graph import is_plain, parts
from tilesmith.scheduler.features.operations.operation_counts import operations
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.ir.pipeline.expressions import Access
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Separation
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.passes import with_separations
from tilesmith.scheduler.rewrites.split_separable import put_in, split
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.trace import Decision, Rejected

SOURCE = "separable windows"


@dataclass(frozen=True, slots=True)
class Separated:
    """A plan with its windows separated, the facts of its pipeline, and why they are."""

    plan: Plan
    facts: Facts
    decisions: tuple[Decision, ...] = ()


def separate(plan: Plan, facts: Facts) -> Separated:
    """The plan with the separations that save operations, and its facts; `plan` and `facts` themselves without any.

    Of the dims that a window can be split along the one with the fewest operations comes first, of equals the one
    that is slowest in memory: a step across rows needs no neighbours in a vector. What is split may be split again.
    Two steps that the pipeline has in the other order are exchanged.
    """
    chosen = _Choice(facts, plan.schedule.strict)
    for name in facts.graph.stages:
        chosen.consider(name)
    if not chosen.separations:
        return Separated(plan, facts, tuple(chosen.decisions))
    # computed where it is read, the first step would be done once for every element of the second
    partial = facts.partial | {s.partial for s in chosen.separations}
    plan = with_separations(plan, tuple(chosen.separations))
    return Separated(plan, gather(plan.pipeline, partial, facts.strips, facts), tuple(chosen.decisions))


class _Choice:
    """Separations as they are chosen, one after the other."""

    def __init__(self, facts: Facts, strict: bool) -> None:
        self.facts, self.strict = facts, strict
        self.names = taken(facts.pipeline)
        self.separations: list[Separation] = []
        self.decisions: list[Decision] = []

    def consider(self, name: str) -> None:
        stage = self.facts.definitions[name]
        extents = dict(zip(stage.dims, self.facts.stages[name].extents, strict=True))
        pending = [*(self._exchanged(stage, extents) or (stage,))]
        while pending:
            stage, number = pending.pop(), 0
            while number < len(found := windows(stage)):
                halves = self._halves(stage, number, found[number], extents)
                if halves is None:
                    number += 1
                else:
                    partial, stage = halves
                    pending.append(partial)

    def _halves(self, stage: Stage, number: int, window: Window, extents: dict[str, int]) -> tuple[Stage, Stage] | None:
        """The two stages that the stage becomes; None where it had better stay one."""
        if self.strict and window.root.type.is_float:
            return None
        before = self._work(stage, extents)
        costs: list[tuple[float, Separation, tuple[Stage, Stage]]] = []
        for dim in sorted(window.dims, key=stage.storage.index, reverse=True):
            separation = Separation(stage.name, number, dim, fresh(stage.name, dim, self.names))
            halves = split(stage, separation)
            costs.append((self._steps_cost(*halves, extents), separation, halves))
        cost, separation, halves = min(costs, key=lambda c: c[0])
        rejected = tuple(Rejected(f"along {s.dim} first", "no fewer operations", c) for c, s, _ in costs)
        if cost >= before:
            chosen, why = f"window {number} as it is", "in two steps it takes no fewer operations a point"
            self.decisions.append(Decision("separation", stage.name, chosen, why, SOURCE, before, rejected))
            return None
        whole = Rejected("as it is", "more operations a point", before)
        others = tuple(r for r, (_, s, _) in zip(rejected, costs, strict=True) if s is not separation)
        chosen = f"window {number} along {separation.dim} first, in {separation.partial}"
        why = "in two steps it takes fewer operations a point"
        self._choose(separation, chosen, why, cost, (whole, *others))
        return halves

    def _choose(self, s: Separation, chosen: str, why: str, cost: float, rejected: tuple[Rejected, ...]) -> None:
        self.decisions.append(Decision("separation", s.stage, chosen, why, SOURCE, cost, rejected))
        self.separations.append(s)
        self.names.add(s.partial)

    def _exchanged(self, stage: Stage, extents: dict[str, int]) -> tuple[Stage, Stage] | None:
        """The two stages of a step along rows and one across them in the other order; None where the stage is no such
        step after one, or there is nothing to gain.

        The first step is then one across rows that lie there anyway, an input's or those of a stage that others read
        too, and its results are what the second step needs next to each other: they can stay in registers. The other
        way around the second needs several rows of the first. Nothing is gained where a step leaves points out.
        """
        first = self._first_step(stage)
        if first is None or _terms_together(first, stage) > PARAMS.exchanged_most_terms:
            return None
        both, before = put_in(stage, first), self._steps_cost(first, stage, extents)
        for number, window in enumerate(windows(both)):
            dim = max(window.dims, key=stage.storage.index)
            if dim == stage.storage[0] or (self.strict and window.root.type.is_float):
                continue
            separation = Separation(stage.name, number, dim, fresh(stage.name, dim, self.names), first.name)
            halves = split(stage, separation, through=first)
            cost = self._steps_cost(*halves, extents)
            if cost <= before and not any(a.producer == first.name for s in halves for a in accesses(s)):
                chosen = f"with {first.name} put in, along {dim} first, in {separation.partial}"
                rejected = (Rejected(f"{first.name} first", "it keeps rows", before),)
                self._choose(
                    separation,
                    chosen,
                    "after a step across rows, one along them has its elements in registers",
                    cost,
                    rejected,
                )
                return halves
        return None

    def _steps_cost(self, partial: Stage, stage: Stage, extents: dict[str, int]) -> float:
        """Operations for a point of the stage in two steps: its own, and those of the points of the first step that
        there are for it."""
        reads = [a.spans for a in accesses(stage) if a.producer == partial.name]
        rates = [reduce(hull, spans).rate for spans in zip(*reads, strict=True)]
        points = prod(abs(float(rate)) or 1.0 for rate in rates)
        points /= prod(extents.get(d, 1) for d in stage.dims if d not in partial.dims)
        return self._work(stage, extents, partial) + points * (
            self._work(partial, extents) + PARAMS.separation_kept_operations
        )

    def _work(self, stage: Stage, extents: Mapping[str, int], partial: Stage | None = None) -> float:
        """Operations of a point, without those of indices: a boundary's are for the edges. Channels of pixels that lie
        too far apart to be picked from vectors are put together one by one. `extents` are those of the stage's dims,
        and of `partial`, a first step that it reads."""
        cost, facts = cost_of_values(operations(stage)), self.facts
        for a in accesses(stage):
            first = partial if partial is not None and a.producer == partial.name else None
            producer = first or facts.stages.get(a.producer)
            if producer is None or len(producer.storage) < 2:
                continue
            fastest, pixels = producer.storage[:2]
            channels = extents.get(fastest, 1) if first is not None else facts.stages[a.producer].extent(fastest)
            apart = float(abs(a.spans[producer.dims.index(pixels)].rate)) > FURTHEST_PIXELS
            if apart and 1 < channels <= MOST_CHANNELS:
                cost += PARAMS.scattered_operations * prod(float(facts.estimates.trips(r)) for r in a.reductions)
        return cost

    def _first_step(self, stage: Stage) -> Stage | None:
        """The stage, read by this one only, that goes along rows where this one goes across them."""
        graph, facts = self.facts.graph, self.facts.stages
        for read in facts[stage.name].reads:
            name = read.producer
            if facts[name].is_input or name in graph.outputs or graph.consumers[name] != (stage.name,):
                continue
            first = self.facts.definitions[name]
            if not (is_plain(first) and is_plain(stage) and stage.storage and first.storage == stage.storage):
                continue
            sources = [r for r in facts[name].reads if _steps(r)]
            across, along = _steps(read), [d for r in sources for d in _steps(r)]
            if len(across) != 1 or across[0] in (None, stage.storage[0]) or along != [first.storage[0]]:
                continue
            if all(facts[r.producer].is_input or len(graph.consumers[r.producer]) > 1 for r in sources):
                return first
        return None


def _terms_together(first: Stage, stage: Stage) -> int:
    """Elements that the stage is made of with the first one put in."""
    return len(parts(first, Access)) * sum(a.name == first.name for a in parts(stage, Access))


def _steps(read: Read) -> list[str | None]:
    """The dims of the reader along which it reads several neighbours: None where that is not known, or they move by
    other than one. None at all of what is the same everywhere."""
    if all(s.known and s.var is None for s in read.spans):
        return []
    return [s.var if s.known and s.rate == 1 else None for s in read.spans if not s.known or s.width or s.rate != 1]
