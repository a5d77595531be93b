"""The flow of a search: facts, groups, levels, tiles, final choices; and the trace of what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cost_models.counts import GroupCounts, LoadCounts, StageCounts
from cost_models.model import Breakdown, CostModel, combined
from cost_models.taco2019 import Taco2019
from platforms.model import Platform
from scheduler.analysis.facts import Facts, StageFacts, gather
from scheduler.analysis.members import effective, members_of
from scheduler.errors import ScheduleError
from scheduler.lang.pipeline import Pipeline
from scheduler.schedule import Factor, Group, Schedule, UpdateLoops
from scheduler.search.factoring import Factored, factor_reductions
from scheduler.search.final import finished, root_group
from scheduler.search.grouping import AtRoot, Found, Grouping
from scheduler.search.tiling import Tiling
from scheduler.search.trace import Decision, Infeasible, Rejected, Trace

METHODS = ("taco2019",)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search. `now` is a clock in seconds (the scheduler reads none itself): with it timings are reported,
    and `deadline_ms` from the start of the search is kept; without it there is no deadline."""

    method: str = "taco2019"
    strict: bool = False
    deadline_ms: float | None = None
    now: Callable[[], float] | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was decided, why, and what it is predicted to cost. `timings_ms` has `analysis` and `search`."""

    schedule: Schedule
    trace: Trace
    predicted: Breakdown
    timings_ms: dict[str, float]


def autoschedule(pipeline: Pipeline, platform: Platform, options: SearchOptions | None = None) -> SearchResult:
    """A legal schedule of `pipeline` for `platform`, always: where no candidate is valid, or the deadline ends
    the search, stages are computed at root and the schedule says why in `degraded`.

    Raises ScheduleError for a method that there is not.
    """
    options = options or SearchOptions()
    if options.method not in METHODS:
        raise ScheduleError(f"there is no method '{options.method}'; methods: {', '.join(METHODS)}")
    clock = options.now or (lambda: 0.0)
    start = clock()
    facts = gather(pipeline, strict=options.strict)
    factored = factor_reductions(pipeline, facts, platform, options.strict)
    analysed = clock()

    def expired() -> bool:
        return options.deadline_ms is not None and (clock() - start) * 1e3 >= options.deadline_ms

    schedule, trace, predicted = taco2019(factored, platform, Taco2019(), expired, options)
    timings = {"analysis": (analysed - start) * 1e3, "search": (clock() - analysed) * 1e3}
    return SearchResult(schedule, trace, predicted, timings)


def taco2019(
    factored: Factored, platform: Platform, model: CostModel, expired: Callable[[], bool], options: SearchOptions
) -> tuple[Schedule, Trace, Breakdown]:
    """The method of TACO 2019: Fig. 9 of the paper."""
    facts = factored.facts
    grouping = Grouping(facts, platform, model, expired)
    found = grouping.group()
    groups: list[Group] = []
    costs: list[Breakdown] = []
    at_root: dict[str, list[str]] = {}
    decisions = [*map(_factor_explained, factored.factors), *grouping.decisions]
    tilings = [t for t in found.values() if isinstance(t, Tiling)]
    inside = {name for t in tilings for name in t.members.names}
    inside |= {name for t in found.values() if isinstance(t, AtRoot) for name in t.inlined}
    shared = frozenset(name for t in tilings for name in t.members.shared)
    for name in facts.graph.stages:
        here = found.get(name)
        if isinstance(here, Tiling):
            group = finished(here, platform, options.strict)
            groups.append(group)
            costs.append(here.cost)
            decisions += _explained(here, group)
        elif here is not None or name not in inside:
            inlined = shared | here.inlined if isinstance(here, AtRoot) else shared
            group = root_group(facts, name, platform, inlined, options.strict)
            groups.append(group)
            costs.append(model.price(root_counts(facts, group, platform), platform))
            decisions += _at_root(name, here, group)
            if isinstance(here, Infeasible):
                at_root.setdefault(here.reason, []).append(name)
    degraded = _degraded(at_root, options.deadline_ms if expired() else None)
    schedule = Schedule(facts.pipeline.name, "taco2019", tuple(groups), options.strict, degraded, factored.factors)
    return schedule, Trace("taco2019", model.unit, tuple(decisions)), combined(costs)


def _degraded(at_root: dict[str, list[str]], deadline_ms: float | None) -> str | None:
    """Why the schedule is not what the method would give; None where it is."""
    reasons = [] if deadline_ms is None else [f"the deadline of {deadline_ms:g} ms ended the search"]
    for reason, names in at_root.items():
        listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        reasons.append(f"computed at root, with what only they read: {listed} ({reason})")
    return "; ".join(reasons) or None


def _at_root(name: str, here: Found | None, group: Group) -> list[Decision]:
    rejected: tuple[Rejected, ...] = ()
    if isinstance(here, Infeasible):
        reason, rejected = "no candidate is valid", (Rejected("a group", here.reason),)
    else:
        reason = here.reason if isinstance(here, AtRoot) else "no group has it"
    inlined = [p.stage for p in group.placements]
    source = "no loop to tile" if isinstance(here, AtRoot) else "METHOD: an answer always"
    chosen = "computed at root, alone" + (f", {', '.join(inlined)} inline in it" if inlined else "")
    return [
        Decision("group", name, chosen, reason, source, rejected=rejected),
        *_updates_explained(name, group.updates),
    ]


def _factor_explained(factor: Factor) -> Decision:
    kind = "interleaved parts" if factor.interleaved else "strips"
    why = "its terms lie along memory, its points do not" if factor.interleaved else "it has no other loop for threads"
    chosen = f"{factor.parts} {kind} of {factor.variable} in {factor.partial}"
    return Decision("factor", factor.stage, chosen, why, "partial results")


def _updates_explained(name: str, updates: tuple[UpdateLoops, ...]) -> list[Decision]:
    """One decision an update: its loops from the innermost, vectors and threads."""
    found = []
    for n, update in enumerate(updates):
        vector, why = "no vectors", "no loop that runs along memory is proved to be independent"
        if update.vector is not None:
            vector = f"{update.vector.lanes} lanes along {update.vector.dim}"
            why = f"{update.vector.dim} runs along memory, and is proved to be independent"
        threads = "" if update.parallel is None else f", threads over {update.parallel}"
        loops = " ".join(update.loops) or "none"
        found.append(Decision("final", name, f"update {n}: loops {loops}; {vector}{threads}", why, "TACO 2019, 4.4"))
    return found


def _explained(tiling: Tiling, group: Group) -> list[Decision]:
    members = tiling.members
    decisions = [
        Decision(
            "group",
            members.output,
            f"one group of {', '.join(members.names)}" if len(members.names) > 1 else "a group of its own",
            "its buffers fit the caches",
            "TACO 2019, 4.3",
            tiling.total,
        ),
        Decision(
            "tiling",
            members.output,
            tiling.describe(),
            "the least weighted loads and recomputation of all orders and valid tile sizes",
            "TACO 2019, Alg. 3",
            tiling.total,
            tiling.rejected,
        ),
    ]
    for name in members.names[:-1]:
        choice = tiling.choices[name]
        if choice.levels is not None:
            chosen = tiling.order.name(choice.levels)
            decisions.append(Decision("level", name, chosen, choice.reason, choice.source))
        else:
            decisions.append(Decision("inline", name, "inline", choice.reason, choice.source))
    for p in group.placements:
        decisions += _updates_explained(p.stage, p.updates)
    vector = "no vectors" if group.vector is None else f"{group.vector.lanes} lanes along {group.vector.dim}"
    threads = "no threads" if group.parallel is None else f"threads over {group.parallel}"
    decisions.append(
        Decision(
            "final", members.output, f"{vector}, {threads}", "the innermost and the outermost loop", "TACO 2019, 4.4"
        )
    )
    return decisions + _updates_explained(members.output, group.updates)


def root_counts(facts: Facts, group: Group, platform: Platform) -> GroupCounts:
    """Counts of a stage at root: every point once, every producer's region once, row by row; what is inline in it as
    often as it is read."""
    name = group.output
    inlined = tuple(p.stage for p in group.placements)
    reads = effective(members_of(facts, name, (*inlined, name)), frozenset(inlined))[name]
    stage = facts.stages[name]
    loads = []
    for read in reads.reads:
        producer = facts.stages[read.producer]
        points = float(producer.root_points)
        row = producer.extent(producer.storage[0]) if producer.storage else 1
        size = points * producer.bytes_per_point
        loads.append(LoadCounts(read.producer, True, True, points, points / row, producer.bytes_per_point, size, size))
    points = float(stage.root_points)
    own = StageCounts(
        name, False, points, points, stage.operations, tuple(loads), stage.bytes_per_point, False, 0.0, 0.0
    )
    others = tuple(_inline_counts(facts.stages[n], points * reads.inlined[n]) for n in inlined)
    sizes: tuple[tuple[str, Any], ...] = tuple((d, float(e)) for d, e in zip(stage.dims, stage.extents, strict=True))
    return GroupCounts(name, platform.threads, sizes, tuple((d, 1.0) for d in stage.dims), (*others, own))


def _inline_counts(stage: StageFacts, points: float) -> StageCounts:
    size = stage.bytes_per_point
    return StageCounts(stage.name, True, points, stage.root_points, stage.operations, (), size, False, 0.0, 0.0)
