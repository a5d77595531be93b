"""Dead-code elimination in a loop program; prefetches of lines that the iteration before has read are left out, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.program import Body, Loop, Prefetch, Statement
from tilesmith.scheduler.ir.loop.traversal import (
    DEFINITIONS,
    NESTING,
    assigned,
    block_of,
    defined,
    regions,
    used,
    with_blocks,
    with_regions,
)


def prune(bounds: Body, body: Body, kept: Iterable[Index]) -> tuple[Body, Body]:
    """*Before*: definitions that may be unused. *After*: the definitions that a store, a loop, a condition or `kept`
    needs; and where rows side by side are prefetched, only the rows that are new in each iteration of the loop
    around."""
    body = _new_rows(body)
    needs: dict[str, list[str]] = {}
    stack = [s for x in kept for s in x.symbols()]
    _scan(bounds, needs, stack)
    _scan(body, needs, stack)
    alive: set[str] = set()
    while stack:
        name = stack.pop()
        if name not in alive:
            alive.add(name)
            stack += needs.get(name, ())
    return _keep(bounds, alive), _keep(body, alive)


def _new_rows(statements: Body) -> Body:
    """The prefetches to keep: where rows lie side by side, those of the rows that are new in each iteration of the loop
    around."""
    furthest: dict[tuple[int, bool], int] = {}
    for s in statements:
        if isinstance(s, Prefetch):
            furthest[s.rows, s.far] = max(s.place, furthest.get((s.rows, s.far), s.place))
    if furthest:
        statements = tuple(
            s for s in statements if not isinstance(s, Prefetch) or s.place > furthest[s.rows, s.far] - s.step
        )
    return with_blocks(statements, _new_rows)


def _scan(statements: Body, needs: dict[str, list[str]], roots: list[str]) -> None:
    """Notes what each name needs, and what is needed whatever else is."""
    for s in statements:
        if isinstance(s, DEFINITIONS):
            uses = used(s)
            for name in defined(s):
                needs.setdefault(name, []).extend(uses)
        elif (target := assigned(s)) is not None:
            needs.setdefault(target, []).extend(used(s))
        elif isinstance(s, Loop) and s.seen is not None:
            roots += used(replace(s, seen=None))
            ends = (x for x in (s.seen.first, s.seen.last) if x is not None)
            needs.setdefault(s.seen.name, []).extend(name for x in ends for name in x.symbols())
        else:
            roots += used(s)
        if isinstance(s, NESTING):
            for region in regions(s):
                _scan(region, needs, roots)


def _keep(statements: Body, alive: set[str]) -> Body:
    kept: list[Statement] = []
    for s in statements:
        if isinstance(s, DEFINITIONS):
            if alive.isdisjoint(defined(s)):
                continue
        elif isinstance(s, NESTING):
            s = with_regions(s, lambda body: _keep(body, alive))
            if not any(regions(s)):
                continue
            if isinstance(s, Loop) and s.seen is not None and s.seen.name not in alive:
                s = replace(s, seen=None)
        elif (target := assigned(s)) is not None and target not in alive:
            continue
        kept.append(s)
    return block_of(kept, statements)
