"""Neighbours that two vectors gather, as samples between pixels do: each pair of them is loaded at once."""

from __future__ import annotations

from dataclasses import replace

from scheduler.analysis.index import Index
from scheduler.lang.types import BOOL
from scheduler.lower.program import Buffer, Comment, Define, If, Let, Loop, Row, Statement, Value

PAIRED_BITS = 32
"""Elements of which two are loaded as one number."""


def paired(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """*Before*: gathers, lane by lane. *After*: where one gathers the right neighbours of what another in the block has
    gathered, with no store between them, both are the even and the odd lanes of two vectors of pairs."""
    return _block(body, {})


def _block(statements: tuple[Statement, ...], rows: dict[str, tuple[Buffer, Index]]) -> tuple[Statement, ...]:
    left: dict[object, int] = {}
    follows: dict[int, int] = {}
    for n, s in enumerate(statements):
        match s:
            case Row():
                rows[s.result] = (s.buffer, s.offset)
            case Define() if _may_pair(s) and s.attrs[0] in rows:
                buffer, offset = rows[str(s.attrs[0])]
                kind = (id(buffer), s.attrs[1], s.result.type, s.result.lanes)
                before = left.pop((kind, offset - 1), None)
                if before is not None:
                    follows[before] = n
                else:
                    left[kind, offset] = n
            case Define() | Let() | Comment():
                pass
            case _:
                left.clear()
    return _rewritten(statements, follows, rows)


def _rewritten(
    statements: tuple[Statement, ...], follows: dict[int, int], rows: dict[str, tuple[Buffer, Index]]
) -> tuple[Statement, ...]:
    found: list[Statement] = []
    odd: dict[int, tuple[Value, Value]] = {}
    for n, s in enumerate(statements):
        if n in follows:
            assert isinstance(s, Define)
            halves = tuple(replace(s.result, name=f"{s.result.name}_{half}") for half in ("pairs", "more"))
            found += [Define(h, "pairs", s.args, (*s.attrs, half)) for half, h in enumerate(halves)]
            found.append(_every_other(s, (halves[0], halves[1]), 0))
            odd[follows[n]] = (halves[0], halves[1])
        elif n in odd:
            assert isinstance(s, Define)
            found.append(_every_other(s, odd[n], 1))
        elif isinstance(s, Loop):
            found.append(replace(s, body=_block(s.body, rows)))
        elif isinstance(s, If):
            found.append(replace(s, body=_block(s.body, rows), otherwise=_block(s.otherwise, rows)))
        else:
            found.append(s)
    return tuple(found)


def _may_pair(s: Define) -> bool:
    r = s.result
    return s.op == "gather" and r.type != BOOL and r.type.bits == PAIRED_BITS and r.lanes >= 4


def _every_other(s: Define, halves: tuple[Value, Value], first: int) -> Define:
    return Define(s.result, "shuffle", halves, (tuple(range(first, 2 * s.result.lanes, 2)),))
