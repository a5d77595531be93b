"""Rows that the work-items of a group share: loops of which no iteration needs another, and whose neighbours in memory
neighbours compute, so that what work-items that run together load and store is coalesced.

All work-items of a group run what is around such loops, each for itself, and meet at a barrier behind each of them. So
nothing else may store, and nothing else may load what these loops store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilesmith.scheduler.codegen.opencl.outline import Kernel
from tilesmith.scheduler.ir.index import Index, sym
from tilesmith.scheduler.ir.loop.ops import Operation
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Bind,
    Body,
    CopyOut,
    Define,
    Loop,
    MutableIndex,
    RowPointer,
    Scatter,
    Statement,
    Store,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.traversal import assigned, defined, defined_inside, operands_of, regions, used, walk
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer

STORES = (Store, Scatter, StreamAligned, StreamLine, CopyOut)


@dataclass(frozen=True, slots=True)
class Shared:
    """The loops of a kernel that its work-items share; with `barriers`, they wait for each other behind each of them.
    Where there is none, one work-item runs the kernel: `alone` says why."""

    rows: tuple[Loop, ...] = ()
    barriers: bool = False
    alone: str = ""


ALONE = Shared()
"""A work-item alone."""


def shared(kernel: Kernel) -> Shared:
    """The rows that the work-items of the kernel's groups share."""
    statements = tuple(kernel.statements())
    buffers = _buffers(statements)
    rows, outside = _divided(tuple(kernel.body), buffers)
    wrong = next((s for s in outside if isinstance(s, STORES)), None)
    if wrong is not None:
        return Shared(
            alone=f"what is stored to '{_stage(wrong)}' is of no loop along a row whose points are independent"
        )
    if not rows:
        return Shared(alone="there is no loop along a row")
    stored = {str(s.buffer.pointer) for s in statements if isinstance(s, Store)}
    early = [name for s in outside for name in _loaded(s, buffers) if name in stored]
    if early:
        return Shared(alone=f"'{early[0]}' is read between the loops that compute it")
    again = any(name in stored for s in statements for name in _loaded(s, buffers))
    return Shared(rows, again or len(rows) > 1 or _moves(rows[0], outside))


def _moves(row: Loop, outside: tuple[Statement, ...]) -> bool:
    """True of a row that begins elsewhere each time: another work-item may come to an element that one has stored."""
    around = {name for s in outside for name in (*defined(s), *defined_inside(s))}
    indices = (row.lo, *(s.index for s in walk(row.body) if isinstance(s, Store)))
    return any(not around.isdisjoint(index.symbols()) for index in indices)


def _divided(body: Body, buffers: Mapping[str, str]) -> tuple[tuple[Loop, ...], tuple[Statement, ...]]:
    """The loops of a block that work-items can share, the outermost ones, and all statements around them."""
    rows: list[Loop] = []
    outside: list[Statement] = []
    for s in body:
        if isinstance(s, Loop) and _is_row(s, buffers):
            rows.append(s)
            continue
        outside.append(s)
        for region in regions(s):
            more, around = _divided(region, buffers)
            rows += more
            outside += around
    return tuple(rows), tuple(outside)


def _is_row(loop: Loop, buffers: Mapping[str, str]) -> bool:
    """True of a loop that stores, and whose iterations are independent: each stores its own elements, which are
    neighbours of the next one's, and reads no other of the same buffer."""
    if loop.skip is not None or not loop.step.is_const or loop.step.const != 1:
        return False
    inside = tuple(walk(loop.body))
    stores = [s for s in inside if isinstance(s, Store)]
    if not stores or any(isinstance(s, STORES) and not isinstance(s, Store) for s in inside):
        return False
    own = {*defined_inside(loop), *(name for s in inside for name in (*defined(s), *defined_inside(s)))}
    if any(name is not None and name not in own for name in map(assigned, inside)):
        return False
    varying = _varying(loop, inside)
    rows = {s.result: s for s in inside if isinstance(s, RowPointer)}
    if any(not varying.isdisjoint(s.offset.symbols()) for s in rows.values()):
        return False
    if any(not _is_along(s.index, loop.var, own) for s in stores):
        return False
    places = {str(s.buffer.pointer): s.index for s in stores}
    if any(places[str(s.buffer.pointer)] != s.index for s in stores):
        return False
    return all(_reads_own(s, places, buffers) for s in inside)


def _is_along(index: Index, var: str, own: set[str]) -> bool:
    """True of an index that is the loop's variable and what all of its iterations know."""
    rest = index - sym(var)
    return index.coefficient(var) == 1 and own.isdisjoint(rest.symbols())


def _reads_own(s: Statement, places: Mapping[str, Index], buffers: Mapping[str, str]) -> bool:
    """True of a statement that reads of what is stored only the element that its own iteration stores."""
    for name in _loaded(s, buffers):
        at = getattr(s.op, "at", None) if isinstance(s, Define) else None
        if name in places and at != places[name]:
            return False
    return True


def _varying(loop: Loop, inside: tuple[Statement, ...]) -> set[str]:
    """The names that may differ from iteration to iteration."""
    found = set(defined_inside(loop))
    for s in inside:
        if isinstance(s, Accumulator | MutableIndex) or not found.isdisjoint(used(s)):
            found.update((*defined(s), *defined_inside(s)))
    return found


def _buffers(statements: tuple[Statement, ...]) -> dict[str, str]:
    """The buffers that pointers are into, by their names, as far as statements tell."""
    found: dict[str, str] = {}
    for s in statements:
        match s:
            case RowPointer():
                found[str(s.result)] = str(s.buffer.pointer)
            case Bind():
                found.update((str(m.buffer.pointer), str(m.buffer.pointer)) for m in s.scratch.buffers)
    return found


def _loaded(s: Statement, buffers: Mapping[str, str]) -> Iterator[str]:
    """The buffers that a statement loads from."""
    if isinstance(s, Define):
        operation: Operation = s.op
        yield from (buffers.get(str(o), str(o)) for o in operands_of(operation) if isinstance(o, Pointer))


def stores(s: Statement) -> bool:
    """True of a statement that writes to memory."""
    return isinstance(s, STORES)


def _stage(s: Statement) -> str:
    found: Buffer | None = getattr(s, "buffer", None)
    return "an output" if found is None else found.stage
