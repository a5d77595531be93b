"""Detection of the host, from what the operating system says of it.

Containers and virtual machines say odd things:
what is missing or impossible is replaced by an estimate, and the description's `sources` say so.
Every reader takes the root of the tree it reads, so that tests can show it other machines.
"""

from __future__ import annotations

import os
import platform as host_system
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

from tilesmith.platforms.base import LEAST_TABLE_ENTRIES, Cache
from tilesmith.platforms.core import ORDINARY, Core, Pages
from tilesmith.platforms.cpu.isa import VARIABLE, X86, asked_for
from tilesmith.platforms.cpu.model import CpuPlatform
from tilesmith.platforms.toolchain import Compiler

ESTIMATE = "estimate"
_SYSFS = "the operating system (/sys/devices/system/cpu)"
_CPUINFO = "the operating system (/proc/cpuinfo)"

WIDE, VBMI = 64, "avx512vbmi"
"""Bytes of vectors of which instructions may look up long tables of bytes, and the feature that has these."""
MOST_SHARED = 16 << 20
"""Bytes of a shared cache for each thread that may be used: more than any processor of today has for its own threads,
so that others share it."""


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """The first processor, as /proc/cpuinfo describes it."""

    model: str
    features: frozenset[str]
    clock_ghz: float | None


def host() -> CpuPlatform:
    """The machine this runs on, with the threads this process may use, as a processor of the instruction set that the
    environment names. Read once a process. PlatformError where the processor has not that instruction set."""
    return _host(os.environ.get(VARIABLE) or None)


@cache
def _host(isa: str | None) -> CpuPlatform:
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    page = os.sysconf("SC_PAGE_SIZE")
    return describe(Path("/"), frozenset(affinity), host_system.machine(), shutil.which, isa, page)


def describe(
    root: Path,
    affinity: frozenset[int],
    machine: str,
    which: Callable[[str], str | None],
    isa: str | None = None,
    page_bytes: int | None = None,
) -> CpuPlatform:
    """The machine whose /proc and /sys are under `root`, of architecture `machine` (as `uname -m` says),
    for a process that may run on the CPUs in `affinity`; `which` finds commands. With `isa` as a processor of that
    instruction set; PlatformError where this one has not all of it. `page_bytes`: the pages of memory, as the system
    says."""
    info = parse_cpuinfo(_text(root / "proc/cpuinfo") or "")
    threads, threads_source = usable_threads(root, affinity)
    vector_bytes, vector_registers = vectors(info.features, machine)
    compiler = find_compiler(machine, vector_bytes, which)
    if isa is not None:
        asked = asked_for(isa, info.features, machine)
        vector_bytes, vector_registers = asked.vector_bytes, asked.vector_registers
        compiler = Compiler(command=compiler.command, flags=asked.flags)
    clock, clock_source = _clock_ghz(root, affinity, info)
    found = read_caches(root, affinity)
    caches = found or _usual_caches(threads)
    per_core = _threads_per_core(root, affinity, threads)
    core = ORDINARY if page_bytes is None else Core(pages=Pages(page_bytes=page_bytes))
    core = with_tables(core, info.features if isa is None else asked.features, vector_bytes)
    sources = {
        "threads": threads_source,
        "threads_per_core": _SYSFS,
        "clock_ghz": clock_source,
        "vector_bytes": _CPUINFO if isa is None else f"{VARIABLE}={isa}",
        "vector_registers": "the architecture",
        "memory_bandwidth_gb_s": ESTIMATE + ": 25 GB/s a core, up to four cores",
        "memory_latency_ns": ESTIMATE,
        "prefetcher": ESTIMATE + ": general-purpose cores have one",
        "load_weight": ESTIMATE,
        "core": ESTIMATE,
        **_sources_of_caches(caches, bool(found)),
    }
    if page_bytes is not None:
        sources["core.pages"] = "the operating system (the size of a page); entries of the TLB are an " + ESTIMATE
    return CpuPlatform(
        kind="cpu",
        name="host",
        description=info.model[:200] or machine,
        triple=_triple(machine),
        threads=threads,
        threads_per_core=per_core,
        clock_ghz=clock,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        caches=tuple(c.model_copy(update=_estimated(c, max(8, vector_bytes))) for c in caches),
        memory_bandwidth_gb_s=25.0 * min(4, max(1, threads // per_core)),
        memory_latency_ns=100.0,
        prefetcher=True,
        load_weight=40.0,
        core=core,
        compiler=compiler,
        sources=tuple(sorted(sources.items())),
    )


def _sources_of_caches(caches: Iterable[Cache], told: bool) -> dict[str, str]:
    """Sources of the figures of caches, whose sizes the operating system has `told` or not."""
    sources = {}
    for c in caches:
        sources[f"l{c.level}"] = _SYSFS if told else ESTIMATE + ": the operating system does not say"
        sources[f"l{c.level}.latency_cycles"] = ESTIMATE
        sources[f"l{c.level}.bandwidth_bytes_per_cycle"] = ESTIMATE
    return sources


def with_tables(core: Core, features: Iterable[str], vector_bytes: int) -> Core:
    """`core`, with the tables that code for a processor of these `features` looks up in: vectors of 64 bytes alone do
    not have the instructions for long ones."""
    if vector_bytes < WIDE or VBMI in features:
        return core
    short = core.instructions.model_copy(update={"table_entries": LEAST_TABLE_ENTRIES})
    return core.model_copy(update={"instructions": short})


def parse_cpuinfo(text: str) -> CpuInfo:
    """The first processor of /proc/cpuinfo, as x86 and ARM kernels write it; empty where the text says nothing."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip().lower(), value.strip())
    features = fields.get("flags") or fields.get("features") or ""
    mhz = fields.get("cpu mhz", "")
    implementer, part = fields.get("cpu implementer"), fields.get("cpu part")
    model = fields.get("model name") or (f"ARM implementer {implementer} part {part}" if implementer else "")
    known_mhz = re.fullmatch(r"\d+(\.\d+)?", mhz) is not None and float(mhz) > 0
    return CpuInfo(model, frozenset(features.split()), float(mhz) / 1000 if known_mhz else None)


def vectors(features: frozenset[str], machine: str) -> tuple[int, int]:
    """Bytes of a vector register and how many there are, from the kernel's names of features."""
    if machine in X86:
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
            return 64, 32
        return (32, 16) if {"avx2", "fma"} <= features else (16, 16)
    if machine in ("aarch64", "arm64"):
        return 16, 32
    return (16, 16) if "neon" in features or "asimd" in features else (0, 0)


def usable_threads(root: Path, affinity: frozenset[int]) -> tuple[int, str]:
    """Threads that this process may keep busy, and what says so: the CPUs of its affinity or, where that
    is less, its control group's quota rounded up."""
    count = min(4096, max(1, len(affinity)))
    quota = cpu_quota(root)
    if quota is not None and ceil(quota) < count:
        return max(1, ceil(quota)), "the operating system (CPU quota of the control group)"
    return count, "the operating system (CPU affinity)"


def cpu_quota(root: Path) -> float | None:
    """CPUs that the control groups of this process allow, versions 1 and 2; None without a quota.

    A limit of any group above counts as well. Inside a container the path that the kernel names may
    not exist; then its groups are those at the root.
    """
    limits: list[float] = []
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version_2 = controllers == ""
        if not version_2 and "cpu" not in controllers.split(","):
            continue
        read = _quota_v2 if version_2 else _quota_v1
        for mount in ("", "unified") if version_2 else ("cpu", "cpu,cpuacct", "cpuacct,cpu"):
            for folder in _groups(root / "sys/fs/cgroup" / mount, path):
                limit = read(folder)
                if limit is not None:
                    limits.append(limit)
    return min(limits, default=None)


def _groups(mount: Path, path: str) -> list[Path]:
    """The folders of the group at `path` and of all groups above it."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    return [mount.joinpath(*parts[:n]) for n in range(len(parts) + 1)]


def _quota_v2(folder: Path) -> float | None:
    words = (_text(folder / "cpu.max") or "").split()
    return _ratio(*words) if len(words) == 2 else None


def _quota_v1(folder: Path) -> float | None:
    return _ratio(_text(folder / "cpu.cfs_quota_us") or "", _text(folder / "cpu.cfs_period_us") or "")


def _ratio(quota: str, period: str) -> float | None:
    """The share that the kernel's two numbers make; "max" and -1 are no limit."""
    numbers = quota.strip().isdecimal() and period.strip().isdecimal()
    return int(quota) / int(period) if numbers and int(quota) > 0 and int(period) > 0 else None


def read_caches(root: Path, affinity: frozenset[int]) -> tuple[Cache, ...]:
    """The data caches of the first usable CPU, innermost first; empty where the system does not say, or
    says what cannot be (no first level, sizes out of all proportion). Latency and bandwidth are not set."""
    folder = root / f"sys/devices/system/cpu/cpu{min(affinity, default=0)}/cache"
    found: dict[int, Cache] = {}
    for index in sorted(folder.glob("index*")):
        level, size = _number(index / "level"), parse_size(_text(index / "size") or "")
        kind = (_text(index / "type") or "").strip()
        if kind not in ("Data", "Unified") or level not in _PLAUSIBLE or size is None or level in found:
            continue
        least, most = _PLAUSIBLE[level]
        if not least <= size <= most:
            continue
        line = _number(index / "coherency_line_size") or 64
        line = line if 8 <= line <= 4096 and not line & (line - 1) else 64
        ways = min(_number(index / "ways_of_associativity") or 8, size // line)
        shared = parse_cpu_list(_text(index / "shared_cpu_list") or "") & affinity
        if level > 2:  # of one that others share whom a container or a virtual machine does not see
            size = min(size, MOST_SHARED * max(1, len(shared)))
        found[level] = Cache(
            level=level, size_bytes=size, line_bytes=line, ways=ways, shared_by_threads=max(1, len(shared)),
            latency_cycles=1.0, bandwidth_bytes_per_cycle=1.0,
        )  # fmt: skip
    return _growing(found) if 1 in found else ()


_PLAUSIBLE = {1: (4 << 10, 1 << 20), 2: (64 << 10, 256 << 20), 3: (256 << 10, 4 << 30), 4: (1 << 20, 64 << 30)}


def _growing(found: dict[int, Cache]) -> tuple[Cache, ...]:
    """The levels, without those that are no larger than the one inside; sharing never shrinks outwards."""
    kept: list[Cache] = []
    for level in sorted(found):
        cache_, inside = found[level], kept[-1] if kept else None
        if inside is None:
            kept.append(cache_)
        elif cache_.size_bytes > inside.size_bytes:
            shared = max(cache_.shared_by_threads, inside.shared_by_threads)
            kept.append(cache_.model_copy(update={"shared_by_threads": shared}))
    return tuple(kept)


def parse_size(text: str) -> int | None:
    """Bytes of a size as sysfs writes it ("48K", "32768K", "1M"); None where it is not one."""
    match = re.fullmatch(r"\s*(\d{1,12})([KMG]?)\s*", text)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def parse_cpu_list(text: str) -> frozenset[int]:
    """CPU numbers of a list as sysfs writes it ("0-3,8,10-11"); empty where it is not one."""
    if not re.fullmatch(r"\s*\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*\s*", text):
        return frozenset()
    ranges = (part.partition("-") for part in text.strip().split(","))
    return frozenset(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1))


def find_compiler(machine: str, vector_bytes: int, which: Callable[[str], str | None]) -> Compiler:
    """GCC, else Clang, with flags for the machine itself. GCC's name where there is neither: compiling will say so."""
    command = next((name for name in ("gcc", "clang") if which(name)), "gcc")
    if machine in X86:
        wide = ("-mprefer-vector-width=512",) if vector_bytes == 64 else ()
        return Compiler(command=command, flags=("-O3", "-march=native", *wide))
    return Compiler(command=command, flags=("-O3", "-mcpu=native"))


def _triple(machine: str) -> str:
    if machine in X86:
        return "x86_64-linux-gnu"
    if machine in ("aarch64", "arm64"):
        return "aarch64-linux-gnu"
    if machine.startswith("arm"):
        return "arm-linux-gnueabihf"
    return re.sub(r"[^a-z0-9_]", "_", machine.lower())[:32] + "-linux-gnu"


def _clock_ghz(root: Path, affinity: frozenset[int], info: CpuInfo) -> tuple[float, str]:
    """The highest clock that the system names, in GHz, and where it is from."""
    khz = _number(root / f"sys/devices/system/cpu/cpu{min(affinity, default=0)}/cpufreq/cpuinfo_max_freq")
    if khz and 0 < khz <= 20_000_000:
        return khz / 1e6, _SYSFS
    if info.clock_ghz and info.clock_ghz <= 20:
        return round(info.clock_ghz, 3), _CPUINFO
    return 2.0, ESTIMATE + ": the operating system does not say"


def _threads_per_core(root: Path, affinity: frozenset[int], threads: int) -> int:
    """Hardware threads that share the core of the first usable CPU, of those that may be used."""
    siblings = root / f"sys/devices/system/cpu/cpu{min(affinity, default=0)}/topology/thread_siblings_list"
    shared = parse_cpu_list(_text(siblings) or "") & affinity
    return min(16, threads, max(1, len(shared)))


def _usual_caches(threads: int) -> tuple[Cache, ...]:
    """The caches that a core of today usually has, for a system that does not say."""
    usual = ((1, 32 << 10, 8, 1), (2, 512 << 10, 8, 1), (3, 8 << 20, 16, threads))
    return tuple(
        Cache(level=level, size_bytes=size, line_bytes=64, ways=ways, shared_by_threads=shared,
              latency_cycles=1.0, bandwidth_bytes_per_cycle=1.0)
        for level, size, ways, shared in usual
    )  # fmt: skip


def _estimated(c: Cache, vector_bytes: int) -> dict[str, float]:
    """Latency and bandwidth that a cache of that level usually has, in cycles and bytes a cycle."""
    latency = {1: 5.0, 2: 14.0, 3: 50.0, 4: 120.0}[c.level]
    bandwidth = {1: 2.0 * vector_bytes, 2: min(64.0, 2.0 * vector_bytes), 3: min(16.0, 1.0 * vector_bytes), 4: 8.0}
    return {"latency_cycles": latency, "bandwidth_bytes_per_cycle": bandwidth[c.level]}


def _number(path: Path) -> int | None:
    text = (_text(path) or "").strip()
    return int(text) if text.isdecimal() and len(text) < 16 else None


def _text(path: Path) -> str | None:
    """The beginning of a file of the system; None where it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return None
