"""The order of an inline reduction's loops: along memory where the result does not depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from operator import is_

from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Expr, Reduce, RVar, Var, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage
from tilesmith.scheduler.rewrites.fold_updates import SHORT_REDUCTION


def fastest_dims(pipeline: Pipeline) -> dict[str, int]:
    """The place among the dims of the one that is fastest in memory, of every input and stage that has dims."""
    owners: tuple[Input | Stage, ...] = (*pipeline.inputs, *pipeline.stages)
    return {o.name: o.dims.index(o.storage[0]) for o in owners if o.storage}


def ordered(stage: Stage, fastest: Mapping[str, int], strict: bool = False) -> Stage:
    """`stage` with the loops of its long inline reductions in the order of memory: innermost the variable that most
    accesses have in their fastest dim, if that is more than have the innermost one there. The stage itself where
    nothing changes.

    Left as they are: argmin and argmax, which take the first of equals; floats if `strict`; and what is short, which
    is written out anyway.
    """

    known: dict[int, Expr] = {}

    def rewrite(e: Expr) -> Expr:
        if id(e) not in known:
            new = map_children(e, rewrite)
            known[id(e)] = _ordered(new, fastest, strict) if isinstance(new, Reduce) else new
        return known[id(e)]

    if not reductions(stage):
        return stage
    values = tuple(map(rewrite, stage.values))
    return stage if all(map(is_, values, stage.values)) else replace(stage, values=values)


def _ordered(e: Reduce, fastest: Mapping[str, int], strict: bool) -> Reduce:
    if len(e.domain) < 2 or e.op in ("argmin", "argmax") or (strict and e.type.is_float):
        return e
    if 0 < prod(_trips(r) for r in e.domain) <= SHORT_REDUCTION:
        return e
    along = dict.fromkeys((r.name for r in e.domain), 0)
    for part in (e.body, e.where):
        for n in walk(part) if part is not None else ():
            if isinstance(n, Access) and n.name in fastest:
                for name in {v.name for v in walk(n.indices[fastest[n.name]]) if isinstance(v, Var)} & along.keys():
                    along[name] += 1
    best = max(e.domain, key=lambda r: along[r.name])
    if along[best.name] <= along[e.domain[-1].name]:
        return e
    return replace(e, domain=(*(r for r in e.domain if r is not best), best))


def _trips(r: RVar) -> int:
    """Iterations, where they are constant; a great many where they are not."""
    return int(r.extent.value) if isinstance(r.extent, Const) else SHORT_REDUCTION + 1
