"""Types and literals of OpenCL C."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c import types as c
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType

MOST_LANES = 16
"""Lanes of the longest vectors of the language."""
_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}


def scalar(t: ScalarType) -> str:
    """The type of a scalar in a register."""
    if t.is_float:
        return "float" if t.bits == 32 else "double"
    return "bool" if t == BOOL else f"{'u' if t.kind == 'uint' else ''}{_INTEGERS[t.bits]}"


def element(t: ScalarType) -> str:
    """The type of an element in memory, of params, and of lanes: bool is a byte."""
    return "uchar" if t == BOOL else scalar(t)


def vector(t: ScalarType, lanes: int) -> str:
    """The type of so many elements."""
    return element(t) if lanes == 1 else f"{element(t)}{lanes}"


def mask(bits: int, lanes: int) -> str:
    """The type of masks of elements of `bits`: each lane is 0 or -1."""
    return f"{_INTEGERS[bits]}{lanes}"


def unsigned(t: ScalarType) -> ScalarType:
    """The unsigned integers of a type's size."""
    return ScalarType("uint", t.bits)


def type_of(v: Value) -> str:
    """The type of a value."""
    if v.lanes == 1:
        return scalar(v.type)
    return mask(v.mask_bits, v.lanes) if v.type == BOOL else vector(v.type, v.lanes)


def literal(value: int | float | bool, t: ScalarType) -> str:
    """A literal of exactly that value and type."""
    return c.literal(value, t, "{}L", "{}UL")


def lane(name: str, n: int) -> str:
    """Lane n of a vector."""
    return f"{name}.s{n:x}"
