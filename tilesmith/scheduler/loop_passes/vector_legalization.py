"""Vector legalisation: values wider than a register become several that fit, since compilers split them badly, or (GCC
12) not at all.

A vector of 64 lanes that are bytes in memory and 32 bits where they are computed is one register here and four there.
What is done lane by lane is done part by part; where sizes change, parts are halved, or joined, unless lanes may wait
in the order that instructions for parts of registers leave them in (`lane_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tilesmith.scheduler.ir.index import Index, const, maximum, minimum
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Assign,
    Body,
    Define,
    Scatter,
    Statement,
    Store,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.traversal import values_of, with_operands, with_regions
from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType
from tilesmith.scheduler.loop_passes import lane_order

_PACKED_BITS = 32
"""Integers with a sign of up to so many bits are saturated as two vectors become one."""

Pieces = dict[tuple[str, int], tuple[Value, ...]]
"""Values by name, as pieces of so many lanes."""


def by_registers(body: Body, register_bytes: int, most_lanes: int | None = None) -> Body:
    """*Before*: vectors of any size. *After*: none is wider than a register, nor has more lanes than the language's
    vectors, where these have a limit."""
    return _Splitter(register_bytes, most_lanes).block(body)


class _Splitter:
    def __init__(self, register_bytes: int, most_lanes: int | None) -> None:
        self.bits = 8 * register_bytes
        self.most_lanes = most_lanes
        self.parts: dict[str, tuple[Value, ...]] = {}
        self.scopes: list[Pieces] = []
        self.cells: set[str] = set()
        self.uniform: set[str] = set()
        self.by_parts: frozenset[str] = frozenset()
        self.permuted: dict[str, tuple[Value, tuple[int, ...]]] = {}
        self.loaded: set[str] = set()
        self.out: list[Statement] = []
        self.count = 0

    def block(self, statements: Body) -> Body:
        outside, self.out, around = self.out, [], self.by_parts
        self.scopes.append({})
        if self.most_lanes is None:
            self.by_parts |= lane_order.ordered_by_parts(statements, self.bits // 8, self.uniform)
        for s in statements:
            self._statement(s)
        self.scopes.pop()
        made, self.out, self.by_parts = self.out, outside, around
        return tuple(made)

    def _statement(self, s: Statement) -> None:
        match s:
            case Define(op=ops.Lookup() as lookup):
                (at,) = lookup.at
                parts = self._pieces(at, s.result.lanes // at.type.bytes, at.type.bytes)  # each as long as the bytes
                self.out.append(Define(s.result, replace(lookup, at=parts)))
            case Define():
                if isinstance(s.op, ops.Broadcast):
                    self.uniform.add(s.result.name)
                if self._concerns(s):
                    self._define(s)
                else:
                    self._note(s)
                    self.out.append(s)
            case Store() | StreamLine() if self._is_wide(s.value):
                self._store(s)
            case Scatter() if any(map(self._is_wide, (s.value, *_lane_vectors(s)))):
                self._scatter(s)
            case Accumulator():
                cells = self._named(s.result) if self._is_wide(s.result) else (s.result,)
                self.cells.add(s.result.name)
                starts = self._pieces(self._fitting(s.start, s.result), cells[0].lanes, len(cells))
                self.out += [Accumulator(c, start) for c, start in zip(cells, starts, strict=True)]
            case Assign():
                cells = self._whole(s.target)
                values = self._pieces(self._fitting(s.value, s.target), cells[0].lanes, len(cells))
                self.out += [Assign(c, v) for c, v in zip(cells, values, strict=True)]
            case _:
                self.out.append(with_regions(s, self.block))

    # sizes ------------------------------------------------------------

    def _fits(self, v: Value) -> int:
        """Lanes of a register for elements of such a value."""
        return min(self.bits // v.lane_bits, self.most_lanes or self.bits)

    def _is_wide(self, v: Value) -> bool:
        return v.lanes > 1 and v.lanes > self._fits(v)

    def _concerns(self, s: Define) -> bool:
        return self._is_wide(s.result) or any(map(self._is_wide, values_of(s.op)))

    def _named(self, v: Value) -> tuple[Value, ...]:
        """The parts that `v` is from now on."""
        n = self._fits(v)
        made = tuple(replace(v, name=f"{v.name}_{_letter(k)}", lanes=n) for k in range(v.lanes // n))
        self.parts[v.name] = made
        return made

    def _fresh(self, like: Value, lanes: int) -> Value:
        """A value of that type for what comes between."""
        self.count += 1
        return replace(like, name=f"part{self.count}_of", lanes=lanes)

    def _emit(self, result: Value, op: ops.Operation) -> Value:
        self.out.append(Define(result, op))
        return result

    # pieces ------------------------------------------------------------

    def _whole(self, v: Value) -> tuple[Value, ...]:
        return self.parts.get(v.name, (v,)) if v.lanes > 1 else (v,)

    def _pieces(self, v: Value, lanes: int, count: int) -> tuple[Value, ...]:
        """`v` in `count` pieces of `lanes`; a scalar is each of them."""
        if v.lanes == 1:
            return (v,) * count
        parts = self._whole(v)
        if parts[0].lanes == lanes:
            return parts
        for scope in reversed(self.scopes):
            if (v.name, lanes) in scope:
                return scope[v.name, lanes]
        if parts[0].lanes > lanes:
            found = tuple(
                self._emit(self._fresh(v, lanes), ops.Shuffle(p, p, tuple(range(start, start + lanes))))
                for p in parts
                for start in range(0, p.lanes, lanes)
            )
        else:
            found = self._joined(parts, lanes)
        if v.name not in self.cells:
            self.scopes[-1][v.name, lanes] = found
        return found

    def _joined(self, parts: tuple[Value, ...], lanes: int) -> tuple[Value, ...]:
        """Short pieces as longer ones."""
        while parts[0].lanes < lanes:
            n = 2 * parts[0].lanes
            parts = tuple(
                self._emit(self._fresh(a, n), ops.Shuffle(a, b, tuple(range(n))))
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            )
        return parts

    def _settle(self, r: Value, pieces: Sequence[Value]) -> None:
        """Makes `r` of its pieces: parts of it, or shorter."""
        wanted = self._named(r) if self._is_wide(r) else (r,)
        found = self._joined(tuple(pieces), wanted[0].lanes)
        for part, value in zip(wanted, found, strict=True):
            self._emit(part, ops.Copy(value))

    # definitions ------------------------------------------------------------

    def _define(self, s: Define) -> None:
        r, op = s.result, s.op
        if r.name in self.by_parts and self._made_by_parts(r, op):
            return
        if isinstance(op, ops.Shuffle):
            self._shuffle(r, op)
            return
        if isinstance(op, ops.Cast | ops.ResizeMask | ops.Truncate) and self._narrowed(r, op):
            return
        if not isinstance(op, ops.ResizeMask):
            op = with_operands(op, lambda a: self._fitting(a, r), lambda lane: lane)
        together = 2 if isinstance(op, ops.DotPairs) else 1
        together = op.a.lanes // r.lanes if isinstance(op, ops.SumNeighbours) else together
        fitting = [self._fits(v) // together for v in values_of(op) if v.lanes > 1]
        lanes = min(r.lanes, self._fits(r), *fitting)
        count = r.lanes // lanes
        pieces = [self._fresh(r, lanes) for _ in range(count)]
        if lanes == self._fits(r) and self._is_wide(r):
            pieces = list(self._named(r))
        taken = together * lanes  # of so much smaller ones
        cut = {v: self._pieces(v, taken, count) for v in values_of(op)}
        made: dict[ops.Operation, Value] = {}  # of what is the same in all of them there is one
        for k, piece in enumerate(pieces):
            own = {v: parts[k] for v, parts in cut.items()}
            part = with_operands(op, own.__getitem__, partial(self._lane, lanes=lanes, count=count, k=k))
            here = _moved_on(part, k, lanes, r.lanes)
            if here not in made:
                made[here] = self._emit(piece, here)
            pieces[k] = made[here]
        if r.name in self.parts:
            self.parts[r.name] = tuple(pieces)
        if pieces[0].name.endswith("_of"):
            self._settle(r, pieces)

    def _lane(self, a: Lane, lanes: int, count: int, k: int) -> Lane:
        pattern = None if a.pattern is None else a.pattern[k * lanes : (k + 1) * lanes]
        vector = None if a.vector is None else self._pieces(a.vector, lanes, count)[k]
        return replace(a, pattern=pattern, vector=vector)

    def _fitting(self, a: Value, r: Value) -> Value:
        """A mask as one of elements as wide as those of `r`."""
        bits = r.lane_bits
        if a.type != BOOL or a.lanes == 1 or a.mask_bits == bits:
            return a
        fitting = replace(self._fresh(a, a.lanes), mask_bits=bits)
        mask = Define(fitting, ops.ResizeMask(a))
        if self._concerns(mask):
            self._define(mask)
        else:
            self.out.append(mask)
        return fitting

    def _narrowed(self, r: Value, op: ops.Cast | ops.ResizeMask | ops.Truncate) -> bool:
        """Narrowing of integers: of two registers every other element of half the size makes one."""
        a, truncates = op.a, isinstance(op, ops.Truncate)
        if not self._is_wide(a) or r.lane_bits >= a.lane_bits or r.type.is_float or (a.type.is_float and not truncates):
            return False
        if (r.type == BOOL) != (a.type == BOOL):
            return False
        parts, bits, by_parts = self._whole(a), a.lane_bits, a.name in self.by_parts
        if truncates:
            middle = [replace(self._fresh(p, p.lanes), type=ScalarType("int", bits)) for p in parts]
            parts = tuple(self._emit(m, ops.Truncate(p)) for m, p in zip(middle, parts, strict=True))
        saturates = isinstance(op, ops.Cast) and op.saturate
        packs = (truncates or (saturates and a.type.kind == "int")) and bits <= _PACKED_BITS  # what fits stays
        if saturates and not packs:
            parts = tuple(self._clamped(p, r.type) for p in parts)
        fits, end = packs, r.type
        if by_parts and not packs:  # low bits are what saturates to themselves without a sign
            parts, fits, end = self._low(parts, r.type.bits), True, ScalarType("uint", r.type.bits)
        while bits > r.lane_bits and len(parts) > 1 and self._fits(_sized(parts[0], bits // 2)) > parts[0].lanes:
            bits //= 2
            t = end if fits and bits == r.lane_bits else parts[0].type
            parts = tuple(
                self._emit(_sized(replace(self._fresh(x, 2 * x.lanes), type=t), bits), ops.Narrow(x, y, fits, by_parts))
                for x, y in zip(parts[::2], parts[1::2], strict=True)
            )
        wanted = self._named(r) if self._is_wide(r) else (r,)
        for part, value in zip(wanted, parts, strict=True):
            self._emit(part, ops.ResizeMask(value) if r.type == BOOL else ops.Cast(value, packs))
        return True

    def _low(self, parts: Sequence[Value], bits: int) -> tuple[Value, ...]:
        """The low bits of integers, as integers with a sign."""
        made = []
        for p in parts:
            signed = replace(p, type=ScalarType("int", p.type.bits))
            if signed != p:
                signed = self._emit(self._fresh(signed, p.lanes), ops.Cast(p))
            mask = ops.Binary("&", signed, Value(signed.type, 1, "", (1 << bits) - 1))
            made.append(self._emit(self._fresh(signed, p.lanes), mask))
        return tuple(made)

    def _clamped(self, p: Value, t: ScalarType) -> Value:
        if t.max < p.type.max:
            p = self._emit(self._fresh(p, p.lanes), ops.Call("min", (p, Value(p.type, 1, "", t.max))))
        if t.min > p.type.min:
            p = self._emit(self._fresh(p, p.lanes), ops.Call("max", (p, Value(p.type, 1, "", t.min))))
        return p

    # orders by parts of registers ------------------------------------------------------------

    def _note(self, s: Define) -> None:
        """Remembers a permutation within parts of a register: what is widened of it is picked of what it permutes. And
        a load: GCC would load again for each register that is widened of it."""
        r, op = s.result, s.op
        if isinstance(op, ops.Load):
            self.loaded.add(r.name)
        if isinstance(op, ops.Shuffle) and op.a == op.b and r.type != BOOL and r.lanes == op.a.lanes > 1:
            each = lane_order.part_lanes(r)
            if all(p // each == n // each for n, p in enumerate(op.picks)):
                self.permuted[r.name] = op.a, op.picks

    def _made_by_parts(self, r: Value, op: ops.Operation) -> bool:
        """Makes `r`, where an operation of it in parts of registers is another one than in order."""
        match op:
            case ops.Shuffle(a=a, b=b):
                parts = self._named(r)
                sources = zip(*(self._pieces(v, parts[0].lanes, len(parts) // 2) for v in (a, b)), strict=True)
                both = [(x, y, half) for x, y in sources for half in (0, 1)]
                for part, (x, y, half) in zip(parts, both, strict=True):
                    self._emit(part, ops.Shuffle(x, y, lane_order.interleaved(part, half)))
            case ops.Cast(a=a) if a.type.bits < r.type.bits:
                if a.name in self.loaded:
                    a = self._emit(self._fresh(a, a.lanes), ops.Copy(a, held=True))
                parts, sources_ = self._named(r), self._whole(a)
                each = len(parts) // len(sources_)
                for n, part in enumerate(parts):
                    of, picks = sources_[n // each], lane_order.widened(sources_[n // each], part, n % each)
                    if of.name in self.permuted:
                        of, before = self.permuted[of.name]
                        picks = tuple(before[p] for p in picks)
                    if r.type.is_float:
                        whole = replace(self._fresh(part, part.lanes), type=ScalarType("int", r.type.bits))
                        self._emit(part, ops.Cast(self._emit(whole, ops.WidenLanes(of, picks))))
                    else:
                        self._emit(part, ops.WidenLanes(of, picks))
            case _:
                return False
        return True

    def _shuffle(self, r: Value, op: ops.Shuffle) -> None:
        sources = [*self._whole(op.a), *self._whole(op.b)]
        size = sources[0].lanes
        wanted = self._named(r) if self._is_wide(r) else (r,)
        for k, part in enumerate(wanted):
            chosen = [divmod(p, size) for p in op.picks[k * part.lanes : (k + 1) * part.lanes]]
            self._picked(part, sources, chosen)

    def _picked(self, part: Value, sources: Sequence[Value], picks: Sequence[tuple[int, int]]) -> None:
        """The lanes `picks`, (source, lane): of more than two sources by one shuffle for each further one."""
        used = list(dict.fromkeys(source for source, _ in picks))
        first, size = sources[used[0]], sources[0].lanes
        at = {p: p[1] for p in picks if p[0] == used[0]}  # where what is wanted lies in `first`
        for n, source in enumerate(used[1:] or used[:1]):
            final = n == max(len(used) - 2, 0)
            own = [p for p in dict.fromkeys(picks) if p[0] == source]
            where = {**at, **({} if source == used[0] else {p: size + p[1] for p in own})}
            if final:
                self._emit(part, ops.Shuffle(first, sources[source], tuple(where[p] for p in picks)))
                return
            gathered = [p for p in dict.fromkeys(picks) if p in where]
            if len(gathered) > size:
                break
            lanes = [where[p] for p in gathered]
            padded = (*lanes, *[0] * (size - len(lanes)))
            first = self._emit(self._fresh(first, size), ops.Shuffle(first, sources[source], padded))
            at = {p: j for j, p in enumerate(gathered)}
        raise AssertionError(picks)

    def _store(self, s: Store | StreamLine) -> None:
        v = self._of_bytes(s.value)
        n = min(v.lanes, self._fits(v))
        count = v.lanes // n
        for k, part in enumerate(self._pieces(v, n, count)):
            stored = replace(s, index=s.index + k * n, value=part)
            if isinstance(stored, StreamLine):
                stored = replace(stored, moved=_moved(stored.moved, k, n, count), part=k)
            self.out.append(stored)

    def _scatter(self, s: Scatter) -> None:
        v = self._of_bytes(s.value)
        n = min(v.lanes, *(self._fits(x) for x in (v, *_lane_vectors(s))))
        count = v.lanes // n
        for k, part in enumerate(self._pieces(v, n, count)):
            offsets = tuple(replace(g, lane=self._lane(g.lane, n, count, k)) for g in s.offsets)
            self.out.append(replace(s, value=part, offsets=offsets))

    def _of_bytes(self, v: Value) -> Value:
        """A mask as it is stored."""
        return self._fitting(v, Value(BOOL, v.lanes, mask_bits=8)) if v.type == BOOL else v


def _moved_on(op: ops.Operation, k: int, lanes: int, whole: int) -> ops.Operation:
    """Part k, of `lanes`, of an operation of `whole` ones whose operands are of that part: where it begins in memory,
    and its own lanes of a pattern."""
    match op:
        case ops.Load() | ops.ClampedLoad():
            return replace(op, at=op.at + k * lanes)
        case ops.MonotoneGather() | ops.WindowGather():  # a shorter vector fits further on
            return replace(op, enough=op.enough + (whole - lanes), last=op.last + (whole - lanes))
        case ops.EdgeGather():
            return replace(op, first=op.first + k * lanes)
        case ops.Lanes():
            return replace(op, pattern=op.pattern[k * lanes : (k + 1) * lanes])
        case _:
            return op


def _moved(m: Index, k: int, n: int, count: int) -> Index:
    """The distance by which part k of `count` is moved where all are moved by `m`: the others leave of it what is from
    its lane m - k n on, or up to where the last of all ends if `m` is negative; all of n lanes where others leave
    nothing."""
    left = maximum(const(0), minimum(const(n), m - k * n))
    right = minimum(const(0), maximum(const(-n), m + (count - 1 - k) * n))
    return left + right


def _lane_vectors(s: Scatter) -> list[Value]:
    return [g.lane.vector for g in s.offsets if g.lane.vector is not None]


def _sized(v: Value, bits: int) -> Value:
    if v.type == BOOL:
        return replace(v, mask_bits=bits)
    return replace(v, type=ScalarType(v.type.kind, bits))


def _letter(k: int) -> str:
    return chr(ord("a") + k)
