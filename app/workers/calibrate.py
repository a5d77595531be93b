"""What this machine does, measured: small kernels of our own C, and the C that the scheduler makes of small pipelines.

Both are compiled by the platform's compiler and run confined. Every figure is taken in several rounds, the least of
many tries in each; what counts is the median over the rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from app.workers.calibrate_generated import Generated
from app.workers.compile import build_program, find_toolchain
from app.workers.errors import RunError
from app.workers.run import RUN_LIMITS, environment
from app.workers.sandbox import Confinement, Limits, execute
from platforms import CpuPlatform

SOURCE = Path(__file__).with_name("calibrate.c")
PIPELINES = "pipelines"
GROUPS = {
    "core": "operations in the core",
    "caches": "caches",
    "memory": "memory",
    "system": "threads",
}
LEAST_VECTOR_BYTES = 16
_COMPILE_S = 120.0
_GROUP_S = 120.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rounds, microseconds of tries for a figure in each, bytes that count as memory at most,
    and calls of a compiled pipeline."""

    rounds: int = 9
    sample_us: int = 6000
    memory_bytes: int = 1 << 30
    calls: int = 300


QUICK = Effort(rounds=1, sample_us=20, memory_bytes=1 << 20, calls=2)
"""What shows that it works, and measures nothing well."""


@dataclass(frozen=True, slots=True)
class Samples:
    """A figure of every round, in nanoseconds and in cycles of the clock that was measured just before."""

    ns: tuple[float, ...]
    cycles: tuple[float, ...]

    @property
    def spread(self) -> float:
        """How far apart the middle half of the rounds is, as a share of the median."""
        if len(self.ns) < 4:
            return (max(self.ns) - min(self.ns)) / statistics.median(self.ns) if min(self.ns) > 0 else 0.0
        low, middle, high = statistics.quantiles(self.ns, n=4)
        return (high - low) / middle if middle > 0 else 0.0


@dataclass(slots=True)
class Measured:
    """Every figure by name; `busy` is how much of one core other programs used meanwhile."""

    samples: dict[str, Samples] = field(default_factory=dict)
    rounds: int = 0
    compiler: str = ""
    seconds: float = 0.0
    busy: float = 0.0

    def ns(self, name: str) -> float:
        """Median over the rounds, nanoseconds."""
        return statistics.median(self.samples[name].ns)

    def cycles(self, name: str) -> float:
        """Median over the rounds, cycles."""
        return statistics.median(self.samples[name].cycles)

    @property
    def clock_ghz(self) -> float:
        return 1.0 / self.ns("clock")

    def spread(self, *names: str) -> float:
        """The largest spread of those figures."""
        return max((self.samples[n].spread for n in names if n in self.samples), default=0.0)


def measure(
    platform: CpuPlatform,
    cache_dir: Path,
    effort: Effort | None = None,
    tell: Callable[[str], None] = lambda _: None,
    parts: Collection[str] = (*GROUPS, PIPELINES),
) -> Measured:
    """The figures of this host, which `platform` describes, or those of some `parts` (groups, and PIPELINES beside
    any of them). `tell` gets a line about each part as it begins.

    Raises CompileError and RunError. What is compiled is kept in `cache_dir`.
    """
    effort = effort or Effort()
    found = Measured(rounds=effort.rounds, compiler=find_toolchain(platform.compiler).version)
    start, busy = time.monotonic(), _others_cpu_s()
    program = build_program(source(platform), platform.compiler, cache_dir, _COMPILE_S)
    lines: list[dict[str, float | str]] = []
    for group, title in GROUPS.items():
        if group not in parts or (group == "core" and platform.vector_bytes < LEAST_VECTOR_BYTES):
            continue
        tell(f"measuring {title}")
        lines += _group(program, group, platform, effort)
    for name in dict.fromkeys(str(line["name"]) for line in lines):
        own = [line for line in lines if line["name"] == name]
        ns = tuple(float(line["ns"]) for line in own)
        found.samples[name] = Samples(ns, tuple(n * float(w["clock_ghz"]) for n, w in zip(ns, own, strict=True)))
    if PIPELINES in parts:
        tell("measuring generated code")
        for name, times in Generated(platform, cache_dir, effort.rounds, effort.calls).figures().items():
            found.samples[name] = Samples(tuple(times), tuple(ns * found.clock_ghz for ns in times))
    found.seconds = time.monotonic() - start
    found.busy = max(0.0, (_others_cpu_s() - busy) / found.seconds)
    return found


def source(platform: CpuPlatform) -> str:
    """The C of the kernels for vectors of that platform."""
    size = max(LEAST_VECTOR_BYTES, platform.vector_bytes)
    lanes = size // 4
    neighbours = ", ".join(str(n) for n in range(1, lanes + 1))
    head = (
        f"#define VECTOR_BYTES {size}",
        f"#define NEIGHBOURS(a, b) __builtin_shufflevector(a, b, {neighbours})",
    )
    return "\n".join((*head, SOURCE.read_text(encoding="utf-8")))


def working_sets(platform: CpuPlatform, effort: Effort) -> list[int]:
    """Bytes of a thread's working set for every level of cache, innermost first, then for memory: half of a cache
    (of the innermost of its own ones; a quarter of one that threads share), four times the last one."""
    sizes = []
    for c in platform.caches:
        shared = max(1, c.shared_by_threads // platform.threads_per_core) > 1
        sizes.append(min(c.size_bytes // (4 if shared else 2), effort.memory_bytes))
    return [*sizes, min(max(64 << 20, 4 * platform.llc_bytes), effort.memory_bytes)]


def _group(program: Path, group: str, platform: CpuPlatform, effort: Effort) -> list[dict[str, float | str]]:
    """The lines that the program says of one group."""
    patience = 1 if group in ("core", "caches") else 5  # what takes milliseconds each, or waits for others
    numbers = (platform.threads, effort.rounds, patience * effort.sample_us, platform.line_bytes)
    sizes = working_sets(platform, effort)
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
        folder = Path(name).resolve()
        done = execute(
            (str(program), group, *map(str, (*numbers, *sizes))),
            cwd=folder,
            limits=Limits(wall_s=_GROUP_S, cpu_s=int(_GROUP_S) * platform.threads, memory_bytes=RUN_LIMITS.memory_bytes,
                          processes=256 + platform.threads, output_bytes=4 << 20),
            environment=environment(platform.threads),
            confinement=Confinement(writable=(folder,), readable=(program.parent,)),
        )  # fmt: skip
    said = done.stderr.decode("utf-8", "replace")
    if done.timed_out:
        raise RunError("run_timeout", f"measuring {GROUPS[group]} took longer than {_GROUP_S:.0f} s", said)
    if done.returncode == 3:
        raise RunError("out_of_memory", f"measuring {GROUPS[group]} needs {max(sizes):,} bytes of memory", said)
    if done.returncode != 0:
        raise RunError("run_failure", f"measuring {GROUPS[group]} ended with status {done.returncode}", said)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _others_cpu_s() -> float:
    """Seconds of processor time that everything but this process and its children has used since the start."""
    machine = psutil.cpu_times()
    total = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0)
    total -= getattr(machine, "guest", 0.0) + getattr(machine, "guest_nice", 0.0)  # counted in user time already
    return float(total - sum(os.times()[:4]))
