"""Sweeps: a stage's values and updates block by block along a dim, instead of one after the other over the whole of it
(loop fusion of passes), so that a pass finds in a cache what the pass before it has left.

A block may have all of its passes before the next one where passes depend on nothing of later blocks, and change
nothing that passes of later blocks expect as it was: passes that keep the dim in place, and such as go through it the
way that the blocks do, from its beginning or its end (Allen and Kennedy, Optimizing Compilers for Modern Architectures,
ch. 6). One that goes through it reads of places before the one it writes; passes after it change these once it has
done so: they come as many blocks behind it (loop skewing: Wolfe, IJPP 15(4), 1986).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tilesmith.scheduler.analysis.dependence import Way, free_dims, way_through
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.row_scans import is_row_scan
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops

LEAST_ROWS = 16
"""Rows of memory that a block has at least: fewer begin loops as often as they have vectors. But where passes go along
rows by vectors, a block is one row, which the first level of caches holds."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Updates of a stage, from the `first` on, by blocks of so many `rows` along `dim`, from its beginning or, `back`,
    from its end; of the first updates of all with the values before them. `ways` are the variables by which they go
    through the dim, None of those that keep it in place, and `behind` the rows by which each comes after the first:
    whole blocks. Dims `around`, of planes of memory, have the blocks of one place before those of the next. `shared`:
    threads share the blocks; the last of the updates comes to them in order."""

    dim: str
    first: int
    ways: tuple[str | None, ...]
    behind: tuple[int, ...]
    rows: int
    back: bool = False
    around: tuple[str, ...] = ()
    shared: bool = False

    @property
    def updates(self) -> range:
        """The updates that it has."""
        return range(self.first, self.first + len(self.ways))

    @property
    def held(self) -> int:
        """Rows from the first that the last update comes to up to the last that the first one does."""
        return self.rows + self.behind[-1]


def sweeps(stage: Stage, loops: Sequence[UpdateLoops]) -> tuple[Sweep, ...]:
    """The sweeps of a stage, one after the other, each with as many updates as may be. Several updates have one, or the
    values and scans along rows by themselves; but not where threads share an update, since blocks would start them time
    and again, unless they share the dim of the blocks in all updates but the last, which goes through it: these are
    blocks that they share."""
    found, first = list[Sweep](), 0
    while first < len(stage.updates):
        one = next(_from(stage, loops, first), None)
        found += [] if one is None else [one]
        first += 1 if one is None else len(one.ways)
    return tuple(found)


def planes(stage: Stage, loops: Sequence[UpdateLoops]) -> tuple[str, ...]:
    """The dims of planes of memory that a stage whose values begin a sweep has whole, one plane with all of its passes
    before the next: those that end its storage, are around the sweep, and that every update keeps in place."""
    first = next(iter(sweeps(stage, loops)), None)
    if first is None or first.first or any(u.parallel for u in loops):
        return ()
    vectors = {u.vector.dim for u in loops if u.vector is not None}
    kept = set(first.around).intersection(*(free_dims(stage, update) for update in stage.updates)) - vectors
    return tuple(reversed([*takewhile(kept.__contains__, reversed(stage.storage))]))


def shared_sweep(stage: Stage, loops: Sequence[UpdateLoops]) -> Sweep | None:
    """The longest sweep from the values on whose blocks threads could share, were they told to; the loops have none."""
    for last in reversed(range(1, len(loops))):
        *before, at_last = loops[: last + 1]
        for dim in stage.storage[1:]:
            told = [*(replace(u, parallel=dim) for u in before), at_last, *loops[last + 1 :]]
            found = _threaded(stage, told, range(last + 1))
            if found is not None:
                return found
    return None


def words_of_blocks(found: Sweep) -> str:
    """The blocks of a sweep, in words."""
    return f"by {found.rows} of {found.dim}{' from its end' if found.back else ''}"


def joins_last(stage: Stage, loops: Sequence[UpdateLoops], found: Sweep) -> bool:
    """True if the last update of a sweep can come to each vector of a row right after the update before it, which goes
    along the row by a recurrence: of that row it reads nothing but the point that it writes, and keeps none as it
    was."""
    if len(found.ways) < 2 or found.ways[-1] is None or found.rows != 1 or found.shared:
        return False
    if found.behind[-2] != found.behind[-1]:
        return False
    (before, along_row), (last, down) = ((stage.updates[n], loops[n]) for n in found.updates[-2:])
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


def _from(stage: Stage, loops: Sequence[UpdateLoops], first: int) -> Iterator[Sweep]:
    """The sweeps that begin with an update, those of most updates first."""
    for last in reversed(range(first, len(stage.updates))):
        which = range(first, last + 1)
        if any(loops[n].parallel for n in which):
            found = _threaded(stage, loops, which)
        else:
            found = _through(stage, loops, which) or (None if first else _beside(stage, loops[: last + 1]))
        if found is not None:
            yield found


def _threaded(stage: Stage, loops: Sequence[UpdateLoops], which: range) -> Sweep | None:
    """The sweep of just these updates, of blocks that threads share."""
    *before, at_last = (loops[n].parallel for n in which)
    if which.start or at_last is not None or len(set(before)) != 1:
        return None
    found = next((s for s in _by_dims(stage, loops, which) if s.dim == before[0]), None)
    if found is None or found.back or any(found.ways[:-1]):
        return None
    rows = max(found.rows, LEAST_ROWS)  # which threads wait for each other
    return replace(found, shared=True, rows=rows, around=())  # that begin once


def _through(stage: Stage, loops: Sequence[UpdateLoops], which: range) -> Sweep | None:
    """The sweep of several updates, some of which go through the dim of the blocks: that with fewest blocks at once."""
    return min(_by_dims(stage, loops, which), key=lambda s: s.behind[-1], default=None)


def _by_dims(stage: Stage, loops: Sequence[UpdateLoops], which: range) -> Iterator[Sweep]:
    """The sweeps of several updates along each dim that some of them go through, all the same way."""
    updates = [stage.updates[n] for n in which]
    free = set(stage.dims).intersection(*(free_dims(stage, update) for update in updates))
    for at, dim in enumerate(stage.storage[1:] if len(updates) > 1 else (), start=1):
        kept = [n for n in which if dim in free_dims(stage, stage.updates[n])]
        ways = [None if n in kept else _way(stage, n, dim) for n in which]
        steps = {way.step for way in ways if way is not None}
        if len(steps) != 1 or ways.count(None) != len(kept):
            continue
        lanes = max((v.lanes for n in which if (v := loops[n].vector) is not None and v.dim == dim), default=1)
        rows = _rows(stage, loops, kept, dim, lanes)
        around = tuple(d for d in stage.storage[at + 1 :] if d in free)
        names = tuple(None if way is None else way.loop for way in ways)
        yield Sweep(dim, which.start, names, _behind(ways, rows), rows, steps == {-1}, around)


@once
def _ways(stage: Stage) -> dict[tuple[int, str], Way | None]:
    return {}


def _way(stage: Stage, update: int, dim: str) -> Way | None:
    """The way of an update through a dim, worked out once."""
    known, key = _ways(stage), (update, dim)
    if key not in known:
        known[key] = way_through(stage, stage.updates[update], dim)
    return known[key]


def _behind(ways: Sequence[Way | None], rows: int) -> tuple[int, ...]:
    """The rows by which each update comes after the first: those that the ones before it still read, in whole
    blocks."""
    found, least = list[int](), 0
    for way in ways:
        found.append(least)
        reach = 0 if way is None else way.reach
        least += -(-reach // rows) * rows
    return tuple(found)


def _beside(stage: Stage, loops: Sequence[UpdateLoops]) -> Sweep | None:
    """The sweep of the values and of scans along rows of memory, which are independent: blocks of whole vectors, where
    these run across rows, the same ones in all of the updates."""
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
    rows, every = _rows(stage, loops, range(len(loops)), dim, lanes), len(loops)
    return Sweep(dim, 0, (None,) * every, (0,) * every, rows, around=around)


def _is_along(stage: Stage, update: Update, loops: UpdateLoops) -> bool:
    return along_recurrence(stage, update, loops) is not None


def _rows(stage: Stage, loops: Sequence[UpdateLoops], kept: Sequence[int], dim: str, lanes: int) -> int:
    """The places of a block along a dim, which the updates `kept` keep in place: whole vectors, and of rows of memory
    not fewer than LEAST_ROWS, or one."""
    along = bool(kept) and all(_is_along(stage, stage.updates[n], loops[n]) for n in kept)
    least = LEAST_ROWS if dim == stage.storage[1] and not along else 1
    return -(-least // lanes) * lanes
