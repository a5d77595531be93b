"""Masks of vectors that have a bit for each lane, where machines have registers for these: which they are, and sums
under them of what is added only where a condition holds.

A choice between a value and 0 is made well by a mask that is a vector, too. So masks that only such choices are made by
stay vectors.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from tilesmith.scheduler.ir.loop.ops import (
    Binary,
    Compare,
    Logical,
    Operation,
    ResizeMask,
    Select,
    Shuffle,
    Unary,
)
from tilesmith.scheduler.ir.loop.program import Body, Define, Statement
from tilesmith.scheduler.ir.loop.traversal import block_of, used, values_of, walk, with_blocks
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL

# which ------------------------------------------------------------


def in_bits(body: Body) -> frozenset[str]:
    """The names of the masks that have a bit for each lane: those that can, where any of the choices that they or what
    they are made of are for is between two values."""
    wanted = {
        s.op.condition.name
        for s in walk(body)
        if isinstance(s, Define) and isinstance(s.op, Select) and not any(v.literal == 0 for v in (s.op.a, s.op.b))
    }
    able = _able(body) if wanted else {}
    while more := {x for name in able if wanted & {name, *able[name]} for x in (name, *able[name])} - wanted:
        wanted |= more
    return frozenset(wanted.intersection(able))


def _able(body: Body) -> dict[str, set[str]]:
    """The masks that can have a bit for each lane, each with those that it is made of: choices of numbers are made by
    them, and other such masks, and nothing else is."""
    made: dict[str, list[Operation]] = {}
    others: set[str] = set()
    for s in walk(body):
        if isinstance(s, Define) and _is_mask(s.result):
            made.setdefault(s.result.name, []).append(s.op)
        elif isinstance(s, Define) and isinstance(s.op, Select) and s.result.lanes > 1:
            others.update((s.op.a.name, s.op.b.name))
        else:
            others.update(used(s))
    able = {name for name, ops in made.items() if name not in others and all(map(_has_bits, ops))}
    of = {name: {v.name for op in ops for v in values_of(op) if _is_mask(v)} for name, ops in made.items()}
    while lost := {name for name in of if name not in able or not of[name] <= able}:
        able -= lost
        for name in lost:
            able -= of.pop(name)
    return of


def _is_mask(v: Value) -> bool:
    return v.type == BOOL and v.lanes > 1


def _has_bits(op: Operation) -> bool:
    """True of what makes masks that may have a bit for each lane."""
    match op:
        case Compare(a=a):
            return a.type != BOOL
        case Shuffle(a=a, picks=picks):
            return picks == tuple(range(picks[0], picks[0] + len(picks))) and picks[-1] < a.lanes
        case Logical() | Unary() | ResizeMask():
            return True
        case _:
            return False


# sums ------------------------------------------------------------


def masked(body: Body, strict: bool) -> Body:
    """*Before*: `t + (c ? v : 0)` of vectors. *After*: `c ? t + v : t`, where `c` can have a bit for each lane.
    *Legal* of integers; of floats, unless `strict`, as one that adds 0 may change the sign of a 0. What is added is
    used nowhere else."""
    statements = list(walk(body))
    terms = {
        s.result.name: s.op
        for s in statements
        if isinstance(s, Define) and isinstance(s.op, Select) and _is_term(s.result, s.op, strict)
    }
    if not terms:
        return body
    uses = Counter(chain.from_iterable(map(used, statements)))
    definitions = Counter(s.result.name for s in statements if isinstance(s, Define))
    able = _able(body)
    terms = {
        name: op for name, op in terms.items() if op.condition.name in able and uses[name] == definitions[name] == 1
    }
    return _block(body, terms) if terms else body


def _is_term(r: Value, op: Select, strict: bool) -> bool:
    """True of a choice between a number and 0, lane by lane."""
    numbers = r.type.is_integer or (r.type.is_float and not strict)
    return numbers and r.lanes > 1 and op.condition.lanes == r.lanes and op.b.literal == 0


def _block(body: Body, terms: dict[str, Select]) -> Body:
    found: list[Statement] = []
    for s in body:
        match s:
            case Define(op=Binary(op="+", a=a, b=b), result=r) if b.name in terms and a.lanes == r.lanes:
                found += _sum(r, a, terms[b.name])
            case Define(op=Binary(op="+", a=a, b=b), result=r) if a.name in terms and b.lanes == r.lanes:
                found += _sum(r, b, terms[a.name])
            case _:
                found.append(s)
    return with_blocks(block_of(found, body), lambda inside: _block(inside, terms))


def _sum(r: Value, a: Value, term: Select) -> list[Statement]:
    both = Value(r.type, r.lanes, f"{r.name}_more")
    return [Define(both, Binary("+", a, term.a)), Define(r, Select(term.condition, both, a))]
