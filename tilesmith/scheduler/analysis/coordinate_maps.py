"""Coordinate maps: stages that are continuous functions of the coordinates alone, as a distortion or a rotation is.

Where one says a place, neighbours read near each other, as they do of an index that is written out; where data says it,
they may read anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.analysis.stage_graph import is_plain, parts, reads
from tilesmith.scheduler.ir.memo import once_a_form
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    Select,
    Unary,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

_SUMS = frozenset(("+", "-", "*", "/", "//", "**"))
_CALLS = frozenset(
    ("min", "max", "clamp", "abs", "lerp", "sqrt", "exp", "log", "pow", "sin", "cos", "tan", "asin", "acos", "atan",
     "atan2", "tanh", "floor", "ceil", "round", "trunc")
)  # fmt: skip

_OPERATIONS: tuple[type[Expr], ...] = (Binary, Call, Compare, Logical, Reduce, Select, Unary)
"""Classes of expressions that not all are continuous of."""


def coordinate_maps(stages: Iterable[Stage]) -> frozenset[str]:
    """Names of the coordinate maps among `stages`, in which producers come before their readers."""
    found: set[str] = set()
    for stage in stages:
        if _reads_continuously(stage) and found.issuperset(reads(stage)):
            found.add(stage.name)
    return frozenset(found)


def is_mapped(e: Expr, maps: frozenset[str]) -> bool:
    """True of a continuous function of the coordinates, by way of those `maps` only; steps of a pixel, as rounding
    makes them, do not count."""
    return all(_is_continuous(part) for part in walk(e)) and maps.issuperset(_names(e))


@once_a_form
def _reads_continuously(stage: Stage) -> bool:
    """True of a stage that is a continuous function of its producers and coordinates."""
    return is_plain(stage) and all(_is_continuous(e) for kind in _OPERATIONS for e in parts(stage, kind))


def _names(e: Expr) -> frozenset[str]:
    return frozenset(part.name for part in walk(e) if isinstance(part, Access))


def _is_continuous(e: Expr) -> bool:
    match e:
        case Const() | Var() | ParamRef() | InputBound() | Cast() | Access() | Unary(op="-"):
            return True
        case Binary(op=op):
            return op in _SUMS
        case Call(function=function):
            return function in _CALLS
    return False
