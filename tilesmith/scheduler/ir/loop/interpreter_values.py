"""Values of an interpreted loop program: its indices, and what its operations compute, in NumPy. Vectors are arrays of
a lane each; addresses are counted from the beginning of a buffer, which is the beginning of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.interpreter_memory import Array, Memory
from tilesmith.scheduler.ir.loop.values import Lane, LaneOffset, Value
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.types import INT16


class Values:
    """The values of `symbols` and registers (`known`), and those of operations on them, on a machine with lines of so
    many bytes. Raises MemoryFault where an operation reads beyond a buffer, or races."""

    def __init__(self, memory: Memory, line_bytes: int) -> None:
        self.memory = memory
        self.line_bytes = line_bytes
        self.symbols: dict[str, int] = {}
        self.known: dict[str, Array] = {}

    def at(self, x: Index) -> int:
        """The value of an index."""
        return x.value(self.symbols)

    def of(self, v: Value, lanes: int) -> Array:
        """A value of so many lanes, a scalar in all of them."""
        found = self.known[v.name] if v.literal is None else semantics.constant(v.literal, v.type)
        return np.broadcast_to(found, (lanes,)) if lanes > 1 and found.ndim == 0 else found

    def lanes(self, lane: Lane, n: int) -> Array:
        """The indices that so many lanes have."""
        base: Array = np.full(n, self.at(lane.base))
        if lane.pattern is not None:
            return np.add(base, lane.pattern)
        return base if lane.vector is None else np.add(base, self.of(lane.vector, n).astype(np.int64))

    def places(self, offsets: Sequence[LaneOffset], n: int) -> Array:
        """The places of the lanes of a gather."""
        total = np.zeros(n, np.int64)
        for g in offsets:
            at = self.lanes(g.lane, n)
            if g.within is not None:
                at = np.maximum(np.minimum(at, self.at(g.within[1])), self.at(g.within[0]))
            at = at - self.at(g.origin) if g.ring is None else at & (g.ring - 1)
            total = total + at * self.at(g.stride)
        return total

    def operation(self, r: Value, op: ops.Operation) -> Array:
        """Result of an operation, as a value `r`."""
        n = r.lanes
        match op:
            case ops.Unary():
                return semantics.unary(op.op, self.of(op.a, n), r.type)
            case ops.Binary():
                return semantics.binary(op.op, self.of(op.a, n), self.of(op.b, n), r.type)
            case ops.Compare():
                return semantics.compare(op.op, self.of(op.a, n), self.of(op.b, n))
            case ops.Logical():
                a, b = self.of(op.a, n), self.of(op.b, n)
                return np.logical_and(a, b) if op.op == "and" else np.logical_or(a, b)
            case ops.Select():
                return np.where(self.of(op.condition, n), self.of(op.a, n), self.of(op.b, n))
            case ops.Call():
                args = tuple(self.of(a, n) for a in op.args)
                return semantics.call(op.function, args, tuple(a.type for a in op.args), r.type)
            case ops.Cast():
                return semantics.convert(self.of(op.a, n), op.a.type, r.type, op.saturate)
            case ops.Truncate():
                return self.of(op.a, n).astype(r.type.numpy)
            case ops.Narrow():
                both = np.concatenate([self.of(x, n // 2) for x in (op.a, op.b)])
                if op.by_parts:
                    parts = n * r.type.bytes // ops.PART_BYTES
                    both = both.reshape(2, parts, -1).transpose(1, 0, 2).reshape(n)
                return semantics.convert(both, op.a.type, r.type, True) if op.saturate else both.astype(r.type.numpy)
            case ops.WidenPart():
                groups = self.of(op.a, op.a.lanes).reshape(n, -1)
                return semantics.convert(groups[:, op.part], op.a.type, r.type, False)
            case ops.WidenLanes():
                return semantics.convert(self.of(op.a, op.a.lanes)[list(op.picks)], op.a.type, r.type, False)
            case ops.FusedProduct():
                return self.of(op.a, n) * self.of(op.b, n) + self.of(op.c, n)
            case ops.ResizeMask() | ops.Broadcast() | ops.Copy():
                return self.of(op.a, n)
            case ops.Shuffle():
                return np.concatenate([self.of(x, op.a.lanes) for x in (op.a, op.b)])[list(op.picks)]
            case ops.DotPairs():
                return self._dot_pairs(op, n)
            case ops.SumNeighbours():
                return self._sum_neighbours(op, r)
            case ops.FromIndex():
                return np.asarray(self.at(op.at)).astype(np.int32)
            case ops.ToIndex():
                return self.of(op.a, 1)
            case ops.Lanes():
                return np.add(self.at(op.at), op.pattern).astype(r.type.numpy)
            case _:
                return self._memory(r, op)

    def _sum_neighbours(self, op: ops.SumNeighbours, r: Value) -> Array:
        a, b = (self.of(x, op.a.lanes) for x in (op.a, op.b))
        groups = (np.maximum(a, b) - np.minimum(a, b)).reshape(r.lanes, -1)
        return np.asarray(np.add.reduce(groups, axis=1, dtype=r.type.numpy))

    def _dot_pairs(self, op: ops.DotPairs, n: int) -> Array:
        a = self.of(op.a, 2 * n).astype(np.int32)
        b = self.of(op.b, 1)
        factors = np.tile(np.asarray(b, np.int32).reshape(1).view(INT16.numpy), n) if op.b.lanes == 1 else b
        products = np.multiply(a, factors.astype(np.int32)).reshape(n, 2)
        return np.add(products[:, 0], products[:, 1])

    def _memory(self, r: Value, op: ops.Memory) -> Array:
        n = r.lanes
        match op:
            case ops.Load():
                found = self.memory.load(r, op.row, self.at(op.at) + np.arange(n))
                return found if n > 1 else found.reshape(())
            case ops.LoadPair():
                return self.memory.load(r, op.row, self.at(op.at) + np.arange(2)).view(np.int32).reshape(())
            case ops.ClampedLoad():
                at = np.clip(self.at(op.at) + np.arange(n), self.at(op.first), self.at(op.last))
                return self.memory.load(r, op.row, at)
            case ops.Gather():
                found = self.memory.load(r, op.row, self.places(op.offsets, n))
                return found if n > 1 else found.reshape(())
            case ops.GatherPairs():
                at = self.places(op.offsets, n)[op.half * (n // 2) : (op.half + 1) * (n // 2)]
                return self.memory.load(r, op.row, (at[:, None] + np.arange(2)).ravel())
            case ops.GatherFours():
                at = self.places(op.offsets, n)[op.part :: 4]
                return self.memory.load(r, op.row, (at[:, None] + np.arange(4)).ravel())
            case ops.MonotoneGather() | ops.WindowGather() | ops.EdgeGather():
                return self.memory.load(r, op.row, self.of(op.at, n).astype(np.int64))
            case ops.Lookup():
                at = np.concatenate([self.of(a, a.lanes) for a in op.at])
                return self.memory.load(r, op.row, at.astype(np.int64))
            case ops.CarriedElements():
                return np.asarray((self.memory.pointers[op.row][1] + self.at(op.at)) % op.width)
            case ops.VectorsIntoLine():
                bytes_ = op.element.bytes * op.width
                line = -(-self.line_bytes // bytes_)
                return np.asarray((self.memory.pointers[op.row][1] + self.at(op.at)) // op.width % line)
            case ops.Misalignment():
                line = self.line_bytes // op.element.bytes
                return np.asarray((self.memory.pointers[op.row][1] + self.at(op.at)) % line)
            case _:
                assert_never(op)
