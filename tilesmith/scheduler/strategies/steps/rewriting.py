"""Rules that rewrite the pipeline: reductions in partial results, windows in two steps, outputs in one stage, copies of
operands."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.separability import windows
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Factor, Joining, Packing, Separation
from tilesmith.scheduler.rewrites.fuse_outputs import joined
from tilesmith.scheduler.rewrites.hoist_reductions import hoisted
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.narrow_integers import narrowed
from tilesmith.scheduler.rewrites.pack_operands import packed as with_packed
from tilesmith.scheduler.rewrites.passes import REWRITES, rewrite
from tilesmith.scheduler.rewrites.rfactor import reductions
from tilesmith.scheduler.rewrites.split_separable import put_in, separated
from tilesmith.scheduler.strategies.registry import Example, rule
from tilesmith.scheduler.strategies.state import State
from tilesmith.scheduler.strategies.steps.arguments import Flag, Index, Name, Neighbours, Parts

SAID = "the strategy says so"


@rule(
    "split_separable", Example("harris", "[{at: {stage: Sxx, do: {split_separable: {dim: y}}}}]"), exactness="rounding"
)
def split_separable(
    state: State,
    stage: str,
    dim: Name | None = None,
    window: Index | None = None,
    through: Name | None = None,
    partial: Name | None = None,
) -> State | str:
    """A window that is a product of two, in two steps, the first along `dim`.

        f(x, y) = sum of g(x + i, y + j) * a(i) * b(j)
          ->
        f_y(x, y) = sum of g(x, y + j) * b(j)
        f(x, y) = sum of f_y(x + i, y) * a(i)

    The first window that is a product along the dim, or the one of that number. Without `dim`: along the one that is
    slowest in memory. `through`: a stage that is put in first where this one reads it. Floats are added up in another
    order, which a strict schedule does not allow; before outputs are fused and operands are packed.
    """
    if state.schedule.joinings or state.schedule.packings:
        return "outputs are fused or operands packed already: windows are split before"
    definition = state.definition(stage)
    if through is not None:
        if through not in state.graph.consumers:
            return f"there is no stage '{through}' to put in"
        definition = put_in(definition, state.definition(through))
    found = {n: w.dims for n, w in enumerate(windows(definition)) if window in (None, n) and (not dim or dim in w.dims)}
    if not found:
        return "it has no window that is a product" + (f" along '{dim}'" if dim else "")
    number, dims = next(iter(found.items()))
    along = dim or max(dims, key=definition.storage.index)
    name = partial or fresh(stage, along, taken(state.pipeline))
    separation = Separation(stage, number, along, name, through)
    plan = replace(state.plan, schedule=replace(state.schedule, separations=(*state.schedule.separations, separation)))
    pipeline = narrowed(separated(state.pipeline, (separation,), state.strict))
    return state.with_plan(plan.rewritten("split-separable", pipeline, SAID))


@rule(
    "rfactor",
    Example(
        """
    format: 1
    name: mean
    inputs: [{name: input, type: float32, dims: [x]}]
    stages: [{name: total, dims: [], value: "sum(input(i) for i in range(100000))"}]
    outputs: [total]
    estimates: {total: []}
    """,
        "[{rfactor: {stage: total, parts: 8}}]",
    ),
    exactness="rounding",
)
def rfactor(
    state: State,
    stage: str,
    parts: Parts,
    reduction: Index = 0,
    variable: Name | None = None,
    interleaved: Flag = False,
    partial: Name | None = None,
    neighbours: Neighbours = 1,
) -> State | str:
    """A reduction in so many partial results, which can be computed side by side.

        f() = sum of g(r) for r in 1000
          ->
        f_r(k) = sum of g(k * 125 + r) for r in 125, for k in 8
        f() = sum of f_r(k) for k in 8

    Of the pipeline as it was written, in strips of neighbours, or `interleaved`, in those of the same remainder, or of
    so many `neighbours` in turn. The variable is the last of the reduction's domain, unless it is named. Sums of floats
    are added up in another order, which a strict schedule does not allow; before all other rewriting of the stages that
    are written.
    """
    rules = {p.name for p in REWRITES.passes}
    if any(r.rule not in rules for r in state.plan.rewrites):
        return "rules have rewritten the pipeline already: reductions are factored before"
    there = {s.name: s for s in hoisted(state.plan.written).stages}
    if stage not in there:
        return "it is no stage of the pipeline as it was written"
    found = reductions(there[stage])
    if reduction >= len(found):
        return f"it has {len(found)} reductions"
    domain = [r.name for r in found[reduction].domain]
    if not domain:
        return "the update has no domain"
    along = variable or domain[-1]
    name = partial or fresh(stage, along, taken(state.plan.written) | taken(state.pipeline))
    factor = Factor(stage, reduction, along, parts, name, interleaved, neighbours)
    said = replace(state.schedule, groups=(), factors=(*state.schedule.factors, factor))
    plan = rewrite(state.plan.written, said)
    return state.with_plan(Plan(plan.written, plan.pipeline, replace(plan.schedule, groups=state.schedule.groups),
                                plan.rewrites))  # fmt: skip


@rule(
    "fuse_outputs",
    Example(
        """
    format: 1
    name: gradient
    inputs: [{name: input, type: float32, dims: [x, y]}]
    stages:
      - {name: dx, dims: [x, y], value: "input(x + 1, y) - input(x, y)"}
      - {name: dy, dims: [x, y], value: "input(x, y + 1) - input(x, y)"}
    outputs: [dx, dy]
    estimates: {dx: [[0, 1000], [0, 1000]], dy: [[0, 1000], [0, 1000]]}
    """,
        "[{fuse_outputs: {stages: [dx, dy]}}]",
    ),
    place="pipeline",
)
def fuse_outputs(state: State, stage: str | None, stages: tuple[Name, ...], joint: Name | None = None) -> State | str:
    """Outputs that one loop nest computes together, as the values of one stage (Halide's compute_with).

        for y: for x: f(x, y) = ...           for y: for x:
        for y: for x: g(x, y) = ...     ->      f(x, y) = ...
                                                g(x, y) = ...

    Outputs of the same dims that are asked for on one region, without updates, before operands are packed. Those that
    other stages read stay stages of their names, which are copied.
    """
    if state.schedule.packings:
        return "operands are packed already: outputs are fused before"
    name = joint or fresh(stages[0], "_".join(stages[1:]), taken(state.pipeline)) if stages else ""
    joining = Joining(tuple(stages), name)
    plan = replace(state.plan, schedule=replace(state.schedule, joinings=(*state.schedule.joinings, joining)))
    return state.with_plan(plan.rewritten("fuse-outputs", joined(state.pipeline, (joining,)), SAID))


@rule(
    "pack_operand",
    Example(
        """
    format: 1
    name: product
    inputs: [{name: a, type: float32, dims: [k, i]}, {name: b, type: float32, dims: [j, k]}]
    stages: [{name: c, dims: [j, i], value: "sum(a(k, i) * b(j, k) for k in range(512))"}]
    outputs: [c]
    estimates: {c: [[0, 512], [0, 512]]}
    """,
        "[{at: {stage: c, do: {pack_operand: {operand: b, dim: j}}}}]",
    ),
)
def pack_operand(state: State, stage: str, operand: Name, dim: Name, packed: Name | None = None) -> State | str:
    """A copy of what a stage reads of an operand along one of its dims, as a stage of its own, which lies in memory as
    it is read there (Halide's `in`). Computed at a loop over tiles, it is a panel for those inside.

        c(j, i) = sum of a(k, i) * b(j, k)
          ->
        b_for_c(j, k) = b(j, k)
        c(j, i) = sum of a(k, i) * b_for_c(j, k)

    The operand is an input or a stage. It is read at places that move with the dim along one dim of its own.
    """
    name = packed or fresh(operand, f"for_{stage}", taken(state.pipeline))
    packing = Packing(stage, operand, dim, name)
    plan = replace(state.plan, schedule=replace(state.schedule, packings=(*state.schedule.packings, packing)))
    return state.with_plan(plan.rewritten("pack-operands", with_packed(state.pipeline, (packing,), state.strict), SAID))
