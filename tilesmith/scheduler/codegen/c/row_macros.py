"""Macros that give the rows of a buffer by their coordinates, where a program has several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilesmith.scheduler.codegen.c.types import Symbols, words
from tilesmith.scheduler.ir.index import Index, const, sym
from tilesmith.scheduler.ir.loop.program import RowPointer, Statement
from tilesmith.scheduler.ir.loop.row_coordinates import Coordinates, outer_dims, row_coordinates, row_offset
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer


@dataclass(frozen=True, slots=True)
class RowMacro:
    """The macro `name`, with its arguments and the row: it has the coordinates of the outer dims that are `told`, and
    mentions `names`. `rows` are the coordinates of those that it is for, by their offsets."""

    name: str
    arguments_and_row: str
    told: tuple[bool, ...]
    names: frozenset[str]
    rows: Mapping[Index, Coordinates]

    @property
    def definition(self) -> str:
        """The line that defines it."""
        return f"#define {self.name}{self.arguments_and_row}"

    def call(self, symbols: Symbols, s: RowPointer, known: Mapping[str, str]) -> str | None:
        """The pointer to a row by the macro; None where it has no such, or not all that it mentions is known there."""
        at = self.rows.get(s.offset)
        if at is None or not self.names <= known.keys():
            return None
        b = s.buffer
        first = [b.origin[d] if b.ring[d] is None else const(0) for d in outer_dims(b)]
        given = [x or least for x, least, told in zip(at, first, self.told, strict=True) if told]
        return f"{self.name}({', '.join(map(symbols.bare, given))})"


RowMacros: TypeAlias = Mapping[Pointer, RowMacro]
"""Macros by the pointers of the buffers."""


def row_macros(symbols: Symbols, statements: Iterable[Statement]) -> RowMacros:
    """The macros of a program."""
    rows: dict[Pointer, list[tuple[Index, Coordinates]]] = {}
    buffers: dict[Pointer, Buffer] = {}
    for s in statements:
        if isinstance(s, RowPointer) and (at := row_coordinates(s.buffer, s.offset)) is not None:
            buffers[s.buffer.pointer] = s.buffer
            rows.setdefault(s.buffer.pointer, []).append((s.offset, at))
    found: dict[Pointer, RowMacro] = {}
    for pointer, several in rows.items():
        made = _macro(symbols, buffers[pointer], several)
        if made is not None and all(made.name != other.name for other in found.values()):
            found[pointer] = made
    return found


def _macro(symbols: Symbols, b: Buffer, rows: Sequence[tuple[Index, Coordinates]]) -> RowMacro | None:
    """The macro for those rows of a buffer; None where it would be no shorter, or where dims are called as what it
    mentions."""
    told = tuple([any(x is not None for x in column) for column in zip(*(at for _, at in rows), strict=True)])
    outer = outer_dims(b)
    dims = [b.dims[d] for d, is_told in zip(outer, told, strict=True) if is_told]
    at = tuple([sym(f"({b.dims[d]})") if is_told else None for d, is_told in zip(outer, told, strict=True)])
    row = f"{b.pointer} + ({symbols.bare(row_offset(b, at))})"
    name = b.pointer.removesuffix("_data").upper()
    arguments_and_row = f"({', '.join(dims)}) ({row})"
    if len(rows) * (len(row) - len(name) - ARGUMENT * len(dims)) < len(f"#define {name}{arguments_and_row}"):
        return None
    mentioned = [
        b.origin[b.unit],
        *(x for d, y in zip(outer, told, strict=True) if y for x in (b.origin[d], b.stride[d])),
    ]
    names = words(" ".join([b.pointer, *(symbols.names.get(x, x) for index in mentioned for x in index.symbols())]))
    return RowMacro(name, arguments_and_row, told, frozenset(names), dict(rows)) if names.isdisjoint(dims) else None


ARGUMENT = 8
"""Characters of a coordinate, or thereabouts."""
