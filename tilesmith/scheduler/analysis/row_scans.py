"""Scans along rows: updates whose loop along memory runs in order, since a point follows from those before it in its
row. Dims that the update keeps in place tell rows apart, whose scans are independent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tilesmith.scheduler.analysis.dependence import free_dims
from tilesmith.scheduler.analysis.linear_combinations import terms
from tilesmith.scheduler.ir.pipeline.expressions import Expr, Var, variables_of, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops


@dataclass(frozen=True, slots=True)
class RowScan:
    """The variable of the domain, `loop`, that alone moves along rows of memory, and the dims across rows that the
    update keeps in place, as they lie in memory."""

    loop: str
    across: tuple[str, ...]

    def vectors_across(self, extent: Callable[[str], int], lanes: int) -> str | None:
        """The dim across rows that vectors run in: the first of at least so many points. None where rows are too few,
        or too short for a block of them."""
        if lanes < 2 or extent(self.loop) < lanes:
            return None
        return next((d for d in self.across if extent(d) >= lanes), None)


def row_scan(stage: Stage, update: Update) -> RowScan | None:
    """The loop of `update` along rows of memory, where it is one of its domain; None where it is a dim, or several."""
    if not stage.storage:
        return None
    fastest, free = stage.storage[0], free_dims(stage, update)
    names = variables_of(update.at[stage.dims.index(fastest)])
    if len(names) != 1 or not names <= {v.name for v in update.domain}:
        return None
    (loop,) = names
    return RowScan(loop, tuple(d for d in stage.storage[1:] if d in free))


def is_row_scan(stage: Stage, update: Update, loops: UpdateLoops) -> bool:
    """True if the innermost of the loops is the scan along rows of memory, and vectors run in the next one."""
    names, order = {v.name for v in update.domain}, loops.loops
    if loops.vector is None or len(order) < 2 or order[1] != loops.vector.dim or order[0] not in names:
        return False
    along = stage.storage[0]  # a reduction into each point of a row is no scan along it
    place = update.at[stage.dims.index(along)]
    across = loops.vector.dim
    return across in stage.dims and across != along and any(_is_loop(e, order[0]) for e in walk(place))


def paired_scans(stage: Stage, loops: Sequence[UpdateLoops]) -> frozenset[int]:
    """The updates, counted from 0, that scan along rows and are followed by another scan along these, with the same
    loops around the rows, all of dims that both keep in place: each block of rows may be scanned twice before the next
    one. No update is in two pairs."""
    found = set[int]()
    for n, (a, b) in enumerate(pairwise(loops)):
        first, second = stage.updates[n : n + 2]
        free = {*free_dims(stage, first)}.intersection(free_dims(stage, second))
        alike = (a.vector, a.parallel, a.loops[1:]) == (b.vector, b.parallel, b.loops[1:])
        scans = is_row_scan(stage, first, a) and is_row_scan(stage, second, b)
        if scans and alike and free.issuperset(a.loops[1:]) and n - 1 not in found:
            found.add(n)
    return frozenset(found)


def goes_back(update: Update, loop: str) -> bool:
    """True if the places that `update` writes only fall as `loop` goes on, by a multiple of its variable."""
    moving = [t for e in update.at for t in terms(e) if any(_is_loop(n, loop) for n in walk(t.body))]
    return bool(moving) and all(
        _is_loop(t.body, loop) and t.coefficient.number < 0 and not t.coefficient.factors for t in moving
    )


def _is_loop(e: Expr, loop: str) -> bool:
    return isinstance(e, Var) and e.name == loop
