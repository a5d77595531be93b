"""Accesses: elements of a buffer, a lane each, that are loaded as one value."""

from __future__ import annotations

from tilesmith.records import record
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.ops import Operation
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType


@record(frozen=True, slots=True)
class Access:
    """Elements of `buffer` at `lanes`, one per dim, as values of `type`. These are made in a scope no further out than
    `at_least`; `pinned` ones stay in the open scope and are not shared. With `safe`, lanes beyond the buffer give some
    element inside it."""

    buffer: Buffer
    lanes: tuple[Lane, ...]
    type: ScalarType
    pinned: bool = False
    at_least: int = 0
    safe: bool = False

    @property
    def unit(self) -> Lane:
        """The places along memory."""
        return self.lanes[self.buffer.unit]

    def defined(self, b: Builder, op: Operation, width: int = 1) -> Value:
        """The value of `op`, which loads so many elements; a lane of a mask has a byte."""
        mask, stage = 8 if self.type == BOOL and width > 1 else 0, self.buffer.stage
        return b.define(op, self.type, width, stage, mask, pinned=self.pinned, at_least=self.at_least)
