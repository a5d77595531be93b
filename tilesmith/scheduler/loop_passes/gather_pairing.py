"""Neighbours that vectors gather, as samples between pixels do, and channels of a pixel: pairs of them, and fours, are
loaded at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from tilesmith.scheduler.ir.index import Index, const
from tilesmith.scheduler.ir.loop.ops import (
    PAIRED_BITS,
    PAIRED_LANES,
    Gather,
    GatherFours,
    GatherPairs,
    Shuffle,
    told_by_vectors,
)
from tilesmith.scheduler.ir.loop.program import (
    Body,
    Comment,
    Define,
    Let,
    RowPointer,
    Scatter,
    Statement,
    Store,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.traversal import with_blocks
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL

FOUR_LANES = 16
"""Lanes of the vectors that fours are gathered for: four loads of four make one in the C. The addresses of shorter ones
cost as much as they save."""

Rows = dict[Pointer, tuple[Buffer, Index]]
_T = TypeVar("_T")


_Key = tuple[Pointer, Index, object]
"""A key of gathers: those with the same key read at a fixed offset from the same places."""


def paired(body: Body) -> Body:
    """*Before*: gathers, lane by lane. *After*: where one gathers the right neighbours of what another in the block has
    gathered, with no store there in between, both are the even and the odd lanes of two vectors of pairs. Where two
    more follow these, all four are picked from vectors of four neighbours each."""
    return _block(body, {})


@dataclass(slots=True)
class _Found:
    """Gathers by the number of their statement: `first` are those of the leftmost neighbours with those of all, from
    left to right, and `others` the others."""

    first: dict[int, tuple[int, ...]]
    others: set[int]

    def join(self, *found: int) -> None:
        """Takes gathers as one."""
        self.first[found[0]] = found
        self.others.update(found[1:])


def _block(statements: Body, rows: Rows) -> Body:
    left: dict[_Key, int] = {}
    pairs: dict[_Key, tuple[int, int]] = {}
    found = _Found({}, set())
    for n, s in enumerate(statements):
        match s:
            case RowPointer():
                rows[s.result] = (s.buffer, s.offset)
                rows.setdefault(s.buffer.pointer, (s.buffer, const(0)))  # the first row has no pointer of its own
            case Define(result=r, op=Gather() as gather) if _may_pair(r) and gather.row in rows:
                buffer, offset = rows[gather.row]
                kind = (gather.offsets, gather.narrow, r.type, r.lanes)
                before = left.pop((buffer.pointer, offset - 1, kind), None)
                if before is None:
                    left[buffer.pointer, offset, kind] = n
                    continue
                two = pairs.get((buffer.pointer, offset - 3, kind))
                if two is not None and two[0] < before and _may_be_four(r, gather):
                    del found.first[two[0]]
                    found.join(*two, before, n)
                else:
                    pairs[buffer.pointer, offset - 1, kind] = (before, n)
                    found.join(before, n)
            case Define() | Let() | Comment():
                pass
            case Store() | Scatter() | StreamAligned() | StreamLine():
                left, pairs = _unchanged(left, s.buffer), _unchanged(pairs, s.buffer)
            case _:
                left, pairs = {}, {}
    return with_blocks(_rewritten(statements, found), lambda body: _block(body, rows))


def _unchanged(found: dict[_Key, _T], stored: Buffer) -> dict[_Key, _T]:
    """Entries for memory that a store to `stored` does not change: buffers share no memory."""
    return {key: at for key, at in found.items() if key[0] != stored.pointer}


def _rewritten(statements: Body, found: _Found) -> Body:
    if not found.first:
        return statements
    out: list[Statement] = []
    picked: dict[int, Define] = {}
    for n, s in enumerate(statements):
        if n in found.first:
            assert isinstance(s, Define)
            assert isinstance(s.op, Gather)
            neighbours = found.first[n]
            made, picks = (_halves if len(neighbours) == 2 else _fourths)(s.result, s.op)
            out += made
            for k, pick in zip(neighbours, picks, strict=True):
                picked[k] = Define(_result(statements[k]), pick)
        out.append(picked.get(n, s))
    return tuple(out)


def _result(s: Statement) -> Value:
    assert isinstance(s, Define)
    return s.result


def _may_pair(r: Value) -> bool:
    return r.type != BOOL and r.type.bits == PAIRED_BITS and r.lanes >= PAIRED_LANES


def _may_be_four(r: Value, gather: Gather) -> bool:
    return r.lanes == FOUR_LANES and len(gather.offsets) <= 2 and told_by_vectors(gather.offsets, FOUR_LANES)


def _halves(r: Value, gather: Gather) -> tuple[list[Define], list[Shuffle]]:
    """Vectors of pairs, each of half of the lanes of `r`: of these the even lanes are `r`, the odd ones the next."""
    pairs, more = (replace(r, name=f"{r.name}_{half}") for half in ("pairs", "more"))
    made = [Define(h, GatherPairs(gather.row, gather.offsets, n, gather.narrow)) for n, h in enumerate((pairs, more))]
    return made, [Shuffle(pairs, more, tuple(range(first, 2 * r.lanes, 2))) for first in (0, 1)]


def _fourths(r: Value, gather: Gather) -> tuple[list[Define], list[Shuffle]]:
    """Vectors of four neighbours, each of every fourth lane of `r`, turned into vectors of one by twos: lanes stay in
    their quarter of a vector, where shuffles are cheapest."""
    lanes = r.lanes

    def named(end: str) -> Value:
        return replace(r, name=f"{r.name}_{end}")

    def by_four(*picks: int) -> tuple[int, ...]:
        return tuple(start + p % 4 + p // 4 * lanes for start in range(0, lanes, 4) for p in picks)

    fours = [named(f"fours{n}") for n in range(4)]
    made = [Define(v, GatherFours(gather.row, gather.offsets, n)) for n, v in enumerate(fours)]
    twos: list[tuple[Value, Value]] = []
    for end, picks in (("low", by_four(0, 4, 1, 5)), ("high", by_four(2, 6, 3, 7))):
        two = (named(f"{end}0"), named(f"{end}1"))
        made += [Define(v, Shuffle(fours[2 * n], fours[2 * n + 1], picks)) for n, v in enumerate(two)]
        twos.append(two)
    return made, [Shuffle(*two, by_four(*picks)) for two in twos for picks in ((0, 1, 4, 5), (2, 3, 6, 7))]
