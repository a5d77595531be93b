"""Recording: a schedule as the strategy that makes it, step by step, for people to start from and change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from tilesmith.platforms import Platform
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.primitives.registry import primitives_of
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, UpdateLoops
from tilesmith.scheduler.rewrites.passes import REWRITES
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.strategies import combinators as c
from tilesmith.scheduler.strategies.combinators import Strategy
from tilesmith.scheduler.strategies.document import StrategyDocument
from tilesmith.scheduler.strategies.registry import RULES
from tilesmith.scheduler.strategies.state import Budget, Context, State, begin

PLENTY = 10_000_000


def recorded(plan: Plan, platform: Platform, name: str) -> StrategyDocument:
    """The strategy whose schedule of the plan's pipeline is the plan's. Raises ScheduleError where steps do not say
    that: where rules over expressions have rewritten the pipeline."""
    known = {p.name for p in REWRITES.passes}
    foreign = [r.rule for r in plan.rewrites if r.rule not in known]
    if foreign:
        raise ScheduleError(
            f"the pipeline was rewritten by the rule '{foreign[0]}': its strategy is the one that did it"
        )
    recorder = _Recorder(plan, begin(plan.written, platform, plan.schedule.strict, Context(budget=Budget(PLENTY))))
    recorder.rewriting(plan.schedule)
    for stage in reversed(recorder.state.stages):
        recorder.stage(stage)
    if recorder.state.schedule.groups != plan.schedule.groups:
        raise ScheduleError("steps do not say this schedule: it has decisions that no rule makes")
    doc = f"What the method '{plan.schedule.method}' has decided for {plan.written.name} on {platform.name}."
    return StrategyDocument(name, c.Seq(tuple(_merged(recorder.steps))), doc)


class _Recorder:
    """Makes the schedule of a plan from the naive one, and keeps the steps that it takes."""

    def __init__(self, plan: Plan, state: State) -> None:
        self.target = {g.output: g for g in plan.schedule.groups}
        self.state = state
        self.steps: list[Strategy] = []

    def rewriting(self, schedule: Schedule) -> None:
        for f in schedule.factors:
            self._take(f.stage, "rfactor", **_without(f, "stage"))
        for s in schedule.separations:
            self._take(s.stage, "split_separable", **_without(s, "stage"))
        for j in schedule.joinings:
            self._take(None, "fuse_outputs", stages=list(j.stages), joint=j.joint)
        for p in schedule.packings:
            self._take(p.stage, "pack_operand", **_without(p, "stage"))

    def stage(self, stage: str) -> None:
        """The steps of one stage, whose readers have theirs."""
        if stage in self.target:
            self._output(self.target[stage])
            return
        groups = [g for g in self.target.values() if g.placement(stage) is not None]
        placements = {g.output: p for g in groups if (p := g.placement(stage)) is not None}
        if len(set(placements.values())) == 1:
            self._member(next(iter(placements.values())), None)
            return
        before, count = self.state, len(self.steps)
        self.state = replace(before, unchecked=True)
        for output, placement in placements.items():
            self._member(placement, output)
        self.state = replace(self.state, unchecked=before.unchecked)
        self.steps[count:] = [c.Together(tuple(self.steps[count:]))]

    def _output(self, target: Group) -> None:
        stage = target.output
        if target.tiles:
            self._take(stage, "tile", sizes={t.dim: t.size for t in target.tiles})
        if target.unroll:
            self._take(stage, "unroll", dims=list(target.unroll))
        if self._group(stage).loops != target.loops:
            self._take(stage, "reorder", loops=list(target.loops))
        if target.vector is not None:
            self._take(stage, "vectorize", lanes=target.vector.lanes)
        if target.parallel is not None:
            self._take(stage, "parallel")
        if target.stream:
            self._take(stage, "stream")
        if target.prefetch:
            self._take(stage, "prefetch", bytes=target.prefetch)
        self._updates(stage, target.updates, None)
        self._attributes(stage, target, None)

    def _member(self, target: Placement, into: str | None) -> None:
        stage = target.stage
        place = {} if into is None else {"into": into}
        if target.compute == INLINE:
            self._take(stage, "inline", **place)
            return
        if target.storage == "registers":
            self._take(stage, "rotate_registers", **place)
        else:
            self._take(stage, "compute_at", loop=target.compute, **place)
            if target.store != target.compute or not target.fold:
                fold = {} if target.fold else {"fold": False}
                self._take(stage, "store_at", loop=target.store, **fold, **place)
        made = self._placement(stage, into)
        if made.order != target.order:
            self._take(stage, "reorder", loops=list(target.order), **place)
        made = self._placement(stage, into)
        if made.vector != target.vector:
            vector = {"lanes": 1} if target.vector is None else {"lanes": target.vector.lanes, "dim": target.vector.dim}
            if made.order[:1] == (vector.get("dim"),):
                del vector["dim"]
            self._take(stage, "vectorize", **vector, **place)
        self._updates(stage, target.updates, into)
        self._attributes(stage, target, into)

    def _attributes(self, stage: str, target: Group | Placement, into: str | None) -> None:
        place = {} if into is None else {"into": into}
        for p in primitives_of(type(target)):
            if p.key in dict(target.attributes):
                self._take(stage, "decide", primitive=p.key, value=p.write(p.of(target)), **place)

    def _updates(self, stage: str, target: tuple[UpdateLoops, ...], into: str | None) -> None:
        place = {} if into is None else {"into": into}
        for n, u in enumerate(target):
            vector = {} if u.vector is None else {"vector": u.vector.dim, "lanes": u.vector.lanes}
            threads = {} if u.parallel is None else {"parallel": u.parallel}
            self._take(stage, "update_loops", update=n, loops=list(u.loops), **vector, **threads, **place)

    def _group(self, stage: str) -> Group:
        group = self.state.group(stage)
        assert group is not None, stage
        return group

    def _placement(self, stage: str, into: str | None) -> Placement:
        found = [g.placement(stage) for g in self.state.schedule.groups if into in (None, g.output)]
        return next(p for p in found if p is not None)

    def _take(self, stage: str | None, rule: str, **arguments: object) -> None:
        step = RULES[rule](**arguments)
        result = step(self.state, stage)
        if isinstance(result, Refusal):
            raise ScheduleError(f"steps do not say this schedule: {result}")
        self.state = result
        self.steps.append(step if stage is None else c.At((stage,), step))


def _without(record: object, *names: str) -> dict[str, object]:
    """The fields of a record that are not as they are by default."""
    found = {f: getattr(record, f.name) for f in fields(record) if f.name not in names}  # type: ignore[arg-type]
    return {f.name: value for f, value in found.items() if value not in (None, False, f.default)}


def _merged(steps: Iterable[Strategy]) -> Iterator[Strategy]:
    """The steps, with neighbours of the same rule and arguments as one at several stages."""
    last: Strategy | None = None
    for step in steps:
        if isinstance(last, c.At) and isinstance(step, c.At) and last.step == step.step:
            last = c.At((*_names(last), *_names(step)), step.step)
            continue
        if last is not None:
            yield last
        last = step
    if last is not None:
        yield last


def _names(at: c.At) -> tuple[str, ...]:
    return at.where if isinstance(at.where, tuple) else ()
