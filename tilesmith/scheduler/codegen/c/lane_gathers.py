"""Gathers lane by lane: a function for each form of addresses, of which a call says where."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from tilesmith.scheduler.codegen.c.types import Symbols, scalar, vector
from tilesmith.scheduler.ir.index import Index, const, multiply
from tilesmith.scheduler.ir.loop.ops import Gather
from tilesmith.scheduler.ir.loop.values import LaneOffset, Value

PART = 4
PAIR = vector("int", 64, 2)
"""Places that are taken out of a vector together, two by two, and the type of these pairs."""
PAIRED = tuple(vector("int", 32, lanes) for lanes in (4, 8, 16))
IN_PAIRS = "defined __x86_64__ && !defined __clang__"
"""An element that GCC takes out of a vector, and extends, is three operations: of a pair of them it is two each."""


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

    def _moved(self, n: int, lane: int | str) -> str:
        return f"(int64_t)v{n}[{lane}]" if self.vector else f"{lane} * step{n}"

    @property
    def in_pairs(self) -> bool:
        """True of a vector that two places are taken out of at once."""
        return self.vector in PAIRED

    def pairs(self, n: int, lanes: int) -> list[str]:
        """The parts of the vector, as long as what GCC takes elements out of in one step, as pairs of places."""
        parts = range(0, lanes, PART)
        picks = [", ".join(map(str, range(first, first + PART))) for first in parts]
        return [
            f"    const {PAIR} v{n}_{k} = ({PAIR})__builtin_shufflevector(v{n}, v{n}, {picked});"
            for k, picked in enumerate(picks)
        ]

    def place_of_pair(self, n: int, lane: int) -> str:
        """The offset of a lane, of what `pairs` defines: the low half of a pair, and the high one, with their signs."""
        if not self.in_pairs:
            return self.place(n, lane)
        pair = f"v{n}_{lane // PART}[{lane % PART // 2}]"
        return self.place(n, lane, f"({pair} >> 32)" if lane % 2 else f"(int64_t)(int32_t){pair}")

    def place(self, n: int, lane: int | str, moved: str = "") -> str:
        """The offset of a lane; `moved`: of which that is known."""
        at = f"at{n} + {moved or self._moved(n, lane)}"
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

    @property
    def types(self) -> list[tuple[str, int, int]]:
        """The vector types (kind, bits, lanes) that the function is written with, besides those of its signature."""
        return [("int", 64, 2)] if any(d.in_pairs for d in self.dims) else []

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
        lanes = range(self.lanes)
        one_by_one = self._vector(self._place(lane) for lane in lanes)
        if any(d.in_pairs for d in self.dims):
            pairs = [line for n, d in enumerate(self.dims) if d.in_pairs for line in d.pairs(n, self.lanes)]
            two = self._vector(" + ".join(d.place_of_pair(n, m) for n, d in enumerate(self.dims)) for m in lanes)
            body = "\n".join([f"#if {IN_PAIRS}", *pairs, two, "#else", one_by_one, "#endif"])
        else:
            body = one_by_one
        return f"INLINE {self.vector} {name}({parameters}) {{\n{body}\n}}"

    def _vector(self, places: Iterable[str]) -> str:
        return f"    return ({self.vector}){{{', '.join(f'row[{at}]' for at in places)}}};"

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
