"""The figures of a platform, as models of time take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilesmith.platforms import Cache, Platform
from tilesmith.platforms.base import LEAST_TABLE_ENTRIES, TABLE_ENTRIES, in_flight_bytes, row_addresses
from tilesmith.platforms.core import Core
from tilesmith.platforms.ecm import EcmParameters


@dataclass(frozen=True, slots=True)
class Machine:
    """The figures of a platform as the model takes them: times in microseconds, `inside` bytes of each level that one
    thread has, `of_all` what all threads have together. Of each level beyond the first its `names` entry, and `outer`:
    microseconds a byte to load, to store, of all threads, and of a thread that waits for it; of `memory` the first and
    the last two. `latency`: how long memory takes to answer, in which a thread reads `in_flight_bytes`.
    `table_entries` of tables that instructions look up, or 0. `caches`, `core`, `addresses` of rows and what
    `takes_elements` as the platform has them."""

    parameters: EcmParameters
    core: Core
    cycle: float
    vector_bytes: int
    inside: tuple[float, ...]
    of_all: tuple[float, ...]
    names: tuple[str, ...]
    outer: tuple[tuple[float, float, float, float], ...]
    memory: tuple[float, float, float]
    row: float
    registers: int
    latency: float
    in_flight_bytes: float
    caches: tuple[Cache, ...]
    table_entries: int
    addresses: int
    takes_elements: bool


@lru_cache(maxsize=64)
def machine_of(platform: Platform) -> Machine:
    """The figures of a platform."""
    p = platform.ecm_parameters
    cycle = 1e-3 / platform.clock_ghz
    users = {
        c.level: min(max(1, c.shared_by_threads // platform.threads_per_core), platform.cores) for c in platform.caches
    }
    inside = [c.size_bytes / users[c.level] for c in platform.caches]
    of_all = [size * platform.cores for size in inside]
    under_way = p.memory_parallelism * platform.line_bytes
    latencies = {c.level: c.latency_cycles for c in platform.caches}
    outer = tuple(
        (
            cycle / level.load_bytes_per_cycle,
            cycle / level.store_bytes_per_cycle,
            # of one instance; each has its share of the cores, and all of them serve at once
            cycle / level.all_threads_bytes_per_cycle * users.get(level.level, platform.cores) / platform.cores,
            cycle * latencies.get(level.level, 0.0) / under_way,
        )
        for level in p.levels
    )
    memory = (1e-3 / p.memory_gb_s_one_thread, 1e-3 / p.memory_gb_s, 1e-3 * platform.memory_latency_ns / under_way)
    return Machine(
        p,
        platform.core,
        cycle,
        max(1, platform.vector_bytes),
        tuple(inside),
        tuple(of_all),
        tuple(f"L{level.level}" for level in p.levels),
        outer,
        memory,
        p.row_start_ns * 1e-3,
        platform.vector_registers,
        platform.memory_latency_ns * 1e-3,
        in_flight_bytes(platform),
        platform.caches,
        _table_entries(platform),
        row_addresses(platform.architecture),
        platform.work_items > 1 or platform.vector_unit.takes_elements,
    )


def _table_entries(platform: Platform) -> int:
    """Elements of a table of bytes that an instruction looks up in; 0 where none does."""
    wide = platform.vector_unit.table_lookup_bytes
    entries = LEAST_TABLE_ENTRIES if 2 * wide < TABLE_ENTRIES else TABLE_ENTRIES
    return platform.core.instructions.table_entries or entries if wide else 0
