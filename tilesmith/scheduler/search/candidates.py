"""The candidates of a search: whole schedules with the figures by which they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.interface import Breakdown
from tilesmith.cost_models.taco2019 import arithmetic_cost
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, dim_of, outer
from tilesmith.scheduler.search.params import PARAMS


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that the search could answer with.

    `memory_bytes`: buffers of the pipeline's own that are alive at most at once, of all threads. `recompute`: points
    computed over points of the stages computed once, whole, weighted by their operations (below 1 where not all of what
    is inline is read). `parallelism`: independent iterations of the parallel loops, the smallest over the groups that
    have 2 % of the work or more.
    """

    plan: Plan
    predicted: Breakdown
    memory_bytes: int
    recompute: float
    parallelism: float

    @property
    def schedule(self) -> Schedule:
        return self.plan.schedule

    def at_least_as_good(self, other: Candidate) -> bool:
        """True if in predicted cost, memory, recomputation and parallelism it is nowhere worse than `other`."""
        return (
            float(self.predicted.total) <= float(other.predicted.total)
            and self.memory_bytes <= other.memory_bytes
            and self.recompute <= other.recompute
            and self.parallelism >= other.parallelism
        )


def candidate(facts: Facts, plan: Plan, counts: Sequence[GroupCounts], predicted: Breakdown) -> Candidate:
    """A plan with its figures; `facts` are those of its pipeline, `counts` those of its groups, in their order."""
    schedule = plan.schedule
    work = [sum(_weight(s) * float(s.points) for s in c.stages) for c in counts]
    root = sum({s.stage: _weight(s) * s.root_points for c in counts for s in c.stages}.values())
    loops = [_iterations(facts, g, c) for g, c in zip(schedule.groups, counts, strict=True)]
    matter = [n for n, w in zip(loops, work, strict=True) if w >= PARAMS.parallelism_least_work_share * sum(work)]
    return Candidate(
        plan,
        predicted,
        _memory_bytes(facts, schedule, counts, loops),
        sum(work) / root if root else 1.0,
        min(matter, default=1.0),
    )


def pareto(candidates: Sequence[Candidate]) -> tuple[bool, ...]:
    """Per candidate, whether no other is at least as good in everything and better in something."""
    return tuple(
        not any(b.at_least_as_good(a) and not a.at_least_as_good(b) for b in candidates if b is not a)
        for a in candidates
    )


def _weight(stage: StageCounts) -> float:
    """Operations of a point; moving it is one too."""
    return max(1.0, arithmetic_cost(stage.operations))


def _iterations(facts: Facts, group: Group, counts: GroupCounts) -> float:
    """Iterations of the loop that threads share; without one, the fewest that they share of an update."""
    loop = group.parallel
    if loop is not None:
        dim = dim_of(loop)
        return float(dict(counts.tile_counts if loop == outer(dim) else counts.tile_sizes)[dim])
    updates = facts.stages[group.output].updates
    shared = [
        float(u.trips(s.parallel)) if s.parallel is not None else 1.0
        for u, s in zip(updates, group.updates, strict=False)
    ]
    return min(shared, default=1.0)


def _memory_bytes(facts: Facts, schedule: Schedule, counts: Sequence[GroupCounts], loops: Sequence[float]) -> int:
    """The most over the groups: what the group keeps for each thread, and the outputs of groups that are still to be
    read, its own included; not the pipeline's own outputs, which the caller has."""
    last: dict[str, int] = {}
    for n, c in enumerate(counts):
        last |= {load.producer: n for s in c.stages for load in s.loads if load.external}
    held: dict[str, int] = {}
    most = 0
    for n, (group, c, iterations) in enumerate(zip(schedule.groups, counts, loops, strict=True)):
        if group.output not in facts.graph.outputs:
            stage = facts.stages[group.output]
            held[group.output] = stage.root_points * stage.bytes_per_point
        threads = min(float(c.threads), max(1.0, iterations)) if group.parallel is not None else 1.0
        most = max(most, sum(held.values()) + int(threads * float(sum(s.bytes_kept for s in c.stages))))
        held = {name: size for name, size in held.items() if last.get(name, -1) > n}
    return most
