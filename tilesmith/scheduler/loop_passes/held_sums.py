"""Long sums of integers in vectors, in the order in which they are written.

Compilers know that integers are added in any order. GCC 12 has so many terms of a long sum before it adds the first
that there are no registers for them. Floats are left alone: where their order is free, two sums side by side wait less.
"""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.ir.loop.ops import PART_BYTES, Binary, Copy
from tilesmith.scheduler.ir.loop.program import Body, Define, Statement
from tilesmith.scheduler.ir.loop.traversal import block_of, with_blocks
from tilesmith.scheduler.ir.loop.values import Value

LONG = 8
"""Terms that a sum has at most, one for each addition, for which nothing is done: there are registers for these."""
TOGETHER = 4
"""Additions whose order compilers are left."""


def held(body: Body) -> Body:
    """*Before*: a sum of more than LONG integers, one addition after the other. *After*: every TOGETHER additions its
    value is in a register of its own, for which these are done. *Legal* always: values are the same."""
    partial = _partial_sums(body)
    found: list[Statement] = []
    for s in body:
        if isinstance(s, Define) and s.result.name in partial:
            open_ = replace(s.result, name=f"{s.result.name}_sum")
            found += [Define(open_, s.op), Define(s.result, Copy(open_, held=True))]
        else:
            found.append(s)
    return with_blocks(block_of(found, body), held)


def _partial_sums(body: Body) -> set[str]:
    """The names of the sums in a block that are held: those of every TOGETHER additions of long ones."""
    added: dict[str, int] = {}
    before: dict[str, str] = {}
    for s in body:
        if isinstance(s, Define) and isinstance(s.op, Binary) and s.op.op in ("+", "-") and _is_vector(s.result):
            longest = max((s.op.a, s.op.b), key=lambda v: added.get(v.name, 0))
            before[s.result.name] = longest.name
            added[s.result.name] = added.get(longest.name, 0) + 1
    found: set[str] = set()
    for name in (name for name, n in added.items() if n > LONG):
        while name in added and name not in found:
            found.add(name)
            name = before[name]
    return {name for name in found if added[name] % TOGETHER == 0}


def _is_vector(v: Value) -> bool:
    """True of integers in a register of vectors."""
    return v.type.is_integer and v.lanes * v.type.bytes >= PART_BYTES
