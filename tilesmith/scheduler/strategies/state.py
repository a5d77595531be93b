"""State: what a strategy works on. A plan with a whole, legal schedule, and which of its decisions have been taken.

What nobody has decided is naive: stages at root, untiled, by one thread, without vectors. A search decides exactly
that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.interface import CostModel
from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.stage_graph import StageGraph
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.ir.pass_manager import Observer, Observers, PassPipeline
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.primitives.parallel import NONE
from tilesmith.scheduler.ir.schedule.primitives.registry import fixable
from tilesmith.scheduler.ir.schedule.schedule import INLINE, ROOT, Attributes, Group, Placement, Schedule, inner
from tilesmith.scheduler.rewrites.passes import NORMALIZATION
from tilesmith.scheduler.search.constraints.constraints import Fixed, FixedStage
from tilesmith.scheduler.search.deadline import Deadline
from tilesmith.scheduler.search.trace import Applied, Trace
from tilesmith.scheduler.strategies.applied import rewriting

METHOD = "strategy"
"""The method of schedules that strategies make."""
STEPS = 5000
"""Steps that a strategy makes, those that refuse among them, unless it is given others."""


@dataclass(slots=True)
class Budget:
    """The number of steps that may still be made: strategies come from anybody, and may loop in loops."""

    left: int = STEPS

    def spent(self) -> bool:
        """Takes one; true where none was left."""
        self.left -= 1
        return self.left < 0


@dataclass(frozen=True, slots=True)
class Context:
    """The means of a strategy: the cost model that decides, the deadline of searches, and the steps left."""

    model: CostModel = field(default_factory=Ecm)
    deadline: Deadline = field(default_factory=lambda: Deadline(lambda: 0.0, 0.0))
    budget: Budget = field(default_factory=Budget)


Decided = tuple[str, str]
"""A stage and what is decided of it: a field of `FixedStage`, of tiles with the dim, `tiles.x`."""


@dataclass(frozen=True, slots=True)
class State:
    """A plan on a platform, with the decisions that steps have taken. Two states are equal if the same has been made
    and decided, however that came about.

    `applied` are the steps, in their order. `searched` is the trace of the search, where one was made. While
    `unchecked`, steps leave what is not legal; whoever sets it checks at the end.
    """

    plan: Plan
    platform: Platform
    facts: Facts = field(compare=False, repr=False)
    decided: frozenset[Decided] = frozenset()
    applied: tuple[Applied, ...] = field(default=(), compare=False)
    searched: Trace | None = field(default=None, compare=False)
    context: Context = field(default_factory=Context, compare=False, repr=False)
    unchecked: bool = field(default=False, compare=False)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as it is now."""
        return self.plan.pipeline

    @property
    def schedule(self) -> Schedule:
        return self.plan.schedule

    @property
    def graph(self) -> StageGraph:
        return self.facts.graph

    @property
    def strict(self) -> bool:
        return self.schedule.strict

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that there are to schedule, producers first."""
        return self.graph.stages

    def definition(self, stage: str) -> Stage:
        return self.facts.definitions[stage]

    def group(self, stage: str) -> Group | None:
        """The group that `stage` is the output of."""
        return next((g for g in self.schedule.groups if g.output == stage), None)

    def groups_with(self, stage: str) -> tuple[Group, ...]:
        """The groups that `stage` is a member of, without being the output."""
        return tuple(g for g in self.schedule.groups if g.placement(stage) is not None)

    def readers(self, stage: str) -> tuple[Group, ...]:
        """The groups in which `stage` is read, by the output or by a member."""
        consumers = set(self.graph.consumers[stage])
        return tuple(g for g in self.schedule.groups if consumers & {g.output, *(p.stage for p in g.placements)})

    def with_groups(self, groups: Iterable[Group], gone: Iterable[str] = ()) -> State:
        """The state with these groups in the place of those of the same outputs, and without those of `gone`. Groups
        run producers first, and so do their members."""
        order = {name: n for n, name in enumerate(self.graph.stages)}
        kept = {g.output: g for g in self.schedule.groups} | {g.output: g for g in groups}
        for name in gone:
            kept.pop(name, None)
        groups = sorted(kept.values(), key=lambda g: order.get(g.output, -1))
        made = tuple(_ordered(g, order) for g in groups)
        return replace(self, plan=self.plan.scheduled(made, self.schedule.degraded))

    def deciding(self, stage: str, *keys: str) -> State:
        """The state with these decisions about `stage` taken: they are as they should be."""
        return replace(self, decided=self.decided | {(stage, key) for key in keys})

    def with_plan(self, plan: Plan) -> State:
        """The state with a plan whose pipeline was rewritten: groups and decisions of stages that are left stay, new
        stages are at root."""
        if plan.pipeline is self.pipeline:
            return replace(self, plan=plan)
        facts = facts_of(plan, self.platform, self.facts)
        alive = set(facts.graph.stages)
        groups = [_without(g, alive) for g in self.schedule.groups if g.output in alive]
        there = {g.output for g in groups} | {p.stage for g in groups for p in g.placements}
        new = [naive_group(facts.definitions[name]) for name in facts.graph.stages if name not in there]
        decided = frozenset(d for d in self.decided if d[0] in alive)
        empty = replace(self, plan=plan.scheduled(()), facts=facts, decided=decided)
        return empty.with_groups((*groups, *new))

    def followed(self, stage: str) -> str | None:
        """The stage that has taken the place of one that a rewriting removed: the stage itself where it is there, None
        where nothing has."""
        if stage in self.graph.consumers:
            return stage
        made = (r.made for r in self.plan.rewrites if stage in r.removed and len(r.made) == 1)
        found = next(made, None)
        return None if found is None or found[0] not in self.graph.consumers else found[0]

    def fixed(self) -> Fixed | str:
        """The decisions so far, as constraints of a search; why it cannot be said, where it cannot."""
        found: dict[str, FixedStage] = {}
        for stage in sorted({name for name, _ in self.decided}):
            keys = sorted(key for name, key in self.decided if name == stage)
            group, inside = self.group(stage), self.groups_with(stage)
            placements = [p for g in inside if (p := g.placement(stage)) is not None]
            if len(set(placements)) > 1:
                return f"'{stage}' is in {len(placements)} groups in different ways: a search knows one for all"
            found[stage] = _of_output(group, keys) if group is not None else _of_member(placements[0], keys)
        return Fixed(tuple(found.items()))


class _Steps:
    """An observer that keeps what each pass has changed as a step."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.applied = plan, list[Applied]()

    def begun(self, name: str) -> None:
        pass

    def ended(self, name: str, unit: object) -> None:
        if isinstance(unit, Plan) and unit is not self.plan:
            where, before = unit.written.name, self.plan.pipeline
            self.applied.append(rewriting(name.replace("-", "_"), where, before, unit.pipeline))
            self.plan = unit


def begin(
    pipeline: Pipeline,
    platform: Platform,
    strict: bool = False,
    context: Context | None = None,
    observer: Observer | None = None,
) -> State:
    """The state that a strategy begins with: the pipeline in normal form, and nothing decided. The passes that changed
    something are its first steps; the `observer` sees all of them."""
    plan = Plan(pipeline, pipeline, Schedule(pipeline.name, METHOD, (), strict))
    steps = _Steps(plan)
    plan = PassPipeline(NORMALIZATION)(plan, steps if observer is None else Observers(steps, observer))
    applied = steps.applied
    return replace(naive(plan, platform), applied=tuple(applied), context=context or Context())


def naive(plan: Plan, platform: Platform) -> State:
    """The state of a plan of which nothing has been decided."""
    facts = facts_of(plan, platform)
    groups = tuple(naive_group(facts.definitions[name]) for name in facts.graph.stages)
    return State(plan.scheduled(groups), platform, facts)


def facts_of(plan: Plan, platform: Platform, before: Facts | None = None) -> Facts:
    """The facts of a plan's pipeline for a platform."""
    schedule = plan.schedule
    partial = frozenset(
        (
            *(f.partial for f in schedule.factors),
            *(s.partial for s in schedule.separations),
            *(p.packed for p in schedule.packings),
        )
    )
    strips = frozenset(f.partial for f in schedule.factors if not f.interleaved)
    return gather(plan.pipeline, partial, strips, before, platform.line_bytes, platform.core)


def naive_group(stage: Stage) -> Group:
    """A stage alone: its loops as it lies in memory, by one thread, an element at a time."""
    return Group(stage.name, tuple(map(inner, stage.storage)), (), None, None, (), ())


def _without(group: Group, alive: set[str]) -> Group:
    if all(p.stage in alive for p in group.placements):
        return group
    return replace(group, placements=tuple(p for p in group.placements if p.stage in alive))


def _ordered(group: Group, order: dict[str, int]) -> Group:
    """The group with its members producers first."""
    placements = tuple(sorted(group.placements, key=lambda p: order.get(p.stage, -1)))
    return group if placements == group.placements else replace(group, placements=placements)


def _of_output(group: Group, keys: Collection[str]) -> FixedStage:
    fixed = FixedStage()
    for key in keys:
        match key.partition("."):
            case ("compute", _, _):
                fixed = replace(fixed, compute=ROOT)
            case ("tiles", _, dim) if (tile := group.tile(dim)) is not None:
                fixed = replace(fixed, tiles=(*fixed.tiles, (dim, tile.size)))
            case ("loops", _, _):
                fixed = replace(fixed, loops=group.loops)
            case ("parallel", _, _):
                fixed = replace(fixed, parallel=group.parallel or NONE)
            case ("vector", _, _):
                fixed = replace(fixed, vector=1 if group.vector is None else group.vector.lanes)
            case ("unroll", _, _):
                fixed = replace(fixed, unroll=group.unroll)
            case ("stream", _, _):
                fixed = replace(fixed, stream=group.stream)
            case ("prefetch", _, _):
                fixed = replace(fixed, prefetch=group.prefetch)
    return replace(fixed, attributes=_attributes(group, keys))


def _of_member(placement: Placement, keys: Collection[str]) -> FixedStage:
    if placement.compute == INLINE:
        return FixedStage(compute=INLINE)
    fixed = FixedStage()
    for key in keys:
        match key:
            case "compute":
                fixed = replace(fixed, compute=placement.compute)
            case "store":
                fixed = replace(fixed, store=placement.store)
            case "storage":
                fixed = replace(fixed, storage=placement.storage)
            case "order":
                fixed = replace(fixed, order=placement.order)
            case "vector" if placement.storage == "memory":
                fixed = replace(fixed, vector=1 if placement.vector is None else placement.vector.lanes)
    return replace(fixed, attributes=_attributes(placement, keys))


def _attributes(record: Group | Placement, keys: Collection[str]) -> Attributes:
    """The values of primitives from outside that are decided, and that a caller may fix."""
    own = {p.key for p in fixable()}
    return tuple((key, value) for key, value in record.attributes if key in keys and key in own)
