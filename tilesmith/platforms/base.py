"""The base of all kinds of platforms: what schedules, cost models and backends ask of a machine; its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Protocol, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tilesmith.platforms.core import Core
from tilesmith.platforms.ecm import EcmParameters, Figures
from tilesmith.platforms.toolchain import Compiler

Text = Annotated[str, Field(strict=True, max_length=2000)]
Count = Annotated[int, Field(strict=True, ge=1)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Triple = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9_]{1,32}(-[a-z0-9_.]{1,32}){1,3}$")]


def _power_of_two(line: int) -> int:
    if line & (line - 1):
        raise PydanticCustomError("not_a_power_of_two", "the line must be a power of two bytes")
    return line


LineBytes = Annotated[Count, Field(ge=8, le=4096), AfterValidator(_power_of_two)]


def _pairs(sources: object) -> object:
    return tuple(sorted(sources.items(), key=str)) if isinstance(sources, Mapping) else sources


Sources = Annotated[
    tuple[tuple[Text, Text], ...],
    Field(max_length=64, description="where each figure is from, by its name"),
    BeforeValidator(_pairs),
    PlainSerializer(dict, return_type=dict[str, str]),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]

NO_SOURCES: Any = Field(default=(), json_schema_extra={"default": {}})
"""The default of `sources`: pairs here, an object in documents."""


TABLE_LOOKUP_BYTES = 32
"""Bytes of the smallest registers that look up a table of bytes: a permutation with an index for every byte."""
TABLE_ENTRIES, LEAST_TABLE_ENTRIES = 128, 16
"""Elements of a table of bytes that such an instruction picks from: of two of the longest registers, and of any one."""
PAIRWISE_BYTES = 32
"""Bytes of the smallest registers of which neighbours are multiplied and added at once: machines with smaller ones
widen as they multiply, ..."""
SSE2_BYTES = 16
"""... but those of x86, where the smallest are those of SSE2."""
ELEMENTS_BYTES = 64
"""Bytes of the smallest registers for which instructions take an element of memory for all lanes."""

HALVED_BYTES = 32
"""Bytes of registers whose lanes are shifted half by half, as by AVX2: shorter and longer ones have an instruction for
all of them."""


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """The vectors that one thread of code computes with: bytes of a register, and how many `registers` there are; bytes
    of a vector of places that a table of bytes is looked up at by an instruction (0: there is none), whether one
    multiplies int16 and adds neighbours, and vectors that a loop may carry from one iteration to the next; the rest as
    `Registers` and `Instructions` of a platform have it."""

    register_bytes: int
    table_lookup_bytes: int = 0
    pairwise_products: bool = False
    carried_vectors: int = 12
    registers_per_value: int = 4
    narrowest_bytes: int = 16
    streamed_bytes: int = 16
    permuted_bytes: int = 4
    registers: int = 16

    @property
    def takes_elements(self) -> bool:
        """True if instructions take an element of memory for all lanes, as those of AVX-512 do."""
        return self.register_bytes >= ELEMENTS_BYTES

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector that fills a register, or of the narrowest where there are no registers of vectors."""
        return max(self.narrowest_bytes, self.register_bytes)

    @property
    def widest_bytes(self) -> int:
        """Bytes of the widest vector that is computed with as one value."""
        return self.registers_per_value * self.vector_bytes


def vector_unit(register_bytes: int, registers: int, core: Core, pairwise_bytes: int = PAIRWISE_BYTES) -> VectorUnit:
    """The vector unit of a machine with so many registers, those of `pairwise_bytes` with products of pairs. A vector
    that is carried is in two of them, as the one that follows it is loaded meanwhile."""
    given = core.instructions
    lookup, products = given.table_lookup_bytes, given.pairwise_products
    return VectorUnit(
        register_bytes,
        register_bytes * (register_bytes >= TABLE_LOOKUP_BYTES) if lookup is None else lookup,
        register_bytes >= pairwise_bytes if products is None else products,
        max(0, registers - core.registers.working) // 2,
        core.registers.per_value,
        given.narrowest_bytes,
        given.streamed_bytes,
        given.permuted_bytes,
        registers,
    )


class Cache(BaseModel):
    """One level of data cache: one instance of it, as the threads that share that instance see it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Annotated[int, Field(strict=True, ge=1, le=4)]
    size_bytes: Annotated[Count, Field(ge=1024, le=1 << 36)] = Field(description="bytes of one instance")
    line_bytes: LineBytes = Field(description="bytes of a line; a power of two")
    ways: Annotated[Count, Field(le=65536)]
    shared_by_threads: Annotated[Count, Field(le=4096)] = Field(description="hardware threads that share one instance")
    latency_cycles: Annotated[Positive, Field(le=10_000)] = Field(description="cycles from load to use on a hit")
    bandwidth_bytes_per_cycle: Annotated[Positive, Field(le=65_536)] = Field(
        description="bytes a cycle that one core takes from this level"
    )

    @model_validator(mode="after")
    def _room_for_a_set(self) -> Self:
        if self.size_bytes < self.line_bytes * self.ways:
            raise PydanticCustomError("cache_smaller_than_a_set", "the cache is smaller than its ways times its line")
        return self

    def crowded_bytes(self, rows: int) -> int:
        """The power of two at whose multiples so many rows lie too near in sets: the ways of those that they reach have
        no room for a line of each."""
        return 1 << (self.size_bytes // rows).bit_length()


class Platform(Figures, Protocol):
    """A machine of any kind, as schedules, cost models and backends see it: what computes side by side, its vector
    unit, its memory, and the compiler of the C that runs on it or starts its work.

    `threads` are what tiles are handed to, `vector_bytes` what one of them computes at once, `caches` the memory that
    tiles should fit, innermost first, whether programs manage it or not. `threads_wait`: one may wait for another.
    `work_items` share the vectors of a thread, each with its lanes of them, and exchange them through memory; 1 where
    vectors are in registers.
    """

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...

    @property
    def compiler(self) -> Compiler: ...
    @property
    def architecture(self) -> str: ...

    @property
    def threads_wait(self) -> bool: ...
    @property
    def clock_ghz(self) -> float: ...
    @property
    def vector_registers(self) -> int: ...
    @property
    def vector_unit(self) -> VectorUnit: ...
    @property
    def work_items(self) -> int: ...

    @property
    def caches(self) -> tuple[Cache, ...]: ...
    @property
    def l2_bytes(self) -> int: ...
    @property
    def llc_bytes(self) -> int: ...

    @property
    def load_weight(self) -> float: ...
    @property
    def core(self) -> Core: ...
    @property
    def ecm_parameters(self) -> EcmParameters: ...

    def __hash__(self) -> int: ...

    def model_dump(self, *, mode: str = ..., exclude_none: bool = ...) -> dict[str, Any]: ...

    def model_dump_json(self) -> str:
        """The description as JSON, the same for equal platforms."""
        ...

    def figures(self) -> dict[str, int | float | bool]:
        """Every figure of the machine by name."""
        ...

    def source_of(self, figure: str) -> str | None:
        """The source of a figure, if the description names it."""
        ...


class PlatformDocument(BaseModel):
    """The document of a machine: JSON or YAML, unknown keys refused; inside it is frozen and compared by value. One
    subclass a kind, told apart by `kind`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    name: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    description: Text = ""

    def __hash__(self) -> int:
        """The hash of the fields that tell most platforms apart."""
        return hash(self.name)


def source_of(sources: tuple[tuple[str, str], ...], figure: str) -> str | None:
    """The source of `figure` (`threads`, `l2.ways`): its own entry, or that of its group."""
    entries = dict(sources)
    return entries.get(figure) or entries.get(figure.partition(".")[0])


def check_sources(sources: tuple[tuple[str, str], ...], known: set[str]) -> None:
    """Raises PydanticCustomError for the source of a figure that is not `known`."""
    for figure, _ in sources:
        if figure not in known:
            raise PydanticCustomError(
                "unknown_figure",
                "a source for a figure that there is not",
                {"at": ("sources", figure), "hint": nearest(figure, known)},
            )


GENERAL_REGISTERS = {"x86_64": 16, "arm": 16}
"""General registers by architecture; others have MORE."""
MORE = 31
GENERAL_REGISTERS_OF_LOOPS = 10
"""General registers that a loop over terms of a sum takes for all else: counters and ends of three or four loops around
each other, the stack, rows of what all points share, how far apart rows are."""


def row_addresses(architecture: str) -> int:
    """Rows of memory whose addresses such a loop has in registers beside all else."""
    return GENERAL_REGISTERS.get(architecture, MORE) - GENERAL_REGISTERS_OF_LOOPS


def in_flight_bytes(platform: Platform) -> float:
    """Bytes that memory has on its way to one thread at once: its bandwidth times its latency (Little's law)."""
    return platform.ecm_parameters.memory_gb_s_one_thread * platform.memory_latency_ns


LINE_BYTES = 64
"""Bytes of a line of memory where no platform is asked."""


def nearest(word: str, known: set[str]) -> str | None:
    """The hint of an unknown word: the known one that is most like it."""
    close = get_close_matches(word[:80], sorted(known), n=1)
    return f"did you mean '{close[0]}'?" if close else None
