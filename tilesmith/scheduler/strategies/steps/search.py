"""The search as a rule: it decides what a strategy has left open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tilesmith.scheduler.errors import FixedContradiction, IllegalSchedule, ScheduleError
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Vector, inner
from tilesmith.scheduler.legality.verifier import check_group
from tilesmith.scheduler.rewrites.passes import NORMALIZATION
from tilesmith.scheduler.search.constraints.constraints import Fixed
from tilesmith.scheduler.search.ecm.method import Default
from tilesmith.scheduler.search.ecm.moves import ahead_bytes
from tilesmith.scheduler.search.method import Answer, Question
from tilesmith.scheduler.search.rfactor_choice import Factored, factor_reductions
from tilesmith.scheduler.search.trace import Trace
from tilesmith.scheduler.strategies.costs import cost, prices
from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import METHOD, State, facts_of
from tilesmith.scheduler.strategies.steps.loops import lanes_of


@rule("search", Example("blur", "[{at: {stage: blur_x, do: {compute_at: {loop: y.inner}}}}, search]"), place="pipeline")
def search(state: State, stage: str | None) -> State | str:
    """All that no step has decided, decided by the method `default` around what they have.

        f: ?, at y.inner: g     ->     f: for y.outer tile 35, for y.inner, for x.inner by 8; g at y.inner, by 8

    What is open is what no step has named: without one before it, the schedule is that of `default`. Never dearer, by
    predicted time, than the loop nests as they are with vectors, threads, streaming stores and prefetch where these are
    open.
    """
    fixed = state.fixed()
    own = _finished(state) if state.decided else state
    if isinstance(fixed, str):
        return replace(own, searched=Trace(METHOD, state.context.model.unit, ()))
    try:
        found = _found(state, fixed)
    except FixedContradiction:
        return replace(own, searched=Trace(METHOD, state.context.model.unit, ()))
    except ScheduleError as error:
        return str(error)
    candidate = found.candidates[0]
    if state.decided and cost(own) <= candidate.predicted.total:
        return replace(own, searched=Trace(METHOD, state.context.model.unit, ()))
    return replace(state.with_plan(candidate.plan), plan=candidate.plan, searched=found.trace)


def _found(state: State, fixed: Fixed) -> Answer:
    """The best schedule that has what is fixed; rewritten further where no step has rewritten the pipeline."""
    normal = {p.name for p in NORMALIZATION}
    rewritten = any(r.rule not in normal for r in state.plan.rewrites)
    plan = replace(state.plan, schedule=replace(state.schedule, groups=()))
    factored = Factored(plan, facts_of(plan, state.platform, state.facts))
    if not rewritten:
        factored = factor_reductions(plan, factored.facts, state.platform)
    model, deadline = state.context.model, state.context.deadline
    question = Question(factored.plan, factored.facts, state.platform, model, deadline, fixed=fixed, final=rewritten)
    return Default().search(question)


def _finished(state: State) -> State:
    """The state with what is open of each nest chosen, each nest for itself: vectors, threads, stores and prefetch."""
    groups = []
    for group in state.schedule.groups:
        options = [g for g in dict.fromkeys(_options(state, group)) if _is_legal(state, g)]
        found = prices(state, options)
        groups.append(options[min(range(len(options)), key=found.__getitem__)])
    return state.with_groups(groups)


def _options(state: State, group: Group) -> Iterator[Group]:
    """The nest as it is, first, and in other ways where these are open."""

    def is_open(key: str, stage: str = group.output) -> bool:
        return (stage, key) not in state.decided

    parallels = (group.parallel, *([group.loops[-1]] if group.loops and is_open("parallel") else ()))
    output = state.facts.stages[group.output]
    large = output.root_points * output.bytes_per_point > state.platform.llc_bytes
    last = group.output in state.graph.outputs
    streams = (group.stream, *([True] if last and large and is_open("stream") else ()))
    asks = state.platform.prefetcher and is_open("prefetch")
    ahead = (group.prefetch, *([ahead_bytes(state.platform)] if asks else ()))
    for parallel, vectors, stream, prefetch in product(parallels, (False, True), streams, ahead):
        made = replace(group, parallel=parallel, stream=stream, prefetch=prefetch)
        if vectors:
            own = _vector(state, group) if is_open("vector") else group.vector
            members = (_vectorised(state, p) if is_open("vector", p.stage) else p for p in group.placements)
            made = replace(made, vector=own, placements=tuple(members))
        yield made


def _vector(state: State, group: Group) -> Vector | None:
    found = lanes_of(state, group.output)
    row = next((loop for loop in group.loops if loop not in map(inner, group.unroll)), None)
    return found if found is not None and inner(found.dim) == row else group.vector


def _vectorised(state: State, placement: Placement) -> Placement:
    if placement.compute == INLINE or placement.storage == "registers":
        return placement
    found = lanes_of(state, placement.stage)
    order = placement.order or state.definition(placement.stage).storage
    return replace(placement, vector=found) if found is not None and order[:1] == (found.dim,) else placement


def _is_legal(state: State, group: Group) -> bool:
    try:
        check_group(state.pipeline, group, state.strict)
    except IllegalSchedule:
        return False
    return True
