"""The platform kind `opencl`: a device that runs OpenCL C, and the compiler of the C that starts its work."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from tilesmith.platforms.base import (
    NO_SOURCES,
    Cache,
    Count,
    LineBytes,
    PlatformDocument,
    Positive,
    Sources,
    Text,
    Triple,
    VectorUnit,
    check_sources,
    source_of,
    vector_unit,
)
from tilesmith.platforms.core import ORDINARY, Core
from tilesmith.platforms.ecm import EcmParameters, derived
from tilesmith.platforms.toolchain import Compiler

FIGURES = (
    "compute_units", "clock_mhz", "work_group_multiple", "max_work_group_size", "local_memory_bytes",
    "local_memory_dedicated", "global_memory_bytes", "global_cache_bytes", "global_cache_line_bytes",
    "memory_bandwidth_gb_s", "local_bandwidth_gb_s", "memory_latency_ns",
)  # fmt: skip

WORD_BYTES = 4
"""Bytes that a work-item loads at a time where neighbours load neighbours: a float."""
REGISTERS = 32
"""Values that a work-item keeps in registers without fewer work-items at a time for it; no device tells."""
SUB_GROUPS = 4
"""Work-items that run together, times so many, are a work-group."""
LOCAL_CYCLES = 30.0
CACHE_CYCLES = 200.0
"""Latencies that local memory and the cache of a device usually have; those of memory are measured."""
CACHE_SPEED = 2.0
"""Bandwidth of the cache in that of memory: between two and four on devices of today."""
LOAD_WEIGHT = 40.0

DeviceType = Literal["cpu", "gpu", "accelerator"]
Lanes = Annotated[int, Field(strict=True, ge=0, le=16)]


class VectorWidths(BaseModel):
    """Lanes of the vectors that a work-item should compute with, by type; 0 where the device has not the type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    i8: Lanes
    i16: Lanes
    i32: Lanes
    i64: Lanes
    f16: Lanes
    f32: Lanes
    f64: Lanes

    @property
    def most_bytes(self) -> int:
        """Bytes of the widest of them."""
        return max(int(name[1:]) // 8 * int(lanes) for name, lanes in self)


class OpenClPlatform(PlatformDocument):
    """An OpenCL device, as its driver describes it.

    To schedules a compute unit is a thread: it takes one tile at a time, as a work-group. Its vector is what a
    sub-group loads at once, of a word each, or the vector of one work-item, where that is wider. Its caches are the
    local memory, which programs manage, and the cache of global memory.
    """

    kind: Literal["opencl"]
    device: Text = Field(description="the name that OpenCL gives the device")
    device_type: DeviceType
    opencl_version: Annotated[str, Field(strict=True, pattern=r"^[1-9]\.[0-9]$")] = Field(
        description="the version of OpenCL that the device has"
    )
    triple: Triple = Field(description="target triple of the host, such as x86_64-linux-gnu")
    compute_units: Annotated[Count, Field(le=65_536)]
    clock_mhz: Annotated[Positive, Field(le=20_000)]
    max_work_group_size: Annotated[Count, Field(le=1 << 20)] = Field(description="work-items of a work-group, at most")
    max_work_item_sizes: Annotated[tuple[Count, ...], Field(min_length=3, max_length=3)] = Field(
        description="the same along each dimension"
    )
    work_group_multiple: Annotated[Count, Field(le=1024)] = Field(
        description="work-items that run together: sizes of work-groups should be multiples of it (sub-group, warp)"
    )
    vector_widths: VectorWidths = Field(description="preferred lanes of vectors, by type")
    local_memory_bytes: Annotated[Count, Field(ge=1024, le=1 << 30)] = Field(description="of one work-group, at most")
    local_memory_dedicated: Annotated[bool, Field(strict=True)] = Field(
        description="whether local memory is a memory of its own; else it is global memory"
    )
    global_memory_bytes: Annotated[Count, Field(le=1 << 50)]
    global_cache_bytes: Annotated[int, Field(strict=True, ge=0, le=1 << 36)] = Field(description="0: there is none")
    global_cache_line_bytes: LineBytes
    memory_bandwidth_gb_s: Annotated[Positive, Field(le=100_000)] = Field(description="10^9 bytes/s, the whole device")
    local_bandwidth_gb_s: Annotated[Positive, Field(le=1_000_000)] = Field(description="the same of local memory")
    memory_latency_ns: Annotated[Positive, Field(le=100_000)]
    core: Core = Field(default=ORDINARY, description="figures of a work-item that have estimates")
    compiler: Compiler = Field(description="the C compiler of the host")
    sources: Sources = NO_SOURCES

    # execution
    @property
    def architecture(self) -> str:
        """The instruction set of the host, as triples begin: x86_64, aarch64."""
        return self.triple.partition("-")[0]

    @property
    def threads(self) -> int:
        """Tiles that are computed at a time."""
        return self.compute_units

    @property
    def threads_wait(self) -> bool:
        """False: work-groups may run one after the other."""
        return False

    @property
    def threads_per_core(self) -> int:
        """One: a compute unit has all of its local memory for one tile."""
        return 1

    @property
    def cores(self) -> int:
        """The compute units."""
        return self.compute_units

    @property
    def clock_ghz(self) -> float:
        """The clock, in GHz."""
        return self.clock_mhz / 1000

    # vectors
    @property
    def vector_bytes(self) -> int:
        """Bytes that work-items which run together load at once, or one of them by itself: a power of two up to 256."""
        together = self.work_group_multiple * WORD_BYTES if self.device_type == "gpu" else 0
        wanted = min(256, max(8, together, self.vector_widths.most_bytes))
        return 1 << (wanted.bit_length() - 1)

    @property
    def vector_registers(self) -> int:
        """Values that a work-item keeps in registers."""
        return REGISTERS

    @property
    def vector_unit(self) -> VectorUnit:
        """Vectors of one work-item, where it has vectors of its own; the language has no table lookups."""
        bytes_ = self.vector_bytes if self.work_items == 1 else 0
        found = vector_unit(bytes_, self.vector_registers, self.core)
        return replace(found, table_lookup_bytes=0, pairwise_products=False)

    @property
    def streaming_stores(self) -> bool:
        """No: the language has no stores past the caches."""
        return False

    @property
    def work_items(self) -> int:
        """Work-items of a work-group: a few times as many as run together, as a few wait while others compute. A
        processor computes best with one, which has its vectors in registers."""
        if self.device_type != "gpu":
            return 1
        most = min(self.max_work_group_size, self.max_work_item_sizes[0])
        return min(most // self.work_group_multiple, SUB_GROUPS) * self.work_group_multiple or 1

    # memory
    @property
    def caches(self) -> tuple[Cache, ...]:
        """Local memory as the first level, and the cache of global memory as the second, where it is larger."""
        line, cycles = self.global_cache_line_bytes, self.clock_ghz * self.compute_units
        local = Cache(
            level=1,
            size_bytes=self.local_memory_bytes,
            line_bytes=line,
            ways=1,
            shared_by_threads=1,
            latency_cycles=LOCAL_CYCLES,
            bandwidth_bytes_per_cycle=min(65_536.0, self.local_bandwidth_gb_s / cycles),
        )
        if self.global_cache_bytes <= self.local_memory_bytes:
            return (local,)
        shared = Cache(
            level=2,
            size_bytes=self.global_cache_bytes,
            line_bytes=line,
            ways=1,
            shared_by_threads=min(4096, self.compute_units),
            latency_cycles=CACHE_CYCLES,
            bandwidth_bytes_per_cycle=min(65_536.0, CACHE_SPEED * self.memory_bandwidth_gb_s / cycles),
        )
        return local, shared

    @property
    def line_bytes(self) -> int:
        """Bytes of a line of the cache."""
        return self.global_cache_line_bytes

    @property
    def l1_bytes(self) -> int:
        """Bytes of local memory that a work-group has."""
        return self.local_memory_bytes

    @property
    def l2_bytes(self) -> int:
        """Bytes that the buffers of one tile may take: those of local memory."""
        return self.local_memory_bytes

    @property
    def llc_bytes(self) -> int:
        """Bytes of the cache of global memory, or of local memory, where that is larger."""
        return max(self.global_cache_bytes, self.local_memory_bytes)

    @property
    def prefetcher(self) -> bool:
        """True of a device to which rows that are read in order come ahead: on a processor, and wherever other
        work-items compute while some wait, which is on all others."""
        return True

    # cost models
    @property
    def load_weight(self) -> float:
        """A load in operations (w of TACO 2019)."""
        return LOAD_WEIGHT

    @property
    def ecm_parameters(self) -> EcmParameters:
        """Parameters of the cost model `ecm` that follow from the other figures."""
        return derived(self)

    def source_of(self, figure: str) -> str | None:
        """The source of `figure`, if the description names it."""
        return source_of(self.sources, figure)

    def figures(self) -> dict[str, int | float | bool]:
        """Every figure of the device by name, preferred lanes as `vector_widths.f32`."""
        found = {figure: getattr(self, figure) for figure in FIGURES}
        found.update({f"max_work_item_sizes.{n}": size for n, size in enumerate(self.max_work_item_sizes)})
        found.update({f"vector_widths.{name}": lanes for name, lanes in self.vector_widths})
        return found

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.work_group_multiple > self.max_work_group_size:
            raise PydanticCustomError(
                "work_group_too_small",
                "a work-group has at least the work-items that run together",
                {"at": ("max_work_group_size",)},
            )
        if self.local_memory_bytes < self.global_cache_line_bytes:
            raise PydanticCustomError(
                "local_memory_too_small", "local memory has at least a line", {"at": ("local_memory_bytes",)}
            )
        check_sources(self.sources, {*self.figures(), "max_work_item_sizes", "vector_widths", "core"})
        return self
