"""Kernel outlining: the root of a loop program taken apart into what the host does and the kernels that it starts.

A parallel loop is a kernel, whose iterations work-groups share. What is left between the loops of one is a kernel of a
single work-group. The host has the sizes, allocates, and runs loops around parallel ones; values that it cannot compute
are computed in every kernel that needs them, but for what was accumulated: that goes through memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilesmith.scheduler.errors import InternalError
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Allocate,
    Apart,
    AssignIndex,
    Bind,
    Body,
    Comment,
    Define,
    Extents,
    Free,
    If,
    Let,
    Loop,
    MutableIndex,
    OverflowGuard,
    PeelVectors,
    RowPointer,
    Scratch,
    Statement,
    Store,
)
from tilesmith.scheduler.ir.loop.traversal import assigned, defined, defined_inside, regions, used, walk, with_regions
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer, Value

Simple: TypeAlias = Let | MutableIndex | AssignIndex | PeelVectors | OverflowGuard | Scratch | Allocate | Free
Host: TypeAlias = "Simple | HostLoop | HostIf | Kernel"
"""The steps of the host, in order."""

DEFINITIONS = (Define, RowPointer, Bind, Let, PeelVectors)
"""Statements that kernels repeat where they need what these define."""


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop of the host, around kernels."""

    loop: Loop
    body: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class HostIf:
    """A choice of the host between kernels."""

    choice: If
    body: tuple[Host, ...]
    otherwise: tuple[Host, ...]


@dataclass(slots=True)
class Kernel:
    """A kernel: `body`, in which the work-groups share the iterations of `shared`, its last statement, if there is
    one; else a single one runs it."""

    name: str
    comment: str
    body: list[Statement]
    shared: Loop | None

    def statements(self) -> Iterator[Statement]:
        """All statements, those inside of others after them."""
        return walk(tuple(self.body))

    def scratches(self) -> tuple[str, ...]:
        """The names of what its work-groups have buffers in."""
        return tuple(dict.fromkeys(s.scratch.name for s in self.statements() if isinstance(s, Bind)))

    @property
    def keeps_nothing(self) -> bool:
        """True where buffers begin and end in an iteration of the shared loop: what is bound ahead of it, windows that
        slide from one launch to the next among it, outlives the launch."""
        return not any(isinstance(s, Bind) for s in self.body)


def outlined(body: Body) -> tuple[Host, ...]:
    """The steps of the host for the body of a program."""
    return _Outliner(_joined(body)).run()


def _joined(body: Body) -> Body:
    """The body with blocks that may stand apart in their places: kernels are functions enough."""
    return tuple(x for s in body for x in (_joined(s.body) if isinstance(s, Apart) else (with_regions(s, _joined),)))


@dataclass(slots=True)
class _Outliner:
    body: Body
    made: list[Kernel] = field(default_factory=list)
    known: dict[str, Statement] = field(default_factory=dict)  # what defines the names that only kernels know
    owners: dict[str, Kernel] = field(default_factory=dict)  # the kernels that have accumulators
    kept: dict[str, Buffer] = field(default_factory=dict)  # the memory of what was accumulated
    moved: set[str] = field(default_factory=set)  # the indices that kernels change

    def run(self) -> tuple[Host, ...]:
        self.moved = set(self._moved(self.body))
        steps = self._block(self.body)
        for kernel in self.made:
            self._complete(kernel)
        kept = tuple(Allocate(Extents(b, tuple(range(len(b.dims))), tuple(b.extent))) for b in self.kept.values())
        return (*kept, *steps, *(Free(b) for b in self.kept.values()))

    def _moved(self, body: Body) -> Iterator[str]:
        for s in body:
            if self._is_host(s):
                yield from (name for region in regions(s) for name in self._moved(region))
            elif regions(s):
                yield from (name for x in walk((s,)) if (name := assigned(x)) is not None)

    # the host's part ------------------------------------------------------------

    def _block(self, body: Body) -> tuple[Host, ...]:
        steps: list[Host] = []
        pending: list[Statement] = []
        comment = ""

        def flush() -> None:
            if any(not isinstance(s, (*DEFINITIONS, Comment)) for s in pending):
                steps.append(self._kernel(comment, pending, None))
            pending.clear()

        for s in body:
            match s:
                case Comment():
                    comment = s.text if not pending else comment
                    pending.append(s)
                case Loop(parallel=True) if not self._needs_data(s):
                    flush()
                    steps.append(self._kernel(comment, [s], s))
                case Loop() if self._is_host(s):
                    flush()
                    steps.append(HostLoop(s, self._block(s.body)))
                case If() if self._is_host(s):
                    flush()
                    steps.append(HostIf(s, self._block(s.body), self._block(s.otherwise)))
                case Free() | AssignIndex() if isinstance(s, Free) or s.name not in self.moved:
                    flush()
                    steps.append(s)
                case Scratch() | Allocate() | OverflowGuard():
                    steps.append(s)
                case Let() | PeelVectors() if not self._needs_data(s):
                    steps.append(s)
                case MutableIndex() if s.name not in self.moved:
                    steps.append(s)
                case _:
                    pending.append(s)
                    if isinstance(s, (*DEFINITIONS, Accumulator, MutableIndex)):
                        self.known.update(dict.fromkeys(defined(s), s))
        flush()
        return tuple(steps)

    def _needs_data(self, s: Statement) -> bool:
        """True of a statement of whose iterations only data tells."""
        return not self.known.keys().isdisjoint(used(s))

    def _is_host(self, s: Statement) -> bool:
        """True of a statement that the host runs: one with parallel loops inside, on which it can decide."""
        if not regions(s) or not any(isinstance(x, Loop) and x.parallel for x in walk((s,))):
            return False
        return not self._needs_data(s) and not (isinstance(s, If) and s.condition is not None)

    def _kernel(self, comment: str, statements: Iterable[Statement], shared: Loop | None) -> Kernel:
        body = list(statements)
        stored = [s.buffer.stage for s in walk(tuple(body)) if hasattr(s, "buffer") and not isinstance(s, RowPointer)]
        made = Kernel(f"{stored[-1] if stored else 'values'}_{len(self.made)}", comment, body, shared)
        self.made.append(made)
        self.owners.update({s.result.name: made for s in body if isinstance(s, Accumulator)})
        return made

    # what kernels need of each other ------------------------------------------------------------

    def _complete(self, kernel: Kernel) -> None:
        """Puts what a kernel needs of what others define at its beginning."""
        inside = names_inside(kernel.statements())
        first: list[Statement] = []

        def need(names: Iterable[str]) -> None:
            for name in names:
                source = self.known.get(name)
                if source is None or name in inside:
                    continue
                if isinstance(source, Accumulator):
                    inside.add(name)
                    first.append(Define(source.result, ops.Load(self._memory(source.result).pointer, const(0))))
                    continue
                if isinstance(source, MutableIndex):
                    raise InternalError(f"'{name}' changes in one kernel and is read in another")
                inside.update(defined(source))
                need(used(source))
                first.append(source)

        need([name for s in kernel.statements() for name in used(s)])
        lost = {name for s in kernel.statements() if (name := assigned(s)) is not None and name not in inside}
        if lost:
            raise InternalError(f"'{min(lost)}' changes in a kernel, and is not one of it")
        kernel.body[:0] = first

    def _memory(self, v: Value) -> Buffer:
        """The memory of a value that one kernel accumulates and others read."""
        found = self.kept.get(v.name)
        if found is None:
            found = Buffer(v.name, 0, v.type, (), 0, "call", Pointer(f"{v.name}_kept"))
            if v.lanes > 1:
                if v.mask_bits:
                    raise InternalError(f"the mask '{v.name}' is accumulated in one kernel and read in another")
                lanes = const(v.lanes)
                found = replace(
                    found, dims=("lane",), origin=[const(0)], stride=[const(1)], ring=[None], extent=[lanes]
                )
            self.kept[v.name] = found
            self.owners[v.name].body.append(Store(found, found.pointer, const(0), v))
        return found


def names_inside(statements: Iterable[Statement]) -> set[str]:
    """The names that statements define, those of loops among them."""
    return {name for s in statements for name in (*defined(s), *defined_inside(s))}
