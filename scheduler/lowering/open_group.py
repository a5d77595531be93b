"""A group whose loops are being opened: what the parts of its lowering share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from scheduler.analysis.bounds_inference import Box
from scheduler.ir.index import Index
from scheduler.ir.loop.builder import Builder
from scheduler.ir.loop.values import Buffer
from scheduler.ir.pipeline.pipeline import Stage
from scheduler.ir.schedule.schedule import Placement
from scheduler.lowering.evaluation import Sources
from scheduler.lowering.group_plan import GroupPlan


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
