"""Chains of dependent operations: how long a value takes from the last of its loads, however much runs beside it.

A core overlaps steps of a loop as far as its window of instructions reaches. Where a step is long in both instructions
and latency, it is the latency that limits (`tilesmith.cost_models.ecm`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeGuard

from tilesmith.scheduler.features.operation_counts import constant_trips
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    Select,
    Unary,
    Var,
    children,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

LOAD, GATHER = 5.0, 20.0
"""Cycles of a vector from the first level, and of one whose elements each have a place."""
FLOAT, INTEGER, PRODUCT, QUOTIENT, CONVERSION, CHOICE = 4.0, 1.0, 5.0, 13.0, 5.0, 3.0
"""Cycles of sums of floats, of integers, products of these, quotients and roots, conversions, comparisons with what
they decide. Ordinary cores differ in these by a third."""
CALL = 50.0
"""Cycles of a function that is a polynomial, or a call."""
FUNCTIONS: Mapping[str, float] = {
    "exp": 56.0, "log": 65.0, "pow": 150.0, "sin": 48.0, "cos": 52.0, "tan": 76.0, "asin": 65.0, "acos": 70.0,
    "atan": 70.0, "atan2": 82.0, "tanh": 84.0, "sqrt": QUOTIENT, "floor": 8.0, "ceil": 8.0, "round": 8.0, "trunc": 8.0,
    "min": CHOICE, "max": CHOICE, "clamp": 2 * CHOICE, "abs": INTEGER, "absd": 2 * FLOAT, "lerp": 2 * FLOAT,
    "mux": CHOICE,
}  # fmt: skip
"""Cycles of calls: the longest chains of `codegen.c.exponential_functions` and `codegen.c.circular_functions`."""
SIDE_BY_SIDE = 4
"""Chains that compilers make of a longer sum."""


Ends = tuple[float, float]
"""Cycles from the loads below an expression to its value, and from the last of them only; 0 of what no load is in."""
NO_LOAD: Ends = (0.0, 0.0)


@once
def chain(stage: Stage) -> Ends:
    """Cycles from the loads of a point of a stage to its values, those of a load included; and from the last part that
    comes of what is computed in the same step. Sums are joined in the order that their parts come in, the last of which
    waits for no other."""
    known: dict[int, Ends] = {}
    return _last([_chain(v, known) for v in stage.values])


def _chain(e: Expr, known: dict[int, Ends]) -> Ends:
    if type(e) is Var or type(e) is Const:
        return NO_LOAD
    found = known.get(id(e))
    if found is None:
        found = known[id(e)] = _from_parts(e, known)
    return found


def _from_parts(e: Expr, known: dict[int, Ends]) -> Ends:
    if isinstance(e, Reduce):
        parts = (e.body, *(() if e.where is None else (e.where,)))
        return _joined(_last([_chain(p, known) for p in parts]), prod(map(constant_trips, e.domain)), _simple(e))
    if _is_sum(e):
        terms = _terms(e)
        before = _last([_chain(p, known) for p in terms])
        return _joined(before, len(terms) - 1, _simple(e)) if before != NO_LOAD else NO_LOAD
    before = _last([_chain(p, known) for p in children(e)])
    if isinstance(e, Access):
        return (before[0] + GATHER, before[1] + GATHER) if before != NO_LOAD else (LOAD, LOAD)
    if before == NO_LOAD:
        return NO_LOAD
    latency = _latency(e)
    return before[0] + latency, before[1] + latency


def _last(parts: list[Ends]) -> Ends:
    """The parts together, each at its longest."""
    whole = after = 0.0
    for first, last in parts:
        whole, after = max(whole, first), max(after, last)
    return whole, after


def _joined(before: Ends, terms: int, each: float) -> Ends:
    """So many terms joined to one by operations one after the other; after the last of them by one operation only."""
    return before[0] + min(terms, SIDE_BY_SIDE - 1 + terms / SIDE_BY_SIDE) * each, before[1] + each


def _is_sum(e: Expr) -> TypeGuard[Binary]:
    return isinstance(e, Binary) and e.op in ("+", "-")


def _terms(e: Binary) -> list[Expr]:
    """The terms of a sum, the last one first."""
    found, left = [e.right], e.left
    while _is_sum(left):
        found.append(left.right)
        left = left.left
    return [*found, left]


def _simple(e: Expr) -> float:
    return FLOAT if e.type.is_float else INTEGER


def _latency(e: Expr) -> float:
    simple = _simple(e)
    match e:
        case Binary(op="*"):
            return simple if e.type.is_float else PRODUCT
        case Binary(op="/" | "//" | "%"):
            return (simple if e.type.is_float else 2 * PRODUCT) if isinstance(e.right, Const) else QUOTIENT
        case Binary(op="**"):
            return FUNCTIONS["pow"]
        case Call():
            return FUNCTIONS.get(e.function, CALL if e.type.is_float else 2 * INTEGER)
        case Cast():
            return CONVERSION
        case Compare() | Select():
            return CHOICE
        case Logical() | Unary():
            return INTEGER
    return simple
