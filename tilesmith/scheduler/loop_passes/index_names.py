"""Naming of index expressions: a sum that occurs again and again is worked out once, where its parts are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from operator import is_

from tilesmith.scheduler.ir.index import Index, Terms, divide, maximum, minimum, modulo, multiply, sym
from tilesmith.scheduler.ir.loop.program import Body, Function, Let, MutableIndex, Program, RowPointer, Statement
from tilesmith.scheduler.ir.loop.row_coordinates import row_coordinates, row_offset
from tilesmith.scheduler.ir.loop.traversal import (
    NESTING,
    defined,
    defined_inside,
    indices,
    regions,
    walk,
    with_indices,
    with_regions,
)

_LINE = 24
"""Characters of a definition, beside its name and its value."""
_NAME = 8

_BUILD = {"min": minimum, "max": maximum, "div": divide, "mod": modulo, "mul": multiply}
"""The functions that make the atoms of an index."""


def named_indices(program: Program) -> Program:
    """The program with names for sums of symbols that its body uses more than once."""
    taken = {name for part in (program.derivation, program.bounds) for s in walk(part) for name in defined(s)}
    taken |= {a.c_name for a in program.arguments} | {t.c_name for t in program.tables}
    taken |= {p.c_name for p in (*program.params, *program.derived)}
    return replace(program, body=_Naming(program.body, taken).body)


@dataclass(slots=True)
class _Block:
    """A block that is the innermost one to define a part of some sums, which are told by their terms: how often each is
    used, and those that a statement is the first to use, by its number: parts ahead of what they are parts of.
    `concerned` are the statements of the block that use sums, wherever these belong."""

    uses: Counter[Terms] = field(default_factory=Counter)
    first: dict[int, list[Terms]] = field(default_factory=dict)
    concerned: set[int] = field(default_factory=set)
    statement: int = 0  # the one whose sums are counted

    def wanted(self) -> set[Terms]:
        """The sums that are worth a name."""
        often = ((x, n, len(Index(0, x).key)) for x, n in self.uses.items() if n > 1)
        return {x for x, n, length in often if n * (length - _NAME) > _LINE + _NAME + length}


class _Naming:
    """Counts the sums of every block, and then gives them names, block by block in the same order."""

    def __init__(self, body: Body, taken: set[str]) -> None:
        self.changing: set[str] = set()
        self.variables: set[str] = set()
        self.level: dict[str, int] = {}
        self.numbers: dict[str, count[int]] = {}
        self.constants: dict[Terms, set[int]] = {}
        self.counted: list[_Block] = []
        self._count(body, [], ())
        self.taken = taken | self.level.keys()
        self.names: dict[Terms, Index] = {}
        self.blocks = iter(self.counted)
        self.body = self._named(body)

    def _count(self, body: Body, outer: Sequence[_Block], inside: tuple[str, ...]) -> None:
        """Counts the sums of a block, which the statement around it defines names for, and of those inside."""
        here = _Block()
        self.counted.append(here)
        blocks = [*outer, here]
        self.level |= dict.fromkeys(inside, len(outer))
        for n, s in enumerate(body):
            here.statement = n
            for x in _indices(s):
                if not x.is_short:
                    here.concerned.add(n)
                    self._count_index(x, blocks)
            if isinstance(s, NESTING):
                if not isinstance(s, Function):
                    self.variables.update(defined_inside(s))
                for region in regions(s):
                    self._count(region, blocks, defined_inside(s))
            for name in defined(s):
                self.level[name] = len(outer)
            if isinstance(s, MutableIndex):
                self.changing.add(s.name)

    def _count_index(self, x: Index, blocks: Sequence[_Block]) -> None:
        symbols = x.symbols()
        home = None
        if self.changing.isdisjoint(symbols):
            home = blocks[max([self.level.get(name, 0) for name in symbols])]
            home.uses[x.terms] += 1
            self.constants.setdefault(x.terms, set()).add(x.const)
            if home.uses[x.terms] > 1:
                return  # what it consists of is counted
        for atom, _ in x.terms:
            for arg in atom.args:
                if not arg.is_short:
                    self._count_index(arg, blocks)
        if home is not None:
            home.first.setdefault(home.statement, []).append(x.terms)

    def _named(self, body: Body) -> Body:
        """A block with names for what occurs in it more than once, each ahead of its first use."""
        block = next(self.blocks)
        wanted = block.wanted()
        late: set[Terms] = set()  # first used by what has a name of its own already
        out: list[Statement] = []
        outer = dict(self.names)
        for n, s in enumerate(body):
            if isinstance(s, Let) and s.value.terms in wanted:  # it has a name
                wanted.discard(s.value.terms)
                late |= wanted.intersection(block.first.get(n, ()))
                out.append(_with_indices(s, self._changed))
                self.names[s.value.terms] = sym(s.name) - s.value.const
                continue
            for found in self._sums_inside(s) if late else block.first.get(n, ()):
                if found in wanted:
                    wanted.discard(found)
                    late.discard(found)
                    out.append(self._definition(found))
            changed = _with_indices(s, self._changed) if n in block.concerned else s
            out.append(with_regions(changed, self._named) if isinstance(s, NESTING) else changed)
        self.names = outer
        return tuple(out)

    def _definition(self, x: Terms) -> Let:
        """A name for a sum, with the constant that is always added to it, which it has from now on."""
        always = self.constants[x]
        added = next(iter(always)) if len(always) == 1 else 0
        total = Index(0, x)
        made = Let(self._fresh(total), self._changed(total) + added)
        self.names[x] = sym(made.name) - added
        return made

    def _fresh(self, x: Index) -> str:
        moving = [name for name in x.symbols() if name in self.variables]
        stem = re.split(r"[kv]?_", moving[0])[0] if moving else "at"
        name = next(n for k in self.numbers.setdefault(stem, count()) if (n := f"{stem}_{k}") not in self.taken)
        self.taken.add(name)
        return name

    def _changed(self, x: Index) -> Index:
        found = self.names.get(x.terms)
        if found is not None:
            return found + x.const
        for a, _ in x.terms:
            if a.args:
                return self._rebuilt(x)
        return x

    def _rebuilt(self, x: Index) -> Index:
        """A sum whose parts have no names, with names for parts of these."""
        changed = {a: [self._changed(arg) for arg in a.args] for a, _ in x.terms}
        if all(all(map(is_, args, a.args)) for a, args in changed.items()):
            return x
        total = Index(x.const)
        for a, c in x.terms:
            total += reduce(_BUILD[a.kind], changed[a]).scaled(c) if a.args else Index(0, ((a, c),))
        return total

    def _sums_inside(self, s: Statement) -> Iterator[Terms]:
        """The sums of a statement and of those inside of it, parts before what they are parts of. A sum that has a name
        has its parts no more."""
        for x in dict.fromkeys(x for one in walk((s,)) for x in _indices(one)):
            yield from self._sums(x)

    def _sums(self, x: Index) -> Iterator[Terms]:
        if not x.is_short and x.terms not in self.names:
            for atom, _ in x.terms:
                for arg in atom.args:
                    yield from self._sums(arg)
            yield x.terms


def _indices(s: Statement) -> Sequence[Index]:
    """The indices of a statement that may have names: of a row, its coordinates."""
    at = row_coordinates(s.buffer, s.offset) if isinstance(s, RowPointer) else None
    return indices(s) if at is None else [x for x in at if x is not None]


def _with_indices(s: Statement, change: Callable[[Index], Index]) -> Statement:
    """A statement with those indices changed."""
    if not isinstance(s, RowPointer) or (at := row_coordinates(s.buffer, s.offset)) is None:
        return with_indices(s, change)
    changed = tuple([None if x is None else change(x) for x in at])
    return s if all(map(is_, changed, at)) else replace(s, offset=row_offset(s.buffer, changed))
