"""Figures of a core beyond its vectors and caches, by what they are of. A description may leave out each of them: what
is not given is that of an ordinary core of today.

Cycles are those of the clock, from the operands of an instruction to its result: latencies, where those of
`tilesmith.platforms.ecm` are throughputs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

Figure = Annotated[int, Field(strict=True, ge=1, le=4096)]
Bytes = Annotated[int, Field(strict=True, ge=1, le=1 << 30)]
Latency = Annotated[float, Field(strict=True, gt=0, le=10_000, allow_inf_nan=False)]
Amount = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Registers(_Figures):
    """Vector registers, as code shares them out. The estimates suit 16, and are taken for 32, too."""

    working: Figure = Field(default=8, description="registers that expressions need beside what is held")
    held: Figure = Field(
        default=8, description="vectors held for points that are computed together, and rows of windows"
    )
    terms: Figure = Field(
        default=7, description="terms of a sum from which on two sums do not both have their vectors in registers"
    )
    sums: Literal[1, 2, 4, 8, 16] = Field(
        default=8, description="sums of floats side by side, as many as hide the latency of one"
    )
    extremes: Literal[1, 2, 4, 8, 16] = Field(default=4, description="chains of one long minimum or maximum of floats")
    per_value: Annotated[int, Field(strict=True, ge=1, le=4)] = Field(
        default=4, description="registers that one value takes, at most; compilers handle wider ones badly"
    )


class Instructions(_Figures):
    """Instructions on vectors. Those that not every machine has follow from its vectors where they are not given:
    machines with vectors of 32 bytes and more look up tables and multiply and add pairs."""

    table_lookup_bytes: Literal[0, 32, 64] | None = Field(
        default=None, description="bytes that are looked up at once in a table; 0: no instruction does"
    )
    table_entries: Literal[16, 128] | None = Field(
        default=None, description="elements of a table of bytes that one instruction looks up in"
    )
    pairwise_products: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="whether one instruction multiplies int16 and adds neighbours"
    )
    narrowest_bytes: Literal[8, 16] = Field(default=16, description="bytes of the smallest register of vectors")
    streamed_bytes: Literal[16, 32, 64] = Field(
        default=16, description="bytes of the smallest vector stored past the caches"
    )
    permuted_bytes: Literal[1, 2, 4, 8] = Field(
        default=4, description="bytes of the smallest element that one instruction takes from any lane"
    )
    gathered_bytes: Literal[1, 2, 4, 8] = Field(default=4, description="bytes of the smallest element gathered")


class Latencies(_Figures):
    """Cycles from the operands of an instruction on vectors to its result. Ordinary cores differ by a third."""

    load: Latency = Field(default=5.0, description="a vector from the first level")
    gather: Latency = Field(default=20.0, description="a vector whose elements each have a place")
    float_sum: Latency = Field(default=4.0, description="sums and products of floats")
    integer_sum: Latency = Field(default=1.0, description="sums, bit operations and shifts of integers")
    integer_product: Latency = Field(default=5.0, description="products of integers")
    quotient: Latency = Field(default=13.0, description="quotients and square roots of floats")
    conversion: Latency = Field(default=5.0, description="from one type to another")
    choice: Latency = Field(default=3.0, description="comparisons, with what they decide; minima and maxima")


class Prefetch(_Figures):
    """Prefetching of lines, by hardware and by programs."""

    rows: Figure = Field(default=32, description="rows, read side by side, that hardware follows")
    first_level_rows: Figure = Field(default=8, description="the same of the prefetcher of the first level")
    half_followed_bytes: Bytes = Field(default=2048, description="bytes of a row of which half hides")
    half_late_bytes: Bytes = Field(default=256, description="bytes of a row of which half comes before it is followed")
    near_bytes: Bytes = Field(
        default=2048, description="distance up to which a program asks into the first level, beyond that the second"
    )
    again_bytes: Bytes = Field(
        default=1536, description="distance at which what the second level has is asked for into the first"
    )
    furthest_bytes: Bytes = Field(default=65536, description="distance beyond which asking hides no more")
    asked_rows_factor: Annotated[float, Field(strict=True, gt=0, le=8)] = Field(
        default=1.0,
        description="time of rows side by side whose lines a program asks for, in that where it does not; above 1 "
        "hardware follows such rows, and requests come in its way",
    )
    request_loads: Amount = Field(
        default=5.0,
        description="loads of scalar code that a request takes the time of: itself, and the line's way inwards",
    )


class TlbLevel(_Figures):
    """A level of the TLB: its entries, and the cycles of a load whose page is not among them."""

    entries: Annotated[int, Field(strict=True, ge=1, le=1 << 24)]
    missed_cycles: Latency


class Pages(_Figures):
    """Pages of memory, and the TLB that finds them. Larger pages are the caller's to ask for: nobody counts on them."""

    page_bytes: Annotated[int, Field(strict=True, ge=512, le=1 << 30)] = Field(
        default=4096, description="a power of two; prefetchers of hardware stop where one ends"
    )
    tlb: Annotated[tuple[TlbLevel, ...], Field(max_length=3)] = Field(
        default=(TlbLevel(entries=64, missed_cycles=7.0), TlbLevel(entries=1536, missed_cycles=30.0)),
        description="its levels, the first one first",
    )

    @field_validator("page_bytes")
    @classmethod
    def _power_of_two(cls, size: int) -> int:
        if size & (size - 1):
            raise PydanticCustomError("not_a_power_of_two", "a page must be a power of two bytes")
        return size


class Balance(_Figures):
    """Machine balance: arithmetic operations in the time of something else. They serve decisions that are made before
    a schedule is there whose time could be predicted."""

    load_operations: Amount = Field(default=0.5, description="a load that hits")
    store_operations: Amount = Field(default=1.5, description="a point stored, with its address")
    memory_operations_per_byte: Amount = Field(default=8.0, description="a byte written to memory and read from there")
    fork_operations: Amount = Field(default=100_000.0, description="work that is worth threads: about 20 microseconds")


class Core(_Figures):
    """All of them, by group."""

    registers: Registers = Registers()
    instructions: Instructions = Instructions()
    latency_cycles: Latencies = Latencies()
    prefetch: Prefetch = Prefetch()
    pages: Pages = Pages()
    balance: Balance = Balance()


ORDINARY = Core()
"""The figures of an ordinary core, where no platform is asked."""
