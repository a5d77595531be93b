"""Neighbours that vectors gather, as samples between pixels do, and channels of a pixel: pairs of them, and fours, are
loaded at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from scheduler.features.interleaved_channels import BITS, PAIRED
from scheduler.ir.index import Index, const
from scheduler.ir.loop.program import (
    Buffer,
    Comment,
    Define,
    If,
    Let,
    Loop,
    Row,
    Statement,
    Store,
    Value,
    told_by_vectors,
)
from scheduler.ir.pipeline.types import BOOL

FOUR_LANES = 16
"""Vectors of which four are loaded as one: the addresses of shorter ones cost as much as they save."""

Rows = dict[str, tuple[Buffer, Index]]
_T = TypeVar("_T")


class _Memory(NamedTuple):
    """A buffer, by name, and whose it is."""

    pointer: str
    where: str


_Key = tuple[_Memory, Index, object]
"""What gathers have in common that read at an offset from the same places."""


def paired(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """*Before*: gathers, lane by lane. *After*: where one gathers the right neighbours of what another in the block has
    gathered, with no store there in between, both are the even and the odd lanes of two vectors of pairs. Where two
    more follow these, all four are picked from vectors of four neighbours each."""
    return _block(body, {})


@dataclass(slots=True)
class _Found:
    """By number of the statement: `first` are the gathers of the leftmost neighbours with those of all, from left to
    right, and `others` the others."""

    first: dict[int, tuple[int, ...]]
    others: set[int]

    def join(self, *found: int) -> None:
        """Takes gathers as one."""
        self.first[found[0]] = found
        self.others.update(found[1:])


def _block(statements: tuple[Statement, ...], rows: Rows) -> tuple[Statement, ...]:
    left: dict[_Key, int] = {}
    pairs: dict[_Key, tuple[int, int]] = {}
    found = _Found({}, set())
    for n, s in enumerate(statements):
        match s:
            case Row():
                rows[s.result] = (s.buffer, s.offset)
                rows.setdefault(s.buffer.pointer, (s.buffer, const(0)))  # the first row has no pointer of its own
            case Define() if _may_pair(s) and s.attrs[0] in rows:
                buffer, offset = rows[str(s.attrs[0])]
                kind = (s.attrs[1], s.result.type, s.result.lanes)
                memory = _Memory(buffer.pointer, buffer.where)
                before = left.pop((memory, offset - 1, kind), None)
                if before is None:
                    left[memory, offset, kind] = n
                    continue
                two = pairs.get((memory, offset - 3, kind))
                if two is not None and two[0] < before and _may_be_four(s):
                    del found.first[two[0]]
                    found.join(*two, before, n)
                else:
                    pairs[memory, offset - 1, kind] = (before, n)
                    found.join(before, n)
            case Define() | Let() | Comment():
                pass
            case Store():
                left, pairs = _unchanged(left, s.buffer), _unchanged(pairs, s.buffer)
            case _:
                left, pairs = {}, {}
    return _rewritten(statements, found, rows)


def _unchanged(found: dict[_Key, _T], stored: Buffer) -> dict[_Key, _T]:
    """What was found in memory that a store to `stored` does not change: images of the caller may share theirs."""
    return {
        key: at
        for key, at in found.items()
        if key[0].pointer != stored.pointer and not key[0].where == stored.where == "argument"
    }


def _rewritten(statements: tuple[Statement, ...], found: _Found, rows: Rows) -> tuple[Statement, ...]:
    out: list[Statement] = []
    picked: dict[int, Define] = {}
    for n, s in enumerate(statements):
        if n in found.first:
            assert isinstance(s, Define)
            neighbours = found.first[n]
            made, picks = (_halves if len(neighbours) == 2 else _fourths)(s)
            out += made
            for k, (vectors, lanes) in zip(neighbours, picks, strict=True):
                picked[k] = Define(_result(statements[k]), "shuffle", vectors, (lanes,))
        if n in picked:
            out.append(picked[n])
        elif isinstance(s, Loop):
            out.append(replace(s, body=_block(s.body, rows)))
        elif isinstance(s, If):
            out.append(replace(s, body=_block(s.body, rows), otherwise=_block(s.otherwise, rows)))
        else:
            out.append(s)
    return tuple(out)


def _result(s: Statement) -> Value:
    assert isinstance(s, Define)
    return s.result


def _may_pair(s: Define) -> bool:
    r = s.result
    return s.op == "gather" and r.type != BOOL and r.type.bits == BITS and r.lanes >= PAIRED


def _may_be_four(s: Define) -> bool:
    dims = s.attrs[1]
    assert isinstance(dims, tuple)
    return s.result.lanes == FOUR_LANES and len(dims) <= 2 and told_by_vectors(dims, FOUR_LANES)


Picked = tuple[tuple[Value, Value], tuple[int, ...]]
"""Two vectors, and lanes of both."""


def _halves(s: Define) -> tuple[list[Define], list[Picked]]:
    """Vectors of pairs, each of half of the lanes of `s`: of these the even lanes are `s`, the odd ones the next."""
    pairs, more = (replace(s.result, name=f"{s.result.name}_{half}") for half in ("pairs", "more"))
    made = [Define(h, "pairs", s.args, (*s.attrs, n)) for n, h in enumerate((pairs, more))]
    return made, [((pairs, more), tuple(range(first, 2 * s.result.lanes, 2))) for first in (0, 1)]


def _fourths(s: Define) -> tuple[list[Define], list[Picked]]:
    """Vectors of four neighbours, each of every fourth lane of `s`, turned into vectors of one by twos: lanes stay in
    their quarter of a vector, where shuffles are cheapest."""
    lanes = s.result.lanes

    def named(end: str) -> Value:
        return replace(s.result, name=f"{s.result.name}_{end}")

    def by_four(*picks: int) -> tuple[int, ...]:
        return tuple(start + p % 4 + p // 4 * lanes for start in range(0, lanes, 4) for p in picks)

    fours = [named(f"fours{n}") for n in range(4)]
    made = [Define(v, "fours", s.args, (*s.attrs, n)) for n, v in enumerate(fours)]
    twos: list[tuple[Value, Value]] = []
    for end, picks in (("low", by_four(0, 4, 1, 5)), ("high", by_four(2, 6, 3, 7))):
        two = (named(f"{end}0"), named(f"{end}1"))
        made += [Define(v, "shuffle", (fours[2 * n], fours[2 * n + 1]), (picks,)) for n, v in enumerate(two)]
        twos.append(two)
    return made, [(two, by_four(*picks)) for two in twos for picks in ((0, 1, 4, 5), (2, 3, 6, 7))]
