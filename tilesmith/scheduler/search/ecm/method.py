"""The method `default`: everything that TACO 2019 decides, decided by a cost model in time among more candidates.

Beyond the paper it groups stages over the whole DAG, inlines by cost, keeps windows in registers, sizes tiles and
strips by predicted time, and keeps the best k schedules. The paper's own schedule is always among the candidates, so
that what is returned is never worse by the model. What the caller has fixed filters all that (see `constraints`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from tilesmith.cost_models.interface import combined
from tilesmith.scheduler.ir.schedule.schedule import Group
from tilesmith.scheduler.search.candidates import Candidate, candidate
from tilesmith.scheduler.search.constraints.constrained_search import constrained, fixed_explained
from tilesmith.scheduler.search.ecm.variants import Explored, GroupCandidates, Ranked, Variant, explore, ranked
from tilesmith.scheduler.search.group_trace import factor_explained, partition_explained, plan_explained
from tilesmith.scheduler.search.method import Answer, Question
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.separable_choice import Separated
from tilesmith.scheduler.search.taco2019.method import degraded_by
from tilesmith.scheduler.search.trace import Decision, Rejected, Trace
from tilesmith.scheduler.search.trace import Kind as DecisionKind

NAME = "default"

LEFT = f"the schedule of the paper is left only where another gains {1 - PARAMS.paper_gain:.0%}"


class Default:
    """The method itself."""

    name = NAME
    model = "ecm"
    takes_fixed = True
    takes_model = True

    def search(self, question: Question) -> Answer:
        """See Method."""
        explored = explore(question)
        choice = _chosen(explored, question)
        if question.fixed:
            choice = _constrained(choice, explored, question)
        return _answered(choice, explored, question)


Gains = tuple[float, int, GroupCandidates] | None
"""A combination of plans, as in Ranked, or none."""

Tried = Sequence[tuple[float, Variant]]
"""Variants with what the best schedule of each costs, the one that is taken first. The costs of those that are far from
it are estimates with few sizes of tiles."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The variants that are near the best, what was `tried`, and the plans that are chosen of the `best` one, which
    cost `least`; `cost` is about what the cheapest one costs. As the paper has it, `as_paper`, it may cost more."""

    variants: Sequence[Variant]
    tried: Tried
    best: Variant
    plans: GroupCandidates
    least: float
    cost: float
    as_paper: bool = False


def _chosen(explored: Explored, q: Question) -> _Choice:
    """The cheapest of the close variants, and of other partitions of these that are near, since what groups gain by all
    sizes of tiles is not the same; the schedule of the paper where none gains enough but such as do nothing but ask
    ahead for what the paper's reads, and gain no more than hiding can: where memory answers in time already, that is
    lost."""
    cost = explored.variants[0].cost
    close = [v for v in explored.variants if v.cost <= cost * PARAMS.variant_close]
    near, matters = PARAMS.other_partitions_near * cost, PARAMS.matters_share * cost
    close += [other for v in close for other in v.others(near, matters)]
    found = ranked(close, PARAMS.combinations_per_schedule, cost)
    best = {n: total for total, n, _ in reversed(found)}
    tried = [(total, close[n]) for n, total in sorted(best.items(), key=itemgetter(1, 0))]
    tried += [(v.cost, v) for v in explored.variants if v.cost > cost * PARAMS.variant_close]
    as_paper = explored.as_paper
    gains = _gaining(found, as_paper)
    if gains is None and not q.deadline.expired():
        plans = as_paper.search.paper_plans(as_paper.partition)
        papers = sum(p.total for p in plans)
        tried.insert(0, (papers, as_paper))
        return _Choice([as_paper, *close], tried, as_paper, plans, papers, cost, as_paper=True)
    least, first, plans = gains or found[0]
    tried.sort(key=lambda way: way[1] is not close[first])
    return _Choice(close, tried, close[first], plans, least, cost)


def _gaining(found: Ranked, as_paper: Variant) -> Gains:
    """The cheapest, the first of `found`, if it gains enough over the schedule of the paper."""
    least = found[0][0]
    paper = as_paper.search.paper_cost(as_paper.partition, least / PARAMS.paper_gain)
    return found[0] if least <= paper * PARAMS.paper_gain else None


def _constrained(free: _Choice, explored: Explored, q: Question) -> _Choice:
    """The cheapest of all that was looked at without them, and of what is found around them, that has the decisions of
    the caller."""
    known = [free.best, *explored.variants, explored.as_paper]
    kept = constrained(known, q.fixed, PARAMS.variant_close)
    cost = min(v.cost for v in kept)
    found = ranked(kept, 1, cost)
    least, first, plans = found[0]
    return _Choice(kept, [(total, kept[n]) for total, n, _ in found], kept[first], plans, least, cost)


def _answered(choice: _Choice, explored: Explored, q: Question) -> Answer:
    """The candidates, and why the first is as it is."""
    best = choice.best
    candidates = _candidates(choice, q)
    decisions = [
        *(factor_explained(f, best.plan.pipeline) for f in best.plan.schedule.factors),
        *fixed_explained(q.fixed),
    ]
    decisions += _separations_explained(choice.tried, explored.separated)
    decisions += _joinings_explained(choice.tried)
    decisions += _packings_explained(choice.tried)
    is_plain = best.search is explored.as_paper.search
    decisions += partition_explained(best.search, best.partition, explored.papers if is_plain else None)
    for group in choice.plans:
        decisions += plan_explained(best.search.planner.finalise(group))
    return Answer(candidates, Trace(NAME, q.model.unit, tuple(decisions)))


def _candidates(choice: _Choice, q: Question) -> tuple[Candidate, ...]:
    """The best schedules, of groups that differ: those that differ in more than numbers first, then, where they are too
    few, all."""
    degraded = degraded_by({}, q.deadline)
    candidates: dict[tuple[Group, ...], Candidate] = {}

    def keep(v: Variant, plans: GroupCandidates) -> None:
        worked = [v.search.planner.finalise(p) for p in plans]
        groups = tuple(p.group for p in worked)
        if groups not in candidates:
            predicted = combined(p.cost for p in worked)
            counts = [p.counts for p in worked]
            candidates[groups] = candidate(v.search.facts, v.plan.scheduled(groups, degraded), counts, predicted)

    keep(choice.best, choice.plans)
    for total, n, plans in (
        f
        for apart in (choice.cost, 0.0)
        for f in ranked(choice.variants, q.top * PARAMS.combinations_per_schedule, apart)
    ):
        if len(candidates) == q.top:
            break
        if total >= choice.least or choice.as_paper:  # what is chosen does not depend on how many others are wanted
            keep(choice.variants[n], plans)
    first, *others = candidates.values()
    return first, *sorted(others, key=lambda c: float(c.predicted.total))


def _separations_explained(tried: Tried, separated: Separated) -> list[Decision]:
    """The windows, and the one of both ways to compute them that costs less."""
    parts = ", ".join(s.partial for s in separated.plan.schedule.separations)
    ways = (f"windows in two steps, with {parts}", "windows as they are")
    found = _way_explained("separation", tried, [bool(v.plan.schedule.separations) for _, v in tried], ways)
    return [*found, *(separated.decisions if not found or tried[0][1].plan.schedule.separations else ())]


def _joinings_explained(tried: Tried) -> list[Decision]:
    """Outputs together or one by one, where they can be together."""
    joinings = [v.plan.schedule.joinings for _, v in tried]
    listed = "; ".join(f"{', '.join(j.stages)} together, as {j.joint}" for j in next(filter(None, joinings), ()))
    return _way_explained("joining", tried, list(map(bool, joinings)), (listed, "outputs one by one"))


def _packings_explained(tried: Tried) -> list[Decision]:
    """Operands packed or where they lie, where some of them could be."""
    packings = [v.plan.schedule.packings for _, v in tried]
    listed = ", ".join(f"{p.operand} for {p.stage}, as {p.packed}" for p in next(filter(None, packings), ()))
    return _way_explained("packing", tried, list(map(bool, packings)), (f"packed: {listed}", "operands where they lie"))


def _way_explained(kind: DecisionKind, tried: Tried, yes: Sequence[bool], ways: tuple[str, str]) -> list[Decision]:
    """The way of two that the variant goes that is taken, and the cost of the best of those that go the other one."""
    other = next((cost for (cost, _), way in zip(tried, yes, strict=True) if way != yes[0]), None)
    if other is None:
        return []
    cost, taken = tried[0]
    chosen, rejected = ways if yes[0] else ways[::-1]
    name = taken.search.facts.pipeline.name
    why, not_that = ("it costs less", "costs more") if cost <= other else (LEFT, "gains too little")
    return [Decision(kind, name, chosen, why, "search over the DAG", cost, (Rejected(rejected, not_that, other),))]
