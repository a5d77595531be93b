"""Operands of C expressions: types of values, scalars as vectors, masks, lanes."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.codegen.c.integer_functions import widening
from scheduler.codegen.c.types import Symbols, function_name, literal, scalar, unaligned, vector
from scheduler.codegen.c.vector_functions import Functions
from scheduler.ir.loop.values import Value
from scheduler.ir.pipeline.types import BOOL, ScalarType


class Operands:
    """Prints operands; remembers which vector types and functions of vectors they need, for registers of so many
    bytes of an architecture. `strict` keeps functions of floats those of the C library."""

    def __init__(self, symbols: Symbols, strict: bool, register_bytes: int, architecture: str) -> None:
        self.symbols = symbols
        self.types: set[tuple[str, int, int]] = set()
        self.functions = Functions(strict, register_bytes, architecture)
        self.shared_places: frozenset[str] = frozenset()  # vectors of indices that many gathers have in common
        self.kept: dict[int, str] = {}  # the numbers of `exp` that the loop has at hand, by lanes

    # types ------------------------------------------------------------

    def vector(self, kind: str, bits: int, lanes: int) -> str:
        """The name of a vector type, which is then declared."""
        self.types.add((kind, bits, lanes))
        return vector(kind, bits, lanes)

    def unaligned(self, kind: str, bits: int, lanes: int) -> str:
        """The name of the type of a vector at any element."""
        self.types.add((kind, bits, lanes))
        return unaligned(kind, bits, lanes)

    def of(self, t: ScalarType, lanes: int) -> str:
        """The vector type of `t`."""
        return self.vector("uint" if t == BOOL else t.kind, t.bits, lanes)

    def type_of(self, v: Value) -> str:
        """The C type of a value."""
        if v.lanes == 1:
            return scalar(v.type)
        if v.type == BOOL:
            return self.vector("int", v.mask_bits, v.lanes)
        return self.of(v.type, v.lanes)

    def function(self, name: str, t: ScalarType, lanes: int) -> str:
        """The name of a function of vectors of `t`, which is then defined."""
        self.types.update(self.functions.ask(name, t, lanes))
        return function_name(name, t, lanes)

    def numbers(self, t: ScalarType, lanes: int, keep: bool = False) -> str:
        """The constants that `exp` computes vectors of `t` with."""
        return self.kept.get(lanes) or f"{self.function('exp_numbers', t, lanes)}({int(keep)})"

    def declarations(self) -> str:
        """Declarations of all vector types used so far, and the functions of vectors."""
        lines = []
        for kind, bits, lanes in sorted(self.types):
            t = {"int": f"int{bits}_t", "uint": f"uint{bits}_t", "float": "float" if bits == 32 else "double"}[kind]
            size = bits // 8 * lanes
            lines.append(f"typedef {t} {vector(kind, bits, lanes)} __attribute__((vector_size({size})));")
            lines.append(
                f"typedef {t} {unaligned(kind, bits, lanes)} "
                f"__attribute__((vector_size({size}), aligned({bits // 8}), may_alias));"
            )
        return "\n".join([*lines, *self.functions.text()])

    # operands ------------------------------------------------------------

    def name(self, v: Value) -> str:
        """A value as it stands."""
        return literal(v.literal, v.type) if v.literal is not None else v.name

    def wide(self, v: Value, lanes: int) -> str:
        """A value as a vector of `lanes`, broadcast where it is a scalar."""
        if v.lanes > 1:
            return v.name
        return f"({self.name(v)} - ({self.of(v.type, lanes)}){{0}})"

    def mask(self, v: Value, bits: int, lanes: int) -> str:
        """A bool value as a mask of elements of `bits`."""
        target = self.vector("int", bits, lanes)
        if v.lanes == 1:
            return f"(({target}){{0}} - (int{bits}_t){self.name(v)})"
        if v.mask_bits == bits:
            return v.name
        if v.mask_bits < bits:
            return (
                f"{self.function(widening(ScalarType('int', v.mask_bits)), ScalarType('int', bits), lanes)}({v.name})"
            )
        return f"__builtin_convertvector({v.name}, {target})"

    def lanewise(self, result: Value, make: Callable[[int], str]) -> str:
        """A vector made lane by lane."""
        return f"({self.type_of(result)}){{{', '.join(make(n) for n in range(result.lanes))}}}"

    def lane(self, v: Value, n: int) -> str:
        """Lane n of a value."""
        return self.name(v) if v.lanes == 1 else f"{v.name}[{n}]"

    def chosen(self, t: ScalarType, lanes: int, mask: str, a: str, b: str) -> str:
        """Lanes of the vector a where the mask is set, else of b."""
        i = self.vector("int", t.bits, lanes)
        if t.kind == "int":
            return f"({a} & {mask}) | ({b} & ~{mask})"
        return f"({self.of(t, lanes)})((({i}){a} & {mask}) | (({i}){b} & ~{mask}))"
