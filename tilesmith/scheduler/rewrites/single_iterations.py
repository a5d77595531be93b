"""Loops of inline reductions that have one iteration, as the windows of pointwise convolutions: no loops."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.ir.pipeline.expressions import Const, Expr, Reduce, RVar, map_children
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, rewritten
from tilesmith.scheduler.ir.pipeline.substitution import substituted


def without_single_iterations(stage: Stage) -> Stage:
    """`stage` with the only value of each variable of an inline reduction that has but one, and the reduction over the
    others; the stage itself where nothing changes. One variable is left where all are such, and all of argmin and
    argmax, whose results they are."""
    single = any(_single(r) for e in reductions(stage) for r in e.domain)
    return rewritten(stage, _without, lambda e: e) if single else stage


def _without(e: Expr) -> Expr:
    e = map_children(e, _without)
    if not isinstance(e, Reduce) or e.op in ("argmin", "argmax"):
        return e
    left = tuple(r for r in e.domain if not _single(r)) or e.domain[-1:]
    if len(left) == len(e.domain):
        return e
    values = {r.name: r.lo for r in e.domain if r not in left}
    where = None if e.where is None else substituted(e.where, values)
    return replace(e, body=substituted(e.body, values), where=where, domain=left)


def _single(r: RVar) -> bool:
    return isinstance(r.extent, Const) and r.extent.value == 1 and isinstance(r.lo, Const)
