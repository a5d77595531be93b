"""Calibration: what it measures is there and possible, and makes a platform like any other. No test is about time."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from pathlib import Path

import pytest
from support.calibration import TRY, quick_calibration
from support.tools import require_tool

from tilesmith.app.profiler import calibrate
from tilesmith.app.profiler.calibrate import (
    QUICK,
    QUICK_PARTS,
    Groups,
    clock_sample,
    last_level_bytes,
    measure,
    quick_parts,
    reach_sets,
    reached_bytes,
    retake,
    source,
    working_sets,
)
from tilesmith.app.profiler.calibrated_platform import calibrated, disturbed, to_yaml, warnings, write
from tilesmith.app.profiler.samples import Measured, Reading, Samples
from tilesmith.app.runtime.errors import CompileError, RunError
from tilesmith.platforms import Compiler, get, load_text
from tilesmith.platforms.cpu.detect import host
from tilesmith.platforms.cpu.isa import ISAS, X86
from tilesmith.platforms.ecm import derived
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline


@pytest.fixture(scope="module")
def measured() -> Measured:
    return quick_calibration()


@pytest.mark.slow
def test_every_figure_is_a_time(measured):
    assert {
        "clock",
        "vector_clock",
        "load",
        "level1.latency",
        "memory.load.all",
        "past.copy",
        "past.planes",
        "asked.rows",
        "memory.in_order",
        "region",
        "gather",
    } <= set(measured.samples)
    for name, samples in measured.samples.items():
        assert len(samples.ns) >= TRY.turns, name
        assert all(math.isfinite(n) and n >= 0 for n in samples.ns), name
    assert measured.clock_ghz > 0
    assert measured.compiler


@pytest.mark.slow
def test_a_calibrated_host_is_a_platform_like_any_other(measured):
    platform = calibrated(host(), measured, "desk")
    assert load_text(to_yaml(platform)) == platform
    assert platform.name == "desk"
    assert platform.ecm is not None
    assert [level.level for level in platform.ecm.levels] == [c.level for c in platform.caches[1:]]
    assert compile_pipeline(pipelines.load("blur"), platform).schedule.groups


def figures(**ns: float | tuple[float, ...]) -> Measured:
    """Those measurements, of a clock of 4 GHz and a memory that gives 50 GB/s; of all else what a run of it said."""
    said = {"clock": 0.25, "memory.load": 0.02, "memory.load.all": 0.02, "memory.latency": 100.0}
    given = {name.replace("__", "."): value for name, value in ns.items()}
    rounds = {n: v if isinstance(v, tuple) else (v,) for n, v in (said | given).items()}
    return Measured({n: Samples(v) for n, v in rounds.items()}, "cc")


def test_the_least_time_counts_that_another_turn_confirms():
    assert Samples((4.0, 1.0, 2.0, 3.0, 100.0)).figure == 2.0
    assert Samples((7.0,)).figure == 7.0
    measured = figures(clock=(0.5, 0.25, 0.25), shuffle=3.0)
    assert measured.clock_ghz == 4.0
    assert measured.cycles("shuffle") == 12.0


def test_cycles_are_those_of_the_clock_beside_a_figure():
    measured = figures()
    for ns, ghz in ((4.0, 3.0), (6.0, 2.0), (12.0, 1.0)):
        measured.add({"level1.load": Reading(ns, ghz), "memory.store": Reading(ns)})
    assert measured.cycles("level1.load") == 12.0, "of a clock that moves"
    assert measured.cycles("memory.store") == 24.0, "of the clock that was measured, 4 GHz"


def test_cycles_of_vectors_as_long_as_lines_are_those_of_the_clock_beside_them():
    """Times that were measured stay what they are by the slower clock, which is that of estimates; `load_weight` counts
    additions of scalars."""
    long, short = get("epyc-9655"), get("i7-6700")
    assert (clock_sample(long), clock_sample(short)) == ("vector_clock", "clock")
    said = {"vector_clock": 0.5, "level3__load": 0.03, "level3__latency": 25.0}
    measured = figures(**said)
    measured.add({"level1.load": Reading(0.01, 3.0), "level1.latency": Reading(1.0, 4.0)})
    fast = calibrated(long, measured)
    measured.clock = "vector_clock"
    slow = calibrated(long, measured)
    assert (fast.clock_ghz, slow.clock_ghz) == (4.0, 2.0)
    assert (fast.caches[2].latency_cycles, slow.caches[2].latency_cycles) == (100.0, 50.0)
    assert slow.caches[2].bandwidth_bytes_per_cycle == pytest.approx(2 * fast.caches[2].bandwidth_bytes_per_cycle, 0.05)
    assert (fast.caches[0].latency_cycles, slow.caches[0].latency_cycles) == (4.0, 2.0)
    assert fast.caches[0].bandwidth_bytes_per_cycle == 33.0, "in cycles of the clock beside it"
    assert slow.caches[0].bandwidth_bytes_per_cycle == 50.0
    assert slow.load_weight == fast.load_weight == 100.0
    assert slow.source_of("clock_ghz").startswith(
        "measured: a chain of additions beside products of vectors, under load"
    )


def test_of_clocks_beside_vectors_the_median_counts():
    measured = Measured(clock="vector_clock")
    for ns in (0.4, 0.32, 0.4, 0.33, 0.41):
        measured.add({"vector_clock": Reading(ns)})
    assert measured.clock_ghz == 2.5


def test_of_threads_that_wake_each_other_the_median_counts():
    measured = Measured()
    for ns in (700.0, 390.0, 690.0, 395.0, 710.0):
        measured.add({"region": Reading(ns)})
    assert measured.ns("region") == 690.0
    assert measured.spread("region") < 0.05


class Scripted(Groups):
    """Groups that say what a script says, a turn after the other, then the same for ever; each takes a second."""

    def __init__(self, clock, **turns):
        super().__init__(Path(), host(), QUICK, Measured())
        self.clock, self.turns, self.taken = clock, {g: iter(ns) for g, ns in turns.items()}, []

    def take(self, group):
        ns = next(self.turns[group])
        self.found.add({f"{group}.load": Reading(ns)})
        self.names[group], self.seconds[group] = (f"{group}.load",), 1.0
        self.taken.append(group)
        self.clock[0] += 1.0


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(calibrate.time, "monotonic", lambda: now[0])
    return now


def test_what_no_two_turns_agree_on_is_taken_again(clock):
    groups = Scripted(clock, caches=[2.0, 1.0, 2.0, 1.5, 1.01], memory=[3.0, 3.01])
    for group in ["caches", "memory"] * 2:
        groups.take(group)
    retake(groups, until=100.0)
    assert groups.taken[4:] == ["caches"] * 3, "until two turns agree, and not what they agreed on before"
    assert groups.found.ns("caches.load") == 1.01


def test_nothing_is_taken_again_that_would_end_too_late(clock):
    groups = Scripted(clock, caches=iter(2.0**-n for n in range(100)), memory=iter(2.0**-n for n in range(100)))
    for group in ["caches", "memory"] * 2:
        groups.take(group)
    retake(groups, until=9.5)
    assert groups.taken[4:] == ["caches", "memory"] * 2 + ["caches"]
    assert clock[0] <= 9.5


def test_how_much_a_cache_keeps_at_the_moment_is_not_agreed_on(monkeypatch, tmp_path):
    sizes = [2 * MB, 4 * MB, 8 * MB, 256 * MB]
    monkeypatch.setattr(calibrate, "_group", lambda *_: {f"reach.{s}": Reading(1.0) for s in sizes})
    monkeypatch.setattr(calibrate, "reach_sets", lambda *_: sizes)
    groups = Groups(tmp_path, host(), QUICK, Measured())
    groups.take("reach")
    assert groups.names["reach"] == (f"reach.{sizes[0]}", f"reach.{sizes[-1]}")


def test_a_disturbed_measurement_is_one_whose_turns_are_far_apart_or_beside_others():
    steady = figures(shuffle=(1.0, 1.02, 5.0))
    assert not disturbed(steady)
    steady.busy = 0.5
    assert disturbed(steady)
    assert disturbed(figures(level3__load=(1.0, 1.3, 1.3)))


def test_a_figure_takes_the_place_of_an_estimate_and_says_how():
    platform = calibrated(host(), figures(shuffle=0.12345))
    assert platform.ecm is not None
    assert platform.ecm.shuffle_cycles == 0.49  # two digits
    assert platform.clock_ghz == 4.0
    assert platform.source_of("ecm.shuffle_cycles").startswith("measured: two registers shifted by a lane; 1 turn")
    assert platform.source_of("ecm").startswith("measured with cc")


FIELDS = {
    "load": "load_bytes_per_cycle",
    "store": "store_bytes_per_cycle",
    "load__all": "all_threads_bytes_per_cycle",
}


@pytest.mark.parametrize("ns", [1000.0, 1e-6])
def test_a_figure_out_of_all_proportion_stays_what_it_was(ns):
    platform = calibrated(host(), figures(shuffle=ns))
    assert platform.ecm is not None
    assert platform.ecm.shuffle_cycles == host().ecm_parameters.shuffle_cycles
    assert platform.source_of("ecm.shuffle_cycles").startswith("estimate: what was measured is out of all proportion")


@pytest.mark.parametrize(("ns", "cycles"), [((0.1, 0.4, 0.9), 1.0), ((0.4, 0.8, 0.9), 2.1), ((0.1, 0.14, 0.9), 0.72)])
def test_a_noisy_figure_bounds_what_was_known_of_it(ns, cycles):
    """A cycle was known; 1.6 with a spread of 75 % leave it, 3.2 and 0.56 with 50 and 29 % do not."""
    platform = calibrated(host(), figures(shuffle=ns))
    assert host().ecm_parameters.shuffle_cycles == 1.0
    assert platform.ecm_parameters.shuffle_cycles == pytest.approx(cycles, rel=0.02)
    assert platform.source_of("ecm.shuffle_cycles").startswith("measured with noise, which bounds the estimate: ")


def test_noise_of_one_cache_leaves_figures_of_others_as_they_were_measured():
    known = {e.level: e for e in host().ecm_parameters.levels}
    ns = {f"level{n}__{w}": (0.25 / (3 * getattr(known[n], k)),) * 2 for n in known for w, k in FIELDS.items()}
    ns["level3__store"] = tuple(ns["level3__store"][0] * n for n in (1.0, 4.0))
    found = {e.level: e for e in calibrated(host(), figures(**ns)).ecm_parameters.levels}
    assert found[2].load_bytes_per_cycle == pytest.approx(3 * known[2].load_bytes_per_cycle, rel=0.05)
    assert found[3].load_bytes_per_cycle == pytest.approx(3 * known[3].load_bytes_per_cycle, rel=0.05)
    assert found[3].store_bytes_per_cycle == known[3].store_bytes_per_cycle  # not three quarters of it


def test_noisy_figures_of_caches_bound_each_of_what_was_known():
    """Loads of the second level are four times as fast as was known; all else stays what it was."""
    known = {e.level: e for e in host().ecm_parameters.levels}
    ns = {f"level{n}__{w}": 0.25 / getattr(known[n], k) for n in known for w, k in FIELDS.items()}
    ns["level2__load"] /= 4
    measured = {name: (0.8 * value, 1.1 * value, 1.1 * value) for name, value in ns.items()}
    found = {e.level: e for e in calibrated(host(), figures(**measured)).ecm_parameters.levels}
    assert found[3] == known[3]
    assert found[2].store_bytes_per_cycle == known[2].store_bytes_per_cycle
    assert found[2].load_bytes_per_cycle == pytest.approx(4 / (1.1 + 0.3) * known[2].load_bytes_per_cycle, rel=0.05)


def test_of_a_type_those_operations_are_taken_that_were_measured():
    """Figures of a core that first use takes: no quotients, whose kernels take long to compile, no generated code."""
    usual = host().ecm_parameters.i16
    halves = {"i16__add": 0.125, "i16__convert": 0.2, "i16__narrow": 0.4}
    platform = calibrated(host(), figures(**halves))
    assert platform.ecm_parameters.i16 == usual.model_copy(update={"add": 0.5, "convert": 0.8, "narrow": 1.6})
    source = platform.source_of("ecm.i16")
    assert "estimates: multiply, divide, divide_by_constant, select, function" in source


def test_what_is_not_measured_stays_what_it_was():
    platform = calibrated(host(), Measured({"clock": Samples((0.25,))}, "cc"))
    assert platform.clock_ghz == 4.0
    assert platform.ecm == derived(host())
    assert platform.memory_bandwidth_gb_s == host().memory_bandwidth_gb_s


@pytest.mark.parametrize(("copy", "factor"), [(1.05, 1.1), (1.5, 2.0), (0.9, 1.0), (9.0, 8.0)])
def test_stores_cost_what_copies_take_beyond_their_loads(copy, factor):
    """Copies in loads of as many bytes, a half of which are loads; a line is fetched, which takes as long as a load."""
    platform = calibrated(host(), Measured(figures().samples | {"stored.copy": Samples((copy,) * 3)}, "cc"))
    assert platform.ecm_parameters.write_allocate_factor == factor


@pytest.mark.parametrize(("past", "factor"), [(0.9, 0.98), (1.1, 1.3)])
def test_past_the_caches_stores_gain_and_lose_beside_those_measured(past, factor):
    """A gain is one over ordinary stores, at whatever these were measured: 0.9 or 1.1 of copies that take 2.1 loads."""
    stored = figures().samples | ratios((past,) * 3, (past,) * 3) | {"stored.copy": Samples((1.05,) * 3)}
    parameters = calibrated(host(), Measured(stored, "cc")).ecm_parameters
    assert (parameters.streaming_store_factor < parameters.write_allocate_factor) == (past < 1)
    assert parameters.streaming_store_factor == pytest.approx(factor, rel=0.03)


@pytest.mark.parametrize(
    ("copy", "planes", "factor"),
    [
        ((0.9, 0.9, 0.9), (0.8, 0.9, 0.95), None),
        ((0.9, 0.9, 0.9), (0.8, 0.9, 1.01), 2.0),  # a turn that does not gain
        ((0.9, 0.9, 35.0), (0.9, 0.9, 0.9), 2.0),  # no more from one that was disturbed
        ((1.1, 1.2, 1.1), (1.0, 1.0, 1.0), 2.3),  # 3.3 of which 1 is loads
        ((0.9, 0.9, 0.9), (1.2, 1.2, 1.2), 2.5),  # 8.4 of which 1 is loads, by 3 planes
        ((9.0, 9.0, 9.0), (1.0, 1.0, 1.0), 8.0),
    ],
)
def test_streaming_stores_gain_where_they_do_in_every_turn(copy, planes, factor):
    """Stores past the caches keep their estimate there, and elsewhere cost what others do, of two loads, or more."""
    parameters = calibrated(host(), Measured(figures().samples | ratios(copy, planes), "cc")).ecm_parameters
    usual = host().ecm_parameters
    assert parameters.write_allocate_factor == usual.write_allocate_factor == 2.0
    expected = usual.streaming_store_factor if factor is None else factor
    assert parameters.streaming_store_factor == pytest.approx(expected, rel=0.03)


def ratios(copy: tuple[float, ...], planes: tuple[float, ...]) -> dict[str, Samples]:
    """The samples of copies past the caches in the time of plain ones."""
    measured = Measured()
    for one, three in zip(copy, planes, strict=True):
        measured.add({"past.copy": Reading(one), "past.planes": Reading(three)})
    return measured.samples


@pytest.mark.parametrize(
    ("turns", "factor"),
    [
        ((1.2, 1.3, 1.3), 1.3),
        ((1.2, 1.3, 1.04), 1.0),  # a turn that loses no more than turns differ
        ((0.8, 0.8, 0.8), 1.0),  # a gain is for the model to tell
        ((20.0, 20.0, 20.0), 8.0),
    ],
)
def test_requests_for_rows_side_by_side_lose_where_they_do_in_every_turn(turns, factor):
    platform = calibrated(host(), Measured(figures().samples | {"asked.rows": Samples(turns, typical=True)}, "cc"))
    assert platform.core.prefetch.asked_rows_factor == factor


def test_what_a_prefetcher_hides_is_what_a_chain_in_order_saves():
    in_order = {"memory__latency": 100.0, "memory__in_order": 5.0, "memory__scattered": 10.0}
    assert calibrated(host(), figures(**in_order)).ecm_parameters.prefetch_share == 0.95


def test_the_window_is_what_long_chains_begin_ahead_of():
    assert calibrated(host(), figures(window=187.0)).ecm_parameters.window_instructions == 190.0
    in_order = calibrated(host(), figures(window=-0.5)).ecm_parameters.window_instructions
    assert in_order == host().ecm_parameters.window_instructions, "out of all proportion"


def test_threads_together_have_at_least_what_one_has():
    parameters = calibrated(host(), figures(memory__load__all=0.04)).ecm
    assert parameters is not None
    assert parameters.memory_gb_s == parameters.memory_gb_s_one_thread == 50.0


def test_what_is_measured_quickly_are_parts_of_all():
    assert set(QUICK_PARTS) <= set(calibrate.GROUPS)
    assert quick_parts(get("i7-6700")) == QUICK_PARTS
    assert set(QUICK_PARTS) - set(quick_parts(get("epyc-9655"))) == {"core"}
    assert "#define QUOTIENTS" in calibrate.source(host())
    assert "#define QUOTIENTS" not in calibrate.source(host(), quotients=False)


MB = 1 << 20


def walked(*gb_s: float) -> Measured:
    """What walks through sets of 2, 4, 8, ... MiB said, and, last of all, through 256 MiB."""
    sizes = [*(2 * MB << n for n in range(len(gb_s) - 1)), 256 * MB]
    return Measured({f"reach.{s}": Samples((1 / g,)) for s, g in zip(sizes, gb_s, strict=True)}, "cc")


def test_the_last_level_is_as_large_as_sets_are_that_it_keeps():
    desk = get("i7-6700")  # 8 MiB
    assert reached_bytes(desk, walked(100.0, 20.0, 20.0, 20.0)) == pytest.approx(2 * MB * 2**0.5 / 0.7)
    assert reached_bytes(desk, walked(100.0, 100.0, 100.0, 25.0)) == 8 * MB, "no larger than it is said to be"
    assert reached_bytes(desk, walked(30.0, 30.0, 30.0, 25.0)) is None, "no faster than memory"
    assert reached_bytes(desk, Measured()) is None
    platform = calibrated(desk, walked(100.0, 20.0, 20.0, 20.0))
    assert platform.llc_bytes == pytest.approx(2 * MB * 2**0.5 / 0.7, rel=0.05)
    assert platform.source_of("l3.size_bytes").startswith("measured: ")


def test_sets_that_are_walked_through_lie_between_the_caches_of_all_threads_and_memory():
    for name in ("i7-6700", "epyc-9655"):
        platform, effort = get(name), calibrate.Effort()
        *sizes, last = reach_sets(platform, effort)
        inside = platform.caches[-2].size_bytes * platform.threads / platform.caches[-2].shared_by_threads
        assert sizes[0] == 2 * inside
        assert sizes[-1] <= last_level_bytes(platform)
        assert last <= effort.memory_bytes
    assert reach_sets(get("graviton4"), QUICK) == [], "the second levels of all cores are larger than the third"


def test_memory_is_what_no_cache_has_the_half_of():
    desk, times = get("i7-6700"), {"memory__load": 0.1, "memory__load__all": 0.05, "memory__latency": 90.0}
    measured = figures(**times)
    assert calibrated(desk, measured).memory_latency_ns == 90.0
    measured.memory_bytes = 15 * MB
    assert calibrated(desk, measured).memory_latency_ns == desk.memory_latency_ns
    large = get("epyc-9655")
    assert working_sets(large, QUICK)[-1] < 2 * last_level_bytes(large)
    found = walked(*(400.0,) * 3, *(100.0,) * 5)
    assert working_sets(large, QUICK, found)[-1] >= 2 * (reached_bytes(large, found) or math.inf)


def test_turns_that_are_far_apart_are_warned_of():
    steady, wild = Samples((1.0, 1.01, 1.02)), Samples((1.0, 3.0, 2.0, 2.0))
    assert steady.spread < 0.05 < 0.3 < wild.spread
    found = warnings(Measured({"a": steady, "b": wild}, "cc", 1.0, busy=0.9))
    assert len(found) == 2
    assert "0.9 of a core" in found[0]
    assert found[1].endswith(": b")


@pytest.mark.parametrize("name", ["epyc-9655", "i7-6700", "cortex-a53", "graviton4"])
def test_working_sets_fit_their_level_and_not_the_one_inside(name):
    platform = get(name)
    *levels, memory = working_sets(platform, calibrate.Effort())
    for size, cache in zip(levels, platform.caches, strict=True):
        assert size < cache.size_bytes
    assert memory > platform.llc_bytes


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "host.yaml"
    write(calibrated(host(), figures()), path)
    assert load_text(path.read_bytes()).name == "host"
    assert [p.name for p in tmp_path.iterdir()] == ["host.yaml"]


def test_a_compiler_that_is_not_there(tmp_path):
    platform = host().model_copy(update={"compiler": Compiler(command="gcc-99")})
    with pytest.raises(CompileError, match="not installed"):
        measure(platform, tmp_path, TRY)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in X86, reason="the instruction sets are those of x86")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("command", ["gcc", "clang"])
def test_compilers_take_the_code_for_every_instruction_set(command, isa, tmp_path):
    """Clang has vectors of 8 bytes, halves of SSE's, in registers of their own."""
    compiler, code = require_tool(command), tmp_path / "kernels.c"
    code.write_text(source(host().model_copy(update={"vector_bytes": ISAS[isa].vector_bytes}), quotients=False))
    options = [*ISAS[isa].features.values(), "-O1", "-S", "-o", os.devnull]
    done = subprocess.run([compiler, *options, code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_program_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(calibrate, "source", lambda *_: "int main(void) { return 3; }")
    require_tool("gcc")
    with pytest.raises(RunError, match="bytes of memory"):
        measure(host(), tmp_path, TRY)
