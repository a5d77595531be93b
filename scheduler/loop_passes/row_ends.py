"""Joining of row ends: the loops before and after that over whole vectors, where they are the same, become one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from scheduler.ir.index import Index, const, multiply, sym
from scheduler.ir.loop.program import Body, If, Loop, Program, Statement
from scheduler.ir.loop.traversal import with_regions
from scheduler.loop_passes.renaming import canonical, local_names


def joined_ends(program: Program) -> Program:
    """The program with one loop for both ends of rows. It is walked twice, whole vectors between."""
    taken = {name for part in (program.derivation, program.bounds, program.body) for name in local_names(part)}
    fresh = (name for n in count() if (name := f"end_{n}") not in taken)
    return replace(program, body=_joined(program.body, fresh))


def _joined(body: Body, fresh: Iterator[str]) -> Body:
    out: list[Statement] = []
    for s in body:
        match [*out[-2:], s]:
            case [Loop() as first, Loop() as middle, Loop() as last] if _are_ends(first, last):
                out[-2:] = [_both(first, middle, last, next(fresh))]
            case _:
                out.append(s)
    return tuple(with_regions(s, lambda region: _joined(region, fresh)) for s in out)


def _are_ends(first: Loop, last: Loop) -> bool:
    """Whether loops over vectors differ in nothing but where they begin and end."""
    if first.parallel or first.skip or first.seen or len(first.body) != len(last.body):
        return False
    nowhere = (const(0), const(0))
    alike = (replace(s, lo=nowhere[0], hi=nowhere[1], comment="") for s in (first, last))
    one, other = (canonical((s,)) for s in alike)
    return one == other


def _both(first: Loop, middle: Loop, last: Loop, name: str) -> Loop:
    def either(a: Index, b: Index) -> Index:
        return a + multiply(sym(name), b - a)

    ends = replace(first, lo=either(first.lo, last.lo), hi=either(first.hi, last.hi), comment="")
    between = If((sym(name).scaled(-1),), (middle,))
    return Loop(name, const(0), const(1), const(1), (ends, between), comment="both ends of the row")
