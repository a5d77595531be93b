"""Recurrences along rows of memory: scans of which each point is joined, associatively, from the one before it in its
row and what is known without that. A vector of points is then computed together, in as many steps as doublings make a
vector (Kogge and Stone, IEEE Transactions on Computers C-22(8), 1973): what lies 1, 2, 4, ... points before is joined
to each, and what came before the vector to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_float
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tilesmith.scheduler.analysis.linear_combinations import Term, combined, difference, terms
from tilesmith.scheduler.analysis.row_scans import row_scan
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Call, Expr, Reduce, Var, has_accesses, reads_from, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops

LEAST_LANES = 4
"""Lanes from which on vectors are worth more than points one by one."""
LEAST_FACTOR = Fraction(1, 128)
"""Factors of less have powers within a vector that are no normal numbers."""
LARGEST_ERROR = Fraction(1, 1 << 20)
"""The part of a sum of many terms that the rounding of a factor's powers may add to it at most."""


@dataclass(frozen=True, slots=True)
class RowRecurrence:
    """The variable `loop` goes along rows of memory, or with `step` -1 back; each point is `factor` times the one
    before it, joined to `rest` by `op`."""

    loop: str
    step: Literal[-1, 1]
    op: Literal["+", "min", "max"]
    factor: Fraction
    rest: Expr


def row_recurrence(stage: Stage, update: Update, strict: bool = False) -> RowRecurrence | None:
    """The recurrence of `update`; None where it is none. Those of floats are none if `strict`: they are joined in
    another order."""
    if strict and any(t.is_float for t in stage.types):
        return None
    known = _known(stage)
    if id(update) not in known:
        known[id(update)] = update, _recurrence(stage, update)
    return known[id(update)][1]


def along_recurrence(stage: Stage, update: Update, loops: UpdateLoops, strict: bool = False) -> RowRecurrence | None:
    """The recurrence of `update`, where its vectors run along it: the innermost loop, and the one over vectors."""
    vector = loops.vector
    if vector is None or vector.lanes < LEAST_LANES or vector.dim != loops.loops[0]:
        return None
    found = row_recurrence(stage, update, strict)
    return found if found is not None and found.loop == vector.dim else None


@once
def _known(stage: Stage) -> dict[int, tuple[Update, RowRecurrence | None]]:
    return {}


def _recurrence(stage: Stage, update: Update) -> RowRecurrence | None:
    scan, (type_, *others) = row_scan(stage, update), stage.types
    if scan is None or others or update.where is not None or type_ == BOOL or type_.bits < 8:
        return None
    along, loop, value = stage.dims.index(stage.storage[0]), scan.loop, update.values[0]
    step = _step(update, along, loop)
    if (
        step is None
        or value.type != type_
        or any(reads_from(e, stage.name) for e in walk(value) if isinstance(e, Reduce))
    ):
        return None
    before: Access | None = None
    for read in (e for e in walk(value) if isinstance(e, Access) and e.name == stage.name):
        apart = [difference(i, place) for i, place in zip(read.indices, update.at, strict=True)]
        if any(n for d, n in enumerate(apart) if d != along and n is not None):
            continue  # of another row
        ahead = apart[along]
        if None in apart or ahead is None or (ahead * step < 0 and before not in (None, read)):
            return None
        if ahead * step < -1 or any(map(has_accesses, read.indices)):
            return None
        before = read if ahead * step < 0 else before
    found = None if before is None else _joined(value, before)
    return None if found is None else RowRecurrence(loop, step, *found)


def _step(update: Update, along: int, loop: str) -> Literal[-1, 1] | None:
    """The way that the place moves along rows in a step of the loop, by one; None of any other move, and of places
    that are data."""
    if any(isinstance(n, Access) or (n == Var(loop) and d != along) for d, e in enumerate(update.at) for n in walk(e)):
        return None
    moving = [t for t in terms(update.at[along]) if any(isinstance(n, Var) for n in walk(t.body))]
    if len(moving) != 1 or moving[0].body != Var(loop) or moving[0].coefficient.factors:
        return None
    number = moving[0].coefficient.number
    return 1 if number == 1 else -1 if number == -1 else None


def _joined(value: Expr, before: Access) -> tuple[Literal["+", "min", "max"], Fraction, Expr] | None:
    """The operation, the factor of `before` and what is joined to it."""
    if isinstance(value, Call) and value.function in ("min", "max"):
        leaves = list(_leaves(value, value.function))
        rest = [e for e in leaves if e != before]
        if len(rest) != len(leaves) - 1 or not rest or any(n == before for e in rest for n in walk(e)):
            return None
        found = rest[0]
        for e in rest[1:]:
            found = Call(value.function, (found, e), value.type)
        return "min" if value.function == "min" else "max", Fraction(1), found
    carried, others = Fraction(0), list[Term]()
    for t in terms(value):
        if t.body == before and not t.coefficient.factors:
            carried += t.coefficient.number
        elif any(n == before for n in walk(t.body)) or any(n == before for f in t.coefficient.factors for n in walk(f)):
            return None
        else:
            others.append(t)
    factor = _rounded(carried, value.type)
    return ("+", factor, combined(others, value.type)) if others and _is_tame(factor, value.type) else None


def _leaves(e: Expr, function: str) -> Iterator[Expr]:
    if isinstance(e, Call) and e.function == function:
        for a in e.args:
            yield from _leaves(a, function)
    else:
        yield e


def _is_tame(factor: Fraction, type_: ScalarType) -> bool:
    """True if sums with the powers of a factor come out right: of integers nothing but 1, of floats what neither grows
    nor vanishes within a vector, and is not so near 1 that the rounding of a power shows in what thousands of points
    add up to."""
    if factor == 1 or not type_.is_float:
        return factor == 1
    if type_.bits < 32 or not LEAST_FACTOR <= abs(factor) <= 1:
        return False
    for lanes in (4, 8, 16):
        power = abs(factor) ** lanes
        if power < 1 and abs(_rounded(power, type_) - power) > LARGEST_ERROR * (1 - power):
            return False
    return True


def _rounded(number: Fraction, type_: ScalarType) -> Fraction:
    return Fraction(c_float(float(number)).value if type_.bits == 32 and type_.is_float else float(number))
