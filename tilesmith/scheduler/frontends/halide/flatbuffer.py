"""Tables of FlatBuffers without generated code: fields by number, as serialised Halide pipelines have them.

The package `flatbuffers` reads them. Where a buffer says that it has more than a pipeline could, reading ends: tables
may be named from several places, so that few bytes can mean a great deal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flatbuffers import encode
from flatbuffers import number_types as numbers
from flatbuffers.table import Table as RawTable

MOST_READ = 2_000_000
"""Tables, and units of UNIT bytes of texts, that are read of a buffer, at most."""
MOST_OF_A_BYTE = 4
"""Units of MOST_READ for each byte of the buffer, at most. Tables take eight bytes or more: each may be named often."""
UNIT = 64


class BadBuffer(Exception):
    """The bytes are not what they should be."""


@dataclass(slots=True)
class _Budget:
    left: int

    def take(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise BadBuffer("the buffer says that it has more than a pipeline could")


def root(data: bytes) -> Table:
    """The outermost table of `data`. It and all that is in it raise BadBuffer, or MALFORMED for bytes out of place."""
    budget = _Budget(min(MOST_READ, MOST_OF_A_BYTE * len(data)))
    return Table(RawTable(data, encode.Get(numbers.UOffsetTFlags.packer_type, data, 0)), budget)


MALFORMED = (TypeError, ValueError, IndexError, OverflowError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Of a union, the first number is its type."""

    raw: Any
    budget: _Budget = field(repr=False)

    def _offset(self, number: int) -> int:
        found: int = self.raw.Offset(4 + 2 * number)
        return found

    def integer(self, number: int, flags: Any = numbers.Int32Flags, default: int = 0) -> int:
        """A number of the type of `flags`."""
        offset = self._offset(number)
        return int(self.raw.Get(flags, self.raw.Pos + offset)) if offset else default

    def real(self, number: int) -> float:
        """A float64."""
        offset = self._offset(number)
        return float(self.raw.Get(numbers.Float64Flags, self.raw.Pos + offset)) if offset else 0.0

    def truth(self, number: int) -> bool:
        return self.integer(number, numbers.Uint8Flags) != 0

    def text(self, number: int) -> str:
        """A string; empty where there is none."""
        offset = self._offset(number)
        return self._string(self.raw.Pos + offset) if offset else ""

    def table(self, number: int) -> Table | None:
        offset = self._offset(number)
        return self._table(self.raw.Pos + offset) if offset else None

    def union(self, number: int) -> tuple[int, Table] | None:
        """The kind and the table of the union whose type is field `number`."""
        kind, table = self.integer(number, numbers.Uint8Flags), self.table(number + 1)
        return None if table is None or kind == 0 else (kind, table)

    def tables(self, number: int) -> list[Table]:
        return [self._table(place) for place in self._vector(number, 4)]

    def texts(self, number: int) -> list[str]:
        return [self._string(place) for place in self._vector(number, 4)]

    def unions(self, number: int) -> list[tuple[int, Table]]:
        """The members of a vector of unions; the vector of their types is field `number`."""
        kinds = [int(self.raw.Get(numbers.Uint8Flags, place)) for place in self._vector(number, 1)]
        return list(zip(kinds, self.tables(number + 1), strict=True))

    def octets(self, number: int) -> bytes:
        """A vector of bytes."""
        offset = self._offset(number)
        if not offset:
            return b""
        start = self.raw.Vector(offset)
        return bytes(self.raw.Bytes[start : start + self.raw.VectorLen(offset)])

    def _vector(self, number: int, size: int) -> Iterator[int]:
        offset = self._offset(number)
        if not offset:
            return iter(())
        start = self.raw.Vector(offset)
        return iter(range(start, start + size * self.raw.VectorLen(offset), size))

    def _table(self, place: int) -> Table:
        self.budget.take(1)
        return Table(RawTable(self.raw.Bytes, self.raw.Indirect(place)), self.budget)

    def _string(self, place: int) -> str:
        found: bytes = self.raw.String(place)
        self.budget.take(1 + len(found) // UNIT)
        return found.decode("utf-8", "replace")
