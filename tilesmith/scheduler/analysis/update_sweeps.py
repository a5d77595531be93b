"""Sweeps: a stage's values and updates block by block along a dim, instead of one after the other over the whole of it
(loop fusion of passes), so that a pass finds in a cache what the pass before it has left.

A block may have all of its passes before the next one where passes depend on nothing of later blocks, and change
nothing that passes of later blocks expect as it was: all but the last keep the dim in place, and the last one does so,
too, or goes through it from its beginning (Allen and Kennedy, Optimizing Compilers for Modern Architectures, ch. 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilesmith.scheduler.analysis.dependence import causal_loop, free_dims
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.row_scans import is_row_scan
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops

LEAST_ROWS = 16
"""Rows of memory that a block has at least: fewer begin loops as often as they have vectors. But where passes go along
rows by vectors, a block is one row, which the first level of caches holds."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Values and the first `updates` of a stage, by blocks of so many `rows` along `dim`; the last of these updates
    goes through it by the variable `loop`, or, with None, keeps it in place. Dims `around`, of planes of memory, have
    the blocks of one place before those of the next. `shared`: threads share the blocks; the last of the updates comes
    to them in order."""

    dim: str
    loop: str | None
    updates: int
    rows: int
    around: tuple[str, ...] = ()
    shared: bool = False


def sweep(stage: Stage, loops: Sequence[UpdateLoops]) -> Sweep | None:
    """The sweep with most updates, its blocks of whole vectors of rows, or of planes. None where no two updates have
    one, nor scans along rows by themselves, or where threads share one of them, which blocks would start time and
    again; but where threads share the dim of the blocks in all updates that keep it in place, they share the blocks."""
    for last in reversed(range(len(stage.updates))):
        within = loops[: last + 1]
        *before, at_last = (u.parallel for u in within)
        if at_last is not None or len(set(before)) > 1:
            continue
        found = _through(stage, within) or _beside(stage, within)
        if found is not None and not any(before):
            return found
        if found is not None and found.loop is not None and before[0] == found.dim:
            rows = max(found.rows, LEAST_ROWS)  # which threads wait for each other
            return replace(found, shared=True, rows=rows, around=())  # that begin once
    return None


def joins_last(stage: Stage, loops: Sequence[UpdateLoops], found: Sweep) -> bool:
    """True if the last update of a sweep can come to each vector of a row right after the update before it, which goes
    along the row by a recurrence: of that row it reads nothing but the point that it writes, and keeps none as it
    was."""
    if found.loop is None or found.rows != 1 or found.shared:
        return False
    (before, along_row), (last, down) = list(zip(stage.updates, loops, strict=True))[found.updates - 2 : found.updates]
    row, dims = stage.storage[0], {*stage.dims}
    return (
        _is_along(stage, before, along_row)
        and dims - {row} <= {*free_dims(stage, before)}
        and dims - {found.dim} <= {*free_dims(stage, last)}
        and down.vector is not None
        and down.vector.dim == down.loops[0] == row
        and len(last.domain) == 1
        and last.where is None
    )


def _through(stage: Stage, loops: Sequence[UpdateLoops]) -> Sweep | None:
    """The sweep of several updates, the last of which goes through the dim of the blocks."""
    *before, last = stage.updates[: len(loops)]
    for dim in stage.storage[1:] if before else ():
        if all(dim in free_dims(stage, update) for update in before):
            loop = causal_loop(stage, last, dim)
            if loop is not None:
                lanes = max((v.lanes for u in loops if (v := u.vector) is not None and v.dim == dim), default=1)
                free = set(stage.dims).intersection(*(free_dims(stage, update) for update in (*before, last)))
                around = tuple(d for d in stage.storage[stage.storage.index(dim) + 1 :] if d in free)
                return Sweep(dim, loop, len(loops), _rows(stage, loops[:-1], dim, lanes), around)
    return None


def _beside(stage: Stage, loops: Sequence[UpdateLoops]) -> Sweep | None:
    """The sweep of scans along rows of memory, which are independent: blocks of whole vectors, where these run across
    rows, the same ones in all of the updates."""
    updates = stage.updates[: len(loops)]
    across = dict.fromkeys(
        u.vector for u, update in zip(loops, updates, strict=True) if not _is_along(stage, update, u)
    )
    if len(across) > 1 or len(stage.storage) < 2:
        return None
    vector = next(iter(across), None)
    dim, lanes = (stage.storage[1], 1) if vector is None else (vector.dim, vector.lanes)
    if across and not all(
        is_row_scan(stage, update, u) or _is_along(stage, update, u) for update, u in zip(updates, loops, strict=True)
    ):
        return None
    around = stage.storage[stage.storage.index(dim) + 1 :]
    free = set(stage.dims).intersection(*(free_dims(stage, update) for update in updates))
    if not free.issuperset((dim, *around)):
        return None
    return Sweep(dim, None, len(loops), _rows(stage, loops, dim, lanes), around)


def _is_along(stage: Stage, update: Update, loops: UpdateLoops) -> bool:
    return along_recurrence(stage, update, loops) is not None


def _rows(stage: Stage, loops: Sequence[UpdateLoops], dim: str, lanes: int) -> int:
    """The places of a block along a dim: whole vectors, and of rows of memory not fewer than LEAST_ROWS, or one."""
    along = all(_is_along(stage, update, u) for update, u in zip(stage.updates, loops, strict=False))
    least = LEAST_ROWS if dim == stage.storage[1] and not along else 1
    return -(-least // lanes) * lanes
