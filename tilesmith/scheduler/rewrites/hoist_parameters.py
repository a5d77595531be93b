"""Hoisting of parameter expressions: integers that follow from params by way of floats, such as the radius of a blur in
pixels, become params of their own.

Bounds are sums of symbols, and see through integers only: of `int32(n * scale)` they know the range that the params
allow, however small it is at a call. As a param that the call works out once, it is a symbol like any other, and a
stage is computed on no more than what it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, floor
from typing import NamedTuple

from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    ParamRef,
    Select,
    Unary,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Param, Pipeline, rewritten
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.ir.pipeline.value_bounds import interval

Number = int | float | bool
_FUNCTIONS = ("abs", "absd", "ceil", "clamp", "floor", "max", "min", "round", "sqrt")
"""Functions of which compiled code and this module get the same number."""


def with_derived(pipeline: Pipeline) -> Pipeline:
    """*Before*: any pipeline. *After*: where stages have an int32 that is made of params, of floats among others, it
    is a param that has this `value`. Again, this changes nothing."""
    derived: dict[Expr, Param] = {}
    known: dict[int, _Made] = {}
    defaults = {p.name: p.default for p in pipeline.params if p.default is not None}

    def rewrite(e: Expr) -> Expr:
        made = _made(e, known)
        if not (made.params and made.floats):
            return e
        if not made.stands or e.type != INT32 or _is_arithmetic(e):
            return map_children(e, rewrite)
        if e not in derived:
            ends = interval(e).numeric
            if ends is None or not all(INT32.min <= end <= INT32.max for end in ends):
                return e
            given = all(n.name in defaults for n in walk(e) if isinstance(n, ParamRef))
            default = int(_value(e, defaults)) if given else None
            name = f"derived.{len(derived)}"  # a name that no document can have
            derived[e] = Param(name, INT32, default, floor(ends[0]), ceil(ends[1]), e)
        p = derived[e]
        return ParamRef(p.name, INT32, p.min, p.max)

    def of_params(e: Expr) -> Expr:
        return rewrite(e) if ParamRef in map(type, walk(e)) else e

    if not pipeline.params:
        return pipeline
    stages = tuple(rewritten(s, of_params, of_params) for s in pipeline.stages)
    return replace(pipeline, stages=stages, params=(*pipeline.params, *derived.values())) if derived else pipeline


def with_values(pipeline: Pipeline, params: Mapping[str, Number]) -> dict[str, Number]:
    """`params`, and what follows from them in a normalised pipeline."""
    known = dict(params)
    for p in pipeline.params:
        if p.value is not None:
            known[p.name] = int(_value(p.value, known))
    return known


def _is_arithmetic(e: Expr) -> bool:
    """True if bounds inference sees through the operation by itself."""
    return (
        isinstance(e, Unary)
        or (isinstance(e, Binary) and e.op in ("+", "-", "*", "//", "%"))
        or (isinstance(e, Call) and e.function in ("abs", "clamp", "max", "min"))
    )


class _Made(NamedTuple):
    """True if an expression is made of numbers and params alone, of params and of floats among them."""

    stands: bool
    params: bool
    floats: bool


def _made(e: Expr, known: dict[int, _Made]) -> _Made:
    if id(e) not in known:
        parts = [_made(c, known) for c in children(e)]
        plain = isinstance(e, Const | ParamRef | Binary | Unary | Compare | Logical | Select | Cast)
        known[id(e)] = _Made(
            (plain or (isinstance(e, Call) and e.function in _FUNCTIONS)) and all(p.stands for p in parts),
            isinstance(e, ParamRef) or any(p.params for p in parts),
            e.type.is_float or any(p.floats for p in parts),
        )
    return known[id(e)]


def _value(e: Expr, params: Mapping[str, Number]) -> semantics.Array:
    def param(leaf: Leaf) -> semantics.Array:
        assert isinstance(leaf, ParamRef)
        return semantics.constant(params[leaf.name], leaf.type)

    return evaluate(e, param)
