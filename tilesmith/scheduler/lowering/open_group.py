"""A group whose loops are being opened: what the parts of its lowering share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Placement
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.group_plan import GroupPlan


@dataclass(slots=True)
class OpenGroup(ABC):
    """`warm` are the dims of open loops that begin ahead of the first row, `row_by_row` where stages begin that compute
    one row in each iteration; vectors of rows with stages in registers begin at whole vectors from `anchor`."""

    builder: Builder
    sources: Sources
    plan: GroupPlan
    output_buffers: tuple[Buffer, ...]
    anchor: Index = field(init=False)
    warm: list[str] = field(default_factory=list, init=False)
    row_by_row: dict[Index, Index] = field(default_factory=dict, init=False)

    @abstractmethod
    def compute(self, stage: Stage, p: Placement, box: Box, sources: Sources | None = None) -> None:
        """Emits loops over the box of a stage into the builder's open scope."""
