"""Measured figures as a description of the host, with the evidence for each of them."""

from __future__ import annotations

from pathlib import Path

import yaml

from app.workers.calibrate import LEAST_VECTOR_BYTES, Measured
from app.workers.calibrate_generated import FUNCTIONS
from platforms import Cache, CpuPlatform
from platforms.ecm import TYPES, EcmParameters, LevelCycles, TypeCycles, derived
from platforms.model import to_document

NOISY = 0.15
"""A spread from which a figure is said to be noisy."""
BUSY = 0.2
"""Of one core: what other programs may use before a calibration is said to be disturbed."""

_CONVERSIONS = {
    "i8": ("i8.narrow",),
    "i16": ("i16.widen", "i16.narrow"),
    "i32": ("i32.widen", "i32.narrow", "i32.exchange"),
    "i64": ("i64.widen",),
    "f32": ("f32.narrow", "f32.exchange"),
    "f64": ("f64.widen",),
}


def calibrated(platform: CpuPlatform, measured: Measured, name: str = "host") -> CpuPlatform:
    """`platform` with every measured figure in place of what it said, and `sources` that say how each was measured."""
    caches = tuple(_cache(n, c, measured) for n, c in enumerate(platform.caches, 1))
    latency = caches[-1].latency_cycles
    changed = platform.model_copy(
        update={
            "name": name,
            "clock_ghz": _round(measured.clock_ghz),
            "caches": caches,
            "memory_bandwidth_gb_s": _round(1 / measured.ns("memory.load.all")),
            "memory_latency_ns": _round(measured.ns("memory.latency")),
            "load_weight": latency,
        }
    )
    sources = dict(platform.sources) | evidence(changed, measured)
    update = {"ecm": _parameters(changed, measured), "sources": tuple(sorted(sources.items()))}
    return CpuPlatform.model_validate(changed.model_copy(update=update).model_dump())


def evidence(platform: CpuPlatform, measured: Measured) -> dict[str, str]:
    """How each figure was measured: the way, the rounds, how far they are apart."""
    found = {
        "clock_ghz": _text(measured, "a chain of additions, under load", "clock"),
        "memory_bandwidth_gb_s": _text(measured, "loads of all threads in order, beyond the caches", "memory.load.all"),
        "memory_latency_ns": _text(measured, "a chain of loads in random order, beyond the caches", "memory.latency"),
        "load_weight": "the latency of the last cache in additions, which take a cycle",
        "ecm": f"measured with {measured.compiler} {' '.join(platform.compiler.flags)}, {platform.threads} threads; "
        f"other programs used {measured.busy:.2f} of a core meanwhile",
        "ecm.levels": _text(
            measured,
            "loads and stores in order in half of each cache",
            *(
                f"level{k + 2}.{what}"
                for k in range(len(platform.caches) - 1)
                for what in ("load", "load.all", "store")
            ),
        ),
        "ecm.memory_gb_s_one_thread": _text(measured, "loads of one thread in order", "memory.load"),
        "ecm.memory_gb_s": _text(measured, "loads of all threads in order", "memory.load.all"),
        "ecm.write_allocate_factor": _text(measured, "stores of all threads", "memory.store.all", "memory.load.all"),
        "ecm.streaming_store_factor": _text(
            measured, "stores past the caches, of all threads", "memory.stream.all", "memory.load.all"
        ),
        "ecm.prefetch_share": _text(
            measured, "a chain of loads in order beside one in random order", "memory.in_order", "memory.latency"
        ),
        "ecm.memory_parallelism": _text(
            measured, "independent loads in random order beside a chain", "memory.scattered", "memory.latency"
        ),
        "ecm.row_start_ns": _text(measured, "short rows beside long ones, in generated code", "row"),
        "ecm.tile_start_ns": _text(measured, "tiles of one row beside tiles of three, in generated code", "tile"),
        "ecm.fork_join_ns": _text(measured, "empty parallel loops one after another, the least", "region"),
    }
    for n, c in enumerate(platform.caches, 1):
        found[f"l{c.level}.latency_cycles"] = _text(measured, "a chain of loads in random order", f"level{n}.latency")
        found[f"l{c.level}.bandwidth_bytes_per_cycle"] = _text(measured, "loads in order", f"level{n}.load")
    if platform.vector_bytes < LEAST_VECTOR_BYTES:
        return found
    for t in TYPES:
        names = (f"{t}.add", f"{t}.multiply", f"{t}.select", f"{t}.divide", f"{t}.divide_by_constant", *_CONVERSIONS[t])
        how = (
            f"independent instructions; functions: the mean of {len(FUNCTIONS)}, in generated code"
            if t[0] == "f"
            else "independent instructions; divisions in generated code; functions: estimate"
        )
        found[f"ecm.{t}"] = _text(measured, how, *names)
    for figure, sample, how in (
        ("load_cycles", "load", "aligned vectors, first level"),
        ("unaligned_load_cycles", "unaligned_load", "vectors four bytes beside a line, first level"),
        ("store_cycles", "store", "aligned vectors, first level"),
        ("unaligned_store_cycles", "unaligned_store", "vectors four bytes beside a line, first level"),
        ("shuffle_cycles", "shuffle", "two registers shifted by a lane"),
        ("gather_cycles_per_lane", "gather", "float32 from places in a vector, in generated code"),
        ("scalar_cycles", "scalar", "a mix of integers and floats"),
    ):
        found[f"ecm.{figure}"] = _text(measured, how, sample)
    return found


def warnings(measured: Measured) -> list[str]:
    """What a reader should know before trusting the figures."""
    found = []
    if measured.busy > BUSY:
        found.append(
            f"other programs used {measured.busy:.1f} of a core meanwhile: repeat it when the machine is quiet"
        )
    noisy = [name for name, s in measured.samples.items() if s.spread > NOISY]
    if noisy:
        found.append(f"noisy (rounds more than {NOISY:.0%} apart): {', '.join(noisy)}")
    return found


def to_yaml(platform: CpuPlatform) -> str:
    """The description as YAML, ready for --platform."""
    text: str = yaml.safe_dump(to_document(platform), sort_keys=False, width=120, allow_unicode=True)
    return text


def write(platform: CpuPlatform, path: Path) -> None:
    """The YAML as a file, whole or not at all. Raises OSError."""
    aside = path.with_name(path.name + ".part")
    aside.write_text(to_yaml(platform), encoding="utf-8")
    aside.replace(path)


def _cache(n: int, c: Cache, measured: Measured) -> Cache:
    """The n-th cache, as measured."""
    latency, load = measured.cycles(f"level{n}.latency"), measured.cycles(f"level{n}.load")
    return c.model_copy(update={"latency_cycles": _round(latency), "bandwidth_bytes_per_cycle": _round(1 / load)})


def _parameters(platform: CpuPlatform, measured: Measured) -> EcmParameters:
    """The parameters of `ecm`; what was not measured follows from the platform's other figures."""
    usual = derived(platform)
    read = measured.ns("memory.load.all")
    latency = measured.ns("memory.latency")
    update = {
        "levels": tuple(_level(n, c, platform, measured) for n, c in enumerate(platform.caches[1:], 2)),
        "memory_gb_s_one_thread": 1 / measured.ns("memory.load"),
        "memory_gb_s": 1 / read,
        "write_allocate_factor": min(8.0, max(1.0, measured.ns("memory.store.all") / read)),
        "streaming_store_factor": min(8.0, measured.ns("memory.stream.all") / read),
        "prefetch_share": max(0.0, 1 - measured.ns("memory.in_order") / latency),
        "memory_parallelism": min(1024.0, max(1.0, latency / measured.ns("memory.scattered"))),
        "row_start_ns": measured.ns("row"),
        "tile_start_ns": measured.ns("tile"),
        # whatever else runs delays one of the threads: the least is what a region takes
        "fork_join_ns": min(measured.samples["region"].ns) if platform.threads > 1 else 0.0,
    }
    if platform.vector_bytes >= LEAST_VECTOR_BYTES:
        for t in TYPES:
            update[t] = _type(t, usual.of_type(t), measured)
        for name in ("load", "unaligned_load", "store", "unaligned_store", "shuffle", "scalar"):
            update[f"{name}_cycles"] = measured.cycles(name)
        update["gather_cycles_per_lane"] = measured.cycles("gather")
    rounded = {key: _round(v) if isinstance(v, float) else v for key, v in update.items()}
    return usual.model_copy(update=rounded)


def _type(t: str, usual: TypeCycles, measured: Measured) -> TypeCycles:
    conversions = [measured.cycles(name) for name in _CONVERSIONS[t]]
    update = {o: measured.cycles(f"{t}.{o}") for o in ("add", "multiply", "divide", "divide_by_constant", "select")}
    update["convert"] = sum(conversions) / len(conversions)
    if t[0] == "f":
        update["function"] = measured.cycles(f"{t}.function")
    return usual.model_copy(update={o: _round(v) for o, v in update.items()})


def _level(n: int, c: Cache, platform: CpuPlatform, measured: Measured) -> LevelCycles:
    """All threads were measured at once: an instance's share of what they got is that of the threads that share it."""
    share = min(1.0, c.shared_by_threads / platform.threads)
    return LevelCycles(
        level=c.level,
        load_bytes_per_cycle=_round(1 / measured.cycles(f"level{n}.load")),
        store_bytes_per_cycle=_round(1 / measured.cycles(f"level{n}.store")),
        all_threads_bytes_per_cycle=_round(share / measured.cycles(f"level{n}.load.all")),
    )


def _text(measured: Measured, how: str, *names: str) -> str:
    rounds = "1 round" if measured.rounds == 1 else f"{measured.rounds} rounds"
    return f"measured: {how}; {rounds}, spread {measured.spread(*names):.0%}"


def _round(value: float) -> float:
    """Four significant digits, of something that is more than nothing."""
    return float(f"{max(value, 1e-4):.4g}")
