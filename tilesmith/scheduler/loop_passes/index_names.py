"""Naming of index expressions: a sum that occurs again and again is worked out once, where its parts are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import count

from tilesmith.scheduler.ir.index import Index, divide, maximum, minimum, modulo, multiply, sym
from tilesmith.scheduler.ir.loop.program import (
    Allocate,
    Bind,
    Body,
    CopyOut,
    Free,
    Let,
    MutableIndex,
    Program,
    Scratch,
    Statement,
)
from tilesmith.scheduler.ir.loop.traversal import (
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
_UNTOUCHED = (Allocate, Free, Scratch, Bind, CopyOut)
"""Statements whose indices describe buffers."""


_BUILD = {"min": minimum, "max": maximum, "div": divide, "mod": modulo, "mul": multiply}
"""The functions that make the atoms of an index."""


def named_indices(program: Program) -> Program:
    """The program with names for sums of symbols that its body uses more than once."""
    taken = {name for part in (program.derivation, program.bounds, program.body) for name in _local_names(part)}
    return replace(program, body=_Naming(program.body, taken).body)


def _local_names(body: Body) -> Iterator[str]:
    """The names that a block defines, and those inside of it, in order."""
    for s in walk(body):
        yield from defined(s)
        yield from defined_inside(s)


class _Naming:
    """`uses` counts the sums of each block, of the innermost one that defines a part of them."""

    def __init__(self, body: Body, taken: set[str]) -> None:
        self.taken = taken
        self.changing = {s.name for s in walk(body) if isinstance(s, MutableIndex)}
        self.variables = {name for s in walk(body) for name in defined_inside(s)}
        self.level: dict[str, int] = {}
        self.numbers: dict[str, count[int]] = {}
        self.uses: dict[int, Counter[Index]] = {}
        self.constants: dict[Index, set[int]] = {}
        self.indices: dict[int, list[Index]] = {}  # of statements, by identity: they are asked for three times
        self._count(body, [], ())
        self.names: dict[Index, Index] = {}
        self.body = self._named(body)

    def _count(self, body: Body, outer: list[Counter[Index]], variables: tuple[str, ...]) -> None:
        """Counts the sums of a block, and of those inside."""
        here: Counter[Index] = Counter()
        self.uses[id(body)] = here
        blocks = [*outer, here]
        self.level |= dict.fromkeys(variables, len(outer))
        for s in body:
            found = self.indices[id(s)] = [] if isinstance(s, _UNTOUCHED) else indices(s)
            for x in found:
                self._count_index(x, blocks)
            for region in regions(s):
                self._count(region, blocks, defined_inside(s))
            self.level |= dict.fromkeys(defined(s), len(outer))

    def _count_index(self, x: Index, blocks: list[Counter[Index]]) -> None:
        if x.is_short:
            return
        total, symbols = _sum(x), x.symbols()
        if self.changing.isdisjoint(symbols):
            home = blocks[max((self.level.get(name, 0) for name in symbols), default=0)]
            home[total] += 1
            self.constants.setdefault(total, set()).add(x.const)
            if home[total] > 1:
                return  # what it consists of is counted
        for atom, _ in x.terms:
            for arg in atom.args:
                self._count_index(arg, blocks)

    def _named(self, body: Body) -> Body:
        """A block with names for what occurs in it more than once, each ahead of its first use."""
        wanted = {x for x, n in self.uses[id(body)].items() if n * (len(x.key) - _NAME) > _LINE + _NAME + len(x.key)}
        out: list[Statement] = []
        outer = dict(self.names)
        for s in body:
            if isinstance(s, Let) and _sum(s.value) in wanted:  # it has a name
                total = _sum(s.value)
                wanted.discard(total)
                out.append(with_indices(s, self._changed))
                self.names[total] = sym(s.name) - s.value.const
                continue
            for found in self._sums_inside(s) if wanted else ():
                if found in wanted:
                    wanted.discard(found)
                    always = self.constants[found]
                    added = next(iter(always)) if len(always) == 1 else 0
                    value, name = self._changed(found), self._fresh(found)
                    out.append(Let(name, value + added))
                    self.names[found] = sym(name) - added
            changed = with_indices(s, self._changed) if self.indices[id(s)] else s
            out.append(with_regions(changed, self._named))
        self.names = outer
        return tuple(out)

    def _sums_inside(self, s: Statement) -> Iterator[Index]:
        """The sums of a statement and of those inside of it, parts before what they are parts of."""
        for x in dict.fromkeys(x for one in walk((s,)) for x in self.indices[id(one)]):
            yield from _parts(x)

    def _fresh(self, x: Index) -> str:
        moving = [name for name in x.symbols() if name in self.variables]
        stem = re.split(r"[kv]?_", moving[0])[0] if moving else "at"
        name = next(n for k in self.numbers.setdefault(stem, count()) if (n := f"{stem}_{k}") not in self.taken)
        self.taken.add(name)
        return name

    def _changed(self, x: Index) -> Index:
        if x.is_short:
            return x
        total = _sum(x)
        found = self.names.get(total)
        if found is not None:
            return found + x.const
        if all(a.kind == "sym" for a, _ in x.terms):
            return x
        parts = (
            Index(0, ((a, 1),)) if a.kind == "sym" else reduce(_BUILD[a.kind], map(self._changed, a.args))
            for a, _ in x.terms
        )
        return reduce(Index.__add__, (p.scaled(c) for p, (_, c) in zip(parts, x.terms, strict=True)), Index(x.const))


def _sum(x: Index) -> Index:
    return Index(0, x.terms) if x.const else x


def _parts(x: Index) -> Iterator[Index]:
    if not x.is_short:
        for atom, _ in x.terms:
            for arg in atom.args:
                yield from _parts(arg)
        yield _sum(x)
