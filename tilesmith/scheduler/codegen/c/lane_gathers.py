"""Gathers lane by lane: a function for each form of addresses, of which a call says where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce

from tilesmith.scheduler.codegen.c.types import Symbols, scalar
from tilesmith.scheduler.ir.index import Index, const, multiply
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.values import LaneOffset, Value


@dataclass(frozen=True, slots=True)
class _Dim:
    """One dim of an address: places that differ by the same step from lane to lane, or those of a vector of the type
    `vector`; between ends, and with a stride, or not."""

    vector: str | None
    clamped: bool
    strided: bool

    def parameters(self, n: int) -> list[str]:
        place = [f"{self.vector} v{n}", f"int64_t at{n}"] if self.vector else [f"int64_t at{n}", f"int64_t step{n}"]
        ends = [f"int64_t first{n}", f"int64_t last{n}"] if self.clamped else []
        return [*place, *ends, *([f"int64_t stride{n}"] if self.strided else [])]

    def place(self, n: int, lane: int | str) -> str:
        """The offset of a lane."""
        moved = f"(int64_t)v{n}[{lane}]" if self.vector else f"{lane} * step{n}"
        at = f"at{n} + {moved}"
        if self.clamped:
            at = f"ts_max(ts_min({at}, last{n}), first{n})"
        elif self.strided:
            at = f"({at})"
        return f"{at} * stride{n}" if self.strided else at


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a gather: the type of its result, and its dims."""

    element: str
    vector: str
    lanes: int
    dims: tuple[_Dim, ...]

    def definition(self, name: str) -> str:
        """The function of that name. What is clamped is at the ends of rows, out of the way of what is as a rule."""
        parameters = ", ".join(
            [f"const {self.element} *row", *(p for n, d in enumerate(self.dims) for p in d.parameters(n))]
        )
        if any(d.clamped for d in self.dims):
            return (
                f"static __attribute__((noinline, unused)) {self.vector} {name}({parameters}) {{\n"
                f"    {self.element} lanes[{self.lanes}];\n"
                f"#pragma GCC unroll {self.lanes}\n"
                f"    for (int n = 0; n < {self.lanes}; n++) lanes[n] = row[{self._place('n')}];\n"
                f"    return LOAD({self.vector}, lanes);\n}}"
            )
        elements = ", ".join(f"row[{self._place(n)}]" for n in range(self.lanes))
        return f"INLINE {self.vector} {name}({parameters}) {{\n    return ({self.vector}){{{elements}}};\n}}"

    def _place(self, lane: int | str) -> str:
        return " + ".join(d.place(n, lane) for n, d in enumerate(self.dims))


def lane_gather(
    symbols: Symbols, r: Value, op: Gather, vector: str, vectors: dict[Value, str]
) -> tuple[Form, str] | None:
    """The form of a gather, and the arguments of its function; None of a form that has none. `vectors` are the C types
    of what places are read from."""
    dims, arguments = [], []
    for g in op.offsets:
        found = _dim(symbols, g, vectors)
        if found is None:
            return None
        dims.append(found[0])
        arguments += found[1]
    form = Form(scalar(r.type), vector, r.lanes, tuple(dims))
    origin = reduce(Index.__add__, (multiply(g.origin, g.stride) for g in op.offsets))
    return form, ", ".join([place(op.row, symbols.bare(origin.scaled(-1))), *arguments])


def place(row: str, index: str) -> str:
    """The text of an address: an index counted from a row."""
    if re.fullmatch(r"-\w+", index):
        return f"{row} - {index[1:]}"
    return row if index == "0" else f"{row} + ({index})" if " " in index else f"{row} + {index}"


def _dim(symbols: Symbols, g: LaneOffset, vectors: dict[Value, str]) -> tuple[_Dim, list[str]] | None:
    lane, bare = g.lane, symbols.bare
    if g.ring is not None or lane.uniform:
        return None
    at, step = lane.base, 0
    if lane.pattern is not None:
        at, step = at + lane.pattern[0], lane.pattern[1] - lane.pattern[0]
        if any(b - a != step for a, b in zip(lane.pattern, lane.pattern[1:], strict=False)):
            return None
    strided = g.stride != const(1)
    place = [bare(at), str(step)] if lane.vector is None else [lane.vector.name, bare(at)]
    ends = [bare(x) for x in g.within] if g.within is not None else []
    dim = _Dim(None if lane.vector is None else vectors[lane.vector], g.within is not None, strided)
    return dim, [*place, *ends, *([bare(g.stride)] if strided else [])]
