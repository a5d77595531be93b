"""Vector legalisation: values wider than a register become several that fit, since compilers split them badly, or (GCC
12) not at all.

A vector of 64 lanes that are bytes in memory and 32 bits where they are computed is one register here and four there.
What is done lane by lane is done part by part; where sizes change, parts are halved, or joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.ir.index import Index, const, maximum, minimum
from scheduler.ir.loop.program import (
    Accumulator,
    Assign,
    Define,
    Gathered,
    If,
    Lane,
    Loop,
    Operand,
    Statement,
    Store,
    Value,
)
from scheduler.ir.pipeline.types import BOOL, ScalarType

Pieces = dict[tuple[str, int], tuple[Value, ...]]
"""Values by name, as pieces of so many lanes."""


def by_registers(body: tuple[Statement, ...], register_bytes: int) -> tuple[Statement, ...]:
    """*Before*: vectors of any size. *After*: none is wider than a register."""
    return _Splitter(register_bytes).block(body)


class _Splitter:
    def __init__(self, register_bytes: int) -> None:
        self.bytes = register_bytes
        self.parts: dict[str, tuple[Value, ...]] = {}
        self.scopes: list[Pieces] = []
        self.cells: set[str] = set()
        self.out: list[Statement] = []
        self.count = 0

    def block(self, statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        outside, self.out = self.out, []
        self.scopes.append({})
        for s in statements:
            self._statement(s)
        self.scopes.pop()
        made, self.out = self.out, outside
        return tuple(made)

    def _statement(self, s: Statement) -> None:
        match s:
            case Define(op="lookup", args=(Value() as at, *ends)):
                parts = self._pieces(at, s.result.lanes // at.type.bytes, at.type.bytes)  # each as long as the bytes
                self.out.append(replace(s, args=(*parts, *ends)))
            case Define() if self._concerns(s):
                self._define(s)
            case Store() if any(map(self._is_wide, (s.value, *_vectors([g.lane for g in s.scatter])))):
                self._store(s)
            case Accumulator():
                cells = self._named(s.result) if self._is_wide(s.result) else (s.result,)
                self.cells.add(s.result.name)
                starts = self._pieces(self._fitting(s.start, s.result), cells[0].lanes, len(cells))
                self.out += [Accumulator(c, start) for c, start in zip(cells, starts, strict=True)]
            case Assign():
                cells = self._whole(s.target)
                values = self._pieces(self._fitting(s.value, s.target), cells[0].lanes, len(cells))
                self.out += [Assign(c, v) for c, v in zip(cells, values, strict=True)]
            case Loop():
                self.out.append(replace(s, body=self.block(s.body)))
            case If():
                self.out.append(replace(s, body=self.block(s.body), otherwise=self.block(s.otherwise)))
            case _:
                self.out.append(s)

    # sizes ------------------------------------------------------------

    def _fits(self, v: Value) -> int:
        """How many lanes of such a value a register has."""
        return self.bytes * 8 // _bits(v)

    def _is_wide(self, v: Value) -> bool:
        return v.lanes > 1 and v.lanes > self._fits(v)

    def _concerns(self, s: Define) -> bool:
        return self._is_wide(s.result) or any(map(self._is_wide, _vectors(s.args)))

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

    def _emit(self, result: Value, op: str, args: tuple[Operand, ...], attrs: tuple[object, ...] = ()) -> Value:
        self.out.append(Define(result, op, args, attrs))
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
                self._emit(self._fresh(v, lanes), "shuffle", (p, p), (tuple(range(start, start + lanes)),))
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
                self._emit(self._fresh(a, n), "shuffle", (a, b), (tuple(range(n)),))
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            )
        return parts

    def _settle(self, r: Value, pieces: Sequence[Value]) -> None:
        """Makes `r` of its pieces: parts of it, or shorter."""
        wanted = self._named(r) if self._is_wide(r) else (r,)
        found = self._joined(tuple(pieces), wanted[0].lanes)
        for part, value in zip(wanted, found, strict=True):
            self._emit(part, "copy", (value,))

    # definitions ------------------------------------------------------------

    def _define(self, s: Define) -> None:
        r, op = s.result, s.op
        if op == "shuffle":
            self._shuffle(s)
            return
        if op in ("cast", "mask", "truncate", "saturate") and self._narrowed(s):
            return
        if op != "mask":
            s = replace(s, args=tuple(self._fitting(a, r) if isinstance(a, Value) else a for a in s.args))
        sized = (r,) if op == "madd" else (r, *_vectors(s.args))
        lanes = min(r.lanes, *(self._fits(v) for v in sized if v.lanes > 1))
        count = r.lanes // lanes
        pieces = [self._fresh(r, lanes) for _ in range(count)]
        if lanes == self._fits(r) and self._is_wide(r):
            pieces = list(self._named(r))
        taken = 2 * lanes if op == "madd" else lanes  # of half the size
        args = [self._operand(a, taken, count) for a in s.args]
        for k, piece in enumerate(pieces):
            attrs = tuple(self._attribute(a, lanes, count, k) for a in s.attrs)
            own = tuple(a[k] for a in args)
            if op in ("load", "near"):
                own = (_shifted(own[0], k * lanes), *own[1:])
            if op == "run":  # a shorter vector fits further on
                own = (own[0], *(_shifted(x, r.lanes - lanes) for x in own[1:]))
            self._emit(piece, op, own, attrs)
        if pieces[0].name.endswith("_of"):
            self._settle(r, pieces)

    def _operand(self, a: Operand, lanes: int, count: int) -> tuple[Operand, ...]:
        if isinstance(a, Value):
            return self._pieces(a, lanes, count)
        if isinstance(a, Lane):
            return tuple(self._lane(a, lanes, count, k) for k in range(count))
        return (a,) * count

    def _lane(self, a: Lane, lanes: int, count: int, k: int) -> Lane:
        pattern = None if a.pattern is None else a.pattern[k * lanes : (k + 1) * lanes]
        vector = None if a.vector is None else self._pieces(a.vector, lanes, count)[k]
        return replace(a, pattern=pattern, vector=vector)

    def _attribute(self, a: object, lanes: int, count: int, k: int) -> object:
        """The dims of a gather, and the pattern of lanes, are cut as the lanes are."""
        if not isinstance(a, tuple) or not a:
            return a
        if isinstance(a[0], Gathered):
            return tuple(replace(g, lane=self._lane(g.lane, lanes, count, k)) for g in a)
        return a[k * lanes : (k + 1) * lanes] if len(a) == lanes * count else a

    def _fitting(self, a: Value, r: Value) -> Value:
        """A mask as one of elements as wide as those of `r`."""
        bits = _bits(r)
        if a.type != BOOL or a.lanes == 1 or a.mask_bits == bits:
            return a
        fitting = replace(self._fresh(a, a.lanes), mask_bits=bits)
        mask = Define(fitting, "mask", (a,))
        if self._concerns(mask):
            self._define(mask)
        else:
            self.out.append(mask)
        return fitting

    def _narrowed(self, s: Define) -> bool:
        """Narrowing of integers: of two registers every other element of half the size makes one."""
        r, (a, *_) = s.result, s.args
        assert isinstance(a, Value)
        if not self._is_wide(a) or _bits(r) >= _bits(a) or r.type.is_float or (a.type.is_float and s.op != "truncate"):
            return False
        if (r.type == BOOL) != (a.type == BOOL):
            return False
        parts, bits = self._whole(a), _bits(a)
        if s.op == "truncate":
            middle = [replace(self._fresh(p, p.lanes), type=ScalarType("int", bits)) for p in parts]
            parts = tuple(self._emit(m, "truncate", (p,)) for m, p in zip(middle, parts, strict=True))
        if s.op == "saturate":
            parts = tuple(self._clamped(p, r.type) for p in parts)
        while bits > _bits(r) and len(parts) > 1:
            bits //= 2
            parts = tuple(
                self._emit(_sized(self._fresh(x, 2 * x.lanes), bits), "narrow", (x, y))
                for x, y in zip(parts[::2], parts[1::2], strict=True)
            )
        wanted = self._named(r) if self._is_wide(r) else (r,)
        for part, value in zip(wanted, parts, strict=True):
            self._emit(part, "mask" if r.type == BOOL else "cast", (value,))
        return True

    def _clamped(self, p: Value, t: ScalarType) -> Value:
        if t.max < p.type.max:
            p = self._emit(self._fresh(p, p.lanes), "call:min", (p, Value(p.type, 1, "", t.max)))
        if t.min > p.type.min:
            p = self._emit(self._fresh(p, p.lanes), "call:max", (p, Value(p.type, 1, "", t.min)))
        return p

    def _shuffle(self, s: Define) -> None:
        r, (a, b), picks = s.result, s.args, s.attrs[0]
        assert isinstance(a, Value)
        assert isinstance(b, Value)
        assert isinstance(picks, tuple)
        sources = [*self._whole(a), *self._whole(b)]
        size = sources[0].lanes
        wanted = self._named(r) if self._is_wide(r) else (r,)
        for k, part in enumerate(wanted):
            chosen = [divmod(p, size) for p in picks[k * part.lanes : (k + 1) * part.lanes]]
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
                self._emit(part, "shuffle", (first, sources[source]), (tuple(where[p] for p in picks),))
                return
            gathered = [p for p in dict.fromkeys(picks) if p in where]
            if len(gathered) > size:
                break
            lanes = [where[p] for p in gathered]
            first = self._emit(
                self._fresh(first, size), "shuffle", (first, sources[source]), ((*lanes, *[0] * (size - len(lanes))),)
            )
            at = {p: j for j, p in enumerate(gathered)}
        raise AssertionError(picks)

    def _store(self, s: Store) -> None:
        v = s.value if s.value.type != BOOL else self._fitting(s.value, Value(BOOL, s.value.lanes, mask_bits=8))
        n = min(v.lanes, *(self._fits(x) for x in (v, *_vectors([g.lane for g in s.scatter]))))
        count = v.lanes // n
        for k, part in enumerate(self._pieces(v, n, count)):
            scatter = tuple(replace(g, lane=self._lane(g.lane, n, count, k)) for g in s.scatter)
            index = s.index if scatter else s.index + k * n
            moved = None if s.moved is None else _moved(s.moved, k, n, count)
            self.out.append(replace(s, index=index, value=part, scatter=scatter, moved=moved, part=k))


def _moved(m: Index, k: int, n: int, count: int) -> Index:
    """How far part k of `count` is moved where all are moved by `m`: what the others leave of it is from its lane
    m - k n on, or up to where the last of all ends if `m` is negative; all of n lanes where others leave nothing."""
    left = maximum(const(0), minimum(const(n), m - k * n))
    right = minimum(const(0), maximum(const(-n), m + (count - 1 - k) * n))
    return left + right


def _vectors(args: Sequence[Operand]) -> list[Value]:
    found = [a if isinstance(a, Value) else a.vector if isinstance(a, Lane) else None for a in args]
    return [v for v in found if v is not None]


def _bits(v: Value) -> int:
    return v.mask_bits or v.type.bits


def _sized(v: Value, bits: int) -> Value:
    if v.type == BOOL:
        return replace(v, mask_bits=bits)
    return replace(v, type=ScalarType(v.type.kind, bits))


def _shifted(at: Operand, by: int) -> Operand:
    assert isinstance(at, Index)
    return at + by


def _letter(k: int) -> str:
    return chr(ord("a") + k)
