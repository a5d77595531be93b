"""Calibration: figures of this machine, measured by small kernels of our own C and C that is made of small pipelines.

Both are compiled by the platform's compiler and run confined. Every figure is taken in several turns of all of them,
the least of many tries in each. Whatever else runs makes things slower, in a virtual machine also what nobody sees in
it: another one on the same core, or in the same cache. So figures on which no two turns agree are taken again.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tilesmith.app.profiler.generated_code import Generated
from tilesmith.app.profiler.samples import Measured, Reading
from tilesmith.app.runtime.build import build_program, find_toolchain
from tilesmith.app.runtime.confinement import Confinement
from tilesmith.app.runtime.errors import RunError
from tilesmith.app.runtime.run import RUN_LIMITS, environment
from tilesmith.app.runtime.sandbox import Limits, execute
from tilesmith.platforms import CpuPlatform

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
CLOCKS = ("clock", "vector_clock")
"""Samples that every group takes."""
REACH = "reach."
"""Beginning of the names of samples that end in bytes of a working set."""
FALLS = 1.3
"""Times what small working sets take: what large ones take at least where the last level is faster than memory."""
HALF_STAYS = 0.7
"""Share of a cache that a working set is of which half stays, as the cost model has it."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a measurement: `turns` of all groups, so that what disturbs one turn leaves the others alone, of so
    many rounds; microseconds of tries for a figure in each, bytes that count as memory at most, calls of a compiled
    pipeline, the longest that compiling, and each group, may take, and for how many seconds after compiling groups are
    taken again."""

    turns: int = 5
    rounds: int = 2
    sample_us: int = 6000
    memory_bytes: int = 1 << 30
    calls: int = 300
    wall_s: float = 120.0
    again_s: float = 15.0


QUICK = Effort(turns=3, rounds=2, sample_us=1000, memory_bytes=256 << 20, wall_s=30.0, again_s=1.2)
"""Two seconds or so, for QUICK_PARTS."""
QUICK_PARTS = ("core", "reach", "caches", "memory", "system")
"""The parts that decide most and are compiled soon."""


def quick_parts(platform: CpuPlatform) -> tuple[str, ...]:
    """Parts of QUICK_PARTS that made better predictions where they were tried: of vectors as wide as a line of the
    cache, on cores that take these in halves, operations and transfers did not, and are estimates."""
    wide = platform.vector_bytes >= platform.line_bytes
    return tuple(part for part in QUICK_PARTS if not (wide and part == "core"))


def clock_sample(platform: CpuPlatform) -> str:
    """The sample of the clock that cycles are counted at. Some processors lower it for vectors as wide as a line of the
    cache, so with these it is that beside their products; else that of scalar code, since shorter ones mostly keep it.
    """
    return "vector_clock" if platform.vector_bytes >= platform.line_bytes else "clock"


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
    found = Measured(compiler=find_toolchain(platform.compiler).version, clock=clock_sample(platform))
    found.busy = _busy()
    start = time.monotonic()
    program = build_program(
        source(platform, "core" in parts, PIPELINES in parts), platform.compiler, cache_dir, effort.wall_s
    )
    groups, compiled = Groups(program, platform, effort, found), time.monotonic()
    for turn in range(effort.turns):
        for group, title in GROUPS.items():
            if group in parts and groups.tells(group):
                if turn == 0:
                    tell(f"measuring {title}")
                groups.take(group)
    retake(groups, compiled + effort.again_s)
    found.memory_bytes = groups.sets("memory")[-1]
    if PIPELINES in parts:
        tell("measuring generated code")
        for name, times in Generated(platform, cache_dir, effort.turns, effort.calls).figures().items():
            for ns in times:
                found.add({name: Reading(ns)})
    found.seconds = time.monotonic() - start
    return found


@dataclass(slots=True)
class Groups:
    """The groups of figures of the compiled `program`, each taken as often as asked; what it says goes to `found`."""

    program: Path
    platform: CpuPlatform
    effort: Effort
    found: Measured
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    _sets: dict[str, list[int]] = field(default_factory=dict)

    def sets(self, group: str) -> list[int]:
        """Bytes that a group walks through: the same in all turns."""
        if group not in self._sets:
            self._sets[group] = (
                reach_sets(self.platform, self.effort)
                if group == "reach"
                else working_sets(self.platform, self.effort, self.found)
            )
        return self._sets[group]

    def tells(self, group: str) -> bool:
        """Presence of anything to be measured in a group."""
        match group:
            case "core":
                return self.platform.vector_bytes >= LEAST_VECTOR_BYTES
            case "reach":
                return bool(self.sets(group))
        return True

    def take(self, group: str) -> None:
        """One more turn of a group."""
        start = time.monotonic()
        said = _group(self.program, group, self.platform, self.effort, self.sets(group))
        self.found.add(said)
        between = {f"{REACH}{size}" for size in self.sets(group)[1:-1]} if group == "reach" else set()
        self.names[group] = tuple(name for name in said if name not in CLOCKS and name not in between)
        self.seconds[group] = time.monotonic() - start


def retake(groups: Groups, until: float) -> None:
    """Groups with figures on which no two turns agree, again and again, as long as they end before that time; the
    shortest first, so that all have had their turn before one has two."""
    while True:
        unsettled = (g for g, names in groups.names.items() if groups.found.unsure(names))
        taken = 0
        for group in sorted(unsettled, key=groups.seconds.__getitem__):
            if time.monotonic() + groups.seconds[group] < until:
                groups.take(group)
                taken += 1
        if not taken:
            return


def source(platform: CpuPlatform, core: bool = True, quotients: bool = True) -> str:
    """The C of the kernels for vectors of that platform; those of the `core` take a while to compile, and those of
    `quotients` by constants among them as long again."""
    size = max(LEAST_VECTOR_BYTES, platform.vector_bytes)
    lanes = size // 4
    neighbours = ", ".join(str(n) for n in range(1, lanes + 1))
    head = [
        f"#define VECTOR_BYTES {size}",
        f"#define NEIGHBOURS(a, b) __builtin_shufflevector(a, b, {neighbours})",
        *(["#define CORE"] if core else []),
        *(["#define QUOTIENTS"] if quotients else []),
    ]
    files = (BASE, CORE, SOURCE) if core else (BASE, SOURCE)
    return "\n".join((*head, *(f.read_text(encoding="utf-8") for f in files)))


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
    memory does, and in the middle between that and what small sets take, half stays. Who else uses the cache changes by
    the moment: of sets in between, the median counts. None where nothing of that kind was seen: then it is as large as
    it is said to be, or no faster than memory."""
    times = {int(n.removeprefix(REACH)): s.median for n, s in found.samples.items() if n.startswith(REACH)}
    if not found.has(*reach_ends(found)) or not times:
        return None
    sizes = sorted(times)
    near, far = (found.ns(name) for name in reach_ends(found))
    times[sizes[0]], times[sizes[-1]] = near, far
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
    (of the innermost of its own ones; a quarter of one that threads share, of what was `found` that they have of it, or
    up to half where that is little more than what is inside of it), four times all of the last level."""
    reached = None if found is None else reached_bytes(platform, found)
    together = last_level_bytes(platform) if reached is None else int(reached)
    sizes: list[int] = []
    beyond = 0
    for n, c in enumerate(platform.caches):
        shared = max(1, c.shared_by_threads // platform.threads_per_core) > 1
        last = n == len(platform.caches) - 1
        size = c.size_bytes * together // last_level_bytes(platform) if last else c.size_bytes
        part = max(size // 4, min(size // 2, beyond)) if shared else size // 2
        sizes.append(min(part, effort.memory_bytes))
        beyond = 2 * c.size_bytes * math.ceil(platform.threads / c.shared_by_threads)
    return [*sizes, min(max(64 << 20, 4 * together), effort.memory_bytes)]


def last_level_bytes(platform: CpuPlatform) -> int:
    """Bytes of all caches of the last level together."""
    return platform.llc_bytes * math.ceil(platform.threads / platform.caches[-1].shared_by_threads)


def _group(
    program: Path, group: str, platform: CpuPlatform, effort: Effort, sizes: Sequence[int]
) -> dict[str, Reading]:
    """The figures of one group that the program says by name, each the least of the rounds."""
    patience = 5 if group in ("memory", "system") else 1  # what takes milliseconds each, or waits for others
    rounds = max(1, effort.rounds // 2) if group == "memory" else effort.rounds  # one takes as long as ten of caches
    numbers = (platform.threads, rounds, patience * effort.sample_us, platform.line_bytes)
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as name:
        folder = Path(name).resolve()
        done = execute(
            (str(program), group, *map(str, (*numbers, *sizes))),
            cwd=folder,
            limits=Limits(wall_s=effort.wall_s, cpu_s=int(effort.wall_s) * platform.threads,
                          memory_bytes=RUN_LIMITS.memory_bytes, processes=256 + platform.threads,
                          output_bytes=4 << 20),
            # threads that come to lie on one CPU stay there for longer than a figure takes
            environment=environment(platform.threads) | {"OMP_PROC_BIND": "true"},
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
    least: dict[str, Reading] = {}
    for line in lines:
        name, ns = str(line["name"]), float(line["ns"])
        if name not in least or ns < least[name].ns:
            least[name] = Reading(ns, float(line["clock_ghz"]) if follows_the_core(group, name) else 0.0)
    return least


def follows_the_core(group: str, name: str) -> bool:
    """Dependence of a figure on the core's clock: all but those of what is beyond its own caches."""
    return group == "core" or name.startswith(("level1.", "level2."))


def _busy() -> float:
    """Cores that other programs keep busy now, while this one waits. What programs use that were started here cannot be
    taken from a total: of those in a namespace of their own the system does not tell."""
    return psutil.cpu_percent(interval=_IDLE_S) / 100 * (psutil.cpu_count() or 1)
