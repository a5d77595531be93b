"""Least general generalisation of indices: of each place in blocks that are alike one index, of which that of each
member is an instance. Loop variables stand for each other; numbers and other symbols that differ are parameters.
Numbers that differ in proportion are made of one parameter, so that lowering proves of their differences what it does
of the numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from tilesmith.scheduler.ir.index import Atom, Index, const, remade, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.program import Let
from tilesmith.scheduler.ir.loop.values import Ends
from tilesmith.scheduler.lowering.columns import Column, Unlike, paired, require, zipped


@dataclass(frozen=True, slots=True)
class Proportion:
    """Numbers that differ by multiples of `step`: those of a parameter, which begins with `first`."""

    first: int
    step: int


Proportions = dict[Column[int], Proportion]
"""Proportions by how many steps each member is from the first."""


@dataclass(slots=True)
class IndexGeneralization:
    """The generalisation of indices of so many `members`, with fresh names of a builder and the `values` of symbols
    that stand for others. Adds to `proportions` what they do not have. `parameters` are the symbols that it made, with
    what they are in each member, and `lets` those that follow from these."""

    builder: Builder
    values: Mapping[str, Index]
    members: int
    proportions: Proportions
    refined: bool = False  # whether a proportion was, after its parameter had been used
    parameters: dict[str, Column[Index]] = field(default_factory=dict)
    lets: list[Let] = field(default_factory=list)
    _symbols: dict[Column[str], Index] = field(default_factory=dict)
    _met: dict[Column[Index], Index] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)
    _partners: list[dict[str, str]] = field(init=False)
    _numbers: dict[Column[int], Index] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._partners = [{} for _ in range(self.members)]

    def bind(self, several: Column[str]) -> None:
        """Names that the members define stand for each other: that of the first for all."""
        self._bound.update(several)
        self._meet(several, sym(several[0]))

    def ends(self, several: Column[Ends]) -> Ends:
        """The generalisation of both ends of ranges. Raises Unlike."""
        return self.index(tuple(lo for lo, _ in several)), self.index(tuple(hi for _, hi in several))

    def indices(self, several: Column[Sequence[Index]]) -> tuple[Index, ...]:
        """The generalisations of the indices at each place of sequences. Raises Unlike."""
        return tuple(map(self.index, zipped(several)))

    def index(self, several: Column[Index], part: bool = False) -> Index:
        """The generalisation of indices. Numbers alone, that are no `part` of another index, stay numbers.
        Raises Unlike."""
        first = several[0]
        if all(x == first for x in several):
            return first
        require(part or bool(first.terms))
        if several not in self._met:
            self._met[several] = self._sum(first, several)
        return self._met[several]

    def _sum(self, first: Index, several: Column[Index]) -> Index:
        total = self._number(tuple(x.const for x in several))
        aligned = [self._aligned(n, first, x) for n, x in enumerate(several)]
        for (_, c), *atoms in zip(first.terms, *aligned, strict=True):
            total = total + self._atom(tuple(atoms)).scaled(c)
        return total

    def _aligned(self, n: int, first: Index, other: Index) -> list[Atom]:
        """The atoms of an index of the `n`-th member in the order of those of the first that they stand for."""
        require(len(first.terms) == len(other.terms))
        if len(first.terms) == 1:
            require(first.terms[0][1] == other.terms[0][1])
            return [other.terms[0][0]]
        places = paired(
            [(c, a) for a, c in first.terms],
            [(c, a) for a, c in other.terms],
            lambda x, y: x == y or (x[0] == y[0] and self._partners[n].get(x[1].key) == y[1].key),
            lambda x, y: x[0] == y[0] and _shape(x[1]) == _shape(y[1]),
        )
        return [a for _, a in places]

    def _atom(self, several: Column[Atom]) -> Index:
        first = several[0]
        if all(a is first for a in several):
            return first.index
        require(all(a.kind == first.kind and a.function == first.function for a in several))
        if first.kind == "sym":
            return self.symbol(tuple(a.key for a in several))
        args: list[Column[Index]] = zipped(tuple(a.args for a in several))
        if first.kind in ("div", "mod"):
            require(all(x == args[1][0] for x in args[1]))
        elif first.kind in ("min", "max", "mul"):
            args = zipped(tuple(self._aligned_arguments(n, first, a) for n, a in enumerate(several)))
        return remade(first, [self.index(column, part=True) for column in args])

    def _aligned_arguments(self, n: int, first: Atom, other: Atom) -> tuple[Index, ...]:
        def met(x: Index, y: Index) -> bool:
            renamed = sorted(self._partners[n].get(a.key, a.key) for a, _ in x.terms)
            return x == y or (bool(x.terms) and renamed == sorted(a.key for a, _ in y.terms))

        def same(x: Index, y: Index) -> bool:
            return _shape_of(x) == _shape_of(y) and x.const == y.const

        require(len(first.args) == len(other.args))
        return tuple(paired(first.args, other.args, met, same, lambda x, y: _shape_of(x) == _shape_of(y)))

    def symbol(self, several: Column[str]) -> Index:
        """Symbols that stand for each other: those of loops, a name for what their values have in common, or a
        parameter. Raises Unlike."""
        found = self._symbols.get(several)
        if found is None:
            require(self._bound.isdisjoint(several))
            values = [self.values.get(name) for name in several]
            value = None
            if all(x is not None for x in values):
                try:
                    value = self.index(tuple(x for x in values if x is not None))
                except Unlike:
                    value = None
            hint = several[0].rpartition("_")[0] or several[0]
            if value is None:
                found = self._parameter(hint, tuple(map(sym, several)))
            elif value.is_short:
                found = value
            else:
                name = self.builder.fresh(hint)
                self.lets.append(Let(name, value))
                found = sym(name)
            self._meet(several, found)
        return found

    def _meet(self, several: Column[str], found: Index) -> None:
        self._symbols[several] = found
        for partners, name in zip(self._partners, several, strict=True):
            partners.setdefault(several[0], name)

    def _parameter(self, hint: str, values: Column[Index]) -> Index:
        name = self.builder.fresh(hint)
        self.parameters[name] = values
        return sym(name)

    def _number(self, several: Column[int]) -> Index:
        """Numbers as a parameter, or as a multiple of one and a number."""
        first = several[0]
        apart = [n - first for n in several]
        if not any(apart):
            return const(first)
        by = gcd(*apart) * (1 if next(d for d in apart if d) > 0 else -1)
        steps = tuple(d // by for d in apart)
        of = self.proportions.setdefault(steps, Proportion(first, by))
        if by % of.step:
            of = self.proportions[steps] = Proportion(first, gcd(by, of.step))
            self.refined = True
        if steps not in self._numbers:
            self._numbers[steps] = self._parameter("n", tuple(const(of.first + d * of.step) for d in steps))
        return (self._numbers[steps] - of.first).scaled(by // of.step) + first


def _shape(a: Atom) -> Hashable:
    """The structure of an atom: all but names and numbers."""
    return (a.kind, a.function, *sorted([_shape_of(x) for x in a.args], key=repr)) if a.args else "sym"


def _shape_of(x: Index) -> Hashable:
    return tuple(sorted([(c, _shape(a)) for a, c in x.terms], key=repr))
