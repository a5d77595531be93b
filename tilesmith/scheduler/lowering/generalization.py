"""Least general generalisation (Plotkin, A Note on Inductive Generalization, 1970; also anti-unification) of the loops
of groups that are alike: one text of which each of them is an instance.

It goes through the statements of all members at once. What is the same in all of them stays; loop variables stand for
each other; buffers, strides and numbers that differ are parameters. Numbers that differ in proportion are made of one
parameter, so that lowering proves of their differences what it does of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any, TypeVar

from tilesmith.scheduler.analysis.stage_form import form
from tilesmith.scheduler.ir.index import Atom, Index, const, remade, sym
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.computations import Compute, DimRange, FusedRow, Reads, RowStage
from tilesmith.scheduler.ir.loop.program import (
    Apart,
    AssignIndex,
    Bind,
    Body,
    Comment,
    Extents,
    Fence,
    Function,
    If,
    Invoke,
    Let,
    Loop,
    MutableIndex,
    Ordered,
    Scratch,
    Statement,
)
from tilesmith.scheduler.ir.loop.traversal import used, walk
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, Pointer
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

T = TypeVar("T")
Column = tuple[T, ...]
"""The parts that stand at one place in the members, in the order of these."""


class Unlike(Exception):
    """Raised where members differ in more than names and numbers."""


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of a program: the values of symbols that stand for others, stages by name, what lowering goes by beside
    the form of a stage, and the stages that are outputs."""

    values: Mapping[str, Index]
    stages: Mapping[str, Stage]
    beside: Callable[[str], Hashable]
    outputs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Proportion:
    """Numbers that differ by multiples of `step`: those of a parameter, which begins with `first`."""

    first: int
    step: int


Proportions = dict[Column[int], Proportion]
"""Proportions by how many steps each member is from the first."""


def proportions(trial: Builder, known: Known, members: Column[Body]) -> Proportions:
    """The proportions of the numbers in which members differ, all of them multiples. Takes names of a builder that has
    no other use. Raises Unlike."""
    found: Proportions = {}
    refined = True
    while refined:
        common = Generalization(trial, known, members, found)
        common.function("")
        refined = common.refined
    return found


@dataclass(slots=True)
class Generalization:
    """The generalisation of `members`, blocks that each stand for themselves, with fresh names of a builder. Adds to
    `proportions` what they do not have."""

    builder: Builder
    known: Known
    members: Column[Body]
    proportions: Proportions
    refined: bool = False  # whether a proportion was, after its parameter had been used
    _symbols: dict[Column[str], Index] = field(default_factory=dict)
    _indices_met: dict[Column[Index], Index] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)
    _partners: list[dict[str, str]] = field(default_factory=list)
    _lets: list[Let] = field(default_factory=list)
    _given: dict[str, Column[Index]] = field(default_factory=dict)
    _numbers: dict[Column[int], Index] = field(default_factory=dict)
    _buffers: dict[Column[Pointer], tuple[Column[Buffer], Buffer]] = field(default_factory=dict)
    _layouts: dict[str, tuple[Column[Scratch], Scratch]] = field(default_factory=dict)
    _names: list[dict[str, str]] = field(default_factory=list)
    _forms: set[Column[str]] = field(default_factory=set)

    def function(self, name: str) -> tuple[Function, tuple[Invoke, ...]]:
        """A function of that name, and what each member is by it. Raises Unlike."""
        self._partners = [{} for _ in self.members]
        self._names = [{} for _ in self.members]
        body = self._block(self.members)
        for members, buffer in self._buffers.values():
            if buffer is not members[0]:
                self._complete(members, buffer)
        self._require_distinct()
        return self._made(name, body)

    def _made(self, name: str, body: Body) -> tuple[Function, tuple[Invoke, ...]]:
        bound = {b.pointer for _, layout in self._layouts.values() for b in (m.buffer for m in layout.buffers)}
        own = [(members, b) for members, b in self._buffers.values() if b is not members[0] and b.pointer not in bound]
        needed = {n for s in walk(body) for n in used(s)}
        described = (x for _, b in self._buffers.values() for x in (*b.origin, *b.stride, *b.extent))
        needed.update(n for x in described for n in x.symbols())
        lets: list[Let] = []
        for let in reversed(self._lets):
            if let.name in needed:
                lets.insert(0, let)
                needed.update(let.value.symbols())
        given = {symbol: column for symbol, column in self._given.items() if symbol in needed}
        stages = dict.fromkeys(n for member in self.members for s in walk(member) for n in _computed(s))
        made = Function(
            name,
            tuple(given),
            tuple(b for _, b in own),
            (*lets, *body),
            tuple(layout for _, layout in self._layouts.values()),
            ", ".join(stages),
        )
        calls = (
            Invoke(
                name,
                tuple(column[n] for column in given.values()),
                tuple(members[n] for members, _ in own),
                tuple(members[n] for members, _ in self._layouts.values()),
            )
            for n in range(len(self.members))
        )
        return made, tuple(calls)

    # statements ------------------------------------------------------------

    def _block(self, bodies: Column[Body]) -> Body:
        _require(len({len(body) for body in bodies}) == 1)
        return tuple(map(self._statement, zip(*bodies, strict=True)))

    def _statement(self, several: Column[Statement]) -> Statement:
        first = several[0]
        _require(all(type(s) is type(first) for s in several))
        match first:
            case Comment() | Fence():
                return first
            case Let() | MutableIndex() | AssignIndex():
                value = self._index(_each(several, "value"))
                if isinstance(first, AssignIndex):
                    _require(self._symbol(_each(several, "name")) == sym(first.name))
                else:
                    self._bind(_each(several, "name"))
                return replace(first, value=value)
            case Loop(skip=None, seen=None):
                _same(several, "step", "parallel", "once")
                lo, hi = self._index(_each(several, "lo")), self._index(_each(several, "hi"))
                self._bind(_each(several, "var"))
                return replace(first, lo=lo, hi=hi, body=self._block(_each(several, "body")))
            case If(condition=None):
                conditions = self._indices(_each(several, "nonnegative"))
                body, otherwise = self._block(_each(several, "body")), self._block(_each(several, "otherwise"))
                return replace(first, nonnegative=conditions, body=body, otherwise=otherwise)
            case Apart() | Ordered():
                return replace(first, body=self._block(_each(several, "body")))
            case Bind():
                return Bind(self._layout(_each(several, "scratch")))
            case Compute(updates=()):
                _same(several, "order", "vector", "unroll", "block", "stream")
                self._same_stage(_each(several, "stage"), first.reads.inlined)
                buffers, box = self._all_buffers(_each(several, "buffers")), self._box(_each(several, "box"))
                return replace(first, buffers=buffers, box=box, reads=self._reads(_each(several, "reads")))
            case FusedRow():
                _same(several, "order", "vector", "room", "unroll", "waiting", "stream")
                return self._row(first, tuple(s for s in several if isinstance(s, FusedRow)))
            case _:
                raise Unlike

    def _row(self, first: FusedRow, several: Column[FusedRow]) -> FusedRow:
        streams: list[Column[RowStage]] = _zipped(_each(several, "stages"))
        inlined = (*first.reads.inlined, *(s.stage for s in first.stages))
        self._same_stage(_each(several, "output"), inlined)
        for column in streams:
            self._same_stage(_each(column, "stage"), inlined)
        return replace(
            first,
            buffers=self._all_buffers(_each(several, "buffers")),
            box=self._box(_each(several, "box")),
            stages=tuple(map(self._row_stage, streams)),
            reads=self._reads(_each(several, "reads")),
            anchor=self._index(_each(several, "anchor")),
        )

    def _row_stage(self, several: Column[RowStage]) -> RowStage:
        _same(several, "moving")
        ring: tuple[Ends, ...] = tuple(self._ends(ends) for ends in _zipped(_each(several, "ring")))
        return replace(several[0], ring=ring, at=self._indices(_each(several, "at")))

    def _box(self, several: Column[tuple[DimRange, ...]]) -> tuple[DimRange, ...]:
        found = []
        for column in _zipped(several):
            _same(column, "dim")
            found.append(DimRange(column[0].dim, *self._ends(tuple(x.ends for x in column))))
        return tuple(found)

    def _reads(self, several: Column[Reads]) -> Reads:
        """The memory that is read: buffers of stages that stand for each other, in whatever order."""
        first = several[0]
        _same(several, "prefetch")
        for n, reads in enumerate(several):
            renamed = {(self._name_in(n, x.stage), x.dim, x.rows) for x in first.ahead}
            _require(renamed == {(x.stage, x.dim, x.rows) for x in reads.ahead})
            _require(len(reads.buffers) == len(first.buffers))
        theirs = [{(b.stage, b.component): b for b in reads.buffers} for reads in several]
        found = []
        for b in first.buffers:
            column = [of.get((self._name_in(n, b.stage), b.component)) for n, of in enumerate(theirs)]
            found.append(self._buffer(tuple(x for x in column if x is not None)))
        return replace(first, buffers=tuple(found))

    # stages ------------------------------------------------------------

    def _name_in(self, n: int, stage: str) -> str:
        """The stage of the `n`-th member that stands where that of the first does."""
        if stage not in self._names[n]:
            raise Unlike
        return self._names[n][stage]

    def _called(self, several: Column[str]) -> None:
        """Notes stages that stand for each other."""
        for names, name in zip(self._names, several, strict=True):
            _require(names.setdefault(several[0], name) == name)

    def _same_stage(self, several: Column[str], inlined: Sequence[str]) -> None:
        """Stages of one form, and those that are inline in them."""
        self._called(several)
        if several in self._forms:
            return
        self._forms.add(several)
        stages = [self.known.stages[name] for name in several]
        forms = [form(s) for s in stages]
        _require(not any(s.updates for s in stages) and all(f.key == forms[0].key for f in forms))
        _require(all(s.types == stages[0].types for s in stages))
        _require(len({self.known.beside(name) for name in several}) == 1)
        for column in zip(*(f.names for f in forms), strict=True):
            self._called(column)
            if column[0] in inlined:
                self._same_stage(column, inlined)

    # indices ------------------------------------------------------------

    def _ends(self, several: Column[Ends]) -> Ends:
        return self._index(tuple(lo for lo, _ in several)), self._index(tuple(hi for _, hi in several))

    def _indices(self, several: Column[Sequence[Index]]) -> tuple[Index, ...]:
        return tuple(map(self._index, _zipped(several)))

    def _index(self, several: Column[Index], part: bool = False) -> Index:
        """The generalisation of indices. Numbers alone, that are no `part` of another index, stay numbers."""
        first = several[0]
        if all(x == first for x in several):
            return first
        _require(part or bool(first.terms))
        if several not in self._indices_met:
            self._indices_met[several] = self._sum(first, several)
        return self._indices_met[several]

    def _sum(self, first: Index, several: Column[Index]) -> Index:
        total = self._number(tuple(x.const for x in several))
        aligned = [self._aligned(n, first, x) for n, x in enumerate(several)]
        for (_, c), *atoms in zip(first.terms, *aligned, strict=True):
            total = total + self._atom(tuple(atoms)).scaled(c)
        return total

    def _aligned(self, n: int, first: Index, other: Index) -> list[Atom]:
        """The atoms of an index of the `n`-th member in the order of those of the first that they stand for."""
        _require(len(first.terms) == len(other.terms))
        if len(first.terms) == 1:
            _require(first.terms[0][1] == other.terms[0][1])
            return [other.terms[0][0]]
        places = _paired(
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
        _require(all(a.kind == first.kind and a.function == first.function for a in several))
        if first.kind == "sym":
            return self._symbol(tuple(a.key for a in several))
        args: list[Column[Index]] = _zipped(tuple(a.args for a in several))
        if first.kind in ("div", "mod"):
            _require(all(x == args[1][0] for x in args[1]))
        elif first.kind in ("min", "max", "mul"):
            args = _zipped(tuple(self._aligned_arguments(n, first, a) for n, a in enumerate(several)))
        return remade(first, [self._index(column, part=True) for column in args])

    def _aligned_arguments(self, n: int, first: Atom, other: Atom) -> tuple[Index, ...]:
        def met(x: Index, y: Index) -> bool:
            renamed = sorted(self._partners[n].get(a.key, a.key) for a, _ in x.terms)
            return x == y or (bool(x.terms) and renamed == sorted(a.key for a, _ in y.terms))

        def same(x: Index, y: Index) -> bool:
            return _shape_of(x) == _shape_of(y) and x.const == y.const

        _require(len(first.args) == len(other.args))
        return tuple(_paired(first.args, other.args, met, same, lambda x, y: _shape_of(x) == _shape_of(y)))

    def _symbol(self, several: Column[str]) -> Index:
        """Symbols that stand for each other: those of loops, a name for what their values have in common, or a
        parameter."""
        found = self._symbols.get(several)
        if found is None:
            _require(self._bound.isdisjoint(several))
            values = [self.known.values.get(name) for name in several]
            value = None
            if all(x is not None for x in values):
                try:
                    value = self._index(tuple(x for x in values if x is not None))
                except Unlike:
                    value = None
            hint = several[0].rpartition("_")[0] or several[0]
            if value is None:
                found = self._parameter(hint, tuple(map(sym, several)))
            elif value.is_short:
                found = value
            else:
                name = self.builder.fresh(hint)
                self._lets.append(Let(name, value))
                found = sym(name)
            self._meet(several, found)
        return found

    def _bind(self, several: Column[str]) -> None:
        """Names that the members define stand for each other: that of the first for all."""
        self._bound.update(several)
        self._meet(several, sym(several[0]))

    def _meet(self, several: Column[str], found: Index) -> None:
        self._symbols[several] = found
        for partners, name in zip(self._partners, several, strict=True):
            partners.setdefault(several[0], name)

    def _parameter(self, hint: str, values: Column[Index]) -> Index:
        name = self.builder.fresh(hint)
        self._given[name] = values
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

    # memory ------------------------------------------------------------

    def _all_buffers(self, several: Column[tuple[Buffer, ...]]) -> tuple[Buffer, ...]:
        return tuple(map(self._buffer, _zipped(several)))

    def _buffer(self, several: Column[Buffer]) -> Buffer:
        """Buffers that stand for each other: that of all of them, or a parameter, which is described when all names are
        known that its places are made of."""
        _require(len(several) == len(self.members))
        first = several[0]
        key = tuple(b.pointer for b in several)
        if key not in self._buffers:
            self._called(tuple(b.stage for b in several))
            alike = all(_kind(b) == _kind(first) for b in several)
            _require(alike and len({b.where == "argument" and b.stage in self.known.outputs for b in several}) == 1)
            made = first
            if any(p != first.pointer for p in key):
                pointer = Pointer(self.builder.fresh(first.stage))
                made = replace(first, pointer=pointer, origin=[], stride=[], ring=list(first.ring), extent=[])
            self._buffers[key] = several, made
        return self._buffers[key][1]

    def _complete(self, several: Column[Buffer], made: Buffer) -> None:
        made.origin += self._indices(_each(several, "origin"))
        made.stride += self._indices(_each(several, "stride"))
        made.extent += self._indices(_each(several, "extent"))

    def _layout(self, several: Column[Scratch]) -> Scratch:
        first = several[0]
        if first.name not in self._layouts:
            buffers = []
            for column in _zipped(_each(several, "buffers")):
                _same(column, "order")
                memory: Column[Buffer] = _each(column, "buffer")
                buffers.append(Extents(self._buffer(memory), column[0].order, ()))
            self._layouts[first.name] = several, Scratch(self.builder.fresh(first.name), tuple(buffers))
        members, made = self._layouts[first.name]
        _require(members == several)
        return made

    def _require_distinct(self) -> None:
        """Two buffers are two in every member: what is stored to one is not read of the other."""
        for n in range(len(self.members)):
            theirs = [key[n] for key in self._buffers]
            _require(len(set(theirs)) == len(theirs))


# helpers ------------------------------------------------------------


def _require(holds: bool) -> None:
    if not holds:
        raise Unlike


def _each(several: Column[Any], name: str) -> Column[Any]:
    """An attribute of each."""
    return tuple([getattr(x, name) for x in several])


def _same(several: Column[object], *names: str) -> None:
    """Attributes that are the same in all members."""
    _require(all(getattr(x, name) == getattr(several[0], name) for x in several for name in names))


def _zipped(several: Column[Sequence[T]]) -> list[Column[T]]:
    """The columns of sequences of one length."""
    _require(len({len(x) for x in several}) == 1)
    return list(zip(*several, strict=True))


def _paired(first: Sequence[T], other: Sequence[T], *tests: Callable[[T, T], bool]) -> list[T]:
    """The part of `other` that stands for each of `first`: by the first test that any of those left passes."""
    left, found = list(other), dict[int, T]()
    for is_partner in tests:
        for n, x in enumerate(first):
            at = next((k for k, y in enumerate(left) if is_partner(x, y)), None) if n not in found else None
            if at is not None:
                found[n] = left.pop(at)
    _require(not left and len(found) == len(first))
    return [found[n] for n in range(len(first))]


def _shape(a: Atom) -> Hashable:
    """The structure of an atom: all but names and numbers."""
    return (a.kind, a.function, *sorted([_shape_of(x) for x in a.args], key=repr)) if a.args else "sym"


def _shape_of(x: Index) -> Hashable:
    return tuple(sorted([(c, _shape(a)) for a, c in x.terms], key=repr))


def _kind(b: Buffer) -> tuple[object, ...]:
    """The kind of a buffer: all but names and places."""
    return b.component, b.type, b.dims, b.unit, b.where, b.ring, b.channels, b.pixels, b.margin, b.room


def _computed(s: Statement) -> tuple[str, ...]:
    return (s.stage,) if isinstance(s, Compute) else (s.output,) if isinstance(s, FusedRow) else ()
