"""Inlining of a stage into those that read it, and its inverse: a part of an expression as a stage of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Expr,
    Var,
    free_variables,
    map_children,
    reads_from,
    reduction_loops_of,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, rewritten
from tilesmith.scheduler.ir.pipeline.topological_order import in_order
from tilesmith.scheduler.rewrites.expression_rules.application import TOO_LARGE, is_small
from tilesmith.scheduler.rewrites.expression_rules.constants import put, settled
from tilesmith.scheduler.rewrites.expression_rules.places import Part, Place, find, operands, with_part
from tilesmith.scheduler.rewrites.names import problem, taken
from tilesmith.scheduler.rewrites.refusal import Refusal
from tilesmith.scheduler.rewrites.split_separable import apart

INLINE: Final = "inline_stage"
EXTRACT: Final = "extract_stage"
MOST_DIMS: Final = 5


def inlined(pipeline: Pipeline, name: str) -> Pipeline | Refusal:
    """The pipeline with the values of a stage where it is read. The stage is gone, if it is no output.

    f(x) = a(x) + 1; g(x) = f(x) * f(x + 1)  ->  g(x) = (a(x) + 1) * (a(x + 1) + 1)
    """
    stage = next((s for s in pipeline.stages if s.name == name), None)
    if stage is None:
        return Refusal(INLINE, name, "there is no such stage")
    if stage.updates:
        return Refusal(INLINE, name, "it has updates")
    if stage.boundary is not None:
        return Refusal(INLINE, name, "it has a boundary: beyond its domain it has other values")
    stages = [s if s is stage else _without(s, stage) for s in pipeline.stages]
    if all(a is b for a, b in zip(stages, pipeline.stages, strict=True)):
        return Refusal(INLINE, name, "no stage reads it")
    large = next((s.name for s in stages if not all(map(is_small, expressions(s)))), None)
    if large is not None:
        return Refusal(INLINE, large, TOO_LARGE)
    return _with_stages(pipeline, {s.name: s for s in stages if s is not stage or name in pipeline.outputs})


def extracted(pipeline: Pipeline, place: Place, name: str) -> Pipeline | Refusal:
    """The pipeline with the part of an expression as a stage of that name. Its dims are the variables that the part
    depends on: dims of the stage first, then those of loops around the part.

    g(x) = sqrt(a(x) + 1)  ->  name(x) = a(x) + 1; g(x) = sqrt(name(x))
    """
    part = find(pipeline, place)
    if isinstance(part, str):
        return Refusal(EXTRACT, str(place), part)
    wrong = problem(name, taken(pipeline)) or _not_a_stage(part, place)
    owner, free = pipeline.stage(place.stage).dims, free_variables(part.e)
    dims = [*(d for d in owner if d in free), *(d for d in free if d not in owner)]
    if wrong is None and len(dims) > MOST_DIMS:
        wrong = f"it depends on {len(dims)} variables, and a stage has at most {MOST_DIMS} dims"
    if wrong is not None:
        return Refusal(EXTRACT, str(place), wrong)
    made = Stage(name, tuple(dims), (part.e,), (), None, tuple(dims))
    read = Access(name, tuple(map(Var, dims)), 0, part.e.type)
    after = with_part(pipeline, place, part, read)
    return _with_stages(after, {s.name: s for s in (*after.stages, made)})


def _not_a_stage(part: Part, place: Place) -> str | None:
    if not operands(part.e):
        return "it is no operation"
    if reads_from(part.e, place.stage):
        return "it reads the stage itself"
    return None


def _without(stage: Stage, producer: Stage) -> Stage:
    """`stage` with the values of `producer` where it reads them."""
    if not any(reads_from(e, producer.name) for e in expressions(stage)):
        return stage
    names = {*stage.dims, *(r.name for u in stage.updates for r in u.domain)}
    names |= variables_of(*expressions(stage)) | reduction_loops_of(*expressions(stage))

    def rewrite(e: Expr) -> Expr:
        new = map_children(e, rewrite)
        if isinstance(new, Access) and new.name == producer.name:
            value = apart(producer.values[new.component], names | reduction_loops_of(*new.indices))
            return put(value, dict(zip(producer.dims, new.indices, strict=True)))
        return new if new is e else settled(new)

    return rewritten(stage, rewrite, rewrite)


def _with_stages(pipeline: Pipeline, stages: Mapping[str, Stage]) -> Pipeline:
    """The pipeline with these stages, in order; without estimates of those that are gone."""
    reads = {
        s.name: {n.name for e in expressions(s) for n in walk(e) if isinstance(n, Access)} & (stages.keys() - {s.name})
        for s in stages.values()
    }
    gone = {s.name for s in pipeline.stages} - stages.keys()
    estimates = tuple((name, spans) for name, spans in pipeline.estimates if name not in gone)
    return replace(pipeline, stages=tuple(stages[name] for name in in_order(reads)), estimates=estimates)
