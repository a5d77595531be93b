"""Sizes and indices of arrays: integer expressions over names of sizes and over the symbols of axes.

Both are in the linear normal form of `scheduler.ir.index`, so that equal sizes are equal objects. What is known of an
axis, that its index is no less than 0 and below its extent, simplifies quotients and remainders: `(32*q + r) // 32` is
`q` where `r` is the index of an axis of 32 elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import count
from typing import TypeAlias

from tilesmith.scheduler.frontends.python.terms import Term, as_term, call
from tilesmith.scheduler.ir.index import Atom, Index, const, divide, maximum, minimum, modulo, multiply, sym

Extent: TypeAlias = "Size | int"
Bindings: TypeAlias = Mapping[str, Index]

_serial = count()


class Size:
    """The size of an axis that is known when the code runs: a name, or a sum of multiples of names."""

    __slots__ = ("index",)

    def __init__(self, name: str | Index) -> None:
        self.index = name if isinstance(name, Index) else sym(name)

    def __str__(self) -> str:
        return shown(self.index)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size | int) and self.index == index_of(other)

    def __hash__(self) -> int:
        return hash(self.index)

    def __add__(self, other: Extent) -> Size:
        return Size(self.index + index_of(other))

    def __radd__(self, other: int) -> Size:
        return self + other

    def __sub__(self, other: Extent) -> Size:
        return Size(self.index - index_of(other))

    def __rsub__(self, other: int) -> Size:
        return Size(const(other) - self.index)

    def __mul__(self, other: Extent) -> Size:
        return Size(multiply(self.index, index_of(other)))

    def __rmul__(self, other: int) -> Size:
        return self * other


class Axis(Atom):
    """The index symbol of an axis: from 0 to its extent; `origin` is what the grid of stages calls 0 there."""

    __slots__ = ("extent", "origin", "serial")
    extent: Index
    origin: int
    serial: int

    def __new__(cls, extent: Index, origin: int) -> Axis:
        serial = next(_serial)
        axis = cls._interned(f"_i{serial}", "sym", ())
        assert isinstance(axis, Axis)
        axis.extent, axis.origin, axis.serial = extent, origin, serial
        return axis


def index_of(extent: Extent) -> Index:
    """A size or a number as an index."""
    return extent.index if isinstance(extent, Size) else const(extent)


def symbols_in(index: Index) -> set[Atom]:
    """The symbols of axes and sizes that occur in it."""
    found: set[Atom] = set()
    for atom, _ in index.terms:
        found |= {atom} if atom.kind == "sym" else {s for arg in atom.args for s in symbols_in(arg)}
    return found


def substituted(index: Index, to: Bindings) -> Index:
    """The index with other indices for its symbols."""
    if to.keys().isdisjoint(index.symbols()):
        return index
    total = const(index.const)
    for atom, coefficient in index.terms:
        total = total + _substituted(atom, to).scaled(coefficient)
    return _recombined(total)


def _substituted(atom: Atom, to: Bindings) -> Index:
    if atom.kind == "sym":
        return to.get(atom.key, Index(0, ((atom, 1),)))
    build = {"min": minimum, "max": maximum, "div": quotient, "mod": remainder, "mul": multiply}[atom.kind]
    return reduce(build, [substituted(arg, to) for arg in atom.args])


def _recombined(index: Index) -> Index:
    """`n*(a // n) + a % n` is `a`."""
    coefficients = dict(index.terms)
    for atom, coefficient in index.terms:
        if atom.kind == "mod" and atom.args[1].is_const:
            whole = divide(*atom.args)
            times = coefficient * atom.args[1].const
            if len(whole.terms) == 1 and coefficients.get(whole.terms[0][0]) == times:
                rest = index - whole.scaled(times) - Index(0, ((atom, coefficient),))
                return _recombined(rest + atom.args[0].scaled(coefficient))
    return index


def quotient(index: Index, by: Index) -> Index:
    """`index // by`, `by` no less than 1."""
    return _divided(index, by)[0]


def remainder(index: Index, by: Index) -> Index:
    """`index % by`, `by` no less than 1."""
    return _divided(index, by)[1]


def _divided(index: Index, by: Index) -> tuple[Index, Index]:
    if len(index.terms) == 1 and index.const == 0:
        atom, coefficient = index.terms[0]
        if coefficient == 1 and isinstance(atom, Axis) and atom.extent == by:
            return const(0), index
    if by.is_const and by.const > 0:
        carry, low = divmod(index.const, by.const)
        rest = Index(low, tuple((a, c) for a, c in index.terms if c % by.const))
        ends = _range(rest)
        if ends is not None and ends[0] >= 0 and ends[1] < by.const:
            return Index(carry, tuple((a, c // by.const) for a, c in index.terms if c % by.const == 0)), rest
    return divide(index, by), modulo(index, by)


def _range(index: Index) -> tuple[int, int] | None:
    """The least and greatest value, where the extents are numbers."""
    least = most = index.const
    for atom, coefficient in index.terms:
        if isinstance(atom, Axis) and atom.extent.is_const:
            end = atom.extent.const - 1
        elif atom.kind == "mod" and atom.args[1].is_const:
            end = atom.args[1].const - 1
        else:
            return None
        least, most = least + min(0, coefficient * end), most + max(0, coefficient * end)
    return least, most


def exact_quotient(size: Index, by: int) -> Index | None:
    """`size / by` where that has no remainder whatever the names in it are."""
    if size.const % by or any(coefficient % by for _, coefficient in size.terms):
        return None
    return divide(size, by)


def term_of(index: Index) -> Term:
    """The index as a term: what is added first, then what is subtracted, then the number."""
    terms = sorted(index.terms, key=lambda t: t[1] < 0)
    if not terms:
        return as_term(index.const)
    total: Term | None = None
    for atom, coefficient in terms:
        part = _atom_term(atom)
        part = part if abs(coefficient) == 1 else abs(coefficient) * part
        if total is None:
            total = part if coefficient > 0 else -part
        else:
            total = total + part if coefficient > 0 else total - part
    assert total is not None
    return total if not index.const else total + index.const if index.const > 0 else total - -index.const


def _atom_term(atom: Atom) -> Term:
    if atom.kind == "sym":
        return Term(atom.key)
    args = [term_of(arg) for arg in atom.args]
    make: dict[str, Callable[..., Term]] = {
        "min": lambda *a: call("min", *a),
        "max": lambda *a: call("max", *a),
        "div": lambda a, b: a // b,
        "mod": lambda a, b: a % b,
        "mul": lambda a, b: a * b,
    }
    return make[atom.kind](*args)


def shown(index: Index) -> str:
    """The index as text."""
    return term_of(index).text
