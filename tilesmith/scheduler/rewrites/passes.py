"""Passes over pipelines, from what a document says to what the groups of a schedule are of: one list, in this order.

What a schedule says about the definitions is among them: its factors are of the pipeline as it was written, its
separations, joinings and packings of the normal form, and leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pass_manager import Observer, Pass, PassPipeline
from tilesmith.scheduler.ir.pipeline.boundary_conditions import without_boundaries
from tilesmith.scheduler.ir.pipeline.constant_folding import folded as with_constants
from tilesmith.scheduler.ir.pipeline.constant_folding import is_rounding
from tilesmith.scheduler.ir.pipeline.expressions import Cast
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, rewritten
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Factor, Joining, Packing, Schedule, Separation
from tilesmith.scheduler.rewrites.correlated_terms import with_joined_terms
from tilesmith.scheduler.rewrites.distribute_scatters import distributed
from tilesmith.scheduler.rewrites.factor_exponentials import factored as factored_exponentials
from tilesmith.scheduler.rewrites.fold_updates import folded
from tilesmith.scheduler.rewrites.fuse_outputs import joined
from tilesmith.scheduler.rewrites.gather_neighbours import gathered
from tilesmith.scheduler.rewrites.hoist_parameters import with_derived
from tilesmith.scheduler.rewrites.hoist_reductions import hoisted
from tilesmith.scheduler.rewrites.initial_values import with_initial_values
from tilesmith.scheduler.rewrites.interleave_channels import interleaved
from tilesmith.scheduler.rewrites.interleave_updates import interleaved_updates
from tilesmith.scheduler.rewrites.join_scans import with_joined_scans
from tilesmith.scheduler.rewrites.narrow_integers import narrowed
from tilesmith.scheduler.rewrites.pack_operands import packed
from tilesmith.scheduler.rewrites.pair_terms import with_paired_terms
from tilesmith.scheduler.rewrites.place_shifts import with_quotients
from tilesmith.scheduler.rewrites.promise_bounds import promised
from tilesmith.scheduler.rewrites.propagate_boundaries import inherited
from tilesmith.scheduler.rewrites.recurrence_order import latest_last
from tilesmith.scheduler.rewrites.reduction_order import fastest_dims, ordered
from tilesmith.scheduler.rewrites.rfactor import factored
from tilesmith.scheduler.rewrites.single_iterations import without_single_iterations
from tilesmith.scheduler.rewrites.specialize_scans import specialised
from tilesmith.scheduler.rewrites.split_separable import separated
from tilesmith.scheduler.rewrites.symmetric_pairs import halved
from tilesmith.scheduler.rewrites.tabulate_weights import tabulated
from tilesmith.scheduler.rewrites.widen_factors import with_wide_factors

SAID = "the schedule says so"


def _pass(name: str, before: str, after: str, reason: str, run: Callable[[Pipeline, Schedule], Pipeline]) -> Pass[Plan]:
    """A pass that makes a pipeline of a pipeline; the plan has it with the reason."""
    return Pass(name, before, after, lambda plan: plan.rewritten(name, run(plan.pipeline, plan.schedule), reason))


def _with_constants(stage: Stage) -> Stage:
    return rewritten(stage, with_constants, with_constants) if any(map(is_rounding, parts(stage, Cast))) else stage


def _fold(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    return _by_stage(pipeline, lambda s: folded(s, schedule.strict))


def _order(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    fastest = fastest_dims(pipeline)
    return _by_stage(pipeline, lambda s: ordered(s, fastest, schedule.strict))


def _forward(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    kept = frozenset([i.name for i in pipeline.inputs] + [s.name for s in pipeline.stages if s.updates])
    return _by_stage(pipeline, lambda s: with_initial_values(s, kept))


def _tabulate(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    return _where_named(pipeline, tabulated(pipeline, schedule.strict), schedule)


def _distribute(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    return _where_named(pipeline, distributed(pipeline), schedule)


def _join(pipeline: Pipeline, schedule: Schedule) -> Pipeline:
    return _where_named(pipeline, with_joined_scans(pipeline), schedule)


def _where_named(pipeline: Pipeline, found: Pipeline, schedule: Schedule) -> Pipeline:
    """A pipeline as a rewrite found it, if the schedule has the stages that it made, and none that it removed, or the
    search may schedule them; as it was otherwise: a schedule that was written without them has their values where the
    document has them."""
    named = {name for g in schedule.groups for name in (g.output, *(p.stage for p in g.placements))}
    before, after = ({s.name for s in p.stages} for p in (pipeline, found))
    made, removed = after - before, before - after
    return found if not named or ((named & made or not made) and not named & removed) else pipeline


def _by_stage(pipeline: Pipeline, rewrite: Callable[[Stage], Stage]) -> Pipeline:
    stages = tuple(map(rewrite, pipeline.stages))
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=stages)


RFACTOR = _pass(
    "rfactor",
    "reductions as they were written",
    "those that the schedule factors are of partial results, each a stage of its own",
    SAID,
    lambda p, schedule: factored(p, schedule.factors, schedule.strict),
)
NORMALIZATION = (
    _pass(
        "hoist-reductions",
        "reductions as they were written",
        "those of data that do not depend on all loops around them are stages of their own",
        "the same for many points, they are computed once",
        lambda p, schedule: _where_named(p, hoisted(p), schedule),
    ),
    _pass(
        "fold-constants",
        "integers that constant floats are rounded to",
        "they are constants",
        "an index that is a constant further on is analysed as such",
        lambda p, _: _by_stage(p, _with_constants),
    ),
    _pass(
        "divide-places",
        "places may be shifted, and masked, by constants",
        "they are multiplied and divided, or the remainder is taken",
        "quotients and remainders are analysed: blocks, tiles and residues",
        lambda p, _: _by_stage(p, with_quotients),
    ),
    _pass(
        "join-correlated-terms",
        "sums in indices may have a number and its remainder as two terms",
        "they are one term",
        "bounds of one term are exact",
        lambda p, _: _by_stage(p, with_joined_terms),
    ),
    _pass(
        "gather-neighbours",
        "terms of sums of integers as they were written; no boundaries are lowered",
        "those that read the elements which vectors step over are a reduction",
        "these are read in the order of memory, and summed in groups",
        lambda p, _: gathered(p),
    ),
    _pass(
        "promise-bounds",
        "indices may be made of the values of stages",
        "stages that say places are part of the indices that they say; other values have their bounds there",
        "what a stage may be says how far a reader goes",
        lambda p, _: promised(p),
    ),
    _pass(
        "interleave-updates",
        "updates that divide the points of a stage up by strides; no boundaries are lowered",
        "they are one value, chosen by the residues of a point",
        "rows are written whole, and a stage without updates may be inlined, kept in registers, and slid",
        lambda p, _: interleaved_updates(p),
    ),
    _pass(
        "lower-boundaries",
        "inputs and stages may have boundaries",
        "none has; indices of accesses are within the domain by `clamp`, `min` and `%`, a constant is selected",
        "an index that is arithmetic is analysed like any other",
        lambda p, _: without_boundaries(p),
    ),
    _pass(
        "fold-updates",
        "stages with updates",
        "no stage's first update is one that could be part of its value",
        "a stage without updates may be inlined, kept in registers, and slid",
        _fold,
    ),
    _pass(
        "order-reductions",
        "reductions in the order that they were written in",
        "loops of long reductions run along memory, where the result does not depend on it",
        "their results do not depend on the order",
        _order,
    ),
    _pass(
        "specialize-scans",
        "scans over a few levels; no boundaries",
        "a stage a level, where every reader says which",
        "who reads it says which level: each may be inlined, slid, or kept in registers",
        lambda p, schedule: specialised(p, schedule.strict),
    ),
    _pass(
        "join-scans",
        "scans in stages as they were written; no boundaries",
        "a scan that only another one reads, as its values, is part of that, where their passes can run block by block",
        "a pass finds in a cache what the pass before it has left",
        _join,
    ),
    _pass(
        "forward-initial-values",
        "scans whose first update reads what its points held before; no boundaries",
        "it reads what that is made of, where each point is written before another reads it",
        "the values of what is written need not be there first",
        _forward,
    ),
    _pass(
        "order-recurrences",
        "sums in scans as they were written",
        "those of floats add what the step before computed last",
        "the next step waits for a multiplication with addition, not for a sum",
        lambda p, schedule: _by_stage(p, lambda s: latest_last(s, schedule.strict)),
    ),
    _pass(
        "eliminate-symmetric-pairs",
        "reductions over all offsets of a stage that is the same from either end; no boundaries",
        "reductions over half of them, each read from both ends",
        "the value of a pair of points does not depend on which comes first",
        lambda p, schedule: halved(p, schedule.strict),
    ),
    _pass(
        "drop-single-iterations",
        "loops of inline reductions may have one iteration",
        "a variable of one value is that value",
        "a sum over channels and a window of one point is a sum over channels",
        lambda p, _: _by_stage(p, without_single_iterations),
    ),
    _pass(
        "hoist-parameters",
        "integers that follow from params by way of floats",
        "each is a param, with its value",
        "bounds see through integers alone, and a param is a symbol of theirs",
        lambda p, _: with_derived(p),
    ),
    _pass(
        "propagate-boundaries",
        "places of a stage are read far beyond the edge of what it is made of; boundaries are arithmetic",
        "the last place is read that differs from those beyond it",
        "beyond it the values repeat; a stage is computed on little more than the image",
        lambda p, _: inherited(p),
    ),
    _pass(
        "factor-exponentials",
        "weights of windows are exponentials of sums over several of their loops",
        "they are products of one a loop, where a window is separable by that",
        "a separable window may be computed in two steps",
        lambda p, schedule: p if schedule.strict else _by_stage(p, factored_exponentials),
    ),
    _pass(
        "distribute-scatters",
        "updates that write where data says may take functions; boundaries are arithmetic",
        "what they take functions for is read from stages",
        "a scatter goes point by point, and functions are many times faster in vectors",
        _distribute,
    ),
    _pass(
        "tabulate-weights",
        "parts of reductions, of updates and of rows that read no data and depend on few of the loops around them",
        "those that functions, divisions or reductions are needed for are stages",
        "the same for many points, they are computed once",
        _tabulate,
    ),
    _pass(
        "narrow-integers",
        "integers of any width; boundaries are arithmetic",
        "what is computed of them, and stages that are not outputs, have as few bits as they need",
        "registers and caches hold twice as many elements of half the size",
        lambda p, _: narrowed(p),
    ),
    _pass(
        "pair-terms",
        "terms of long integer sums one by one; integers have the bits that they need",
        "contractions of 16 bits have two products an iteration",
        "machines multiply and add two by one instruction",
        lambda p, _: _by_stage(p, with_paired_terms),
    ),
    _pass(
        "widen-factors",
        "factors of contractions of 16 bits as they were written; these have two products an iteration",
        "those that all lanes share, and are made of one element, are elements of 16 bits of a stage",
        "two that are neighbours in memory are one load, and what they are made of is made once",
        lambda p, schedule: _where_named(p, with_wide_factors(p), schedule),
    ),
    _pass(
        "interleave-channels",
        "stages lie in memory as they were written",
        "those between interleaved images that compute all channels alike lie as these",
        "vectors along all elements of their rows are not taken apart into channels",
        lambda p, _: interleaved(p),
    ),
)
"""Passes that leave a pipeline in normal form. The same values; floats are added up in the same order if the schedule
is strict. Again, these change nothing: a normal pipeline is returned itself."""
SPLIT = _pass(
    "split-separable",
    "windows that are products, whole; normal form",
    "those that the schedule separates are in two steps, the first a stage of its own; normal form",
    SAID,
    lambda p, schedule: narrowed(separated(p, schedule.separations, schedule.strict)) if schedule.separations else p,
)
FUSE = _pass(
    "fuse-outputs",
    "outputs one by one; normal form",
    "those that the schedule joins are the values of one stage; normal form",
    SAID,
    lambda p, schedule: joined(p, schedule.joinings) if schedule.joinings else p,
)
PACK = _pass(
    "pack-operands",
    "operands where they lie; normal form",
    "those that the schedule packs have copies, each a stage of its own, that lie as they are read; normal form",
    SAID,
    lambda p, schedule: packed(p, schedule.packings, schedule.strict) if schedule.packings else p,
)
_HOIST, *_AFTER = NORMALIZATION  # what is hoisted may have partial results, too
REWRITES = PassPipeline((_HOIST, RFACTOR, *_AFTER, SPLIT, FUSE, PACK))


def rewrite(pipeline: Pipeline, schedule: Schedule, observer: Observer | None = None) -> Plan:
    """The plan of a pipeline as it was written and a schedule as a user writes it.

    Raises IllegalSchedule where the schedule has a factor, a separation, a joining or a packing that cannot be.
    """
    return REWRITES(Plan(pipeline, pipeline, schedule), observer)


def normalise(pipeline: Pipeline, strict: bool = False) -> Pipeline:
    """The normal form of a pipeline; a pipeline that is normal is returned itself."""
    return rewrite(pipeline, Schedule(pipeline.name, "", (), strict)).pipeline


def with_factors(plan: Plan, factors: tuple[Factor, ...]) -> Plan:
    """The plan with other factors, which are of the pipeline as it was written: it is rewritten from there."""
    return rewrite(plan.written, replace(plan.schedule, factors=factors))


def with_separations(plan: Plan, separations: tuple[Separation, ...]) -> Plan:
    """A plan without separations, joinings or packings, with these separations."""
    return SPLIT.run(replace(plan, schedule=replace(plan.schedule, separations=separations)))


def with_joinings(plan: Plan, joinings: tuple[Joining, ...]) -> Plan:
    """A plan without joinings or packings, with these joinings."""
    return FUSE.run(replace(plan, schedule=replace(plan.schedule, joinings=joinings)))


def with_packings(plan: Plan, packings: tuple[Packing, ...]) -> Plan:
    """A plan without packings, with these."""
    return PACK.run(replace(plan, schedule=replace(plan.schedule, packings=packings)))
