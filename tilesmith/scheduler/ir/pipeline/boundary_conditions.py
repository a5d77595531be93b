"""Boundaries as arithmetic: indices clamped, mirrored and repeated into the domain of what is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tilesmith.scheduler.ir.pipeline.expressions import (
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
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Input, Pipeline, rewritten
from tilesmith.scheduler.ir.pipeline.types import INT32

Domain = tuple[tuple[Expr, Expr], ...]


def without_boundaries(pipeline: Pipeline) -> Pipeline:
    """*Before*: a checked pipeline. *After*: no input and no stage has a boundary. Computes the same values."""
    owners: dict[str, _Bounds] = {}
    for image in pipeline.inputs:
        if image.boundary is not None:
            owners[image.name] = _Bounds(image.boundary, _input_domain(image))
    for stage in pipeline.stages:
        if stage.boundary is not None:
            assert stage.boundary.domain is not None
            owners[stage.name] = _Bounds(stage.boundary, stage.boundary.domain)
    if not owners:
        return pipeline

    def rewriter(own: str | None) -> Callable[[Expr], Expr]:
        """Bounds every access but those to `own`: a boundary is for a stage's readers, its updates read it raw."""

        def rewrite(e: Expr) -> Expr:
            e = map_children(e, rewrite)
            return owners[e.name].bounded(e) if isinstance(e, Access) and e.name in others else e

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


def before_turning(index: Expr) -> Expr | None:
    """The index of a dim before a boundary of a constant domain that repeats or mirrors: what it is where it lies
    inside. None of other indices."""
    match index:
        case Call(function="clamp", args=(bounded, Const(value=lo), Const(value=last))):
            match bounded:
                case Binary(op="+", left=moved, right=Const(value=by)) if by == lo:
                    bounded = moved
                case _ if lo != 0:
                    return None
            extent = int(last) - int(lo) + 1
            match bounded:
                case Binary(op="%", left=offset, right=Const(value=period)) if period == extent:
                    return _binary("+", offset, _int(int(lo)))
                case Call(function="min", args=(Binary(op="%", left=offset, right=Const(value=period)), _)):
                    if period in (2 * extent, 2 * extent - 2):
                        return _binary("+", offset, _int(int(lo)))
    return None


def inside(index: Expr, image: str) -> Expr:
    """The index of a dim before its boundary: what it is where it lies inside the image, or inside the constant domain
    of a stage that repeats or mirrors. *Inverse of* `without_boundaries` for these; others are returned themselves."""
    match index:
        case Call(function="clamp", args=(_, InputBound(input=name, which="min"), _)) if name == image:
            return before_clamp(index)
    return index


def before_clamp(index: Expr) -> Expr:
    """The index inside of a clamp, or of one that is turned back and clamped; other indices are returned themselves."""
    match index:
        case Call(function="clamp", args=(bounded, lo, _)):
            turned = bounded
            match bounded:
                case Binary(op="+", left=left, right=end) if end == lo:
                    turned = left
            match turned.args[0] if isinstance(turned, Call) and turned.function == "min" else turned:
                case Binary(op="%", left=Binary(op="-", left=found, right=end)) if end == lo:
                    return found
                case Binary(op="%", left=found) if lo == _int(0):
                    return found
            return bounded
    return before_turning(index) or index


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A boundary and its domain. Indices that are equal are bounded by one expression: analyses know parts by identity,
    and a window has many places of few rows and columns."""

    boundary: Boundary
    domain: Domain
    known: dict[tuple[int, Expr], Expr] = field(default_factory=dict)

    def bounded(self, access: Access) -> Expr:
        """The access within the domain, or the value beyond it."""
        inside = replace(access, indices=tuple(map(self._index, range(len(self.domain)), access.indices)))
        if self.boundary.kind != "constant":
            return inside
        assert self.boundary.value is not None
        condition: Expr | None = None
        for i, (lo, extent) in zip(access.indices, self.domain, strict=True):
            last = _binary("-", _binary("+", lo, extent), _int(1))
            within = Logical("and", Compare(">=", i, lo), Compare("<=", i, last))
            condition = within if condition is None else Logical("and", condition, within)
        return inside if condition is None else Select(condition, inside, self.boundary.value, access.type)

    def _index(self, n: int, index: Expr) -> Expr:
        found = self.known.get((n, index))
        if found is None:
            found = self.known[n, index] = _index(self.boundary.kind, index, *self.domain[n])
        return found
