"""Scaled terms of integer sums, by powers of two: what has its low bits 0 is computed without them.

    select(c0, 1, 0) + select(c1, 2, 0) + ... + select(c8, 256, 0) + select(c9, 512, 0)
      ->
    (select(c0, 1, 0) + select(c1, 2, 0) + ...) + (select(c8, 1, 0) + select(c9, 2, 0) << 8)

Sums wrap, so that the order of their terms is free. The parts of a pattern of bits then fit bytes each, which integer
narrowing finds (H. S. Warren, Hacker's Delight, 2012, on fields of a word).
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TypeGuard

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Const, Expr, Select, map_children
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import parts_of_value


def with_fields(stage: Stage) -> Stage:
    """The stage with the terms of sums of 32 bits or more grouped by the whole bytes that their choices of constants
    leave 0, where two or more leave some; itself if there are none."""
    if sum(_zeros(e) >= 8 for e in parts(stage, Select)) < 2:  # as of nearly all stages
        return stage
    values = tuple(map(_grouped, stage.values))
    same = all(a is b for a, b in zip(values, stage.values, strict=True))
    return stage if same else replace(stage, values=values)


def _grouped(value: Expr) -> Expr:
    parts = list(parts_of_value(value))
    if sum(_zeros(e) >= 8 for e in parts) < 2:
        return value
    inside = {id(child) for e in parts if _is_sum(e) for child in (e.left, e.right) if _is_sum(child)}
    known: dict[int, Expr] = {}
    for e in reversed(parts):  # parts before what is made of them: no recursion goes deep
        if id(e) not in known and id(e) not in inside:
            found = _fields(e) if _is_sum(e) else None
            known[id(e)] = found or map_children(e, lambda child: known.get(id(child), child))
    return known[id(value)]


def _is_sum(e: Expr) -> TypeGuard[Binary]:
    return isinstance(e, Binary) and e.op == "+" and e.type.is_integer and e.type.bits >= 32


def _fields(e: Expr) -> Expr | None:
    """A sum with its terms grouped; None where it has no two that leave bytes 0."""
    fields: dict[int, list[Expr]] = {}
    pending: list[Expr] = [e]
    while pending:
        term = pending.pop()
        if _is_sum(term):
            pending += [term.right, term.left]
        else:
            fields.setdefault(_zeros(term) // 8 * 8, []).append(term)
    if all(bits == 0 or len(terms) < 2 for bits, terms in fields.items()):
        return None
    sums = []
    for bits, terms in sorted(fields.items()):
        total = reduce(lambda a, b: Binary("+", a, b, e.type), [_without(t, bits) for t in terms])
        sums.append(total if bits == 0 else Binary("<<", total, Const(bits, e.type), e.type))
    return reduce(lambda a, b: Binary("+", a, b, e.type), sums)


def _zeros(e: Expr) -> int:
    """Low bits that are 0 of a choice of constants; of all else none."""
    if not (isinstance(e, Select) and e.type.is_integer):
        return 0
    a, b = e.if_true, e.if_false
    if not (isinstance(a, Const) and isinstance(b, Const)):
        return 0
    both = int(a.value) | int(b.value)
    return (both & -both).bit_length() - 1 if both else 0


def _without(e: Expr, bits: int) -> Expr:
    if not bits:
        return e
    assert isinstance(e, Select)
    return Select(e.condition, _shifted(e.if_true, bits), _shifted(e.if_false, bits), e.type)


def _shifted(e: Expr, bits: int) -> Const:
    assert isinstance(e, Const)
    t: ScalarType = e.type
    return Const(int(e.value) >> bits, t)
