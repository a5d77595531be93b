"""Operands of OpenCL C expressions: scalars as vectors, masks, lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.codegen.opencl import types
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import ScalarType


class Operands:
    """Prints operands, with the text of indices."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols

    def name(self, v: Value) -> str:
        """A value as it stands."""
        return types.literal(v.literal, v.type) if v.literal is not None else v.name

    def typed(self, v: Value) -> str:
        """A value of exactly its type, as overloaded functions need it."""
        return self.name(v) if v.literal is None else f"({types.element(v.type)})({self.name(v)})"

    def wide(self, v: Value, lanes: int) -> str:
        """A value as a vector of `lanes`, broadcast where it is a scalar."""
        if v.lanes > 1 or lanes == 1:
            return self.typed(v)
        return f"({types.vector(v.type, lanes)})({self.name(v)})"

    def mask(self, v: Value, bits: int, lanes: int) -> str:
        """A bool value as a mask of elements of `bits`."""
        target = types.mask(bits, lanes)
        if v.lanes == 1:
            return f"({target})({self.name(v)} ? -1 : 0)"
        return v.name if v.mask_bits == bits else f"convert_{target}({v.name})"

    def lane(self, v: Value, n: int) -> str:
        """Lane n of a value."""
        return self.name(v) if v.lanes == 1 else types.lane(v.name, n)

    def lanewise(self, t: ScalarType, lanes: int, make: Callable[[int], str]) -> str:
        """A vector made lane by lane."""
        return f"({types.vector(t, lanes)})({', '.join(make(n) for n in range(lanes))})"

    def picked(self, r: Value, sources: Sequence[str], picks: Sequence[tuple[int, int]]) -> str:
        """A vector of the lanes `picks`, (source, lane), as few pieces as the language has names for."""
        pieces = []
        while picks:
            size = next(
                n for n in (16, 8, 4, 2, 1) if n <= len(picks) and len({source for source, _ in picks[:n]}) == 1
            )
            pieces.append(f"{sources[picks[0][0]]}.s{''.join(f'{at:x}' for _, at in picks[:size])}")
            picks = picks[size:]
        return pieces[0] if len(pieces) == 1 else f"({types.type_of(r)})({', '.join(pieces)})"
