"""Stores of values and vectors as lines of C."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.lane_gathers import place
from tilesmith.scheduler.codegen.c.operands import Operands
from tilesmith.scheduler.ir.loop.program import Store, StreamAligned, StreamLine
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, UINT8


def stored(o: Operands, s: Store | StreamAligned | StreamLine) -> str:
    """The line of a store."""
    match s:
        case Store(value=v) if v.lanes == 1:
            line = f"{s.row}[{o.symbols.bare(s.index)}] = {o.name(v)};"
            if s.within is None:
                return line
            at, lo, hi = (o.symbols.text(x) for x in (s.index, *s.within))
            return f"if ({at} >= {lo} && {at} <= {hi}) {line}"
        case Store(value=v):
            t = UINT8 if v.type == BOOL else v.type
            target, value = o.vector(t.kind, t.bits, v.lanes), _in_memory(o, v)
            if s.within is not None:
                return f"{o.function('part', t, v.lanes)}({_place(o, s)}, {value}{_ends(o, s)});"
            return f"STORE({target}, {_place(o, s)}, {value});"
        case StreamAligned(value=v):
            function = o.function("stream" if s.within is None else "ends", v.type, v.lanes)
            lanes = f"{s.before.name}, {v.name}, {s.picks.name}, {o.symbols.bare(s.apart)}{_ends(o, s)}"
            return f"{function}({_place(o, s)}, {lanes});"
        case StreamLine(value=v):
            function = o.function("past", v.type, v.lanes)
            return f"{function}({_place(o, s)}, {v.name}, {o.symbols.bare(s.moved)}, {s.part});"


def _place(o: Operands, s: Store | StreamAligned | StreamLine) -> str:
    return place(s.row, o.symbols.bare(s.index))


def _ends(o: Operands, s: Store | StreamAligned) -> str:
    """Arguments that say which lanes are written."""
    if s.within is None:
        return ""
    lo, hi = (o.symbols.bare(x) for x in (s.within[0] - s.index, s.within[1] - s.index + 1))
    return f", {lo}, {hi}"


def _in_memory(o: Operands, v: Value) -> str:
    """A vector as it is in memory."""
    if v.type != BOOL:
        return v.name
    return f"({o.vector('uint', 8, v.lanes)})({o.mask(v, 8, v.lanes)} & 1)"
