"""Reading of FlatBuffers, as far as serialised Halide pipelines need it.

The format: https://flatbuffers.dev/internals. All offsets are little-endian. A table begins with a signed offset back
to its vtable, which has the place of every field by its number; a field that is missing there has its default.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass


class BadBuffer(Exception):
    """The bytes are not what they should be."""


def root(data: bytes) -> Table:
    """The outermost table of `data`."""
    return Table(data, Table(data, 0)._at("<I", 0))


@dataclass(frozen=True, slots=True)
class Table:
    """The table at `start`. Fields are asked for by number; of a union, the first number is its type."""

    data: bytes
    start: int

    def _place(self, field: int) -> int | None:
        vtable = self.start - self._at("<i", self.start)
        entry = 4 + 2 * field
        if entry >= self._at("<H", vtable):
            return None
        offset = self._at("<H", vtable + entry)
        return self.start + offset if offset else None

    def _at(self, code: str, place: int) -> int:
        try:
            value: int = struct.unpack_from(code, self.data, place)[0]
        except struct.error as error:
            raise BadBuffer(f"nothing is at byte {place}") from error
        return value

    def _to(self, place: int) -> int:
        return place + self._at("<I", place)

    def integer(self, field: int, code: str = "<i", default: int = 0) -> int:
        """A number; `code` is its form as `struct` writes it."""
        place = self._place(field)
        return default if place is None else self._at(code, place)

    def real(self, field: int) -> float:
        """A float64."""
        place = self._place(field)
        value: float = 0.0 if place is None else struct.unpack_from("<d", self.data, place)[0]
        return value

    def truth(self, field: int) -> bool:
        return self.integer(field, "<B") != 0

    def text(self, field: int) -> str:
        """A string; empty where there is none."""
        place = self._place(field)
        return "" if place is None else self._string(self._to(place))

    def table(self, field: int) -> Table | None:
        place = self._place(field)
        return None if place is None else Table(self.data, self._to(place))

    def union(self, field: int) -> tuple[int, Table] | None:
        """The kind and the table of the union whose type is `field`."""
        kind, table = self.integer(field, "<B"), self.table(field + 1)
        return None if table is None or kind == 0 else (kind, table)

    def tables(self, field: int) -> list[Table]:
        return [Table(self.data, self._to(place)) for place in self._vector(field, 4)]

    def texts(self, field: int) -> list[str]:
        return [self._string(self._to(place)) for place in self._vector(field, 4)]

    def unions(self, field: int) -> list[tuple[int, Table]]:
        """The members of a vector of unions; the vector of their types is `field`."""
        kinds = [self._at("<B", place) for place in self._vector(field, 1)]
        return list(zip(kinds, self.tables(field + 1), strict=True))

    def integers(self, field: int, code: str = "<i", size: int = 4) -> list[int]:
        return [self._at(code, place) for place in self._vector(field, size)]

    def octets(self, field: int) -> bytes:
        """A vector of bytes."""
        place = self._place(field)
        if place is None:
            return b""
        vector = self._to(place)
        return self.data[vector + 4 : vector + 4 + self._at("<I", vector)]

    def _vector(self, field: int, size: int) -> Iterator[int]:
        place = self._place(field)
        if place is None:
            return iter(())
        vector = self._to(place)
        first = vector + 4
        return iter(range(first, first + size * self._at("<I", vector), size))

    def _string(self, place: int) -> str:
        length = self._at("<I", place)
        return self.data[place + 4 : place + 4 + length].decode("utf-8", "replace")
