"""Dead-code elimination in a loop program; prefetches of lines that the iteration before has read are left out, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.program import Body, Loop, Prefetch, Statement
from tilesmith.scheduler.ir.loop.traversal import DEFINITIONS, assigned, defined, regions, used, with_regions


def prune(bounds: Body, body: Body, kept: Iterable[Index]) -> tuple[Body, Body]:
    """*Before*: definitions that may be unused. *After*: the definitions that a store, a loop, a condition or `kept`
    needs; and where rows side by side are prefetched, only the rows that are new in each iteration of the loop
    around."""
    body = _new_rows(body)
    needs: dict[str, set[str]] = {}
    roots: set[str] = {s for x in kept for s in x.symbols()}
    _scan((*bounds, *body), needs, roots)
    alive: set[str] = set()
    stack = sorted(roots)
    while stack:
        name = stack.pop()
        if name not in alive:
            alive.add(name)
            stack.extend(needs.get(name, ()))
    return _keep(bounds, alive), _keep(body, alive)


def _new_rows(statements: Body) -> Body:
    """The prefetches to keep: where rows lie side by side, those of the rows that are new in each iteration of the loop
    around."""
    furthest: dict[tuple[int, bool], int] = {}
    for s in statements:
        if isinstance(s, Prefetch):
            furthest[s.rows, s.far] = max(s.place, furthest.get((s.rows, s.far), s.place))
    return tuple(
        with_regions(s, _new_rows)
        for s in statements
        if not isinstance(s, Prefetch) or s.place > furthest[s.rows, s.far] - s.step
    )


def _scan(statements: Body, needs: dict[str, set[str]], roots: set[str]) -> None:
    """Notes what each name needs, and what is needed whatever else is."""
    for s in statements:
        if isinstance(s, DEFINITIONS):
            for name in defined(s):
                needs.setdefault(name, set()).update(used(s))
        elif (target := assigned(s)) is not None:
            needs.setdefault(target, set()).update(used(s))
        elif isinstance(s, Loop) and s.seen is not None:
            roots.update(used(replace(s, seen=None)))
            ends = (x for x in (s.seen.first, s.seen.last) if x is not None)
            needs.setdefault(s.seen.name, set()).update(name for x in ends for name in x.symbols())
        else:
            roots.update(used(s))
        for region in regions(s):
            _scan(region, needs, roots)


def _keep(statements: Body, alive: set[str]) -> Body:
    kept: list[Statement] = []
    for s in statements:
        if isinstance(s, DEFINITIONS) and alive.isdisjoint(defined(s)):
            continue
        if (target := assigned(s)) is not None and target not in alive:
            continue
        if regions(s):
            s = with_regions(s, lambda body: _keep(body, alive))
            if not any(regions(s)):
                continue
        if isinstance(s, Loop) and s.seen is not None and s.seen.name not in alive:
            s = replace(s, seen=None)
        kept.append(s)
    return tuple(kept)
