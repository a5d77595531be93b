"""Strided loads of short integers that are converted to longer ones: by shifts of the longer ones that they are parts
of, instead of permutations of short elements, which take several instructions each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.ops import Cast, Load, Shuffle, WidenPart
from tilesmith.scheduler.ir.loop.program import Body, Define, Invoke, Statement, Stores
from tilesmith.scheduler.ir.loop.traversal import NESTING, block_of
from tilesmith.scheduler.ir.loop.values import Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, INT32, ScalarType
from tilesmith.scheduler.loop_passes.scalar_replacement import Rows, in_blocks

MOST_LOADS = 4
"""Vectors that the elements of one are picked from, at most: each time as many are joined by a permutation less."""
Place: TypeAlias = tuple[Pointer, Index, ScalarType, int]
"""A row, an index without its constant, the type of elements, and a number that changes where they may be written."""
Elements: TypeAlias = Sequence[int]
"""Distances from such a place to each lane of a vector."""
Window: TypeAlias = tuple[list[Define], dict[str, list[Define]]]
"""Loads of whole groups of elements with permutations of these, and what each conversion is made by."""


@dataclass(frozen=True)
class _Strided:
    """A conversion to integers of `bits` of elements of a row, `first` and others `stride` apart."""

    define: Define
    first: int
    stride: int
    bits: int

    @property
    def group(self) -> int:
        """The elements that are as long together as one that they are converted to."""
        assert isinstance(self.define.op, Cast)
        return self.bits // self.define.op.a.type.bits

    @property
    def count(self) -> int:
        """The elements from the first one up to where the next vector would begin."""
        return self.stride * self.define.result.lanes


def widened(body: Body) -> Body:
    """*Before*: `int32` of the elements `4 * n + 1` of a row of `int16`. *After*: of two vectors that cover `4 * n` to
    `4 * n + 3` the even pairs are picked, and the upper element of each pair is shifted into its place; those at
    `4 * n` take the same pairs. *Legal when* the block loads all elements of the groups, and no store is between."""
    return in_blocks(body, {}, _block)


def _block(statements: Body, rows: Rows) -> Body:
    if not any(isinstance(s, Define) and isinstance(s.op, Shuffle) for s in statements):
        return statements
    loaded: dict[str, tuple[Place, Elements]] = {}
    begins: dict[Place, str] = {}
    conversions: dict[tuple[Place, int, int, int], list[_Strided]] = defaultdict(list)
    written: dict[Pointer, int] = defaultdict(int)
    nested = 0
    for s in statements:
        if isinstance(s, Stores):
            written[s.buffer.pointer] += 1
        nested += isinstance(s, (*NESTING, Invoke))
        match s:
            case Define(op=Load(row=row, at=at), result=v) if v.lanes > 1 and v.type.is_integer and row in rows:
                place = (row, at - at.const, v.type, nested + written[rows[row].pointer])
                loaded[v.name] = place, range(at.const, at.const + v.lanes)
                begins.setdefault(place, v.name)
            case Define(op=Shuffle(a=a, b=b, picks=picks), result=v) if a.name in loaded and b.name in loaded:
                (place, low), (other, high) = loaded[a.name], loaded[b.name]
                if place == other:
                    loaded[v.name] = place, [(*low, *high)[p] for p in picks]
            case Define(op=Cast(a=a)) if a.name in loaded:
                place, elements = loaded[a.name]
                if (found := _strided(s, elements)) is not None:
                    conversions[place, found.stride, found.bits, s.result.lanes].append(found)
            case _:
                pass
    if not conversions:
        return statements
    ahead: dict[str, list[Define]] = defaultdict(list)
    instead: dict[str, list[Define]] = {}
    for (place, *_), alike in conversions.items():
        reached = {e for own, elements in loaded.values() if own == place for e in elements}
        for window, conversion in _windows(place, alike, reached):
            ahead[begins[place]] += window
            instead |= conversion
    made: list[Statement] = []
    for s in statements:
        name = s.result.name if isinstance(s, Define) else ""
        made += [*ahead.get(name, ()), *instead.get(name, [s])]
    return block_of(made, statements)


def _strided(s: Define, elements: Elements) -> _Strided | None:
    """A conversion to longer numbers of elements that are some way apart."""
    assert isinstance(s.op, Cast)
    t, source = s.result.type, s.op.a.type
    bits = t.bits if t.is_integer else INT32.bits
    stride, group = elements[1] - elements[0], bits // source.bits
    apart = all(b - a == stride for a, b in pairwise(elements))
    if s.op.saturate or t == BOOL or group < 2 or not t.bits >= bits <= INT32.bits or not apart or stride % group:
        return None
    vectors = stride // group
    return _Strided(s, elements[0], stride, bits) if 0 < vectors <= MOST_LOADS and vectors.bit_count() == 1 else None


def _windows(place: Place, alike: Iterable[_Strided], reached: Set[int]) -> Iterator[Window]:
    """Windows of conversions of one stride. Each begins at the first of the elements, or ends where those do that are
    read."""
    left = sorted(alike, key=lambda c: c.first)
    while left:
        first, stride, count = left[0].first, left[0].stride, left[0].count
        low, high = _reach(first, reached)
        start = min(first, high + 1 - count)
        if start < low or first - start >= stride:
            left = left[1:]
            continue
        those = [c for c in left if start <= c.first < start + stride]
        yield _window(place, start, those)
        left = [c for c in left if c.first >= start + stride]


def _reach(first: int, reached: Set[int]) -> tuple[int, int]:
    """The ends of the elements that are read around one of them, without a gap."""
    low = high = first
    while low - 1 in reached:
        low -= 1
    while high + 1 in reached:
        high += 1
    return low, high


def _window(place: Place, start: int, those: Sequence[_Strided]) -> Window:
    row, at, t, _ = place
    group, count = those[0].group, those[0].stride // those[0].group
    lanes, name = those[0].define.result.lanes * group, those[0].define.result.name
    made = [Define(Value(t, lanes, f"{name}_whole{n}"), Load(row, at + (start + n * lanes))) for n in range(count)]
    known = {(0, 0, n): d.result for n, d in enumerate(made)}

    def picked(level: int, which: int, n: int) -> Value:
        """Groups number `which` of the vectors from `n << level` on, `1 << level` of them, side by side in a vector of
        as many."""
        if (level, which, n) not in known:
            half = level - 1
            a, b = (picked(half, which & (1 << half) - 1, 2 * n + k) for k in (0, 1))
            first = which >> half
            picks = tuple(g * group + k for g in range(first, 2 * lanes // group, 2) for k in range(group))
            result = Value(t, lanes, f"{name}_groups{level}_{which}_{n}")
            made.append(Define(result, Shuffle(a, b, picks)))
            known[level, which, n] = result
        return known[level, which, n]

    conversions = {}
    for c in those:
        which, part = divmod(c.first - start, group)
        conversions[c.define.result.name] = _by_part(c, picked(count.bit_length() - 1, which, 0), part)
    return made, conversions


def _by_part(c: _Strided, groups: Value, part: int) -> list[Define]:
    result = c.define.result
    if result.type.is_integer and result.type.bits == c.bits:
        return [Define(result, WidenPart(groups, part))]
    whole = Value(INT32, result.lanes, f"{result.name}_integer")
    return [Define(whole, WidenPart(groups, part)), Define(result, Cast(whole))]
