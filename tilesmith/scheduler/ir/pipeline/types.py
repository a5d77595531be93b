"""Scalar types of the pipeline language."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tilesmith.records import record

Kind = Literal["bool", "int", "uint", "float"]


@record(frozen=True, slots=True)
class ScalarType:
    """A scalar type. `bits` is 8 for `bool`: one byte in memory."""

    kind: Kind
    bits: int

    def __hash__(self) -> int:
        return self.bits

    @property
    def name(self) -> str:
        return "bool" if self.kind == "bool" else f"{self.kind}{self.bits}"

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def min(self) -> int:
        """The smallest value of an integer type (0 for bool)."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max(self) -> int:
        """The largest value of an integer type (1 for bool)."""
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - (self.kind == "int"))) - 1

    @property
    def largest(self) -> float:
        """The largest finite value of a float type."""
        return float(np.finfo(self.numpy).max)

    @property
    def numpy(self) -> np.dtype:
        return np.dtype(self.name)

    def __str__(self) -> str:
        return self.name


BOOL = ScalarType("bool", 8)
INT8, INT16, INT32, INT64 = (ScalarType("int", b) for b in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (ScalarType("uint", b) for b in (8, 16, 32, 64))
FLOAT32, FLOAT64 = ScalarType("float", 32), ScalarType("float", 64)

THIRD = 0.3333333432674408
"""The float32 that is next to 1/3: the exponent of the lightness of colours, among others. Powers by it are computed as
cube roots."""

TYPES: dict[str, ScalarType] = {
    t.name: t for t in (BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64)
}
