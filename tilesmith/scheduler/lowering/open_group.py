"""A group whose loops are being opened: what the parts of its lowering share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.analysis.bounds_inference import reads as accesses_of
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.computations import Reads, RowsAhead
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Placement
from tilesmith.scheduler.lowering.group_plan import GroupPlan


@dataclass(slots=True)
class OpenGroup(ABC):
    """`warm` are the dims of open loops that begin ahead of the first row, `row_by_row` where stages begin that compute
    one row in each iteration; vectors of rows with stages in registers begin at whole vectors from `anchor`."""

    builder: Builder
    inlined: Mapping[str, Stage]
    buffers: dict[tuple[str, int], Buffer]
    plan: GroupPlan
    output_buffers: tuple[Buffer, ...]
    anchor: Index = field(init=False)
    warm: list[str] = field(default_factory=list, init=False)
    row_by_row: dict[Index, Index] = field(default_factory=dict, init=False)

    @abstractmethod
    def compute(self, stage: Stage, p: Placement, box: Box, inlined: Mapping[str, Stage] | None = None) -> None:
        """Emits the computation of the box of a stage into the builder's open scope; with other stages `inlined` than
        those of the group, if there are."""

    def reads(self, stages: Iterable[Stage], inlined: Mapping[str, Stage]) -> Reads:
        """The reads of a computation of `stages`, other than through those of `inlined`."""
        found: dict[str, None] = {}
        waiting, names = list(stages), set[str]()
        while waiting:
            for read in accesses_of(waiting.pop()):
                name = read.producer
                if name in inlined:  # another group may have a buffer of it
                    waiting += [inlined[name]] if name not in names else []
                    names.add(name)
                elif (name, 0) in self.buffers:
                    found[name] = None
        used = {key: b for key, b in self.buffers.items() if key[0] in found}
        ahead = tuple(
            RowsAhead(stage, d, rows)
            for stage, dims in (self.plan.rows_ahead() if self.plan.group.prefetch else {}).items()
            for d, rows in dims.items()
        )
        return Reads(tuple(used.values()), tuple(n for n in inlined if n in names), self.plan.group.prefetch, ahead)
