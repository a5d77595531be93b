"""Gathers lane by lane: a function for each form of addresses, of which a call says where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from tilesmith.scheduler.codegen.c.types import Symbols, scalar, vector
from tilesmith.scheduler.ir.index import Index, const, multiply
from tilesmith.scheduler.ir.loop.ops import Gather, GatherPairs
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

    def place_of_pair(self, n: int, lane: int) -> str:
        """The offset of a lane, of what `_pairs` defines."""
        return self.place(n, lane, _of_pair(f"v{n}", lane) if self.in_pairs else "")

    def place(self, n: int, lane: int | str, moved: str = "") -> str:
        """The offset of a lane; `moved`: of which that is known."""
        at = f"at{n} + {moved or self._moved(n, lane)}"
        if self.clamped:
            at = f"ts_max(ts_min({at}, last{n}), first{n})"
        elif self.strided:
            at = f"({at})"
        return f"{at} * stride{n}" if self.strided else at


def _pairs(name: str, lanes: int) -> list[str]:
    """The parts of a vector, as long as what GCC takes elements out of in one step, as pairs of places."""
    picks = [", ".join(map(str, range(first, first + PART))) for first in range(0, lanes, PART)]
    return [
        f"    const {PAIR} {name}_{k} = ({PAIR})__builtin_shufflevector({name}, {name}, {picked});"
        for k, picked in enumerate(picks)
    ]


def _of_pair(name: str, lane: int) -> str:
    """A lane, of what `_pairs` defines: the low half of a pair, and the high one, with their signs."""
    pair = f"{name}_{lane // PART}[{lane % PART // 2}]"
    return f"({pair} >> 32)" if lane % 2 else f"(int64_t)(int32_t){pair}"


class Pairs(NamedTuple):
    """Pairs of neighbours: the function that loads one, and the half of the lanes that they are of."""

    load: str
    half: int


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a gather: the type of its result, and its dims. If it is `narrow` vectors of 32 bits say the places
    of all dims, and the sum of their offsets has as many; of these there are `pairs` of neighbours, too, of one half of
    the lanes."""

    element: str
    vector: str
    lanes: int
    dims: tuple[_Dim, ...]
    narrow: bool = False
    pairs: Pairs | None = None

    @property
    def types(self) -> list[tuple[str, int, int]]:
        """The vector types (kind, bits, lanes) that the function is written with, besides those of its signature."""
        sums = [("int", 32, self.lanes), ("uint", 32, self.lanes)] if self.narrow else []
        return [*sums, *([("int", 64, 2)] if any(d.in_pairs for d in self.dims) else [])]

    def definition(self, name: str) -> str:
        """The function of that name. What is clamped is at the ends of rows, out of the way of what is as a rule."""
        if self.narrow:
            return self._narrow(name)
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
            pairs = [line for n, d in enumerate(self.dims) if d.in_pairs for line in _pairs(f"v{n}", self.lanes)]
            two = self._vector(" + ".join(d.place_of_pair(n, m) for n, d in enumerate(self.dims)) for m in lanes)
            body = "\n".join([f"#if {IN_PAIRS}", *pairs, two, "#else", one_by_one, "#endif"])
        else:
            body = one_by_one
        return f"INLINE {self.vector} {name}({parameters}) {{\n{body}\n}}"

    def _narrow(self, name: str) -> str:
        """The offsets are computed as one vector, of which each lane is taken out once: products of lanes would be
        computed one by one. What is the same in all lanes is `at`, added to the rows first: places beside each other
        share that."""
        signed, unsigned = signed_places(self.lanes), vector("uint", 32, self.lanes)
        strides = [f", int64_t stride{n}" if d.strided else "" for n, d in enumerate(self.dims)]
        parameters = "".join(f", {signed} v{n}{stride}" for n, stride in enumerate(strides))
        order = sorted(range(len(self.dims)), key=lambda n: (not self.dims[n].strided, -n))
        first, *more = [f"({unsigned})v{n}" + f" * (uint32_t)stride{n}" * self.dims[n].strided for n in order]
        lines = [f"    const {signed} v = ({signed})({' + '.join((first, '(uint32_t)at', *more))});"]
        one_by_one = self._loads([f"v[{lane}]" for lane in range(self.lanes)])
        if signed in PAIRED:
            two = self._loads([_of_pair("v", lane) for lane in range(self.lanes)])
            used = [line for n, line in enumerate(_pairs("v", self.lanes)) if f"v_{n}[" in two]
            lines += [f"#if {IN_PAIRS}", *used, two, "#else", one_by_one, "#endif"]
        else:
            lines.append(one_by_one)
        body = "\n".join(lines)
        return f"INLINE {self.vector} {name}(const {self.element} *row{parameters}, int64_t at) {{\n{body}\n}}"

    def _loads(self, places: Sequence[str]) -> str:
        """The elements at these places, or pairs of them."""
        if self.pairs is None:
            return self._vector(places)
        count = self.lanes // 2
        half = places[self.pairs.half * count :][:count]
        pairs = ", ".join(f"{self.pairs.load}(row + {at})" for at in half)
        return f"    return ({self.vector})({vector('uint', 64, count)}){{{pairs}}};"

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


def narrow_gather(
    symbols: Symbols, r: Value, op: Gather | GatherPairs, vector: str, places: Sequence[str], pairs: Pairs | None = None
) -> tuple[Form, str]:
    """The form of a gather by offsets that have 32 bits in all, and the arguments of its function. `places` are those
    of each dim, vectors of 32 bits with a sign."""
    strided = [g.stride != const(1) for g in op.offsets]
    strides = [[symbols.bare(g.stride)] * moves for g, moves in zip(op.offsets, strided, strict=True)]
    dims = tuple(_Dim(signed_places(r.lanes), False, moves) for moves in strided)
    common = reduce(Index.__add__, (multiply(g.lane.base - g.origin, g.stride) for g in op.offsets))
    arguments = [x for at, stride in zip(places, strides, strict=True) for x in (at, *stride)]
    form = Form(scalar(r.type), vector, r.lanes, dims, narrow=True, pairs=pairs)
    return form, ", ".join([op.row, *arguments, symbols.bare(common)])


def signed_places(lanes: int) -> str:
    """The C type of a vector of places that have 32 bits with a sign."""
    return vector("int", 32, lanes)


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
