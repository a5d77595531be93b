"""Least general generalisation (Plotkin, A Note on Inductive Generalization, 1970; also anti-unification) of the loops
of groups that are alike: one text of which each of them is an instance.

It goes through the statements of all members at once. What is the same in all of them stays; loop variables stand for
each other; buffers, strides and numbers that differ are parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilesmith.scheduler.analysis.stage_form import form
from tilesmith.scheduler.ir.index import Index, sym
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
from tilesmith.scheduler.lowering.columns import Column, Unlike, each, require, require_same, zipped
from tilesmith.scheduler.lowering.index_generalization import IndexGeneralization, Proportions


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of a program: the values of symbols that stand for others, stages by name, what lowering goes by beside
    the form of a stage, and the stages that are outputs."""

    values: Mapping[str, Index]
    stages: Mapping[str, Stage]
    beside: Callable[[str], Hashable]
    outputs: frozenset[str]


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
    _common: IndexGeneralization = field(init=False)
    _buffers: dict[Column[Pointer], tuple[Column[Buffer], Buffer]] = field(default_factory=dict)
    _layouts: dict[str, tuple[Column[Scratch], Scratch]] = field(default_factory=dict)
    _names: list[dict[str, str]] = field(init=False)
    _forms: set[Column[str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        values, count = self.known.values, len(self.members)
        self._common = IndexGeneralization(self.builder, values, count, self.proportions)
        self._names = [{} for _ in self.members]

    @property
    def refined(self) -> bool:
        """True if a proportion was refined after its parameter had been used."""
        return self._common.refined

    def function(self, name: str) -> tuple[Function, tuple[Invoke, ...]]:
        """A function of that name, and what each member is by it. Raises Unlike."""
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
        for let in reversed(self._common.lets):
            if let.name in needed:
                lets.insert(0, let)
                needed.update(let.value.symbols())
        given = {symbol: column for symbol, column in self._common.parameters.items() if symbol in needed}
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
        require(len({len(body) for body in bodies}) == 1)
        return tuple(map(self._statement, zip(*bodies, strict=True)))

    def _statement(self, several: Column[Statement]) -> Statement:
        first = several[0]
        require(all(type(s) is type(first) for s in several))
        match first:
            case Comment() | Fence():
                return first
            case Let() | MutableIndex() | AssignIndex():
                value = self._common.index(each(several, "value"))
                if isinstance(first, AssignIndex):
                    require(self._common.symbol(each(several, "name")) == sym(first.name))
                else:
                    self._common.bind(each(several, "name"))
                return replace(first, value=value)
            case Loop(skip=None, seen=None):
                require_same(several, "step", "parallel", "once")
                lo, hi = self._common.index(each(several, "lo")), self._common.index(each(several, "hi"))
                self._common.bind(each(several, "var"))
                return replace(first, lo=lo, hi=hi, body=self._block(each(several, "body")))
            case If(condition=None):
                conditions = self._common.indices(each(several, "nonnegative"))
                body, otherwise = self._block(each(several, "body")), self._block(each(several, "otherwise"))
                return replace(first, nonnegative=conditions, body=body, otherwise=otherwise)
            case Apart() | Ordered():
                return replace(first, body=self._block(each(several, "body")))
            case Bind():
                return Bind(self._layout(each(several, "scratch")))
            case Compute(updates=()):
                require_same(several, "order", "vector", "unroll", "block", "stream")
                self._same_stage(each(several, "stage"), first.reads.inlined)
                buffers, box = self._all_buffers(each(several, "buffers")), self._box(each(several, "box"))
                return replace(first, buffers=buffers, box=box, reads=self._reads(each(several, "reads")))
            case FusedRow():
                require_same(several, "order", "vector", "room", "unroll", "waiting", "stream")
                return self._row(first, tuple(s for s in several if isinstance(s, FusedRow)))
            case _:
                raise Unlike

    def _row(self, first: FusedRow, several: Column[FusedRow]) -> FusedRow:
        streams: list[Column[RowStage]] = zipped(each(several, "stages"))
        inlined = (*first.reads.inlined, *(s.stage for s in first.stages))
        self._same_stage(each(several, "output"), inlined)
        for column in streams:
            self._same_stage(each(column, "stage"), inlined)
        return replace(
            first,
            buffers=self._all_buffers(each(several, "buffers")),
            box=self._box(each(several, "box")),
            stages=tuple(map(self._row_stage, streams)),
            reads=self._reads(each(several, "reads")),
            anchor=self._common.index(each(several, "anchor")),
        )

    def _row_stage(self, several: Column[RowStage]) -> RowStage:
        require_same(several, "moving")
        ring: tuple[Ends, ...] = tuple(self._common.ends(ends) for ends in zipped(each(several, "ring")))
        return replace(several[0], ring=ring, at=self._common.indices(each(several, "at")))

    def _box(self, several: Column[tuple[DimRange, ...]]) -> tuple[DimRange, ...]:
        found = []
        for column in zipped(several):
            require_same(column, "dim")
            found.append(DimRange(column[0].dim, *self._common.ends(tuple(x.ends for x in column))))
        return tuple(found)

    def _reads(self, several: Column[Reads]) -> Reads:
        """The memory that is read: buffers of stages that stand for each other, in whatever order."""
        first = several[0]
        require_same(several, "prefetch")
        for n, reads in enumerate(several):
            renamed = {(self._name_in(n, x.stage), x.dim, x.rows) for x in first.ahead}
            require(renamed == {(x.stage, x.dim, x.rows) for x in reads.ahead})
            require(len(reads.buffers) == len(first.buffers))
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
            require(names.setdefault(several[0], name) == name)

    def _same_stage(self, several: Column[str], inlined: Sequence[str]) -> None:
        """Stages of one form, and those that are inline in them."""
        self._called(several)
        if several in self._forms:
            return
        self._forms.add(several)
        stages = [self.known.stages[name] for name in several]
        forms = [form(s) for s in stages]
        require(not any(s.updates for s in stages) and all(f.key == forms[0].key for f in forms))
        require(all(s.types == stages[0].types for s in stages))
        require(len({self.known.beside(name) for name in several}) == 1)
        for column in zip(*(f.names for f in forms), strict=True):
            self._called(column)
            if column[0] in inlined:
                self._same_stage(column, inlined)

    # memory ------------------------------------------------------------

    def _all_buffers(self, several: Column[tuple[Buffer, ...]]) -> tuple[Buffer, ...]:
        return tuple(map(self._buffer, zipped(several)))

    def _buffer(self, several: Column[Buffer]) -> Buffer:
        """Buffers that stand for each other: that of all of them, or a parameter, which is described when all names are
        known that its places are made of."""
        require(len(several) == len(self.members))
        first = several[0]
        key = tuple(b.pointer for b in several)
        if key not in self._buffers:
            self._called(tuple(b.stage for b in several))
            alike = all(_kind(b) == _kind(first) for b in several)
            require(alike and len({b.where == "argument" and b.stage in self.known.outputs for b in several}) == 1)
            made = first
            if any(p != first.pointer for p in key):
                pointer = Pointer(self.builder.fresh(first.stage))
                made = replace(first, pointer=pointer, origin=[], stride=[], ring=list(first.ring), extent=[])
            self._buffers[key] = several, made
        return self._buffers[key][1]

    def _complete(self, several: Column[Buffer], made: Buffer) -> None:
        made.origin += self._common.indices(each(several, "origin"))
        made.stride += self._common.indices(each(several, "stride"))
        made.extent += self._common.indices(each(several, "extent"))

    def _layout(self, several: Column[Scratch]) -> Scratch:
        first = several[0]
        if first.name not in self._layouts:
            buffers = []
            for column in zipped(each(several, "buffers")):
                require_same(column, "order")
                memory: Column[Buffer] = each(column, "buffer")
                buffers.append(Extents(self._buffer(memory), column[0].order, ()))
            self._layouts[first.name] = several, Scratch(self.builder.fresh(first.name), tuple(buffers))
        members, made = self._layouts[first.name]
        require(members == several)
        return made

    def _require_distinct(self) -> None:
        """Two buffers are two in every member: what is stored to one is not read of the other."""
        for n in range(len(self.members)):
            theirs = [key[n] for key in self._buffers]
            require(len(set(theirs)) == len(theirs))


def _kind(b: Buffer) -> tuple[object, ...]:
    """The kind of a buffer: all but names and places."""
    return b.component, b.type, b.dims, b.unit, b.where, b.ring, b.channels, b.pixels, b.margin, b.room


def _computed(s: Statement) -> tuple[str, ...]:
    return (s.stage,) if isinstance(s, Compute) else (s.output,) if isinstance(s, FusedRow) else ()
