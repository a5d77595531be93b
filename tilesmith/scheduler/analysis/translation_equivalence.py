"""Translation equivalence: two expressions are equal as functions if one is the other at shifted places."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    BinaryOp,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    Var,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.types import INT32

_ARITHMETIC = ("+", "-", "*", "//")
_FURTHEST = 1 << 20  # a longer way is no shift: sums of shifts stay indices


class Place(NamedTuple):
    """A position along a dim: `base` + `shift`."""

    base: Expr
    shift: int

    @property
    def expression(self) -> Expr:
        return moved(self.base, self.shift)


@dataclass(frozen=True, slots=True)
class Placed:
    """An expression that is `function` of its place in the dims of `places`, where the dims themselves stand in it.
    Other dims that it depends on are in it as they were."""

    function: Expr
    places: tuple[tuple[str, Place], ...]

    def at(self, places: Mapping[str, Place]) -> Expr:
        """The function at these places, and otherwise where the expression was."""
        return _at(self.function, {**dict(self.places), **places})


def placed(e: Expr, dims: Collection[str], variables: Collection[str] = ()) -> Placed:
    """`e` with its places along `dims` taken out of it. A place may depend on `variables` too, those of a reduction
    around `e`; it does not depend on two dims. A dim has none where `e` has it in more than one way (f(x) * f(2 * x)).
    """
    found: dict[str, Place] = {}
    lost: set[str] = set()
    indices: dict[int, frozenset[str] | None] = {}

    def look(node: Expr) -> None:
        here = indices[id(node)] = _index(node, dims, variables)
        if here is None:
            for child in children(node):
                look(child)
            return
        if len(here) != 1:
            lost.update(here)
            return
        (dim,) = here
        place = _split(node)
        if place.base != found.setdefault(dim, place).base:
            lost.add(dim)

    look(e)
    places = {d: p for d, p in found.items() if d not in lost}

    def rewrite(node: Expr) -> Expr:
        here = indices[id(node)]
        if here is None:
            return map_children(node, rewrite)
        dim = next(iter(here), None)
        if dim not in places or len(here) != 1:
            return node
        return moved(Var(dim), _split(node).shift - places[dim].shift)

    return Placed(rewrite(e), tuple(sorted(places.items())))


def moved(e: Expr, by: int) -> Expr:
    """The index `e` + `by`."""
    if by == 0:
        return e
    op: BinaryOp = "+" if by > 0 else "-"
    return Binary(op, e, Const(abs(by), INT32), INT32)


def _index(e: Expr, dims: Collection[str], variables: Collection[str]) -> frozenset[str] | None:
    """The dims in `e`, if it is plain arithmetic on dims, variables and what is the same everywhere; None if not, or
    if there is no dim in it."""
    if e.type != INT32:
        return None
    found: set[str] = set()
    for node in walk(e):
        match node:
            case Var(name=name) if name in dims:
                found.add(name)
            case Var(name=name) if name in variables:
                pass
            case Const() | ParamRef() | InputBound():
                pass
            case Binary(op=op) if op in _ARITHMETIC:
                pass
            case _:
                return None
        if node.type != INT32:
            return None
    return frozenset(found) or None


def _split(e: Expr) -> Place:
    """`e` as a base and a constant."""
    match e:
        case Binary(op=("+" | "-") as op, left=left, right=Const(value=c)) if abs(c) < _FURTHEST:
            place = _split(left)
            return Place(place.base, place.shift + (int(c) if op == "+" else -int(c)))
        case Binary(op="+", left=Const(value=c), right=right) if abs(c) < _FURTHEST:
            place = _split(right)
            return Place(place.base, place.shift + int(c))
        case Binary(op=("+" | "-") as op, left=left, right=right):
            a, b = _split(left), _split(right)
            shift = a.shift + (b.shift if op == "+" else -b.shift)
            return Place(Binary(op, a.base, b.base, INT32), shift)
    return Place(e, 0)


def _at(e: Expr, places: Mapping[str, Place]) -> Expr:
    match e:
        case Binary(op=("+" | "-") as op, left=Var(name=name), right=Const(value=c)) if name in places:
            place = places[name]
            return moved(place.base, place.shift + (int(c) if op == "+" else -int(c)))
        case Var(name=name) if name in places:
            return places[name].expression
        case Reduce(domain=domain):
            assert not any(r.name in places for r in domain)
    return map_children(e, lambda part: _at(part, places))
