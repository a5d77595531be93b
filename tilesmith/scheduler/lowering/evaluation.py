"""Evaluation of expressions at places: what the lowering of each kind of expression is given."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Self

from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.traversal import values_of
from tilesmith.scheduler.ir.loop.values import Buffer, Value
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Reduce
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import BOOL
from tilesmith.scheduler.lowering.index_vectorization import Axis, Frame, Known, Places
from tilesmith.scheduler.lowering.prefetches import NOTHING_AHEAD, Ahead


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of reads: stages to inline, buffers of everything else, the names of params; what is prefetched. Of an
    update the reductions that are the same in all iterations of some loops are `steady`, with these loops."""

    inlined: Mapping[str, Stage]
    buffers: Mapping[tuple[str, int], Buffer]
    params: Mapping[str, str]
    ahead: Ahead = NOTHING_AHEAD
    steady: Mapping[Reduce, frozenset[str]] = field(default_factory=dict)


class Evaluation(Places):
    """Values of expressions in the open scope of a builder. `token` tells what was computed under one evaluation from
    the rest; `known` has the values of expressions, by their identity and the number of the frame. With `only_lanes`
    what is evaluated is thrown away, and its loops need no bodies."""

    def __init__(self, builder: Builder, sources: Sources, axis: Axis | None, exact: bool, safe: bool) -> None:
        super().__init__(builder, axis, exact, safe)
        self.sources = sources
        self.token = object()
        self.known: dict[tuple[int, object, bool], Known[Value]] = {}
        self.only_lanes = False
        self.shares_row = False  # whether stages are in registers beside this one

    @contextmanager
    def sizing(self) -> Iterator[Self]:
        """An evaluation in the same places, of which nothing but the lanes of values is of interest: what is built is
        forgotten. So is what this one is asked for meanwhile, by stages in registers, whose vectors it computes."""
        kept = self.known, self.known_lanes, self.constraints
        self.known, self.known_lanes, self.constraints = {}, {}, list(self.constraints)
        other = copy(self)
        other.known, other.known_lanes, other.constraints = {}, {}, list(self.constraints)
        other.only_lanes = True
        try:
            with self.builder.trial(), self.builder.scope():
                yield other
        finally:
            self.known, self.known_lanes, self.constraints = kept

    def unclamped(self, loop: str) -> Self:
        """An evaluation in the open scope, the body of a `loop` inside of that over vectors, for those iterations in
        which nothing is clamped: `constraints` of the loop's variable say which."""
        assert self.axis is not None
        other = copy(self)
        other.known, other.known_lanes, other.constraints, other.token = {}, {}, [], object()
        other.axis, other.exact = replace(self.axis, q=loop, depth=self.builder.depth, inside=True), False
        other.sources = replace(self.sources, ahead=NOTHING_AHEAD)
        return other

    def asking(self, ahead: Ahead) -> Self:
        """An evaluation in the open scope of which only requests are left: nobody uses its values."""
        other = copy(self)
        other.known, other.known_lanes, other.constraints, other.token = {}, {}, [], object()
        other.sources = replace(self.sources, ahead=ahead)
        return other

    def inside(self, e: Access, frame: Frame) -> tuple[Expr, Frame] | None:
        """See Places."""
        stage = self.sources.inlined.get(e.name)
        return None if stage is None else (stage.values[e.component], self.inlined_frame(e, frame))

    @abstractmethod
    def is_at_hand(self, e: Expr, frame: Frame) -> bool:
        """True if an expression reads a stage that is in registers."""

    @abstractmethod
    def inlined_frame(self, e: Access, frame: Frame) -> Frame:
        """The frame that the inlined stage of `e` is evaluated in."""

    @abstractmethod
    def pair(self, first: Expr | None, second: Expr | None, frame: Frame) -> Value | None:
        """Two elements of int16 as the halves of an int32, where they are neighbours in memory; else None."""

    def op(self, op: ops.Operation, e: Expr) -> Value:
        """The value of an operation, as the node `e` types it."""
        args = values_of(op)
        lanes = max([a.lanes for a in args])
        if lanes == 1:
            return self.builder.define(op, e.type)
        mask = 0
        if isinstance(op, ops.Call) and op.function in ("min", "max") and e.type != BOOL:
            return self.extreme_of(op.function, args, lanes)
        if e.type == BOOL:
            bits = [a.lane_bits for a in args if a.lanes > 1]
            mask = max(bits)
        return self.builder.define(op, e.type, lanes, mask_bits=mask)
