"""Platforms for tests: fixed figures, whatever the host or the catalog says, but for vectors that have to run here."""

from __future__ import annotations

from typing import Any

from support.builds import HOST_BYTES

from tilesmith import platforms
from tilesmith.platforms import CpuPlatform

KIB, MIB = 1 << 10, 1 << 20


def machine(
    threads: int = 2,
    vector_bytes: int = 64,
    l2_bytes: int = MIB,
    llc_bytes: int = 32 * MIB,
    prefetcher: bool = True,
    load_weight: float = 10.0,
) -> CpuPlatform:
    """A CPU with 32 KiB of L1 and 64-byte lines; each core has an L2 of its own."""
    model = platforms.get("i7-6700")
    sizes = (32 * KIB, l2_bytes, llc_bytes)
    caches = tuple(
        c.model_copy(update={"size_bytes": size, "line_bytes": 64, "shared_by_threads": shared})
        for c, size, shared in zip(model.caches, sizes, (1, 1, threads), strict=True)
    )
    return model.model_copy(
        update={
            "name": "test-machine",
            "threads": threads,
            "threads_per_core": 1,
            "vector_bytes": vector_bytes,
            "vector_registers": 32 if vector_bytes == 64 else 16,
            "caches": caches,
            "prefetcher": prefetcher,
            "load_weight": load_weight,
        }
    )


def here(**figures: Any) -> CpuPlatform:
    """The machine of the tests with vectors as wide as the host's: what is compiled for it can be run."""
    return machine(vector_bytes=HOST_BYTES, **figures)
