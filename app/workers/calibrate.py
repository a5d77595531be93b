"""What this machine does, measured: small kernels of our own C, and the C that the scheduler makes of small pipelines.

Both are compiled by the platform's compiler and run confined. Every figure is taken in several rounds, the least of
many tries in each. Whatever else runs makes things slower, and a lucky round is no figure: the lower quartile counts.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from app.workers.calibrate_generated import Generated
from app.workers.compile import build_program, find_toolchain
from app.workers.errors import RunError
from app.workers.run import RUN_LIMITS, environment
from app.workers.sandbox import Confinement, Limits, execute
from platforms import CpuPlatform

BASE, CORE, SOURCE = (Path(__file__).with_name(f"calibrate{part}.c") for part in ("_base", "_core", ""))
PIPELINES = "pipelines"
GROUPS = {
    "core": "operations in the core",
    "reach": "how much the last cache keeps",
    "caches": "caches",
    "memory": "memory",
    "system": "threads",
}
LEAST_VECTOR_BYTES = 16
_IDLE_S = 0.1
REACH = "reach."
"""Begins the names of samples that end in bytes of a working set."""
FALLS = 1.3
"""Times what small working sets take: what large ones take at least where the last level is faster than memory."""
HALF_STAYS = 0.7
"""Share of a cache that a working set is of which half stays, as the cost model has it."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a measurement: rounds, in so many `turns` of all groups, so that what disturbs one turn leaves the
    others alone; microseconds of tries for a figure in each, bytes that count as memory at most, calls of a compiled
    pipeline, and the longest that compiling, and each group, may take."""

    rounds: int = 9
    turns: int = 3
    sample_us: int = 6000
    memory_bytes: int = 1 << 30
    calls: int = 300
    wall_s: float = 120.0


QUICK = Effort(rounds=4, turns=2, sample_us=1000, memory_bytes=256 << 20, wall_s=10.0)
"""A second or so, for quick_parts()."""


@dataclass(frozen=True, slots=True)
class Samples:
    """A figure of every round, in nanoseconds."""

    ns: tuple[float, ...]

    @property
    def figure(self) -> float:
        """Their lower quartile."""
        return statistics.quantiles(self.ns, n=4, method="inclusive")[0] if len(self.ns) > 1 else self.ns[0]

    @property
    def spread(self) -> float:
        """The distance of the figure from the least, as a share of it: rounds that whatever else runs did not disturb
        say the same."""
        return (self.figure - min(self.ns)) / self.figure if self.figure > 0 else 0.0


@dataclass(slots=True)
class Measured:
    """Every figure by name; `busy` is how many cores other programs used before, `memory_bytes` what of memory was
    walked through."""

    samples: dict[str, Samples] = field(default_factory=dict)
    rounds: int = 0
    compiler: str = ""
    seconds: float = 0.0
    busy: float = 0.0
    memory_bytes: float = math.inf

    def add(self, said: Mapping[str, Sequence[float]]) -> None:
        """More rounds of figures."""
        for name, ns in said.items():
            before = self.samples[name].ns if name in self.samples else ()
            self.samples[name] = Samples((*before, *ns))

    def ns(self, name: str) -> float:
        """What the rounds say, nanoseconds."""
        return self.samples[name].figure

    def cycles(self, name: str) -> float:
        """The same in cycles of the clock that was measured."""
        return self.ns(name) * self.clock_ghz

    def has(self, *names: str) -> bool:
        """Whether all of those were measured, to more than nothing."""
        return all(name in self.samples and self.ns(name) > 0 for name in names)

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
    found.busy = _busy()
    start = time.monotonic()
    program = build_program(source(platform, "core" in parts), platform.compiler, cache_dir, effort.wall_s)
    sets: dict[str, list[int]] = {}
    for turn in range(effort.turns):
        done, then = (effort.rounds * n // effort.turns for n in (turn, turn + 1))
        own = replace(effort, rounds=then - done)
        for group, title in GROUPS.items():
            if group not in sets:  # the same in all turns
                sets[group] = (
                    reach_sets(platform, effort) if group == "reach" else working_sets(platform, effort, found)
                )
            if group in parts and _tells(group, platform, sets[group]):
                if turn == 0:
                    tell(f"measuring {title}")
                found.add(_group(program, group, platform, own, sets[group]))
    found.memory_bytes = sets["memory"][-1]
    if PIPELINES in parts:
        tell("measuring generated code")
        for name, times in Generated(platform, cache_dir, effort.rounds, effort.calls).figures().items():
            found.add({name: times})
    found.seconds = time.monotonic() - start
    return found


QUICK_PARTS = ("reach", "caches", "memory", "system")
"""The parts that decide most and are compiled soon."""


def source(platform: CpuPlatform, core: bool = True) -> str:
    """The C of the kernels for vectors of that platform; those of the `core` take a while to compile."""
    size = max(LEAST_VECTOR_BYTES, platform.vector_bytes)
    lanes = size // 4
    neighbours = ", ".join(str(n) for n in range(1, lanes + 1))
    head = (
        f"#define VECTOR_BYTES {size}",
        f"#define NEIGHBOURS(a, b) __builtin_shufflevector(a, b, {neighbours})",
    )
    files = (BASE, CORE, SOURCE) if core else (BASE, SOURCE)
    return "\n".join((*head, *(["#define CORE"] if core else []), *(f.read_text(encoding="utf-8") for f in files)))


def _tells(group: str, platform: CpuPlatform, sizes: Sequence[int]) -> bool:
    """Presence of anything to be measured in a group."""
    match group:
        case "core":
            return platform.vector_bytes >= LEAST_VECTOR_BYTES
        case "reach":
            return bool(sizes)
    return True


def reach_sets(platform: CpuPlatform, effort: Effort) -> list[int]:
    """Bytes that all threads walk through together to find out how much of the last level they have: from twice all
    caches inside of it on, each twice the one before, and some that no cache keeps. None where there is little between
    the levels, or no more memory to be used than the caches may have."""
    nominal = last_level_bytes(platform)
    if len(platform.caches) < 2:
        return []
    inside = platform.caches[-2]
    least = 2 * inside.size_bytes * math.ceil(platform.threads / inside.shared_by_threads)
    most = min(nominal, effort.memory_bytes // 2)
    sizes = [least << n for n in range(32) if least << n <= most]
    return [*sizes, min(4 * nominal, effort.memory_bytes)] if len(sizes) > 1 else []


def reached_bytes(platform: CpuPlatform, found: Measured) -> float | None:
    """Bytes of the last level that the threads have together: walking through more than a cache keeps takes as long as
    memory does, and in the middle between that and what small sets take, half stays. None where nothing of that kind
    was seen: then it is as large as it is said to be, or no faster than memory."""
    times = {int(n.removeprefix(REACH)): found.ns(n) for n in found.samples if n.startswith(REACH) and found.has(n)}
    if not times:
        return None
    sizes = sorted(times)
    near, far = times[sizes[0]], times[sizes[-1]]
    middle = math.sqrt(near * far)
    if far < FALLS * near:
        return None
    last = next(n for n, size in enumerate(sizes) if times[size] > middle)
    before, after = sizes[last - 1], sizes[last]
    share = math.log(middle / times[before]) / math.log(times[after] / times[before])
    return min(float(last_level_bytes(platform)), before * float((after / before) ** share) / HALF_STAYS)


def beyond_caches(platform: CpuPlatform, found: Measured) -> bool:
    """Validity of what was taken for memory: no caches have the half of it."""
    return found.memory_bytes >= 2 * (reached_bytes(platform, found) or last_level_bytes(platform))


def reach_ends(found: Measured) -> tuple[str, ...]:
    """The samples that say whether reached_bytes() can be trusted: of the least set, and of the largest one. Of those
    near what a cache keeps, a part that differs from round to round stays in it."""
    sizes = sorted(int(n.removeprefix(REACH)) for n in found.samples if n.startswith(REACH))
    return (f"{REACH}{sizes[0]}", f"{REACH}{sizes[-1]}") if sizes else ()


def working_sets(platform: CpuPlatform, effort: Effort, found: Measured | None = None) -> list[int]:
    """Bytes of a thread's working set for every level of cache, innermost first, then for memory: half of a cache
    (of the innermost of its own ones; a quarter of one that threads share, of what was `found` that they have of it),
    four times all of the last level."""
    reached = None if found is None else reached_bytes(platform, found)
    together = last_level_bytes(platform) if reached is None else int(reached)
    sizes = []
    for n, c in enumerate(platform.caches):
        shared = max(1, c.shared_by_threads // platform.threads_per_core) > 1
        last = n == len(platform.caches) - 1
        size = c.size_bytes * together // last_level_bytes(platform) if last else c.size_bytes
        sizes.append(min(size // (4 if shared else 2), effort.memory_bytes))
    return [*sizes, min(max(64 << 20, 4 * together), effort.memory_bytes)]


def last_level_bytes(platform: CpuPlatform) -> int:
    """Bytes of all caches of the last level together."""
    return platform.llc_bytes * math.ceil(platform.threads / platform.caches[-1].shared_by_threads)


def _group(
    program: Path, group: str, platform: CpuPlatform, effort: Effort, sizes: Sequence[int]
) -> dict[str, list[float]]:
    """The figures of one group that the program says, of every round, by name."""
    patience = 5 if group in ("memory", "system") else 1  # what takes milliseconds each, or waits for others
    numbers = (platform.threads, effort.rounds, patience * effort.sample_us, platform.line_bytes)
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
        folder = Path(name).resolve()
        done = execute(
            (str(program), group, *map(str, (*numbers, *sizes))),
            cwd=folder,
            limits=Limits(wall_s=effort.wall_s, cpu_s=int(effort.wall_s) * platform.threads,
                          memory_bytes=RUN_LIMITS.memory_bytes, processes=256 + platform.threads,
                          output_bytes=4 << 20),
            environment=environment(platform.threads),
            confinement=Confinement(writable=(folder,), readable=(program.parent,)),
        )  # fmt: skip
    said = done.stderr.decode("utf-8", "replace")
    if done.timed_out:
        raise RunError("run_timeout", f"measuring {GROUPS[group]} took longer than {effort.wall_s:.0f} s", said)
    if done.returncode == 3:
        raise RunError("out_of_memory", f"measuring {GROUPS[group]} needs {max(sizes):,} bytes of memory", said)
    if done.returncode != 0:
        raise RunError("run_failure", f"measuring {GROUPS[group]} ended with status {done.returncode}", said)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    names = dict.fromkeys(str(line["name"]) for line in lines)
    return {name: [float(line["ns"]) for line in lines if line["name"] == name] for name in names}


def _busy() -> float:
    """Cores that other programs keep busy now, while this one waits. What programs use that were started here cannot be
    taken from a total: of those in a namespace of their own the system does not tell."""
    return psutil.cpu_percent(interval=_IDLE_S) / 100 * (psutil.cpu_count() or 1)
