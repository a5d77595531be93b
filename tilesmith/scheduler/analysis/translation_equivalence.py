"""Translation equivalence: two expressions are equal as functions if one is the other at shifted places.

Where an image begins is a part of the function, not of the place: `a` and `b` mirrored at their own edges, which read
`a` by way of `x + i - a.min.x` and `b` of `x + i - b.min.x`, are both read for the place `x + i`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    BinaryOp,
    Cast,
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
_OF_BOUNDS = {Const, InputBound, Binary}
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


def placed(e: Expr, dims: Collection[str], variables: Collection[str] = (), known: Looked | None = None) -> Placed:
    """`e` with its places along `dims` taken out of it. A place may depend on `variables` too, those of a reduction
    around `e`; it does not depend on two dims. A dim has none where `e` has it in more than one way (f(x) * f(2 * x)).
    Of several expressions that have parts in common, with the same dims and variables, these are looked at once where
    what is `known` of them is given."""
    if isinstance(e, Access) and (plain := _shifts(e, dims)) is not None:  # as most are
        return plain
    looked = known or Looked(dims, variables)
    found: dict[str, Place] = {}
    lost: set[str] = set()
    for dim, place in looked.at(e):
        if place is None or place.base != found.setdefault(dim, place).base:
            lost.add(dim)
    places = {d: p for d, p in found.items() if d not in lost}
    return Placed(looked.rewritten(e, places), tuple(sorted(places.items())))


def _shifts(e: Access, dims: Collection[str]) -> Placed | None:
    """The place that is read at constants from dims, each of them in one index; None of any other."""
    found: dict[str, Place] = {}
    for index in e.indices:
        at = _shifted(index)
        if at is None or at[0] not in dims or at[0] in found:
            return None
        found[at[0]] = at[1]
    function = Access(e.name, tuple(p.base for p in found.values()), e.component, e.type, e.ends)
    return Placed(function, tuple(sorted(found.items())))


class Looked:
    """Findings about expressions, which live as long as this, by the identity of their parts: the `places` of the
    indices in each, None where a dim has none; of each index its own dims, if it is one (see `_index`); and parts with
    the dims at other places."""

    def __init__(self, dims: Collection[str], variables: Collection[str]) -> None:
        self.dims, self.variables = dims, variables
        self.indices: dict[int, frozenset[str] | None] = {}
        self.places: dict[int, tuple[tuple[str, Place | None], ...]] = {}
        self.moved: dict[Hashable, Expr] = {}

    def at(self, node: Expr) -> tuple[tuple[str, Place | None], ...]:
        """The dims of the indices in a part, each with its place."""
        found = self.places.get(id(node))
        if found is None:
            found = self.places[id(node)] = self._look(node)
        return found

    def _look(self, node: Expr) -> tuple[tuple[str, Place | None], ...]:
        shifted = _shifted(node)
        if shifted is not None and shifted[0] in self.dims:  # as most indices are
            self.indices[id(node)] = frozenset((shifted[0],))
            return (shifted,)
        here = self.indices[id(node)] = _index(node, self.dims, self.variables)
        if here is None:
            return tuple([place for child in children(node) for place in self.at(child)])
        if len(here) != 1:
            return tuple((dim, None) for dim in here)
        (dim,) = here
        return ((dim, _split(_without_bounds(node))),)

    def rewritten(self, node: Expr, places: Mapping[str, Place]) -> Expr:
        """A part with the dims themselves at `places`."""
        inside = self.places[id(node)]
        if not inside:
            return node
        key = (id(node), *[(d, places[d].shift) for d, _ in inside if d in places])
        found = self.moved.get(key)
        if found is None:
            found = self.moved[key] = self._rewritten(node, places)
        return found

    def _rewritten(self, node: Expr, places: Mapping[str, Place]) -> Expr:
        here = self.indices[id(node)]
        if here is None:
            return map_children(node, lambda part: self.rewritten(part, places))
        dim, place = self.places[id(node)][0]
        if place is None or dim not in places:
            return node
        return _with_bounds_of(node, moved(Var(dim), place.shift - places[dim].shift))


def moved(e: Expr, by: int) -> Expr:
    """The index `e` + `by`."""
    if by == 0:
        return e
    op: BinaryOp = "+" if by > 0 else "-"
    return Binary(op, e, Const(abs(by), INT32), INT32)


def _index(e: Expr, dims: Collection[str], variables: Collection[str]) -> frozenset[str] | None:
    """The dims in `e`, if it is plain arithmetic on dims, variables and what is the same everywhere, and beside a
    variable on integers that floats of dims are rounded to; None if not. None of them in what has no dim."""
    if e.type != INT32:
        return None
    found: set[str] = set()
    moves = rounded = False
    pending = [e]
    while pending:
        node = pending.pop()
        match node:
            case Var(name=name) if name in dims:
                found.add(name)
            case Var(name=name) if name in variables:
                moves = True
            case Const() | ParamRef() | InputBound():
                pass
            case Binary(op=op) if op in _ARITHMETIC:
                pending += (node.left, node.right)
            case Cast(operand=inside) if inside.type.is_float and _is_of_dims(inside, dims):
                rounded = True
                found.update(n.name for n in walk(inside) if isinstance(n, Var))
            case _:
                return None
        if node.type != INT32:
            return None
    return frozenset(found) if moves or not rounded else None


def _is_of_dims(e: Expr, dims: Collection[str]) -> bool:
    """True if a float is made of dims and what is the same everywhere."""
    return all(n.name in dims if isinstance(n, Var) else not isinstance(n, Access | Reduce) for n in walk(e))


def _without_bounds(e: Expr) -> Expr:
    """The index `e`, in which a dim stands, without the terms that mins and extents of inputs are."""
    match e:
        case Binary(op="+" | "-", left=left, right=right) if _is_bound(right):
            return _without_bounds(left)
        case Binary(op="+", left=left, right=right) if _is_bound(left):
            return _without_bounds(right)
        case Binary(op="+" | "-", left=left, right=Const()):
            inside = _without_bounds(left)
            return e if inside is left else replace(e, left=inside)
    return e


def _with_bounds_of(e: Expr, place: Expr) -> Expr:
    """`place` and the terms that `_without_bounds` leaves out of the index `e`."""
    match e:
        case Binary(op="+" | "-", left=left, right=right) if _is_bound(right):
            return replace(e, left=_with_bounds_of(left, place))
        case Binary(op="+", left=left, right=right) if _is_bound(left):
            return replace(e, right=_with_bounds_of(right, place))
        case Binary(op="+" | "-", left=left, right=Const()):
            return _with_bounds_of(left, place)
    return place


def _is_bound(e: Expr) -> bool:
    """True for arithmetic of mins and extents of inputs."""
    if type(e) is not Binary:  # as most of them
        return type(e) is InputBound
    every = {type(n) for n in walk(e)}
    return InputBound in every and every <= _OF_BOUNDS


def _shifted(e: Expr) -> tuple[str, Place] | None:
    """The dim and the place of an index that is a dim and a constant, or a dim; None of any other."""
    match e:
        case Var(name=name, type=type) if type == INT32:
            return name, Place(e, 0)
        case Binary(op="+" | "-", left=Var(name=name, type=type) as base, right=Const(value=c)) if (
            type == INT32 and abs(c) < _FURTHEST
        ):
            return name, Place(base, int(c) if e.op == "+" else -int(c))
    return None


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
