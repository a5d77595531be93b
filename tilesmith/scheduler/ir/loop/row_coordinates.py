"""Coordinates of rows: what the offset of a row pointer says in elements, in the dims of the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tilesmith.scheduler.ir.index import Atom, Index, const, modulo, multiply
from tilesmith.scheduler.ir.loop.values import Buffer

Coordinates: TypeAlias = tuple[Index | None, ...]
"""The index of a row in every dim of a buffer but its unit dim; None where it is the first that is stored."""


def row_offset(buffer: Buffer, at: Coordinates) -> Index:
    """The offset of the row at those coordinates, less the origin of the unit dim."""
    total = const(0) - buffer.origin[buffer.unit]
    for d, x in zip(outer_dims(buffer), at, strict=True):
        if x is not None:
            ring = buffer.ring[d]
            place = x - buffer.origin[d] if ring is None else modulo(x, ring)
            total = total + multiply(place, buffer.stride[d])
    return total


def row_coordinates(buffer: Buffer, offset: Index) -> Coordinates | None:
    """The coordinates of the row at an offset, by which `row_offset` gives it; None where there are none, or where they
    mention what the offset does not."""
    known = offset.symbols()
    rest = list(offset.terms)
    at: list[Index | None] = []
    for d in outer_dims(buffer):
        found = _place(rest, buffer.stride[d])
        if found is None:
            at.append(None)
            continue
        term, place = found
        rest.remove(term)
        x = _coordinate(buffer, d, place)
        if any(name not in known for name in buffer.origin[d].symbols()) and not set(x.symbols()).issubset(known):
            return None
        at.append(x)
    first = buffer.origin[buffer.unit]
    if not at or offset.const != -first.const or rest != [(a, -c) for a, c in first.terms]:
        return None
    return tuple(at)


Term: TypeAlias = tuple[Atom, int]


def _place(terms: Sequence[Term], stride: Index) -> tuple[Term, Index] | None:
    """The term of a sum that has a stride, a symbol, as a factor, and the other factor."""
    if not stride.terms:
        return None
    symbol = stride.terms[0][0]
    for term in terms:
        atom, c = term
        if atom is symbol:
            return term, const(c)
        if atom.kind == "mul" and c == 1:
            a, b = atom.args
            if a == stride:
                return term, b
            if b == stride:
                return term, a
    return None


def outer_dims(buffer: Buffer) -> list[int]:
    """The dims of a buffer that tell its rows."""
    return [d for d in range(len(buffer.dims)) if d != buffer.unit]


def _coordinate(buffer: Buffer, d: int, place: Index) -> Index:
    """The index in a dim, of its place in memory."""
    if buffer.ring[d] is None:
        return place + buffer.origin[d]
    inner = place.terms[0][0] if place.terms else None
    return inner.args[0] if inner is not None and inner.kind == "mod" else place
