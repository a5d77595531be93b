"""Orders of lanes in values that take several registers.

Registers longer than 16 bytes are packed by parts of 16 bytes, and lanes are permuted within these by one instruction,
across them by more. So bytes that are computed in longer elements and become bytes again need not be in order
meanwhile: of each part of the bytes, the first register of longer elements has the first lanes, the second one those
that follow, and two registers that are packed by parts have all of them where they were.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Body, Define, Statement
from tilesmith.scheduler.ir.loop.traversal import regions, used, values_of, walk
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL

_LONGEST_BITS, _SHORT_BITS = 32, 16
_CROSSES = 64
"""Bytes of registers in which the low halves of two are picked by few instructions, whatever part they are in."""
_BY_LANE = (ops.Unary, ops.Binary, ops.Call, ops.FusedProduct, ops.Truncate, ops.Copy, ops.Cast)
"""Operations of which each lane of the result is made of the same lane of the operands."""


@dataclass
class _Linked:
    """Values that have one order, by name: the instructions that the order by parts saves, and whether they can have
    it."""

    names: set[str] = field(default_factory=set)
    saved: int = 0
    free: bool = True


def ordered_by_parts(statements: Body, register_bytes: int, uniform: Set[str]) -> frozenset[str]:
    """The names of the wide values of a block that are better held by parts of registers. Those of `uniform` are the
    same in all lanes, and have any order."""
    if register_bytes <= ops.PART_BYTES:
        return frozenset()
    found = _Orders(8 * register_bytes, uniform)
    for s in statements:
        found.statement(s)
    return frozenset(n for group in found.groups() if group.free and group.saved > 0 for n in group.names)


def alternating(op: ops.Shuffle, lanes: int) -> bool:
    """True of the lanes of two vectors, one of each in turns."""
    half = lanes // 2
    return op.a.lanes == half and op.picks == tuple(n // 2 + n % 2 * half for n in range(lanes))


def part_lanes(v: Value) -> int:
    """The lanes of a part of the register that `v` is in."""
    return ops.PART_BYTES // v.type.bytes


def interleaved(v: Value, half: int) -> tuple[int, ...]:
    """The lanes of one half of each part of two registers like `v`, one of each register in turns."""
    each, picks = part_lanes(v), list[int]()
    for part in range(0, v.lanes, each):
        for n in range(part + half * each // 2, part + (half + 1) * each // 2):
            picks += (n, n + v.lanes)
    return tuple(picks)


def widened(source: Value, result: Value, number: int) -> tuple[int, ...]:
    """The lanes of each part of `source` that are those of the register number `number` of longer elements."""
    each, taken = part_lanes(source), part_lanes(result)
    return tuple(p + number * taken + n for p in range(0, source.lanes, each) for n in range(taken))


class _Orders:
    def __init__(self, bits: int, uniform: Set[str]) -> None:
        self.bits = bits
        self.uniform = set(uniform)
        self.group: dict[str, _Linked] = {}
        self.pairs: set[str] = set()

    def groups(self) -> Sequence[_Linked]:
        return list({id(g): g for g in self.group.values()}.values())

    def statement(self, s: Statement) -> None:
        if isinstance(s, Define):
            self._define(s)
            return
        if self.group:
            for inner in (s, *(x for body in regions(s) for x in walk(body))):
                self._bind([name for name in used(inner) if name in self.group])

    def _define(self, s: Define) -> None:
        r, op, values = s.result, s.op, values_of(s.op)
        if isinstance(op, ops.Broadcast) and self._is_wide(r):
            self.uniform.add(r.name)
            return
        wide = [v for v in values if self._is_wide(v) and v.name not in self.uniform]
        if not wide and not self._is_wide(r):
            return
        saved = self._saved(r, op, values)
        if saved is None or (self.pairs & {v.name for v in wide} and not isinstance(op, ops.DotPairs)):
            self._bind([r.name, *(v.name for v in wide)])
            return
        names = [v.name for v in wide] + ([r.name] if self._is_wide(r) else [])
        for v in wide:
            if v.name not in self.group:  # of another block
                self._bind([v.name])
        group = self._linked(names)
        group.saved += saved

    def _linked(self, names: Sequence[str]) -> _Linked:
        group = self.group.setdefault(names[0], _Linked({names[0]}))
        for name in names[1:]:
            other = self.group.setdefault(name, _Linked({name}))
            if other is not group:
                group.names |= other.names
                group.saved += other.saved
                group.free &= other.free
                self.group.update(dict.fromkeys(other.names, group))
        return group

    def _bind(self, names: Sequence[str]) -> None:
        """Values of which each has to be in order."""
        for name in names:
            self._linked([name]).free = False

    def _is_wide(self, v: Value) -> bool:
        return v.lanes > 1 and v.lanes * v.lane_bits > self.bits

    def _registers(self, v: Value) -> int:
        return v.lanes * v.type.bits // self.bits

    def _saved(self, r: Value, op: ops.Operation, values: Sequence[Value]) -> int | None:
        """The instructions that the order by parts saves in an operation; None of those that need their operands or
        their result in order."""
        longest = max(v.type.bits for v in (r, *values))
        if longest > _LONGEST_BITS or any(v.type == BOOL for v in (r, *values)):
            return None
        match op:
            case ops.Shuffle(a=a, b=b):
                whole = all(self._registers(v) >= 1 or v.name in self.uniform for v in (a, b))
                if not self._is_wide(r) or r.type.bits != _SHORT_BITS or not alternating(op, r.lanes) or not whole:
                    return None
                self.pairs.add(r.name)
                return self._registers(r)
            case ops.DotPairs(a=a, b=b):
                paired = all(v.name in self.pairs or v.name in self.uniform or v.lanes == 1 for v in (a, b))
                return 0 if self._is_wide(r) and paired else None
            case ops.Truncate(a=a) if r.type.bits < a.type.bits:
                return self._narrowed(r, a, True)
            case ops.Cast(a=a) if r.type.bits > a.type.bits:
                return self._widened(r, a)
            case ops.Cast(a=a) if r.type.bits < a.type.bits:
                integers = a.type.is_integer and r.type.is_integer
                return self._narrowed(r, a, op.saturate) if integers else None
            case _ if isinstance(op, _BY_LANE):
                alike = all(v.lanes == 1 or (v.lanes == r.lanes and v.type.bits == r.type.bits) for v in values)
                return 0 if alike else None
            case _:
                return None

    def _widened(self, r: Value, a: Value) -> int | None:
        """Instructions that a conversion to longer elements saves: an upper half takes none of its own, but with a
        sign, elements are shifted down. None where parts cannot be widened."""
        whole = self._is_wide(a) or a.lanes * a.type.bits == self.bits
        if not whole or not a.type.is_integer:
            return None
        made, of = self._registers(r), self._registers(a)
        return made - of if a.type.kind == "uint" else -of

    def _narrowed(self, r: Value, a: Value, packs: bool) -> int | None:
        """Instructions that a conversion to shorter elements saves: it takes as many as there are registers less, each
        with a permutation where lanes have to be in order. Low bits have to be what `packs`, first. None where parts
        cannot be packed."""
        if packs and a.type.kind == "uint":
            return None
        less = self._registers(a) - max(1, self._registers(r))
        return less if packs or self.bits < 8 * _CROSSES else 2 - self._registers(a)
