"""Planes of memory over x and y, and an open row of a loop program that reads them."""

from __future__ import annotations

from support.builders import builder
from support.lowered import buffer

from tilesmith.platforms.base import VectorUnit
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.builder import Builder, Scope
from tilesmith.scheduler.ir.loop.program import Statement
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, ScalarType

X, Y = sym("x"), sym("y")


def planes(type_: ScalarType = FLOAT32, ring: int | None = None, name: str = "f", columns: bool = False) -> Buffer:
    """Memory over x and y, with a ring of so many rows if any; or with columns that are dense."""
    memory = buffer(name, type_, ("x", "y"))
    memory.ring[1] = ring
    if columns:
        memory.unit, memory.stride = 1, [sym(f"{name}_stride_x"), const(1)]
    return memory


def open_row(vectors: VectorUnit | None = None) -> Builder:
    b = builder(vectors)
    b.declare("x")
    b.declare("y")
    b.scopes.append(Scope())
    return b


def statements(b: Builder) -> list[Statement]:
    return [s for scope in b.scopes for s in scope.statements]
