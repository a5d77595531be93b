"""Measured figures as a description of the host, with the evidence for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import yaml

from tilesmith.app.profiler.calibrate import beyond_caches, last_level_bytes, reach_ends, reached_bytes
from tilesmith.app.profiler.samples import AGREE, Measured
from tilesmith.platforms import CpuPlatform, to_document
from tilesmith.platforms.ecm import TYPES, LevelCycles, TypeCycles

NOISY = 0.25
"""A spread from which a figure is a bound of what was known of it before, no more."""
UNSURE = 0.15
"""A spread of any figure from which a measurement is one to be made again when the machine is quiet."""
IMPLAUSIBLE = 20.0
"""Nor is one that is so many times, or one part in so many of, what was known of it before."""
BUSY = 0.2
"""The part of one core that other programs may use before a calibration is said to be disturbed."""

STORED = "stored.copy"
"""Copies in the time of loads of as many bytes."""
PAST = ("past.copy", "past.planes")
"""Copies past the caches in the time of plain ones, to one plane and to three. Where they are faster in every turn, the
estimate stays unless these gain more: a copy hides what lines that need not be loaded save beside computing. A gain in
doubt is none: neighbours that load the memory make it one or the other by the hour, and whole plans are made for it."""
ASKED = "asked.rows"
"""Rows side by side whose lines are asked for, in the time of rows without requests. A loss counts that is one in every
turn, by more than turns differ."""
REQUESTS = "core.prefetch"
"""The group of figures of a core that has theirs; the others are estimates."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of a platform by the name that `sources` know it by: its value, of which measurements, and how; how many
    times, or one part in how many of, what was known of it before it may be. `spreads` are those of the parts of one
    that is made of several, in its shape; of what is in none they are nothing."""

    name: str
    value: Any
    of: tuple[str, ...]
    how: str
    within: float = IMPLAUSIBLE
    spreads: Any = None


def calibrated(platform: CpuPlatform, measured: Measured, name: str = "host") -> CpuPlatform:
    """`platform` with what was measured in place of what it said, or as near to that as a noisy measurement leaves it,
    and `sources` that say how each figure was measured, or why it stays what it was."""
    sources = dict(platform.sources)
    plain = _taken(_plain(platform, measured), platform, measured, sources)
    caches = tuple(
        c.model_copy(update={k: plain.pop(f"l{c.level}.{k}") for k in _CACHE if f"l{c.level}.{k}" in plain})
        for c in platform.caches
    )
    changed = platform.model_copy(update={**plain, "name": name, "caches": caches})
    usual = platform.ecm_parameters
    taken = _taken((*_beyond(platform, measured), *_in_core(platform, measured)), platform, measured, sources)
    if REQUESTS in taken:
        prefetch = changed.core.prefetch.model_copy(update={"asked_rows_factor": taken.pop(REQUESTS)})
        changed = changed.model_copy(update={"core": changed.core.model_copy(update={"prefetch": prefetch})})
    parameters = usual.model_copy(update={figure.removeprefix("ecm."): value for figure, value in taken.items()})
    sources["ecm"] = (
        f"measured with {measured.compiler} {' '.join(platform.compiler.flags)}, {platform.threads} threads, while "
        f"other programs used {measured.busy:.2f} of a core; what has no entry of its own is an estimate"
    )
    update = {"ecm": parameters, "sources": tuple(sorted(sources.items()))}
    return CpuPlatform.model_validate(changed.model_copy(update=update).model_dump())


def warnings(measured: Measured) -> list[str]:
    """Warnings for who is to trust the figures."""
    found = []
    if measured.busy > BUSY:
        found.append(f"other programs used {measured.busy:.1f} of a core: repeat it when the machine is quiet")
    noisy = [name for name, s in measured.samples.items() if s.spread > NOISY]
    if noisy:
        found.append(
            f"noisy (turns more than {NOISY:.0%} apart), and no more than bounds of what was known: {', '.join(noisy)}"
        )
    return found


def disturbed(measured: Measured) -> bool:
    """Doubt about a measurement: it is made again sometime."""
    return measured.busy > BUSY or bool(measured.unsure(measured.samples, UNSURE))


def to_yaml(platform: CpuPlatform) -> str:
    """The description as YAML, ready for --platform."""
    text: str = yaml.safe_dump(to_document(platform), sort_keys=False, width=120, allow_unicode=True)
    return text


def write(platform: CpuPlatform, path: Path) -> None:
    """The YAML as a file, whole or not at all. Raises OSError."""
    aside = path.with_name(path.name + ".part")
    aside.write_text(to_yaml(platform), encoding="utf-8")
    aside.replace(path)


_CACHE = ("size_bytes", "latency_cycles", "bandwidth_bytes_per_cycle")


def _taken(
    figures: Iterator[_Figure] | tuple[_Figure, ...], before: CpuPlatform, measured: Measured, sources: dict[str, str]
) -> dict[str, Any]:
    """The values of what was measured, by name, but of what is out of all proportion; `sources` are told of all."""
    found = {}
    for f in figures:
        spread, known = measured.spread(*f.of), _value(before, f.name)
        taken = len(measured.samples[f.of[0]].ns)
        turns = "1 turn" if taken == 1 else f"{taken} turns"
        if _nearest(known, f.value, f.within) != known:
            sources[f.name] = "estimate: what was measured is out of all proportion to it"
        elif spread > NOISY:
            found[f.name] = _bounding(known, f.value, spread if f.spreads is None else f.spreads)
            sources[f.name] = f"measured with noise, which bounds the estimate: {f.how}; {turns}, spread {spread:.0%}"
        else:
            found[f.name] = f.value
            sources[f.name] = f"measured: {f.how}; {turns}, spread {spread:.0%}"
    return found


def _bounding(known: Any, measured: Any, spread: Any) -> Any:
    """The value that was `known`, as far as what was `measured` leaves it; none of it where the spread is no noise."""
    match spread:
        case float():
            return measured if spread <= NOISY else _nearest(known, measured, 1.0 + spread)
        case dict():
            each = {n: _bounding(getattr(known, n), getattr(measured, n), own) for n, own in spread.items()}
            return measured.model_copy(update=each)
        case _:
            return tuple(_bounding(a, b, own) for a, b, own in zip(known, measured, spread, strict=True))


def _nearest(known: Any, measured: Any, times: float) -> Any:
    """The value nearest to what was `known` between one part in so many of what was `measured` and so many times that;
    of a figure made of several, that of each. Nothing known is near to anything."""
    match known, measured:
        case (float() | int(), float() | int()):
            nearest = known if known == 0 else max(measured / times, min(known, measured * times))
            return known if nearest == known else type(known)(_round(nearest))
        case (TypeCycles() | LevelCycles(), _):
            fields = type(known).model_fields
            each = {name: _nearest(getattr(known, name), getattr(measured, name), times) for name in fields}
            return known.model_copy(update=each)
        case _:
            return tuple(_nearest(a, b, times) for a, b in zip(known, measured, strict=True))


def _value(platform: CpuPlatform, figure: str) -> Any:
    """The figure of that name in the platform's description."""
    owner, _, name = figure.rpartition(".")
    if not owner:
        return getattr(platform, name)
    if figure == REQUESTS:
        return platform.core.prefetch.asked_rows_factor
    if owner == "ecm":
        return getattr(platform.ecm_parameters, name)
    return getattr(next(c for c in platform.caches if f"l{c.level}" == owner), name)


def _plain(platform: CpuPlatform, m: Measured) -> Iterator[_Figure]:
    """Figures that every platform has."""
    if m.has(m.clock):
        beside = "" if m.clock == "clock" else " beside products of vectors"
        how = f"a chain of additions{beside}, under load"
        yield _Figure("clock_ghz", _round(m.clock_ghz), (m.clock,), how)
    for n, c in enumerate(platform.caches, 1):
        load, late = f"level{n}.load", f"level{n}.latency"
        if m.has(load, late, m.clock):
            chain = "a chain of loads in random order"
            yield _Figure(f"l{c.level}.latency_cycles", _round(m.cycles(late)), (late, m.clock), chain)
            bandwidth = _round(1 / m.cycles(load))
            yield _Figure(f"l{c.level}.bandwidth_bytes_per_cycle", bandwidth, (load, m.clock), "loads in order")
    reached = reached_bytes(platform, m)
    if reached is not None:
        last, instances = platform.caches[-1], last_level_bytes(platform) / platform.llc_bytes
        least = 2 * platform.caches[-2].size_bytes
        size = int(_round(max(least, reached / instances))) // last.line_bytes * last.line_bytes
        how = "loads in order of all threads in ever larger sets, up to where they take as long as from memory"
        yield _Figure(f"l{last.level}.size_bytes", min(last.size_bytes, size), reach_ends(m), how, inf)
    if m.has(late, "clock"):
        how = "the latency of the last cache in additions, which take a cycle"
        yield _Figure("load_weight", _round(m.ns(late) / m.ns("clock")), (late, "clock"), how)
    if m.has("memory.load", "memory.load.all", "memory.latency") and beyond_caches(platform, m):
        how = "loads of all threads in order, beyond the caches"
        yield _Figure("memory_bandwidth_gb_s", _round(1 / _together(m)), ("memory.load.all",), how)
        latency = _round(m.ns("memory.latency"))
        how = "a chain of loads in random order, beyond the caches"
        yield _Figure("memory_latency_ns", latency, ("memory.latency",), how)


def _beyond(platform: CpuPlatform, m: Measured) -> Iterator[_Figure]:
    """Parameters of `ecm` of how instructions overlap, and of what is beyond the first level."""
    if m.has("window"):
        how = "steps that are chains of products, beside one chain"
        yield _Figure("ecm.window_instructions", _round(max(1.0, m.ns("window"))), ("window",), how)
    levels = [f"level{n}.{what}" for n in range(2, len(platform.caches) + 1) for what in ("load", "load.all", "store")]
    if levels and m.has(*levels, m.clock):
        how = "loads and stores in order in half of each cache"
        yield _Figure(
            "ecm.levels", _levels(platform, m), (*levels, m.clock), how, spreads=_spreads_of_levels(platform, m)
        )
    memory = beyond_caches(platform, m)
    if memory and m.has("memory.load", "memory.load.all"):
        one, together = m.ns("memory.load"), _together(m)
        how = "loads of one thread in order"
        yield _Figure("ecm.memory_gb_s_one_thread", _round(1 / one), ("memory.load",), how)
        how = "loads of all threads in order"
        yield _Figure("ecm.memory_gb_s", _round(1 / together), ("memory.load.all",), how)
    if memory and m.has(STORED):
        how = "copies by all threads, of whole lines, beside loads"
        yield _Figure("ecm.write_allocate_factor", _stored(platform, m), (STORED,), how, spreads=0.0)
    if memory and m.has(*PAST) and (streamed := _streamed(platform, m)) is not None:
        how = "copies by all threads, of whole lines past the caches to one plane or three, each beside a plain one"
        yield _Figure("ecm.streaming_store_factor", streamed, PAST, how, spreads=0.0)
    if memory and m.has(ASKED) and all(ratio > 1 + AGREE for ratio in m.samples[ASKED].ns):
        how = "rows copied side by side, their lines asked for, beside rows without requests; estimates: all but these"
        yield _Figure(REQUESTS, _round(min(8.0, m.ns(ASKED))), (ASKED,), how, spreads=0.0)
    if memory and m.has("memory.latency", "memory.in_order", "memory.scattered"):
        latency = m.ns("memory.latency")
        share = _round(max(0.0, 1 - m.ns("memory.in_order") / latency))
        how = "a chain of loads in order beside one in random order"
        yield _Figure("ecm.prefetch_share", share, ("memory.in_order", "memory.latency"), how)
        parallel = _round(min(1024.0, max(1.0, latency / m.ns("memory.scattered"))))
        how = "independent loads in random order beside a chain"
        yield _Figure("ecm.memory_parallelism", parallel, ("memory.scattered", "memory.latency"), how)
    if m.has("region") and platform.threads > 1:
        how = "empty parallel loops one after another"
        yield _Figure("ecm.fork_join_ns", _round(m.ns("region")), ("region",), how)


def _stored(platform: CpuPlatform, m: Measured) -> float:
    """Time to write a byte by ordinary stores, in that of reading one; half of a copy is loads. None takes less than to
    fetch its line."""
    if not m.has(STORED):
        return platform.ecm_parameters.write_allocate_factor
    return _round(min(8.0, max(1.0, 2 * m.ns(STORED) - 1)))


def _streamed(platform: CpuPlatform, m: Measured) -> float | None:
    """Time to write a byte past the caches, in that of reading one. Where not every turn gains, that of ordinary stores
    at least; else what was known of it, which is None, or less. A piece that is copied is one half of loads; of one
    that goes to three planes they are a quarter."""
    stored, known = _stored(platform, m), platform.ecm_parameters.streaming_store_factor
    took = max(m.ns(name) * (stored + 1 / n) - 1 / n for name, n in zip(PAST, (1, 3), strict=True))
    if all(ratio < 1 for name in PAST for ratio in m.samples[name].ns):
        return _round(took) if took < known else None
    return _round(min(8.0, max(stored, took)))


def _together(m: Measured) -> float:
    """Nanoseconds that all threads take to load a byte of memory: whatever runs beside them disturbs all of them more
    than one, and may last as long as one part of the measurement."""
    return min(m.ns(name) for name in ("memory.load.all", "memory.load", *reach_ends(m)[1:]))


def _levels(platform: CpuPlatform, m: Measured) -> tuple[LevelCycles, ...]:
    """All threads were measured at once: an instance's share of what they got is that of the threads that share it,
    and at least what one of them gets alone."""
    found = []
    for n, c in enumerate(platform.caches[1:], 2):
        share = min(1.0, c.shared_by_threads / platform.threads)
        load = 1 / m.cycles(f"level{n}.load")
        found.append(
            LevelCycles(
                level=c.level,
                load_bytes_per_cycle=_round(load),
                store_bytes_per_cycle=_round(1 / m.cycles(f"level{n}.store")),
                all_threads_bytes_per_cycle=_round(max(load, share / m.cycles(f"level{n}.load.all"))),
            )
        )
    return tuple(found)


def _spreads_of_levels(platform: CpuPlatform, m: Measured) -> tuple[dict[str, float], ...]:
    """The spreads of what _levels() has."""
    fields = {
        "load_bytes_per_cycle": "load",
        "store_bytes_per_cycle": "store",
        "all_threads_bytes_per_cycle": "load.all",
    }
    levels = range(2, len(platform.caches) + 1)
    return tuple({field: m.spread(f"level{n}.{what}", m.clock) for field, what in fields.items()} for n in levels)


def _in_core(platform: CpuPlatform, m: Measured) -> Iterator[_Figure]:
    """Parameters of `ecm` of the core."""
    for t in TYPES:
        measured = {o: f"{t}.{o}" for o in TypeCycles.model_fields if m.has(f"{t}.{o}", m.clock)}
        if not measured:
            continue
        update = {o: m.cycles(name) for o, name in measured.items()}
        cycles = platform.ecm_parameters.of_type(t).model_copy(update={o: _round(v) for o, v in update.items()})
        how = "independent instructions"
        how += "; divisions in generated code" if t[0] == "i" and "divide" in measured else ""
        how += "; functions: the sine and the cosine, in generated code" if "function" in measured else ""
        others = [o for o in TypeCycles.model_fields if o not in measured]
        how += f"; estimates: {', '.join(others)}" if others else ""
        spreads = {o: m.spread(name, m.clock) for o, name in measured.items()}
        yield _Figure(f"ecm.{t}", cycles, (*measured.values(), m.clock), how, spreads=spreads)
    for figure, sample, how in (
        ("load_cycles", "load", "aligned vectors, first level"),
        ("unaligned_load_cycles", "unaligned_load", "vectors four bytes beside a line, first level"),
        ("store_cycles", "store", "aligned vectors, first level"),
        ("shuffle_cycles", "shuffle", "two registers shifted by a lane"),
        ("gather_cycles_per_lane", "gather", "float32 from places in a vector, in generated code"),
        ("scalar_cycles", "scalar", "a mix of integers and floats"),
    ):
        if m.has(sample, m.clock):
            yield _Figure(f"ecm.{figure}", _round(m.cycles(sample)), (sample, m.clock), how)


def _round(value: float) -> float:
    """Two significant digits, of something that is more than nothing: less is noise, and would change schedules."""
    return float(f"{max(value, 1e-4):.2g}")
