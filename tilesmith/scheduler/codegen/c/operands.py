"""Operands of C expressions: types of values, scalars as vectors, masks, lanes."""

from __future__ import annotations

from collections.abc import Callable

from tilesmith.scheduler.codegen.c import masks, permutations
from tilesmith.scheduler.codegen.c.integer_functions import widening
from tilesmith.scheduler.codegen.c.lane_gathers import Form
from tilesmith.scheduler.codegen.c.types import Symbols, function_name, literal, scalar, vector, words
from tilesmith.scheduler.codegen.c.vector_functions import Functions
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, THIRD, ScalarType

VECTORS = """\
#define VECTOR(name, type, bytes) \\
    typedef type name __attribute__((vector_size(bytes))); \\
    typedef type name##_at __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias))
#define LOAD(vector, at) ((vector)*(const vector##_at *)(at))
#define STORE(vector, at, value) (*(vector##_at *)(at) = (value))
"""
"""Types of vectors, each also of those at any address; how these are read and written."""


class Operands:
    """Prints operands; remembers which vector types and functions of vectors they need, for registers of so many
    bytes of an architecture. `strict` keeps functions of floats those of the C library."""

    def __init__(self, symbols: Symbols, strict: bool, register_bytes: int, architecture: str) -> None:
        self.symbols = symbols
        self.types: set[tuple[str, int, int]] = set()
        self.functions = Functions(strict, register_bytes, architecture)
        self.halves = register_bytes < masks.WHOLE_BYTES  # the longest registers have instructions for any size
        self.shared_places: frozenset[str] = frozenset()  # vectors of indices that many gathers have in common
        self.shuffles: dict[tuple[int, ...], str] = {}
        self.gathers: dict[Form, str] = {}
        self.bytes: dict[tuple[int | None, ...], str] = {}
        self.bits: frozenset[str] = frozenset()  # masks that have a bit for each lane
        self.kept: dict[int, str] = {}  # the numbers of `exp` that the loop has at hand, by lanes
        self.widened: dict[str, ScalarType] = {}  # what values of 64 bits were before they were converted, by name
        self.vector_calls: dict[
            tuple[str, ScalarType], int
        ] = {}  # lanes of functions that the program calls of vectors

    # types ------------------------------------------------------------

    def vector(self, kind: str, bits: int, lanes: int) -> str:
        """The name of a vector type, which is then declared."""
        self.types.add((kind, bits, lanes))
        return vector(kind, bits, lanes)

    def of(self, t: ScalarType, lanes: int) -> str:
        """The vector type of `t`."""
        return self.vector("uint" if t.kind == "bool" else t.kind, t.bits, lanes)

    def type_of(self, v: Value) -> str:
        """The C type of a value."""
        if v.lanes == 1:
            return scalar(v.type)
        if v.name in self.bits:
            self.types.add(("int", v.mask_bits, v.lanes))
        if v.type.kind == "bool":
            return self.vector("bool" if v.name in self.bits else "int", v.mask_bits, v.lanes)
        return self.of(v.type, v.lanes)

    def function(self, name: str, t: ScalarType, lanes: int) -> str:
        """The name of a function of vectors of `t`, which is then defined."""
        self.types.update(self.functions.ask(name, t, lanes))
        return function_name(name, t, lanes)

    def power(self, t: ScalarType, lanes: int, base: Value, exponent: Value) -> str:
        """A power of vectors of `t`."""
        x = self.wide(base, lanes)
        if t == FLOAT32 and exponent.literal == THIRD and self.functions.in_vectors("pow", t):
            return f"{self.function('cube_root', t, lanes)}({x})"
        return f"{self.function('pow', t, lanes)}({x}, {self.wide(exponent, lanes)})"

    def numbers(self, t: ScalarType, lanes: int, keep: bool = False) -> str:
        """The constants that `exp` computes vectors of `t` with."""
        return self.kept.get(lanes) or f"{self.function('exp_numbers', t, lanes)}({int(keep)})"

    def declarations(self, mentioned: set[str]) -> str:
        """Declarations of the vector types that the functions of vectors and the text of words `mentioned` mention, and
        these functions."""
        functions = self.functions.text()
        gathers = [form.definition(name) for form, name in self.gathers.items()]
        picked = [permutations.by_parts(name, picks) for picks, name in self.bytes.items()]
        mentioned = mentioned | words("\n".join([*functions, *gathers, *picked]))
        masked = [t for t in sorted(self.types) if t[0] == "bool" and vector(*t) in mentioned]
        mask_types = [masks.declaration(bits, lanes) for _, bits, lanes in masked]
        mentioned |= words("\n".join(mask_types))
        lines = []
        for kind, bits, lanes in sorted(t for t in self.types if t[0] != "bool"):
            t = {"int": f"int{bits}_t", "uint": f"uint{bits}_t", "float": "float" if bits == 32 else "double"}[kind]
            name = vector(kind, bits, lanes)
            if mentioned & {name, f"{name}_at"}:
                lines.append(f"VECTOR({name}, {t}, {bits // 8 * lanes});")
        lines += [masks.HEAD.rstrip(), *mask_types] if masked else []
        lines += [
            f"#define {name}(a, b) __builtin_shufflevector(a, b, {', '.join(map(str, picks))})"
            for picks, name in self.shuffles.items()
        ]
        head = [VECTORS.rstrip()] if lines else []
        return "\n".join([*head, *lines, *functions, *gathers, *picked])

    def gathered(self, form: Form, arguments: str) -> str:
        """A gather lane by lane, by a function that is then defined."""
        self.types.update(form.types)
        name = self.gathers.setdefault(form, f"ts_lanes{len(self.gathers)}_{form.vector}")
        return f"{name}({arguments})"

    def shuffle(self, a: str, b: str, picks: tuple[int, ...]) -> str:
        """Lanes of two vectors, by a macro that is then defined."""
        count, first = len(picks), picks[0]
        if picks not in self.shuffles:
            if picks == tuple(range(first, first + count)):
                name = f"LANES_FROM_{first}"
            elif picks == tuple(range(first, first + 2 * count, 2)) and first < 2:
                name = "ODD_LANES" if first else "EVEN_LANES"
            else:
                name = f"LANES_{len(self.shuffles)}"
            self.shuffles[picks] = f"{name}_X{count}"
        return f"{self.shuffles[picks]}({a}, {b})"

    def bytes_by_parts(self, a: str, picks: tuple[int | None, ...]) -> str:
        """Bytes of a vector, each of the part that it goes to, and zeros, by a function that is then defined."""
        self.types.add(("uint", 8, len(picks)))
        name = self.bytes.setdefault(picks, f"ts_bytes{len(self.bytes)}_u8x{len(picks)}")
        return f"{name}(({vector('uint', 8, len(picks))}){a})"

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
        text, size = v.name, v.mask_bits
        while size > bits:
            size = size // 2 if self.halves else bits
            text = f"__builtin_convertvector({text}, {self.vector('int', size, lanes)})"
        return text

    def bit_mask(self, v: Value, bits: int, lanes: int) -> str:
        """A bool value as a mask of elements of `bits` that has a bit for each lane."""
        t = masks.mask_of(bits)
        if v.lanes == 1:
            return f"{self.function(masks.ALL, t, lanes)}({self.name(v)})"
        return v.name if v.mask_bits == bits else f"{self.function(masks.resized(v.mask_bits), t, lanes)}({v.name})"

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

    def chosen_or_zero(self, t: ScalarType, lanes: int, mask: str, a: str) -> str:
        """Lanes of the vector a where the mask is set, else 0."""
        if t.kind == "int":
            return f"{a} & {mask}"
        return f"({self.of(t, lanes)})(({self.vector('int', t.bits, lanes)}){a} & {mask})"
