"""Facts on the updates of a stage: loops, operations, reads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilesmith.cost_models.operations import Operations
from tilesmith.scheduler.analysis.dependence import free_dims
from tilesmith.scheduler.analysis.estimated_bounds import Estimates
from tilesmith.scheduler.analysis.row_scans import RowScan, row_scan
from tilesmith.scheduler.features.operations.operation_counts import (
    Typed,
    total,
    update_operations,
)
from tilesmith.scheduler.ir.pipeline.expressions import Access, Var, has_accesses, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update


@dataclass(frozen=True, slots=True)
class UpdateFacts:
    """One update at the estimates: the iterations of each of its loops (its domain's variables, then the dims that it
    runs through), and the operations of one iteration, `typed` by element type. `looked_up`: where it writes depends on
    data. `scan`: how it goes along rows of memory, if by a variable of its domain. `reads`: elements that an iteration
    loads, of the stage itself or of others; `own`: of the stage itself."""

    loops: tuple[tuple[str, int], ...]
    operations: Operations
    typed: Typed = ()
    looked_up: bool = False
    scan: RowScan | None = None
    reads: int = 0
    own: int = 0

    @property
    def iterations(self) -> int:
        return prod(n for _, n in self.loops)

    def trips(self, loop: str) -> int:
        return dict(self.loops)[loop]


def dim_along_memory(stage: Stage, update: Update) -> str | None:
    """The variable by which an update goes along rows of memory; None where it is not one alone."""
    at = update.at[stage.dims.index(stage.storage[0])] if stage.storage else None
    return at.name if isinstance(at, Var) else None


def facts_of_update(stage: Stage, update: Update, extents: dict[str, int], at: Estimates) -> UpdateFacts:
    """The facts of one update of a stage of those extents."""
    loops = [(r.name, at.trips(r)) for r in update.domain]
    loops += [(d, extents[d]) for d in free_dims(stage, update)]
    typed = update_operations(update, at.trips)
    parts = (*update.values, *(() if update.where is None else (update.where,)))
    reads = {e for part in parts for e in walk(part) if isinstance(e, Access)}
    own, scan = sum(e.name == stage.name for e in reads), row_scan(stage, update)
    return UpdateFacts(tuple(loops), total(typed), typed, any(map(has_accesses, update.at)), scan, len(reads), own)
