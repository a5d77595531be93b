"""The platform kind `cpu`: a multi-core CPU with caches."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tilesmith.platforms.base import (
    NO_SOURCES,
    PAIRWISE_BYTES,
    SSE2_BYTES,
    Cache,
    Count,
    Platform,
    PlatformDocument,
    Positive,
    Sources,
    Triple,
    VectorUnit,
    check_sources,
    source_of,
    vector_unit,
)
from tilesmith.platforms.core import ORDINARY, Core
from tilesmith.platforms.cpu.isa import X86
from tilesmith.platforms.ecm import EcmParameters, derived
from tilesmith.platforms.errors import PlatformError, PlatformProblem
from tilesmith.platforms.toolchain import Compiler

CPU_FIGURES = (
    "threads", "threads_per_core", "clock_ghz", "vector_bytes", "vector_registers",
    "memory_bandwidth_gb_s", "memory_latency_ns", "prefetcher", "load_weight",
)  # fmt: skip
CACHE_FIGURES = (
    "size_bytes", "line_bytes", "ways", "shared_by_threads", "latency_cycles", "bandwidth_bytes_per_cycle",
)  # fmt: skip


class CpuPlatform(PlatformDocument):
    """A multi-core CPU with caches.

    `load_weight` is w of TACO 2019: what a load costs relative to an arithmetic operation. `sources` says
    of each figure where it is from: keys are names of figures (`threads`, `l2.latency_cycles`), or `l2`
    for all of a cache's figures that have no entry of their own, `ecm` for all of that model's.
    """

    kind: Literal["cpu"]
    triple: Triple = Field(description="target triple, such as x86_64-linux-gnu")
    threads: Annotated[Count, Field(le=4096)] = Field(description="hardware threads to use")
    threads_per_core: Annotated[Count, Field(le=16)] = 1
    clock_ghz: Annotated[Positive, Field(le=20)]
    vector_bytes: Annotated[int, Field(strict=True, ge=0, le=256)] = Field(
        description="bytes of a SIMD register: 0 (none) or a power of two from 8"
    )
    vector_registers: Annotated[int, Field(strict=True, ge=0, le=1024)]
    caches: Annotated[tuple[Cache, ...], Field(min_length=1, max_length=4)] = Field(description="innermost first")
    memory_bandwidth_gb_s: Annotated[Positive, Field(le=100_000)] = Field(description="10^9 bytes/s, all threads")
    memory_latency_ns: Annotated[Positive, Field(le=100_000)]
    prefetcher: Annotated[bool, Field(strict=True)] = Field(
        default=True, description="whether hardware streams rows that are read in order"
    )
    load_weight: Annotated[Positive, Field(le=10_000)]
    ecm: EcmParameters | None = Field(
        default=None, description="parameters of the cost model `ecm`; derived from the other figures where missing"
    )
    core: Core = Field(default=ORDINARY, description="figures of a core that have estimates")
    compiler: Compiler
    sources: Sources = NO_SOURCES

    @classmethod
    def of(cls, platform: Platform) -> Self:
        """The platform as a CPU; PlatformError `wrong_kind` where it is another kind of machine."""
        if not isinstance(platform, cls):
            message = f"{platform.name} is of kind {platform.kind!r}, and a processor is needed"
            raise PlatformError((PlatformProblem("wrong_kind", "/kind", message, "a platform of kind 'cpu'"),))
        return platform

    @property
    def architecture(self) -> str:
        """The instruction set, as triples begin: x86_64, aarch64."""
        return self.triple.partition("-")[0]

    @property
    def line_bytes(self) -> int:
        """Bytes of a line of the innermost cache."""
        return self.caches[0].line_bytes

    @property
    def cores(self) -> int:
        """Cores that the threads make."""
        return max(1, self.threads // self.threads_per_core)

    @property
    def threads_wait(self) -> bool:
        """True: the system sees to it that each goes on."""
        return True

    @property
    def l1_bytes(self) -> int:
        """Bytes of the innermost data cache."""
        return self.caches[0].size_bytes

    @property
    def l2_bytes(self) -> int:
        """Bytes of second-level cache per core (a shared one divided by its cores); of the first, without a second."""
        if len(self.caches) < 2:
            return self.l1_bytes
        second = self.caches[1]
        return second.size_bytes // max(1, second.shared_by_threads // self.threads_per_core)

    @property
    def llc_bytes(self) -> int:
        """Bytes of one instance of the outermost cache."""
        return self.caches[-1].size_bytes

    @property
    def ecm_parameters(self) -> EcmParameters:
        """Parameters of the cost model `ecm`: the platform's own, or what follows from its other figures."""
        return self.ecm if self.ecm is not None else derived(self)

    @property
    def vector_unit(self) -> VectorUnit:
        """Registers, and the instructions that there are on them."""
        pairwise_bytes = SSE2_BYTES if self.architecture in X86 else PAIRWISE_BYTES
        return vector_unit(self.vector_bytes, self.vector_registers, self.core, pairwise_bytes)

    @property
    def streaming_stores(self) -> bool:
        """Yes: where the machine has no stores past the caches, its C has plain ones."""
        return True

    @property
    def work_items(self) -> int:
        """One: a thread has its vectors in registers."""
        return 1

    def source_of(self, figure: str) -> str | None:
        """The source of `figure` (`threads`, `l2.ways`), if the description names it."""
        return source_of(self.sources, figure)

    def figures(self) -> dict[str, int | float | bool]:
        """Every figure of the machine by name, caches as `l1.size_bytes`."""
        found = {figure: getattr(self, figure) for figure in CPU_FIGURES}
        for cache in self.caches:
            found.update({f"l{cache.level}.{figure}": getattr(cache, figure) for figure in CACHE_FIGURES})
        return found

    @field_validator("vector_bytes")
    @classmethod
    def _vector_width(cls, width: int) -> int:
        if width and (width < 8 or width & (width - 1)):
            raise PydanticCustomError("not_a_power_of_two", "vectors have 0 bytes (none) or a power of two from 8")
        return width

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for index, (near, far) in enumerate(zip(self.caches, self.caches[1:], strict=False)):
            at = ("caches", index + 1)
            if far.level <= near.level:
                raise PydanticCustomError("caches_out_of_order", "levels must increase outwards", {"at": at})
            if far.size_bytes <= near.size_bytes:
                raise PydanticCustomError(
                    "caches_not_growing", "a cache must be larger than the one inside", {"at": at}
                )
            if far.shared_by_threads < near.shared_by_threads:
                raise PydanticCustomError("caches_not_growing", "sharing cannot shrink outwards", {"at": at})
        known = {*self.figures(), *(f"l{c.level}" for c in self.caches), "ecm", "core"}
        known |= {f"ecm.{name}" for name in EcmParameters.model_fields}
        known |= {f"core.{name}" for name in Core.model_fields}
        check_sources(self.sources, known)
        return self
