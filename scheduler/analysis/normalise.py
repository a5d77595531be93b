"""Boundaries become arithmetic, and updates that are no more than an expression become one: what is left to analyse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from scheduler.analysis.derived import with_derived
from scheduler.analysis.edges import inherited
from scheduler.analysis.folding import folded
from scheduler.analysis.reduction_order import fastest_dims, ordered
from scheduler.analysis.remember import OfPipelines
from scheduler.analysis.specialised import specialised
from scheduler.analysis.symmetry import halved
from scheduler.lang.expr import (
    Access,
    Binary,
    BinaryOp,
    Call,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    Select,
    map_children,
    walk,
)
from scheduler.lang.pipeline import Boundary, Input, Pipeline, Stage, rewritten
from scheduler.lang.types import INT32

Domain = tuple[tuple[Expr, Expr], ...]
Pass = Literal["boundaries", "folding", "order", "levels", "halves", "params", "edges"]
Note = Callable[[Pass, Pipeline, Pipeline], None]
"""Told of a pass that changes something: the pipeline before and after it."""


def normalise(pipeline: Pipeline, strict: bool = False, note: Note | None = None) -> Pipeline:
    """*Before*: a checked pipeline. *After*: no input and no stage has a boundary; every access to one that had
    indexes inside its domain by `clamp`, `min` and `%`, and selects the constant where the boundary is one. No stage's
    first update is one that could be part of its value (see `folding`), and the loops of long reductions run along
    memory (see `reduction_order`). Scans over a few levels are a stage a level (see `specialised`). Of what is the
    same from either end of an offset half is read from both (see `symmetry`). Integers that follow from params by way
    of floats are params (see `derived`). What is read far beyond an edge that a stage inherits is read there (see
    `edges`).

    Computes the same values; floats are added up in the same order if `strict`. Normalising again changes nothing,
    and a pipeline that is normal is returned itself. A boundary's index arithmetic is wrapped in a clamp to the
    domain even where the modulo implies it, so that interval arithmetic sees the bound.
    """
    told = None if note is None else _normalised(pipeline, strict, note)
    made = _NORMAL.get(pipeline, strict, lambda: told or _normalised(pipeline, strict, None))
    return made if made is pipeline else _NORMAL.get(made, strict, lambda: made)


_NORMAL = OfPipelines()


def _normalised(pipeline: Pipeline, strict: bool, note: Note | None) -> Pipeline:
    fastest = fastest_dims(pipeline)
    passes: tuple[tuple[Pass, Callable[[Pipeline], Pipeline]], ...] = (
        ("boundaries", _without_boundaries),
        ("folding", lambda p: _by_stage(p, lambda s: folded(s, strict))),
        ("order", lambda p: _by_stage(p, lambda s: ordered(s, fastest, strict))),
        ("levels", lambda p: specialised(p, strict)),
        ("halves", lambda p: halved(p, strict)),
        ("params", with_derived),
        ("edges", inherited),
    )
    for name, rewrite in passes:
        before, pipeline = pipeline, rewrite(pipeline)
        if note is not None and pipeline is not before:
            note(name, before, pipeline)
    return pipeline


def _by_stage(pipeline: Pipeline, rewrite: Callable[[Stage], Stage]) -> Pipeline:
    stages = tuple(map(rewrite, pipeline.stages))
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=stages)


def _without_boundaries(pipeline: Pipeline) -> Pipeline:
    owners: dict[str, tuple[Boundary, Domain]] = {}
    for image in pipeline.inputs:
        if image.boundary is not None:
            owners[image.name] = (image.boundary, _input_domain(image))
    for stage in pipeline.stages:
        if stage.boundary is not None:
            assert stage.boundary.domain is not None
            owners[stage.name] = (stage.boundary, stage.boundary.domain)
    if not owners:
        return pipeline

    def rewriter(own: str | None) -> Callable[[Expr], Expr]:
        """Bounds every access but those to `own`: a boundary is for a stage's readers, its updates read it raw."""

        def rewrite(e: Expr) -> Expr:
            e = map_children(e, rewrite)
            return _bounded(e, *owners[e.name]) if isinstance(e, Access) and e.name in others else e

        others = owners.keys() - {own}
        return lambda e: rewrite(e) if any(isinstance(n, Access) and n.name in others for n in walk(e)) else e

    stages = (rewritten(s, rewriter(None), rewriter(s.name)) for s in pipeline.stages)
    return replace(
        pipeline,
        inputs=tuple(replace(i, boundary=None) for i in pipeline.inputs),
        stages=tuple(s if s.boundary is None else replace(s, boundary=None) for s in stages),
    )


def _input_domain(image: Input) -> Domain:
    return tuple((InputBound(image.name, "min", d), InputBound(image.name, "extent", d)) for d in image.dims)


def _binary(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    match op, a, b:
        case "+", Const(value=x), Const(value=y):
            return Const(int(x) + int(y), INT32)
        case "-", Const(value=x), Const(value=y):
            return Const(int(x) - int(y), INT32)
        case "*", Const(value=x), Const(value=y):
            return Const(int(x) * int(y), INT32)
        case (("+" | "-"), _, Const(value=0)):
            return a
        case "+", Const(value=0), _:
            return b
    return Binary(op, a, b, INT32)


def _int(n: int) -> Const:
    return Const(n, INT32)


def _index(kind: str, i: Expr, lo: Expr, extent: Expr) -> Expr:
    last = _binary("-", _binary("+", lo, extent), _int(1))
    if kind in ("repeat_edge", "constant"):
        return Call("clamp", (i, lo, last), INT32)
    offset = _binary("-", i, lo)
    if kind == "repeat_image":
        inside: Expr = Binary("%", offset, extent, INT32)
    else:
        # mirror_image repeats the edge (period 2 e), mirror_interior does not (period 2 (e - 1); 0 for e = 1,
        # where x % 0 is 0, as it should be)
        shift = 1 if kind == "mirror_image" else 2
        period = _binary("*", _int(2), extent)
        period = period if shift == 1 else _binary("-", period, _int(2))
        turn = Binary("%", offset, period, INT32)
        back = _binary("-", period if shift == 2 else _binary("-", period, _int(1)), turn)
        inside = Call("min", (turn, back), INT32)
    return Call("clamp", (_binary("+", inside, lo), lo, last), INT32)


def _bounded(access: Access, boundary: Boundary, domain: Domain) -> Expr:
    indices = tuple(
        _index(boundary.kind, i, lo, extent) for i, (lo, extent) in zip(access.indices, domain, strict=True)
    )
    inside = replace(access, indices=indices)
    if boundary.kind != "constant":
        return inside
    assert boundary.value is not None
    condition: Expr | None = None
    for i, (lo, extent) in zip(access.indices, domain, strict=True):
        last = _binary("-", _binary("+", lo, extent), _int(1))
        within = Logical("and", Compare(">=", i, lo), Compare("<=", i, last))
        condition = within if condition is None else Logical("and", condition, within)
    return inside if condition is None else Select(condition, inside, boundary.value, access.type)
