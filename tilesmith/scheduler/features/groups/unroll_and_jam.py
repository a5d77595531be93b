"""Unroll-and-jam: neighbouring points of a stage that read mostly the same load it once if they are computed
together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from tilesmith.scheduler.analysis.access_functions import Span, hull
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.periodic_indices import block_points
from tilesmith.scheduler.features.groups.fusion_group import FEW, Members
from tilesmith.scheduler.features.groups.register_tiles import sums_together
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner

ROWS_TOGETHER = 4
"""Rows whose windows overlap: of seven rows each, four together load ten instead of 28."""
MOST_TOGETHER = 8
"""Rows of a block that read the same rows: those of a transform of blocks."""


def points_together(
    members: Members, loops: Sequence[str], computed: Mapping[str, int], inlined: frozenset[str] = frozenset()
) -> dict[str, dict[str, int]]:
    """Unroll-and-jam by stage of a group: the dims of which several points are computed at once, and how many: rows
    that are done together, register tiles of long reductions, and dims of few points that updates run through inside
    of their vectors."""
    found = {**rows_together(members, loops, computed), **sums_together(members, loops, computed, inlined)}
    for name in computed:
        stage = members.facts.stages[name]
        run = {loop for update in stage.updates for loop, _ in update.loops}
        few = {d for d in stage.storage[1:] if d in run and stage.extent(d) <= FEW}
        if few and all(update.scan is None for update in stage.updates):
            found[name] = {d: stage.extent(d) for d in stage.dims if d in few}
    return found


def rows_together(members: Members, loops: Sequence[str], computed: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Rows computed at once by stage of a group: the dim that they follow each other in, and how many are done
    together. `loops` are the group's, innermost first, and `computed` has the positions that stages are computed at."""
    found = {}
    dims = [dim if loop == inner(dim := dim_of(loop)) else None for loop in loops]  # of intra-tile loops
    for name, at in computed.items():
        stage, inside = members.facts.definitions[name], {*dims[:at]} - {None}
        for dim in stage.dims if stage.storage else ():
            span = members.follows[name][dim]
            several = dim != stage.storage[0] and span.var in inside and span.known and span.rate >= 1
            if several and not stage.updates and overlaps(stage, dim, stage.storage[0]):
                found[name] = {dim: ROWS_TOGETHER}
                break
    return found


def blocks_together(stage: Stage, dim: str) -> int:
    """Rows of a stage that are done together where there are so many: the blocks that it reads, if they are larger."""
    size = block_points(stage, dim)
    return size if ROWS_TOGETHER < size <= MOST_TOGETHER else ROWS_TOGETHER


def overlaps(stage: Stage, dim: str, along: str) -> bool:
    """True if points of `stage` that are neighbours in `dim` read mostly the same vectors along `along`: windows of at
    least three rows without gaps, each of one vector."""
    known = _known(stage)
    if (dim, along) not in known:
        known[dim, along] = _overlap(stage, dim, along)
    return known[dim, along]


@once
def _known(stage: Stage) -> dict[tuple[str, str], bool]:
    """Memoised results of `overlaps`."""
    return {}


def _overlap(stage: Stage, dim: str, along: str) -> bool:
    windows: dict[str, list[tuple[Span, Span]]] = {}
    for a in accesses(stage):
        row = [s for s in a.spans if s.var == along]
        if not row:
            continue
        column = [s for s in a.spans if s.var == dim]
        if len(row) != 1 or len(column) != 1 or not row[0].known or not column[0].known:
            return False
        windows.setdefault(a.producer, []).append((row[0], column[0]))
    for reads in windows.values():
        rows = {s for s, _ in reads}
        columns = [s for _, s in reads]
        if len(rows) > 1 or any(s.width for s in rows) or any(s.rate != 1 for s in columns):
            return False
        whole = reduce(hull, columns)
        if not whole.known or whole.width < 2 or sum(s.width + 1 for s in columns) <= whole.width:
            return False
    return bool(windows)
