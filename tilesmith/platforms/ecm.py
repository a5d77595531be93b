"""Parameters of the cost model `ecm`: figures of a core and its memory beyond those that every platform has.

Cycles are those of `clock_ghz`, for one instruction of the whole vector register, with as many independent ones in
flight as the core takes: reciprocal throughputs. Bandwidths are those of one thread unless they say otherwise.
Calibration measures them on the host; `derived` makes them from the platform's other figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

Cycles = Annotated[float, Field(strict=True, ge=0, le=100_000, allow_inf_nan=False)]
Nanoseconds = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
Bandwidth = Annotated[float, Field(strict=True, gt=0, le=100_000, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]

TYPES = ("i8", "i16", "i32", "i64", "f32", "f64")
"""Element types that have throughputs of their own; signed and unsigned alike, booleans as `i8`, `float16` as `f32`."""

GATHERED_VECTOR_BYTES = 32
"""Vectors that there are instructions to gather: of AVX2 and AVX-512."""


CALL_CYCLES = 15.0
"""Cycles of a sine of the C library: 10 to 20 on most cores."""


class TypeCycles(BaseModel):
    """Cycles of a vector instruction (or of the few that do it) on elements of one type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    add: Cycles = Field(description="sums, differences, negation, bit operations, shifts")
    multiply: Cycles
    divide: Cycles = Field(description="a quotient or remainder by a value that is no constant")
    divide_by_constant: Cycles = Field(description="a quotient or remainder by a constant")
    select: Cycles = Field(description="a minimum, a comparison or a choice")
    convert: Cycles = Field(description="to this type from one half as wide, or from one as wide")
    narrow: Cycles = Field(description="from this type to one half as wide, per vector of this type")
    function: Cycles = Field(description="the sine, by a call of the C library for each lane")


class LevelCycles(BaseModel):
    """Traffic between one level of cache and the next further out, of one thread that streams."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Annotated[int, Field(strict=True, ge=2, le=4)] = Field(description="the outer level of the two")
    load_bytes_per_cycle: Bandwidth
    store_bytes_per_cycle: Bandwidth = Field(description="dirty lines that are written back, fetched before")
    all_threads_bytes_per_cycle: Bandwidth = Field(description="loads of all threads together that share an instance")


class EcmParameters(BaseModel):
    """The parameters of `ecm`; see the module. The text of each field says its unit where its name does not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    i8: TypeCycles
    i16: TypeCycles
    i32: TypeCycles
    i64: TypeCycles
    f32: TypeCycles
    f64: TypeCycles
    load_cycles: Cycles = Field(description="a vector load that hits the first level, aligned")
    unaligned_load_cycles: Cycles = Field(description="... at any address (many cross lines)")
    store_cycles: Cycles = Field(description="a vector store to the first level, aligned")
    shuffle_cycles: Cycles = Field(description="a permutation of one or two registers")
    gather_cycles_per_lane: Cycles = Field(
        description="an element of 32 bits loaded from a place of its own, first level"
    )
    scalar_cycles: Cycles = Field(description="an operation of scalar code")
    call_instructions: Annotated[float, Field(strict=True, ge=1, le=100_000)] = Field(
        default=50.0, description="instructions of a function of the C library"
    )
    window_instructions: Annotated[float, Field(strict=True, ge=1, le=4096)] = Field(
        description="how far ahead of the oldest instruction that waits a core begins others"
    )
    levels: tuple[LevelCycles, ...] = Field(max_length=3, description="the levels beyond the first, innermost first")
    memory_gb_s_one_thread: Bandwidth = Field(description="10^9 bytes/s that one thread reads, streaming")
    memory_gb_s: Bandwidth = Field(description="... that all threads read together")
    write_allocate_factor: Annotated[float, Field(strict=True, ge=1, le=8)] = Field(
        description="time to write a byte to memory by ordinary stores, its line fetched before, in that of reading one"
    )
    streaming_store_factor: Annotated[float, Field(strict=True, gt=0, le=8)] = Field(
        description="... by stores past the caches"
    )
    prefetch_share: Share = Field(description="share of a line's latency that the prefetcher hides in a stream")
    memory_parallelism: Annotated[float, Field(strict=True, ge=1, le=1024)] = Field(
        description="misses that one thread has under way at a time where no prefetcher helps"
    )
    cache_hidden_share: Share = Field(
        default=0.95,
        description="share of the traffic of caches that hides behind instructions, in long rows",
    )
    memory_hidden_share: Share = Field(
        description="share of memory's time that hides behind instructions, in long rows"
    )
    memory_hidden_share_prefetched: Share = Field(description="... where software asks far ahead for what it reads")
    row_start_ns: Nanoseconds = Field(description="set-up of a row of vectors: addresses, bounds, its remainder")
    tile_start_ns: Nanoseconds = Field(description="set-up of a tile")
    fork_join_ns: Nanoseconds = Field(description="a parallel loop: waking all threads and waiting for the last")

    @model_validator(mode="after")
    def _levels_grow(self) -> Self:
        numbers = [level.level for level in self.levels]
        if numbers != sorted(set(numbers)):
            raise PydanticCustomError("caches_out_of_order", "levels must increase outwards")
        return self

    @property
    def lane_cycles(self) -> float:
        """An element that is loaded where a lane of one vector says, into a lane of another."""
        return lane_cycles(self.load_cycles, self.shuffle_cycles)

    def of_type(self, name: str) -> TypeCycles:
        """The throughputs of one of TYPES."""
        found = getattr(self, name)
        assert isinstance(found, TypeCycles)
        return found


def lane_cycles(load_cycles: float, shuffle_cycles: float) -> float:
    """An element loaded lane by lane: two permutations, which take the place out and put the element in, and a load."""
    return load_cycles + 2 * shuffle_cycles


class CacheFigures(Protocol):
    """Figures of a level of cache that every description has."""

    @property
    def level(self) -> int: ...
    @property
    def bandwidth_bytes_per_cycle(self) -> float: ...
    @property
    def shared_by_threads(self) -> int: ...


class Figures(Protocol):
    """Figures of a processor that `derived` reads of a platform (`platforms.Platform`)."""

    @property
    def vector_bytes(self) -> int: ...
    @property
    def caches(self) -> Sequence[CacheFigures]: ...
    @property
    def cores(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def threads_per_core(self) -> int: ...
    @property
    def prefetcher(self) -> bool: ...
    @property
    def memory_bandwidth_gb_s(self) -> float: ...
    @property
    def memory_latency_ns(self) -> float: ...
    @property
    def line_bytes(self) -> int: ...
    @property
    def triple(self) -> str: ...
    @property
    def streaming_stores(self) -> bool: ...


def derived(platform: Figures) -> EcmParameters:
    """Parameters from the figures that every platform has; what these do not say is that of an ordinary core of today:

    - two vector instructions, two loads and one store a cycle; without vectors those are scalar ones;
    - instructions begin up to 128 ahead of one that waits: buffers are longer, but what waits fills the schedulers;
    - divisions of whole vectors, and functions of the C library for each of their lanes, take time in proportion;
    - vectors of 32 bytes and more are gathered by an instruction, a cycle each lane, shorter ones lane by lane;
    - levels deliver what the description says, and half of that to what is written back; all threads of a shared
      instance get four times what one gets, at most as many times as there are cores;
    - one thread reads at most 20 lines a memory latency, three times as many with a prefetcher;
    - a store to memory takes the time of two loads, since its line comes and goes: as where all threads keep memory
      busy, so that none takes longer; a streaming one that of one and a quarter, where there are any: on x86-64;
    - prefetchers run six tenths of the way ahead that hides memory behind instructions, software nearly all of it;
    - a row costs ten nanoseconds, a parallel loop five microseconds.
    """
    wide = max(1, platform.vector_bytes)
    one = 0.5
    sharing = {c.level: max(1, c.shared_by_threads // platform.threads_per_core) for c in platform.caches}
    levels = tuple(
        LevelCycles(
            level=c.level,
            load_bytes_per_cycle=c.bandwidth_bytes_per_cycle,
            store_bytes_per_cycle=c.bandwidth_bytes_per_cycle / 2,
            all_threads_bytes_per_cycle=c.bandwidth_bytes_per_cycle * min(4, sharing[c.level], platform.cores),
        )
        for c in platform.caches[1:]
    )
    prefetched = 3.0 if platform.prefetcher else 1.0
    one_thread = min(platform.memory_bandwidth_gb_s, prefetched * 20 * platform.line_bytes / platform.memory_latency_ns)
    return EcmParameters(
        i8=_integers(1, wide, one),
        i16=_integers(2, wide, one),
        i32=_integers(4, wide, one),
        i64=_integers(8, wide, one),
        f32=_floats(4, wide, one),
        f64=_floats(8, wide, one),
        load_cycles=one,
        unaligned_load_cycles=1.0 if wide >= platform.line_bytes else 0.75,
        store_cycles=1.0,
        shuffle_cycles=2 * one,
        gather_cycles_per_lane=1.0 if wide >= GATHERED_VECTOR_BYTES else lane_cycles(one, 2 * one),
        scalar_cycles=0.4,
        window_instructions=128.0,
        levels=levels,
        memory_gb_s_one_thread=one_thread,
        memory_gb_s=platform.memory_bandwidth_gb_s,
        write_allocate_factor=2.0,
        streaming_store_factor=1.25 if platform.streaming_stores and platform.triple.startswith("x86_64-") else 2.0,
        prefetch_share=0.9 if platform.prefetcher else 0.0,
        memory_parallelism=12.0,
        memory_hidden_share=0.6,
        memory_hidden_share_prefetched=0.95,
        row_start_ns=10.0,
        tile_start_ns=30.0,
        fork_join_ns=5000.0 if platform.threads > 1 else 0.0,
    )


def _integers(size: int, wide: int, one: float) -> TypeCycles:
    """Integers of `size` bytes: multiplication at some widths is several steps. A quotient by a constant is the high
    half of a product, and a shift: of two bytes there is an instruction for that, bytes are taken two by two, and of
    wider ones odd and even lanes are multiplied apart. Other quotients are those of as many vectors of floats as hold
    them, beside which all else is done; those of eight bytes are computed one by one."""
    lanes = max(1, wide // size)
    by_floats = {1: 4 * _floats(4, wide, one).divide, 2: 2 * _floats(4, wide, one).divide}
    by_floats[4] = 2 * _floats(8, wide, one).divide
    multiply = {1: 4 * one, 2: one, 4: 2 * one, 8: 3 * one}[size]
    by_constant = {1: 2 * one + 5 * one, 2: one + one, 4: 2 * multiply + 3 * one, 8: 4.0 * lanes}[size]
    return TypeCycles(
        add=one,
        multiply=multiply,
        divide=by_floats.get(size, 10.0 * lanes),
        divide_by_constant=by_constant,
        select=one,
        convert=2 * one,
        narrow=4 * one,
        function=CALL_CYCLES * lanes,
    )


def _floats(size: int, wide: int, one: float) -> TypeCycles:
    lanes = max(1, wide // size)
    return TypeCycles(
        add=one,
        multiply=one,
        divide=max(4.0, 0.6 * lanes * (size / 4)),
        divide_by_constant=one,
        select=one,
        convert=2 * one,
        narrow={4: 4 * one, 8: 2 * one}[size],
        function=CALL_CYCLES * lanes,
    )
