"""Loop unswitching (Allen and Cocke, 1971) of choices: a loop over vectors that chooses between values by a condition
that none of its iterations changes, as by the residue of its row, is one for each choice, which computes no other."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.ir.index import sym
from tilesmith.scheduler.ir.loop.ops import Broadcast, Copy, Select
from tilesmith.scheduler.ir.loop.program import Apart, Body, Define, If, Loop, Statement
from tilesmith.scheduler.ir.loop.traversal import NESTING, assigned, block_of, defined, walk, with_regions
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.loop_passes.dead_code import prune

MOST_LOOPS = 8
"""Loops that one becomes, at most."""
MOST_KEPT = 0.85
"""The share of a loop's statements that the two without a choice have on average, at most."""


def unswitched(body: Body) -> Body:
    """*Before*: an innermost loop chooses between vectors by conditions that it does not change, where each of the two
    takes work of its own. *After*: a loop for each choice, with what it needs. What takes little time is left as it is.
    """
    found = [s if isinstance(s, Apart) else with_regions(s, unswitched) for s in body]
    return block_of([_by_choices(s, MOST_LOOPS) for s in found], body)


def _by_choices(s: Statement, most: int) -> Statement:
    """The statement; a loop as at most so many, each of which knows the conditions that it would choose by."""
    if not isinstance(s, Loop) or most == 1 or any(isinstance(x, NESTING) for x in s.body):
        return s
    inside = {name for x in s.body for name in (*defined(x), assigned(x))}
    for condition in [c for c in _conditions(s.body) if c.name not in inside]:
        first, second = _where(s, condition, True), _where(s, condition, False)
        both = len(first.body), len(second.body)
        if max(both) < len(s.body) and sum(both) <= 2 * MOST_KEPT * len(s.body):
            otherwise = _by_choices(second, most - 1)
            others = sum(isinstance(x, Loop) for x in walk((otherwise,)))
            return If((), (_by_choices(first, most - others),), condition, (otherwise,))
    return s


def _conditions(body: Body) -> list[Value]:
    """The conditions that choose between vectors, the same for all lanes, those of the last choices first: what these
    choose from may have been chosen before."""
    found: list[Value] = []
    for s in reversed(body):
        match s:
            case Define(Value(lanes=lanes), Select(Value(lanes=1) as condition)) if lanes > 1 and condition.name:
                found.append(condition)
            case _:
                pass
    return list(dict.fromkeys(found))


def _where(loop: Loop, condition: Value, holds: bool) -> Loop:
    """The loop where a condition holds or does not, without what it does not need then."""
    body = tuple([_chosen(s, condition, holds) for s in loop.body])
    kept = [sym(name) for s in body if (name := assigned(s)) is not None]
    _, (found,) = prune((), (replace(loop, body=body),), kept)
    assert isinstance(found, Loop)
    return found


def _chosen(s: Statement, condition: Value, holds: bool) -> Statement:
    match s:
        case Define(result, Select(by, a, b)) if by == condition:
            value = a if holds else b
            return Define(result, Copy(value) if value.lanes == result.lanes else Broadcast(value))
        case _:
            return s
