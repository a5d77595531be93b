"""Places in rows that all loads of a loop are counted from: pointers begin there, and loads are at numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import Define, Loop, Prefetch, Statement
from tilesmith.scheduler.ir.loop.traversal import defined, used, walk


def row_places(s: Loop, rows: Collection[str]) -> dict[str, Index]:
    """The place, but for numbers, of all loads of an iteration from each of `rows`, whose pointers it defines: of rows
    that are read and asked for only, at places that are known ahead of the iteration and differ by numbers."""
    uses = Counter(name for x in walk(s.body) for name in used(x))
    inside = {name for x in s.body for name in defined(x)}
    loads: dict[str, list[Index]] = {row: [] for row in rows}
    for x in s.body:
        match x:
            case Define(op=ops.Load(row, at) | ops.LoadPair(row, at)) if row in loads:
                loads[row].append(at)
            case Prefetch(row=asked) if asked in loads:
                uses[asked] -= 1
    found: dict[str, Index] = {}
    for name, places in loads.items():
        common = {at - at.const for at in places}
        if len(places) == uses[name] and len(common) == 1:
            (place,) = common
            if place.terms and inside.isdisjoint(place.symbols()):
                found[name] = place
    return found


def counted_from(s: Loop, places: Mapping[str, Index]) -> Loop:
    """The loop with what it reads and asks for counted from these places in rows."""

    def counted(x: Statement) -> Statement:
        match x:
            case Define(op=(ops.Load(row, at) | ops.LoadPair(row, at)) as op) if row in places:
                return replace(x, op=replace(op, at=at - places[row]))
            case Prefetch(row=row, index=at) if row in places:
                return replace(x, index=at - places[row])
            case _:
                return x

    return replace(s, body=tuple(map(counted, s.body)))
