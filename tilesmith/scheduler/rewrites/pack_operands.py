"""Packing of operands: a copy of what a stage reads, which lies in memory as it is read there, with a margin where it
is read beyond its edges. A rewrite of the pipeline; what follows is a pipeline like any other: at which loop the copy
is computed says its placement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilesmith.scheduler.analysis.bounded_reads import bounded_reads
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Var, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.schedule.schedule import Packing
from tilesmith.scheduler.rewrites.names import problem, taken
from tilesmith.scheduler.rewrites.reduction_order import fastest_dims, ordered


def packed(pipeline: Pipeline, packings: Iterable[Packing], strict: bool = False) -> Pipeline:
    """`pipeline`, which is normal, with a copy of the operand of each packing, right before its stage, which reads the
    copy where the values of the stage read the operand at places that move with the dim. Where all these are within one
    boundary, it is the copy's, of an operand with one value. Computes the same values on the same regions, and is
    normal: the loops of the stage's reductions run along memory as it is read now, where they may.

    Raises IllegalSchedule, naming the packing and the rule: for a stage, an operand or a dim that there is not; for an
    operand that is not read at places that move with the dim, along one dim of its own that is the same in all of them;
    for a name that is taken.
    """
    for p in packings:
        wrong = problem(p.packed, taken(pipeline))
        if wrong is not None:
            raise _refused(p, wrong)
        pipeline = _with(pipeline, p, strict)
    return pipeline


def along(stage: Stage, operand: str, dim: str) -> set[int]:
    """The dims of an operand, by number, along which the values of a stage read it at places that move with `dim`."""
    return {n for v in stage.values for e in walk(v) if _is_read(e, operand) for n in _moving(e, dim)}


def _is_read(e: Expr, operand: str) -> bool:
    return isinstance(e, Access) and e.name == operand


def _moving(e: Expr, dim: str) -> set[int]:
    indices = e.indices if isinstance(e, Access) else ()
    return {n for n, i in enumerate(indices) if any(isinstance(x, Var) and x.name == dim for x in walk(i))}


def _with(pipeline: Pipeline, p: Packing, strict: bool) -> Pipeline:
    stages = {s.name: s for s in pipeline.stages}
    if p.stage not in stages:
        raise _refused(p, "there is no such stage")
    stage = stages[p.stage]
    if p.dim not in stage.dims:
        raise _refused(p, f"the stage has no dim '{p.dim}'")
    operand = stages.get(p.operand) or next((i for i in pipeline.inputs if i.name == p.operand), None)
    if operand is None or p.operand == p.stage:
        raise _refused(p, f"the stage reads no input and no other stage '{p.operand}'")
    found = along(stage, p.operand, p.dim)
    if len(found) != 1:
        raise _refused(p, f"the stage's values do not read '{p.operand}' along '{p.dim}' in one dim of it")
    fastest = operand.dims[found.pop()]
    values = len(operand.values) if isinstance(operand, Stage) else 1
    types = operand.types if isinstance(operand, Stage) else (operand.type,)
    point = tuple(Var(d) for d in operand.dims)
    copies: tuple[Expr, ...] = tuple(Access(p.operand, point, n, types[n]) for n in range(values))
    bounded = bounded_reads(stage, operand, p.dim)
    if bounded:
        copies = (next(iter(bounded.values())).value,)
    storage = (fastest, *(d for d in operand.storage if d != fastest))
    copy = Stage(p.packed, operand.dims, copies, (), None, storage)

    def read(e: Expr) -> Expr:
        if e in bounded:
            return Access(p.packed, bounded[e].indices, 0, e.type)
        e = map_children(e, read)
        return replace(e, name=p.packed) if isinstance(e, Access) and e.name == p.operand and _moving(e, p.dim) else e

    reader = replace(stage, values=tuple(map(read, stage.values)))
    both = ((copy, reader) if s is stage else (s,) for s in pipeline.stages)
    whole = replace(pipeline, stages=tuple(s for some in both for s in some))
    run = ordered(reader, fastest_dims(whole), strict)
    return replace(whole, stages=tuple(run if s is reader else s for s in whole.stages))


def _refused(p: Packing, rule: str) -> IllegalSchedule:
    return IllegalSchedule(f"packing '{p.packed}' of '{p.operand}' for stage '{p.stage}' along '{p.dim}': {rule}")
