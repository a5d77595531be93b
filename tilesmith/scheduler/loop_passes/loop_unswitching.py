"""Loop unswitching (Allen and Cocke, 1971), of conditions without which a loop does nothing: they stand around it."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.ir.loop.program import Body, If, Loop, Statement
from tilesmith.scheduler.ir.loop.traversal import (
    DEFINITIONS,
    NESTING,
    assigned,
    block_of,
    defined,
    defined_inside,
    names_of,
    operands,
    walk,
    with_blocks,
)


def unswitched(body: Body) -> Body:
    """The block, where the condition of a loop's one effect is the same in all iterations, with the condition around
    the loop; around those outside of it, too, where it is the same in their iterations."""
    found = with_blocks(body, unswitched)
    return block_of([_unswitched(s) for s in found], found)


def _unswitched(s: Statement) -> Statement:
    if not isinstance(s, Loop):
        return s
    effects = [x for x in s.body if not isinstance(x, DEFINITIONS)]
    guard = effects[0] if len(effects) == 1 else None
    if not isinstance(guard, If) or guard.otherwise or not _is_the_same(guard, s):
        return s
    body = tuple(part for x in s.body for part in (guard.body if x is guard else (x,)))
    return replace(guard, body=(replace(s, body=body),))


def _is_the_same(guard: If, loop: Loop) -> bool:
    """True if a condition is the same in all iterations of a loop."""
    changed: set[str] = {*defined_inside(loop)}
    for x in walk(loop.body):
        changed |= {*defined(x), *(defined_inside(x) if isinstance(x, NESTING) else ())}
        target = assigned(x)
        if target is not None:
            changed.add(target)
    parts = operands((guard.nonnegative, guard.condition))
    return changed.isdisjoint(name for part in parts for name in names_of(part))
