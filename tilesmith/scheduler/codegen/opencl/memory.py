"""Loads as OpenCL C expressions. There are no gathers: what is not
contiguous is loaded lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from tilesmith.scheduler.codegen.c.addresses import offset
from tilesmith.scheduler.codegen.opencl import types
from tilesmith.scheduler.codegen.opencl.operands import Operands
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL


def loaded(o: Operands, r: Value, op: ops.Loads) -> str:
    """The expression of a load; bools are bytes in memory."""
    text = _elements(o, r, op)
    if r.type != BOOL:
        return text
    return f"{text} != 0" if r.lanes == 1 else f"{text} != (uchar{r.lanes})(0)"


def _elements(o: Operands, r: Value, op: ops.Loads) -> str:
    row = op.row
    match op:
        case ops.Load():
            if r.lanes == 1:
                return f"{row}[{o.symbols.bare(op.at)}]"
            return f"vload{r.lanes}(0, {row} + {o.symbols.text(op.at)})"
        case ops.LoadPair():
            return f"as_int(vload2(0, {row} + {o.symbols.text(op.at)}))"
        case ops.ClampedLoad():
            ends = ", ".join(o.symbols.bare(x) for x in (op.at, op.first, op.last))
            return f"ts_clamped_{types.vector(r.type, r.lanes)}({op.row}, {ends})"
        case ops.Gather():
            return _each(o, r, lambda n: f"{row}[{offset(o, op.offsets, n)}]")
        case ops.GatherPairs():
            start = op.half * (r.lanes // 2)
            return _each(o, r, lambda n: f"{row}[{offset(o, op.offsets, start + n // 2)} + {n % 2}]")
        case ops.GatherFours():
            return _each(o, r, lambda n: f"{row}[{offset(o, op.offsets, n // 4 * 4 + op.part)} + {n % 4}]")
        case ops.MonotoneGather(at=at) | ops.WindowGather(at=at) | ops.EdgeGather(at=at):
            return _each(o, r, lambda n: f"{row}[(int){o.lane(at, n)}]")
        case ops.Lookup():
            places = [o.lane(a, n) for a in op.at for n in range(a.lanes)]
            return _each(o, r, lambda n: f"{row}[{places[n]}]")
        case _:
            assert_never(op)


def _each(o: Operands, r: Value, make: Callable[[int], str]) -> str:
    return make(0) if r.lanes == 1 else o.lanewise(r.type, r.lanes, make)
