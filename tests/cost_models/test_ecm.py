"""The model `ecm` against closed forms: one stage at a time, all figures of the machine known."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.ecm import Ecm, waits
from tilesmith.cost_models.ecm.machine import machine_of
from tilesmith.cost_models.ecm.steps import CLAMPED_LOAD
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import (
    Before,
    Chain,
    Column,
    Edges,
    GroupWork,
    Pass,
    Reuse,
    SideBySide,
    Sums,
    Transfer,
    Way,
    Work,
)
from tilesmith.platforms import CpuPlatform, catalog
from tilesmith.platforms.core import ORDINARY, Core, Instructions, Pages, Prefetch

FAR = 1e12
"""Bytes that fit no cache."""


def machine(**figures: object) -> CpuPlatform:
    """One thread at 1 GHz, 16-byte vectors: a cycle is a nanosecond."""
    platform = catalog.load("i7-6700").model_copy(update={"threads": 1, "clock_ghz": 1.0, "vector_bytes": 16})
    parameters = platform.ecm_parameters.model_copy(update={"prefetch_share": 1.0, **figures})
    return platform.model_copy(update={"ecm": parameters})


def with_core(core: Core, **figures: object) -> CpuPlatform:
    return machine(**figures).model_copy(update={"core": core})


def work(**changes: object) -> Work:
    """A million steps of four floats, one addition a point, everything in the first level."""
    usual = Work(
        in_output=True,
        lanes=4,
        operations=(("f32", Operations(add=1)),),
        loads=(Transfer("aligned", 4, 1.0),),
        stores=(Transfer("aligned", 4, 1.0),),
        rows=1000.0,
        steps=1e6,
        singles=0.0,
        working=(64.0,),
        loaded=(0.0,),
        stored=(0.0,),
        run_bytes=float("inf"),
    )
    return usual._replace(**changes)  # type: ignore[arg-type]


def counts(of: Work, **changes: object) -> GroupCounts:
    group = GroupWork(parallel=1.0, tiles=1.0, circulating_bytes=FAR)._replace(**changes)  # type: ignore[arg-type]
    stage = StageCounts("out", False, 4e6, 4e6, Operations(add=1), (), 4, False, 0.0, 0.0, of)
    return GroupCounts("out", 1, (("x", of.steps),), (), (stage,), group)


def terms(of: GroupCounts, platform: CpuPlatform) -> dict[str, float]:
    (stage,) = Ecm().price(of, platform).stages
    return {t.name: float(t.value) for t in stage.terms}


def both(*limits: float) -> float:
    """Cycles of a step with these limits."""
    return float(sum(limit**3 for limit in limits) ** (1 / 3))


def test_instructions_take_arithmetic_beside_loads_and_stores() -> None:
    platform = machine(row_start_ns=0.0, load_cycles=0.5, store_cycles=1.0)
    assert terms(counts(work(operations=())), platform)["in core"] == pytest.approx(1e6 * 1.5e-3)
    heavy = work(operations=(("f32", Operations(multiply=10)),))
    cycles = both(10 * platform.ecm_parameters.f32.multiply, 1.5)
    assert terms(counts(heavy), platform)["in core"] == pytest.approx(1e6 * cycles * 1e-3)


def test_rows_cost_their_start() -> None:
    without, with_ = (terms(counts(work()), machine(row_start_ns=ns))["in core"] for ns in (0.0, 20.0))
    assert with_ - without == pytest.approx(1000 * 20e-3)


def test_rows_of_vectors_work_out_their_indices_once() -> None:
    platform = machine()
    operations = (("f32", Operations(add=1)),), (("f32", Operations(add=1, index=10)),)
    without, with_ = (terms(counts(work(operations=o)), platform)["in core"] for o in operations)
    cycles = 10 * platform.ecm_parameters.scalar_cycles
    assert with_ - without == pytest.approx(1000 * cycles * 1e-3 / platform.clock_ghz)


def test_products_of_floats_are_fused_with_sums() -> None:
    fused = work(operations=(("f32", Operations(add=10, multiply=10)),), loads=(), stores=())
    apart = work(operations=(("i32", Operations(add=10, multiply=10)),), loads=(), stores=())
    platform = machine(row_start_ns=0.0)
    p = platform.ecm_parameters
    assert terms(counts(fused), platform)["in core"] == pytest.approx(1e3 * 10 * p.f32.multiply)
    assert terms(counts(apart), platform)["in core"] == pytest.approx(1e3 * 10 * (p.i32.multiply + p.i32.add))


def test_a_level_is_passed_by_what_the_inner_one_does_not_keep() -> None:
    """What the first level lets through the second one serves, as far as it keeps it."""
    platform = machine(row_start_ns=0.0)
    first, second = platform.l1_bytes, platform.l2_bytes
    small = work(working=(first / 100, second / 100), loaded=(1e9, 1e6), stored=(0.0, 0.0))
    large = work(working=(first * 2, second / 100), loaded=(1e9, 1e6), stored=(0.0, 0.0))
    fits, not_ = (terms(counts(w), platform)["L2"] for w in (small, large))
    assert fits < 1e-6 < not_


def alone(platform: CpuPlatform) -> CpuPlatform:
    """A machine whose last level nobody else uses."""
    caches = tuple(c.model_copy(update={"shared_by_threads": 1}) for c in platform.caches)
    return platform.model_copy(update={"caches": caches})


def test_what_circulates_inside_the_last_level_does_not_come_from_memory() -> None:
    moved = work(loaded=(1e6,), stored=(1e6,), working=(FAR,))
    platform = alone(machine())
    assert terms(counts(moved, circulating_bytes=2e6), platform)["memory"] == 0
    assert terms(counts(moved), platform)["memory"] > 0


def test_of_what_circulates_in_a_level_that_others_use_a_part_is_gone() -> None:
    """However little it is; and all of it where it takes twice what it has of the level."""
    moved = work(loaded=(1e6,), stored=(0.0,), working=(FAR,), steps=0.0, rows=0.0)
    platform = machine()
    last = platform.caches[-1].size_bytes
    none, quarter, half, whole = (
        terms(counts(moved, circulating_bytes=share * last), platform)["memory"] for share in (0.0, 0.35, 0.7, 1.4)
    )
    assert 0 == none < quarter < half < whole
    assert terms(counts(moved), platform)["memory"] == whole


def test_what_was_written_past_the_caches_is_read_from_memory() -> None:
    moved = work(loaded=(1e6,), stored=(0.0,), working=(FAR,), steps=0.0, rows=0.0)
    platform = alone(machine())
    near, half, far = (
        terms(counts(moved, circulating_bytes=n, past=past), platform)["memory"]
        for n, past in ((2e6, 0.0), (2e6, 0.5), (FAR, 0.0))
    )
    assert 0 == near < half < far


def test_what_another_stage_has_loaded_before_is_where_that_fits() -> None:
    platform = machine()
    levels = [cache.size_bytes for cache in platform.caches]
    found = []
    for again in (None, (1e6, FAR), (5e5, 100.0), (1e6, 100.0), (1e6, levels[0] * 2.0)):
        moved = work(loaded=(1e6,), stored=(0.0,), working=(FAR,), again=again)
        found.append(terms(counts(moved), platform))
    none, gone, half, near, second = (t["memory"] for t in found)
    assert none == gone > half > near == second == 0
    assert found[3]["L2"] == 0 < found[4]["L2"]


@pytest.mark.parametrize(("sharing", "instances"), [(1, 8), (2, 4), (8, 1), (16, 1)])
def test_every_instance_of_a_level_serves_the_threads_that_share_it(sharing: int, instances: int) -> None:
    machine = catalog.get("epyc-9655")
    first, second, _ = machine.caches
    caches = (first, second.model_copy(update={"shared_by_threads": sharing}))
    machine = machine.model_copy(update={"threads": 8, "threads_per_core": 1, "caches": caches, "ecm": None})
    (level,) = machine.ecm_parameters.levels
    ((_, _, together, _),) = machine_of(machine).outer
    assert together == pytest.approx(1e-3 / machine.clock_ghz / (level.all_threads_bytes_per_cycle * instances))


def test_memory_alone_takes_its_bytes_over_the_bandwidth() -> None:
    """What comes from there is not charged to the levels on its way: bandwidths are measured through all of them."""
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, write_allocate_factor=2.0)
    moved = work(loaded=(1e9,), stored=(1e9,), working=(FAR,), steps=0.0, rows=0.0)
    total = float(Ecm().price(counts(moved), platform).total)
    memory = (1e9 + 2 * 1e9) / 10e9 * 1e6
    start = platform.ecm_parameters.tile_start_ns * 1e-3
    assert total == pytest.approx(memory + start)


def test_short_rows_hide_less() -> None:
    long, short = (work(loaded=(1e9,), stored=(1e9,), working=(FAR,), run_bytes=n) for n in (float("inf"), 512.0))
    platform = machine()
    assert float(Ecm().price(counts(short), platform).total) > float(Ecm().price(counts(long), platform).total)


@pytest.mark.parametrize(
    ("iterations", "rounds"), [(1.0, 1), (4.0, 1), (5.0, 2), (8.0, 2), (1.5, 1), (4.25, 1.25), (5.5, 2)]
)
def test_threads_take_rounds(iterations: float, rounds: float) -> None:
    """Of the last iteration, which may be shorter, its part; more only if one thread has it beside whole ones."""
    platform = machine(row_start_ns=0.0, fork_join_ns=0.0, tile_start_ns=0.0)
    alone = float(Ecm().price(counts(work()), platform).total)
    four = platform.model_copy(update={"threads": 4})
    assert float(Ecm().price(counts(work(), parallel=iterations), four).total) == pytest.approx(
        alone * rounds / iterations
    )


@pytest.mark.parametrize("working", [1e6, FAR])
def test_passes_wait_for_lines_of_rows_that_break_off(working: float) -> None:
    """From the last level and from memory; blocks of rows are walked from end to end."""

    def total(run_bytes: float, across: bool) -> float:
        update = Pass(16, (), 1.0, 0.0, 4, across, 0, 0.0, 0.0, 1e5, 0.0, 1e8, working, 0.0)
        return float(Ecm().price(counts(work(run_bytes=run_bytes, passes=(update,))), machine()).total)

    assert total(512.0, False) > total(float("inf"), False)
    assert total(512.0, True) == total(float("inf"), True)


@pytest.mark.parametrize("threads", [1, 2])
def test_passes_take_lines_from_memory_as_stores_do(threads: int) -> None:
    """A line that is updated comes once and goes once, as one that is stored; two threads share memory's bandwidth."""
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, write_allocate_factor=1.25)
    update = Pass(16, (), 0.0, 0.0, 4, False, 0, 0.0, 0.0, 0.0, 0.0, 1e9, FAR, 0.0)
    updated = counts(work(steps=0.0, rows=0.0, passes=(update,)), parallel=2.0)
    total = float(Ecm().price(updated, platform.model_copy(update={"threads": threads})).total)
    assert total == pytest.approx(1.25 * 1e9 / 10e9 * 1e6, rel=1e-3)


def test_what_comes_for_values_hides_behind_the_update_instead_of_them() -> None:
    """So it takes less than one after the values, which takes its own time, too."""

    def total(instead: bool) -> float:
        update = Pass(16, (("f32", Operations(add=100)),), 1.0, 0.0, 4, False, 0, 0.0, 0.0, 1e5, 0.0, 1e6, 1e3, 0.0)
        of = work(rows=0.0, steps=0.0, loaded=(1e6,), working=(FAR,), passes=(update._replace(instead=instead),))
        return float(Ecm().price(counts(of), machine()).total)

    assert total(True) < total(False)


def test_passes_take_longer_for_rows_that_they_begin_and_elements_that_they_gather() -> None:
    def total(rows: float, gathered: float) -> float:
        update = Pass(16, (), 2.0, gathered, 4, False, 0, 0.0, rows, 1e5, 0.0, 0.0, 0.0, 0.0)
        return float(Ecm().price(counts(work(passes=(update,))), machine()).total)

    assert total(1e5, 0.0) - total(0.0, 0.0) == pytest.approx(1e5 * machine().ecm.row_start_ns * 1e-3)
    assert total(0.0, 1.0) > total(0.0, 0.0)


def test_passes_load_what_they_read_of_others_and_wait_for_chains() -> None:
    """A hundred sums of floats after one another; vectors of a register that are put together of two."""

    def total(**changes: object) -> float:
        update = Pass(4, (("f32", Operations(add=100)),), 1.0, 0.0, 4, False, 0, 0.0, 0.0, 1e5, 0.0, 0.0, 0.0, 0.0)
        found = counts(work(passes=(update._replace(**changes),)))  # type: ignore[arg-type]
        return float(Ecm().price(found, machine(window_instructions=102.0)).total)

    assert total(latency=10_000.0) - total() == pytest.approx(1e5 * 1e-3 * (5000 - 50), rel=0.02)
    assert total(latency=20.0) == pytest.approx(total(), rel=0.01)
    assert total(chain=200.0) - total() == pytest.approx(1e5 * 1e-3 * (200 - 50), rel=0.02)
    gathered, aligned = (total(transfers=(Transfer(way, 4, 300.0),)) for way in ("gathered", "aligned"))
    assert gathered > 2 * aligned > 2 * total()
    assert total(transfers=(Transfer("shuffled", 4, 300.0),)) > total()


@pytest.mark.parametrize(("times", "beside"), [(1, True), (100, False)])
def test_stages_with_long_loops_of_their_own_run_beside_no_other(times: int, beside: bool) -> None:
    """Arithmetic of one and loads of the other are at once where both are in one step of few instructions."""
    platform = machine(row_start_ns=0.0, scalar_cycles=0.0)
    member = work(steps=1e6 * times, operations=(("f32", Operations(add=20)),))
    output = work(loads=(Transfer("aligned", 4, 40.0 * times),))
    stages = tuple(
        StageCounts(n, False, 4e6, 4e6, Operations(add=1), (), 4, False, 0.0, 0.0, w)
        for n, w in (("member", member), ("out", output))
    )
    group = GroupWork(parallel=1.0, tiles=1.0, circulating_bytes=FAR)
    priced = Ecm().price(GroupCounts("out", 1, (("x", 1e6),), (), stages, group), platform)
    found = float(priced.stages[0].terms[0].value)
    p = platform.ecm_parameters
    alone = 1e6 * times * 1e-3 * both(20 * p.f32.add, p.load_cycles + p.store_cycles)
    assert found < alone / 2 if beside else found == pytest.approx(alone)


def test_stages_in_one_loop_take_what_all_their_steps_compute_beside_what_they_move() -> None:
    """A step of one stage is for three of the other, whose arithmetic is longer."""
    platform = machine(row_start_ns=0.0, load_cycles=1.0, store_cycles=1.0, window_instructions=4096.0)
    one = platform.ecm_parameters.f32.multiply
    of = work(rows=0.0, stores=())
    member = of._replace(operations=(("f32", Operations(multiply=1.0 / one)),), loads=(Transfer("aligned", 4, 2.0),))
    output = of._replace(steps=3e6, operations=(("f32", Operations(multiply=2.0 / one)),), loads=())
    stages = tuple(
        StageCounts(n, False, 4e6, 4e6, Operations(add=1), (), 4, False, 0.0, 0.0, w)
        for n, w in (("member", member), ("out", output))
    )
    group = GroupWork(parallel=1.0, tiles=1.0, circulating_bytes=FAR)
    priced = Ecm().price(GroupCounts("out", 1, (("x", 3e6),), (), stages, group), platform)
    assert sum(float(s.terms[0].value) for s in priced.stages) == pytest.approx(1e3 * (1 + 3 * 2) * both(3, 2) / 3)


def test_all_candidates_are_priced_as_each_alone() -> None:
    platform = machine()
    steps = np.array([1e5, 1e6, 1e7])
    many = Ecm().price(counts(work(steps=steps, working=(steps,), loaded=(steps,), stored=(steps,))), platform)
    for n, k in enumerate(steps):
        one = Ecm().price(counts(work(steps=k, working=(k,), loaded=(k,), stored=(k,))), platform)
        assert many.at((n,)) == one.at(())


def test_places_that_data_says_wait_for_memory() -> None:
    """No prefetcher asks for their lines, and nothing hides behind them; of a table that stays little comes."""
    platform = machine(row_start_ns=0.0, memory_parallelism=10.0)
    lines = 1e6 * 64
    far = terms(counts(work(working=(FAR,), looked_up=(lines, lines), table=FAR)), platform)
    assert far["memory"] == pytest.approx(1e6 * platform.memory_latency_ns / 10 * 1e-3)
    near = terms(counts(work(working=(FAR,), looked_up=(lines, 64.0), table=64.0)), platform)
    assert near["memory"] == pytest.approx(far["memory"] / 1e6)
    assert near["in core"] == far["in core"]


def test_neighbours_of_a_place_are_one_load_and_so_are_channels() -> None:
    platform = machine(row_start_ns=0.0)
    ways: tuple[Way, ...] = ("gathered", "alone", "pairs", "pixels")
    of = (work(operations=(), stores=(), loads=(Transfer(way, 4, 1.0, 4),)) for way in ways)
    gathered, alone, pairs, pixels = (terms(counts(w), platform)["in core"] for w in of)
    p = platform.ecm_parameters
    assert gathered == pytest.approx(1e3 * 4 * p.gather_cycles_per_lane)
    assert alone == pytest.approx(1e3 * 4 * p.lane_cycles)
    assert pairs == pytest.approx(1e3 * (2 * p.gather_cycles_per_lane + p.shuffle_cycles))
    assert pixels == pytest.approx(1e3 * (p.load_cycles + p.shuffle_cycles))


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("measured", [0.5, 9.0])
def test_short_elements_are_gathered_lane_by_lane(size: int, measured: float) -> None:
    """By a load and two permutations each: instructions gather those of 32 and 64 bits."""
    platform = machine(row_start_ns=0.0, gather_cycles_per_lane=measured)
    p = platform.ecm_parameters
    each = measured if size >= 4 else max(measured, p.load_cycles + 2 * p.shuffle_cycles)
    for transfers in ({"loads": 1, "stores": 0}, {"loads": 0, "stores": 1}):
        own = {k: (Transfer("gathered", size, 1.0),) * n for k, n in transfers.items()}
        assert terms(counts(work(operations=(), **own)), platform)["in core"] == pytest.approx(1e3 * 4 * each)


@pytest.mark.parametrize(("size", "stride", "permutations"), [(1, 2, 3), (2, 4, 3), (1, 3, 1), (4, 2, 1), (8, 4, 1)])
def test_short_elements_are_picked_part_by_part(size: int, stride: int, permutations: int) -> None:
    """From two vectors each, and joined; those of an odd stride lie at other places of each vector."""
    platform = machine(row_start_ns=0.0, load_cycles=0.0, shuffle_cycles=1.0).model_copy(update={"vector_bytes": 32})
    own = work(operations=(), stores=(), lanes=32 // size, loads=(Transfer("strided", size, 1.0, stride),))
    joined = platform.ecm_parameters.i8.add if permutations > 1 else 0.0
    steps = 1e3 * (stride - 1) * (permutations + joined)
    assert terms(counts(own), platform)["in core"] == pytest.approx(steps)


@pytest.mark.parametrize(("size", "stride", "permutations", "loads"), [(2, 2, 0, 1), (2, 4, 2, 2), (1, 4, 0, 1)])
def test_all_short_elements_of_a_stride_are_parts_of_longer_ones(
    size: int, stride: int, permutations: int, loads: int
) -> None:
    """These are loaded once, their even and odd ones picked by two permutations each, and each part is shifted."""
    platform = machine(row_start_ns=0.0, load_cycles=1.0, shuffle_cycles=1.0).model_copy(update={"vector_bytes": 32})
    moved = (Transfer("strided", size, float(stride), stride, True),)
    own = work(operations=(), stores=(), lanes=8, loads=moved)
    steps = both(loads, 2 * permutations + stride * platform.ecm_parameters.i32.add)
    if (size, stride) == (2, 2):
        assert terms(counts(own), platform)["in core"] == pytest.approx(1e3 * steps)
    assert terms(counts(own), platform)["in core"] < 1e3 * steps * 1.001
    (apart,) = (t._replace(whole=False) for t in moved)
    picked = work(operations=(), stores=(), lanes=8, loads=(apart,))
    assert terms(counts(picked), platform)["in core"] > terms(counts(own), platform)["in core"]


def test_elements_of_several_lanes_are_a_load_and_a_permutation() -> None:
    """Of fewer elements, which cross lines as seldom."""
    platform = machine(row_start_ns=0.0, load_cycles=1.0, unaligned_load_cycles=3.0, shuffle_cycles=0.5)
    for stride, loads in ((2, 2.0), (4, 1.5)):
        own = work(operations=(), stores=(), loads=(Transfer("shared", 4, 1.0, stride),))
        assert terms(counts(own), platform)["in core"] == pytest.approx(1e3 * both(loads, 0.5))
    dear = machine(row_start_ns=0.0, load_cycles=0.0, unaligned_load_cycles=0.0, shuffle_cycles=7.0)
    assert terms(counts(own), dear)["in core"] == pytest.approx(1e3 * 7.0)


@pytest.mark.parametrize(("size", "permutations"), [(4, 1), (1, 2)])
def test_rows_in_reverse_are_loads_that_permutations_turn(size: int, permutations: int) -> None:
    """One for elements that an instruction takes from any lane, for others one within parts of a register before."""
    platform = machine(row_start_ns=0.0, unaligned_load_cycles=1.0, shuffle_cycles=3.0)
    platform = platform.model_copy(update={"vector_bytes": 32})
    own = work(operations=(), stores=(), lanes=32 // size, loads=(Transfer("reversed", size, 1.0),))
    assert terms(counts(own), platform)["in core"] == pytest.approx(1e3 * both(1.0, 3.0 * permutations))


def test_streamed_output_costs_its_bytes_and_no_more() -> None:
    platform = machine(
        memory_gb_s_one_thread=10.0, memory_gb_s=10.0, streaming_store_factor=1.5, write_allocate_factor=2.0
    )
    idle = {"steps": 0.0, "rows": 0.0, "working": (FAR,), "loaded": (0.0,)}
    kept, past = work(stored=(1e9,), **idle), work(stored=(0.0,), streamed_bytes=1e9, **idle)
    assert terms(counts(kept), platform)["memory"] == pytest.approx(2 * 1e9 / 10e9 * 1e6)
    assert terms(counts(past), platform)["memory"] == pytest.approx(1.5 * 1e9 / 10e9 * 1e6)


def test_rows_that_are_asked_for_ahead_hide_more() -> None:
    platform = machine()
    moved = work(loaded=(1e9,), stored=(0.0,), working=(FAR,), steps=1e8)
    plain, ahead = (float(Ecm().price(counts(moved, prefetch=p), platform).total) for p in (0, 2048))
    assert ahead < plain


def test_a_software_prefetch_takes_the_time_of_five_loads_of_scalar_code() -> None:
    """However wide vectors are: what a load of these takes is not its."""
    for load in (0.5, 1.0):
        figures = {"row_start_ns": 0.0, "load_cycles": load, "store_cycles": 1.0, "scalar_cycles": 0.4}
        for loads, platform in (
            (5.0, machine(**figures)),
            (1.0, with_core(Core(prefetch=Prefetch(request_loads=1.0)), **figures)),
        ):
            found = [terms(counts(work(operations=(), asked=n)), platform)["in core"] for n in (0.0, 2.0)]
            assert found[1] - found[0] == pytest.approx(1e6 * 2 * loads * 0.4 * 1e-3)


def test_values_before_updates_cost_what_their_own_lanes_do() -> None:
    platform = machine(row_start_ns=0.0, scalar_cycles=0.4, load_cycles=0.5, store_cycles=1.0)
    sums = (("f32", Operations(add=100)),)
    moved = {"loads": (Transfer("aligned", 4, 1.0),), "stores": (Transfer("aligned", 4, 1.0),)}
    alone = terms(counts(work(lanes=1, operations=(("f32", Operations(add=1)),))), platform)["in core"]
    before = Before(4, sums, **moved)
    found = terms(counts(work(lanes=1, operations=(("f32", Operations(add=1)),), before=before)), platform)["in core"]
    assert found - alone == pytest.approx(1e6 * 100 * platform.ecm_parameters.f32.add / 4 * 1e-3)


def test_edges_of_rows_cost_their_own_code_for_their_share_of_the_points() -> None:
    platform = machine(load_cycles=0.5, store_cycles=1.0)

    def time(adds: int, edges: Edges | None = None) -> float:
        sums = (("f32", Operations(add=adds)),)
        return terms(counts(work(operations=sums, stores=(), edges=edges)), platform)["in core"]

    operations, loads = (("f32", Operations(add=100)),), (Transfer("aligned", 4, 1.0),)
    whole = Edges(0.25, 0.25, operations, loads)
    assert time(20, whole) == pytest.approx(0.75 * time(20) + 0.25 * time(100), rel=1e-3)
    overlapping = Edges(0.25, 0.5, operations, loads)
    assert time(20, overlapping) == pytest.approx(0.75 * time(20) + 0.5 * time(100), rel=1e-3)
    points = [time(20, Edges(0.01, steps, operations, loads)) for steps in (0.01, 0.5, 1.0)]
    assert points[0] < points[1] == points[2]  # one by one where that is less


def test_a_step_waits_where_its_chain_takes_longer_beyond_the_window_than_its_arithmetic() -> None:
    platform = machine(window_instructions=100.0)
    sums = (("f32", Operations(add=98)),)  # 100 instructions with a load and a store: half of the chain shows
    cycles = 98 * platform.ecm_parameters.f32.add
    assert waits(counts(work(operations=sums, chain=Chain(2 * cycles + 1, 0.0))), platform)
    assert not waits(counts(work(operations=sums, chain=Chain(2 * cycles - 1, 0.0))), platform)
    reused = (Reuse(4, 100.0, 1000.0, 0.0, uniform=True),)  # which wider vectors have no more of
    assert waits(counts(work(operations=sums, chain=Chain(2 * cycles + 1, 0.0), reused=reused)), platform)


def test_long_steps_wait_for_their_own_chains() -> None:
    """A step begins C I / (I + W) cycles after the one before, where that is far more than its arithmetic takes."""
    sums = (("f32", Operations(add=98)),)  # with a load and a store a hundred instructions
    platform = machine(row_start_ns=0.0, window_instructions=100.0)
    free = terms(counts(work(operations=sums)), platform)["in core"]
    assert free == pytest.approx(1e6 * 98 * platform.ecm_parameters.f32.add * 1e-3, rel=1e-3)
    waiting = terms(counts(work(operations=sums, chain=Chain(10_000.0, 0.0))), platform)["in core"]
    assert waiting == pytest.approx(1e6 * 5000 * 1e-3, rel=1e-3)
    further = platform.ecm_parameters.model_copy(update={"window_instructions": 300.0})
    wide = terms(
        counts(work(operations=sums, chain=Chain(10_000.0, 0.0))), platform.model_copy(update={"ecm": further})
    )["in core"]
    assert wide == pytest.approx(1e6 * 2500 * 1e-3, rel=1e-3)


def test_what_no_instruction_gathers_are_instructions_of_each_lane() -> None:
    """Instructions of a gather fill the window as scalar code does, where each lane is a load."""
    loads = (Transfer("gathered", 4, 4.0),)
    long = Chain(10_000.0, 0.0)
    for register, each in ((32, 2.0 / 0.4), (64, 1.0)):
        platform = machine(
            row_start_ns=0.0, window_instructions=100.0, gather_cycles_per_lane=2.0, scalar_cycles=0.4
        ).model_copy(update={"vector_bytes": register})
        found = terms(counts(work(operations=(), loads=loads, lanes=register // 4, chain=long)), platform)["in core"]
        instructions = 4 * register / 4 * each + 1
        assert found == pytest.approx(1e6 * 10_000 * instructions / (instructions + 100) * 1e-3, rel=1e-2)


def test_short_steps_overlap_whatever_they_wait_for() -> None:
    platform = machine(row_start_ns=0.0)
    chained = terms(counts(work(chain=Chain(20.0, 0.0))), platform)["in core"]
    assert chained == pytest.approx(terms(counts(work()), platform)["in core"], rel=0.02)


def test_ends_of_a_row_with_stages_in_registers_cost_clamps() -> None:
    """The first step, the last one, and those in which windows fill, where what is read may leave its row."""
    platform = machine(row_start_ns=0.0, scalar_cycles=0.4)
    ring = work(operations=(), steps=1e6 + 2000.0)  # two steps more a row
    output = work(operations=(), loads=(Transfer("unaligned", 4, 3.0),))
    stages = tuple(
        StageCounts(n, False, 4e6, 4e6, Operations(add=1), (), 4, False, 0.0, 0.0, w)
        for n, w in (("ring", ring), ("out", output))
    )
    group = GroupWork(parallel=1.0, tiles=1.0, circulating_bytes=FAR)
    priced = Ecm().price(GroupCounts("out", 1, (("x", 1e6),), (), stages, group), platform)
    rows = {s.stage: float(s.terms[0].value) / 1000.0 for s in priced.stages}
    ends = {"ring": 4 * CLAMPED_LOAD, "out": 4 * CLAMPED_LOAD * 3}
    p = platform.ecm_parameters
    steps = {
        "ring": 1002 * (p.load_cycles + p.store_cycles),
        "out": 1000 * (3 * p.unaligned_load_cycles + p.store_cycles),
    }
    assert rows == pytest.approx({n: (steps[n] + ends[n] * 0.4) * 1e-3 for n in steps})


def test_what_is_asked_for_beyond_the_end_of_a_row_is_another_tile_s() -> None:
    platform = machine()
    moved = work(loaded=(1e9,), stored=(0.0,), working=(FAR,), steps=1e8, run_bytes=1024.0)
    plain, ahead = (terms(counts(moved, prefetch=p), platform)["memory"] for p in (0, 2048))
    assert ahead > 1.4 * plain


def test_what_is_another_tile_s_waits_for_it_in_the_last_level() -> None:
    """If what is touched before that tile leaves room for it: then it is loaded from memory only once."""
    platform = machine()
    moved = work(loaded=(1e9,), stored=(0.0,), working=(), steps=0.0, rows=0.0, run_bytes=1024.0, next=1, level=2)
    last = platform.caches[-1].size_bytes
    stays, gone = (
        terms(counts(moved, working=(0.0, touched, FAR), prefetch=2048), platform)["memory"]
        for touched in (last / 8, 8.0 * last)
    )
    assert gone > 1.5 * stays


def test_to_ask_beyond_the_end_of_a_row_takes_nothing_of_the_last_level() -> None:
    platform = alone(machine())
    moved = work(loaded=(1e9,), stored=(0.0,), working=(FAR,), steps=0.0, rows=0.0, run_bytes=1024.0)
    plain, ahead = (terms(counts(moved, circulating_bytes=2e6, prefetch=p), platform) for p in (0, 2048))
    assert ahead == plain
    assert plain["memory"] == 0 < plain["L3"]


@pytest.mark.parametrize(("plain", "ahead"), [(0.6, 0.95), (0.75, 0.95), (0.9, 0.9), (1.0, 1.0)])
def test_memory_hides_behind_instructions_as_much_as_the_machine_lets_it(plain: float, ahead: float) -> None:
    """Memory that takes half as long as the instructions hides halfway to what prefetch hides, where it asks for half
    of what memory has on its way at once."""
    platform = machine(
        row_start_ns=0.0,
        memory_gb_s_one_thread=10.0,
        memory_gb_s=10.0,
        memory_hidden_share=plain,
        memory_hidden_share_prefetched=ahead,
    )
    half = terms(counts(work()), platform)["in core"] / 2
    moved = work(working=(FAR,), loaded=(half * 1e-6 * 10e9,))
    on_its_way = int(10.0 * platform.memory_latency_ns)
    for prefetch, hidden in ((0, plain), (on_its_way // 2, (plain + ahead) / 2), (2 * on_its_way, ahead)):
        found = terms(counts(moved, prefetch=prefetch), platform)
        assert found["memory"] == pytest.approx((1 - hidden) * half)
        assert found["in core"] == pytest.approx(2 * half)


@pytest.mark.parametrize(
    ("written", "arithmetic", "adds"), [(True, 0.0, True), (False, 0.0, False), (True, 60.0, False)]
)
def test_lines_of_caches_wait_for_what_stores_bring_and_both_hide_behind_instructions(
    written: bool, arithmetic: float, adds: bool
) -> None:
    """Rows from the second level add their whole time to that of what is stored in memory, not to that of what is
    loaded; arithmetic that is as long as both hides them."""
    hidden = {"cache_hidden_share": 1.0, "memory_hidden_share": 1.0}
    platform = machine(row_start_ns=0.0, memory_gb_s=1e3, memory_gb_s_one_thread=10.0, **hidden)
    first, level = platform.l1_bytes, platform.ecm_parameters.levels[0]
    operations = (("f32", Operations(multiply=arithmetic / platform.ecm_parameters.f32.multiply)),)
    usual = work(operations=operations, loads=(), stores=(), working=(2.0 * first, FAR))
    far, none = (64e6,) * 3, (0.0,) * 3
    usual = usual._replace(loaded=none if written else far, stored=far if written else none)
    found = []
    for near in (0.0, 64e6):
        moved = usual._replace(loaded=(usual.loaded[0] + near, *usual.loaded[1:]))
        found.append(sum(terms(counts(moved), platform).values()))
    added = 64e6 / level.load_bytes_per_cycle * 1e-3
    assert found[1] - found[0] == pytest.approx(added if adds else 0.0, abs=1e-3 * added)


def test_lines_that_no_prefetcher_asks_for_wait_for_their_share_of_a_latency() -> None:
    """The more so the shorter a row is, and not where the next tile goes on with it in time."""
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, memory_parallelism=4.0)
    late = platform.memory_latency_ns / (4.0 * platform.line_bytes)
    read = work(steps=0.0, rows=0.0, loaded=(1e9,), stored=(0.0,), working=(FAR,))
    for run, share in ((float("inf"), 0.0), (256.0, 0.5), (768.0, 0.25)):
        found = terms(counts(read._replace(run_bytes=run)), platform)["memory"]
        assert found == pytest.approx(1e6 * (0.1 + share * (late - 0.1)))
    for touched, share in ((0.0, 0.0), (FAR, 0.5)):
        again = read._replace(run_bytes=256.0, next=1, working=(), level=2)
        goes_on = counts(again, working=(0.0, touched, FAR))
        assert terms(goes_on, platform)["memory"] == pytest.approx(1e6 * (0.1 + share * (late - 0.1)))


@pytest.mark.parametrize(
    ("rows", "level", "share"),
    [
        (1000.0, 2, 0.5),  # a row each time
        (3000.0, 2, 0.25),  # three rows each time
        (1000.0, 3, 0.0),  # before each tile
    ],
)
def test_rows_that_other_loops_run_before_begin_late_whatever_the_next_tile_goes_on_with(
    rows: float, level: int, share: float
) -> None:
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, memory_parallelism=4.0)
    late = platform.memory_latency_ns / (4.0 * platform.line_bytes)
    nothing = work(steps=0.0, rows=1000.0, loaded=(0.0,), working=(), level=2)
    read = nothing._replace(rows=rows, loaded=(1e9, 1e9), stored=(0.0, 0.0), run_bytes=256.0, next=1, in_output=False)
    read = read._replace(level=level, loaded=(1e9,) * (5 - level), stored=(0.0,) * (5 - level))
    output = nothing._replace(loaded=(0.0,) * 3, stored=(0.0,) * 3)
    of = counts(output, working=(0.0, 0.0, 0.0, FAR))
    first, last = of.stages[0]._replace(stage="inside", work=read), of.stages[0]
    found = Ecm().price(of._replace(stages=(first, last)), platform).stages[0]
    memory = next(float(t.value) for t in found.terms if t.name == "memory")
    assert memory == pytest.approx(1e6 * (0.1 + share * (late - 0.1)), rel=0.01)


def test_lines_of_more_rows_than_hardware_follows_are_late() -> None:
    """All of them, unless they are asked for; of long steps, which show a core few lines ahead, more so."""
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, memory_parallelism=4.0)
    late = platform.memory_latency_ns / (4.0 * platform.line_bytes)
    read = work(steps=0.0, rows=0.0, loaded=(1e9,), stored=(0.0,), working=(FAR,), operations=())
    for walked, prefetch, share in ((32.0, 0, 0.0), (64.0, 0, 1.0), (64.0, 1024, 0.0)):
        found = terms(counts(read._replace(walked=walked), prefetch=prefetch), platform)["memory"]
        assert found == pytest.approx(1e6 * (0.1 + share * (late - 0.1)), rel=0.05)
    many = (("f32", Operations(add=100_000.0)),)
    short, long = (
        terms(counts(read._replace(walked=64.0, steps=1e9 / 64, operations=of)), platform)["memory"]
        for of in ((), many)
    )
    assert long > short


def test_stores_to_more_rows_than_hardware_follows_are_late() -> None:
    """Stores of 48 rows wait, whether loads are asked for or not: nobody asks for what is stored."""
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, memory_parallelism=4.0)
    late = platform.memory_latency_ns / (4.0 * platform.line_bytes)
    written = work(steps=0.0, rows=0.0, loaded=(0.0,), stored=(1e9,), working=(FAR,))
    few, *many = (
        terms(counts(written._replace(walked=rows), prefetch=ahead), platform)["memory"]
        for rows, ahead in ((32.0, 0), (48.0, 0), (48.0, 1024))
    )
    assert [found - few for found in many] == [pytest.approx(1e6 * late)] * 2


def test_stores_wait_in_short_rows() -> None:
    platform = machine(memory_gb_s_one_thread=10.0, memory_gb_s=10.0, memory_parallelism=4.0)
    late = platform.memory_latency_ns / (4.0 * platform.line_bytes)
    written = work(steps=0.0, rows=0.0, loaded=(0.0,), stored=(1e9,), working=(FAR,))
    long, page = (terms(counts(written._replace(run_bytes=n)), platform)["memory"] for n in (float("inf"), 4096.0))
    assert page - long == pytest.approx(1e6 * late / 2)


def test_stores_do_not_wait_for_each_other_where_the_next_line_is_long_in_the_making() -> None:
    """A thousand lines, computed in no time, and in as much as each takes to memory."""
    few, many = (machine(memory_parallelism=n) for n in (4.0, 1e9))
    written = work(rows=0.0, loaded=(0.0,), stored=(64e3,), working=(FAR,), run_bytes=4096.0)

    def waits(steps: float) -> float:
        of = counts(written._replace(steps=steps))
        return terms(of, few)["memory"] - terms(of, many)["memory"]

    each = terms(counts(written), few)["in core"] / 1e6
    assert waits(0.0) > 1.0
    assert waits(1e3 * few.memory_latency_ns * 1e-3 / each) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("circulating", [FAR, 0.0])
def test_torn_rows_past_the_caches_wait_for_memory(circulating: float) -> None:
    """There and back, whatever stays in the caches."""
    platform = machine()
    idle = {"steps": 0.0, "rows": 0.0, "working": (FAR,), "loaded": (0.0,), "stored": (0.0,), "streamed_bytes": 1e6}
    group = {"circulating_bytes": circulating}
    whole, torn = (terms(counts(work(torn=n, **idle), **group), platform)["memory"] for n in (0.0, 1000.0))
    assert torn - whole == pytest.approx(2 * platform.memory_latency_ns)


def test_loads_that_wait_for_lines_past_the_caches_hide_nothing() -> None:
    platform = machine()
    idle = {"loaded": (0.0,), "stored": (0.0,), "working": (FAR,), "streamed_bytes": 64e3}
    free, awaited = (terms(counts(work(awaited_bytes=n, **idle)), platform)["memory"] for n in (0.0, 64e3))
    each = platform.memory_latency_ns / platform.ecm_parameters.memory_parallelism
    assert awaited - free == pytest.approx(each)


def test_three_channels_are_three_vectors_however_short() -> None:
    """Two of them are picked from at a time; of two channels one longer vector has both."""
    platform = machine(row_start_ns=0.0, load_cycles=2.0, shuffle_cycles=1.0, scalar_cycles=0.0)
    found = [
        terms(counts(work(operations=(), stores=(), loads=(Transfer("strided", 1, 1.0, n),))), platform)["in core"]
        for n in (3, 2)
    ]
    assert found[0] == pytest.approx(1e3 * both(3 * 2.0, 2 * 1.0))
    assert found[1] < found[0]


def all_units(permuted: float, platform: CpuPlatform) -> float:
    """Cycles of all units that permutations, which fewer do, take."""
    return permuted * platform.ecm_parameters.i32.add / platform.ecm_parameters.i32.convert


def test_lanes_are_picked_out_of_strides_beside_loads() -> None:
    """Permutations take a share of the units that add, and what the others do meanwhile is beside them; all is beside
    the loads of the vectors."""
    platform = machine(row_start_ns=0.0, load_cycles=3.0, shuffle_cycles=1.0)
    one, shared = platform.ecm_parameters.f32.multiply, all_units(1.0, platform)
    assert 0.0 < shared < 1.0
    for products in (1.0, 7.0):
        operations = (("f32", Operations(multiply=products / one)),)
        own = work(operations=operations, stores=(), loads=(Transfer("strided", 4, 1.0, 2),))
        cycles = shared + both(1.0 - shared, products)
        assert terms(counts(own), platform)["in core"] == pytest.approx(1e3 * both(2 * 3.0, cycles))


@pytest.mark.parametrize(("lanes", "narrowed"), [(8, 1.0), (16, 1.0), (32, 2.0)])
def test_integers_are_converted_beside_sums(lanes: int, narrowed: float) -> None:
    """Integers that become longer or shorter are permuted. One instruction makes two registers one shorter."""
    platform = machine(row_start_ns=0.0)
    of, registers = platform.ecm_parameters.i16, lanes * 2 / platform.vector_bytes
    permuted = registers * of.convert + narrowed * of.narrow
    shared, sums = all_units(permuted, platform), registers * 5 * of.add
    operations = (("i16", Operations(add=5, convert=1, narrow=1)),)
    own = work(lanes=lanes, operations=operations, stores=(), loads=(), rows=0.0)
    assert terms(counts(own), platform)["in core"] == pytest.approx(1e3 * (shared + both(permuted - shared, sums)))


def test_tables_of_bytes_are_looked_up_part_by_part() -> None:
    """By vectors of 64 bytes; others go by way of memory, there and back."""
    table = work(lanes=64, operations=(), loads=(Transfer("table", 1, 1.0, 8),), stores=(), rows=0.0)
    narrow = machine()
    p = narrow.ecm_parameters
    assert terms(counts(table), narrow)["in core"] == pytest.approx(1e3 * 64 * max(2 * p.load_cycles, p.store_cycles))
    wide = narrow.model_copy(update={"vector_bytes": 64})
    cycles = both(8 * p.shuffle_cycles + 7 * p.i8.select, 16 * p.load_cycles)
    assert terms(counts(table), wide)["in core"] == pytest.approx(1e3 * cycles)


def test_permutations_within_parts_of_a_register_take_one_instruction() -> None:
    """Look-ups in a table of bytes cost as much as what widens, where two registers are shifted by two instructions."""
    table = work(lanes=64, operations=(), loads=(Transfer("table", 1, 1.0, 8),), stores=(), rows=0.0)
    wide = machine(shuffle_cycles=2.0, load_cycles=0.1).model_copy(update={"vector_bytes": 64})
    p = wide.ecm_parameters
    assert p.i16.convert < 2.0
    assert terms(counts(table), wide)["in core"] == pytest.approx(1e3 * (8 * p.i16.convert + 7 * p.i8.select), rel=1e-2)


def down_a_column(apart: float, rows: float, core: Core = ORDINARY, padded: bool = False) -> float:
    """The time of a stage that reads a column, each line again in every row, where its lines do not stay."""
    column = Column(apart, rows, 4e6, padded)
    of = work(columns=(column,), working=(rows * 64,), loaded=(4e6 * 64, 4e6 * 4))
    return sum(terms(counts(of, working=(rows * 64,)), with_core(core)).values())


@pytest.mark.parametrize("rows", [32.0, 60.0])
def test_columns_of_rows_a_power_of_two_apart_cost_more(rows: float) -> None:
    assert down_a_column(8192, rows) > 1.5 * down_a_column(8192 + 64, rows)
    assert down_a_column(8192 + 64, rows) == pytest.approx(down_a_column(8192 + 192, rows))


def test_padded_columns_share_no_sets() -> None:
    """However far apart the program says that their rows are."""
    assert down_a_column(8192, 60, padded=True) == pytest.approx(down_a_column(8192 + 64, 60))


def test_short_columns_stay() -> None:
    assert down_a_column(8192, 2) == pytest.approx(down_a_column(8192 + 64, 2))


def test_lines_along_a_row_of_a_column_are_followed() -> None:
    """The first line of a row alone is late where it is walked along before the next."""
    lines = 4e6
    across, along = (
        terms(counts(work(columns=(Column(8192 + 64, 1700, touched),), loaded=(lines * 64,) * 2)), machine())["memory"]
        for touched in (lines, lines / 100)
    )
    assert across > 2 * along


def test_columns_of_more_pages_than_the_tlb_has_entries_cost_more() -> None:
    assert down_a_column(8192 + 64, 1700) > 1.5 * down_a_column(1024 + 64, 1700)


def test_pages_and_the_tlb_are_the_machine_s() -> None:
    large, untold = Core(pages=Pages(page_bytes=1 << 21)), Core(pages=Pages(tlb=()))
    found = [down_a_column(8192 + 64, 1700, core) for core in (ORDINARY, large, untold)]
    assert found[0] > 1.5 * found[1]
    assert found[1] == pytest.approx(found[2])


def test_registers_that_expressions_need_are_not_there_for_what_is_held() -> None:
    """Of 16 registers 12 hold windows: four are left."""
    none, few, many = (
        terms(counts(work(held=((4, 12.0),), loads=(Transfer("shuffled", 4, 2.0),), needs=n)), machine())["in core"]
        for n in (2.0, 4.0, 8.0)
    )
    assert none == few < many


@pytest.mark.parametrize(("register", "apart"), [(16, 100.0), (32, 200.0), (64, 100.0)])
def test_shifts_of_the_same_registers_join_their_halves_once(register: int, apart: float) -> None:
    """A hundred shifts of ten pairs of registers, or of a pair each: AVX2 has two steps, of which one is shared."""
    platform = machine(shuffle_cycles=apart / 100, store_cycles=0.0).model_copy(update={"vector_bytes": register})
    steps = (work(operations=(), loads=(Transfer("shuffled", 4, 100.0, n),)) for n in (10, 1))
    shared, alone = (terms(counts(of), platform)["in core"] for of in steps)
    assert alone / shared == pytest.approx(apart / (110 if apart > 100 else 100), rel=0.01)


def of_many_rows(rows: int, register: int) -> float:
    """The time in the core of points that take a hundred elements each for all lanes of registers of so many bytes,
    from so many rows in all."""
    platform = machine(load_cycles=0.5).model_copy(update={"vector_bytes": register})
    return terms(counts(work(loads=(Transfer("uniform", 4, 100.0, rows),))), platform)["in core"]


@pytest.mark.parametrize("register", [16, 32, 64])
def test_addresses_of_more_rows_than_general_registers_are_loads(register: int) -> None:
    """Addresses of instructions that take elements from memory, too."""
    six = of_many_rows(6, register)
    assert of_many_rows(1, register) == six
    cycles = [(of_many_rows(rows, register) - six) / 1e3 for rows in (8, 12)]
    assert cycles == pytest.approx([100 * 2 / 8 * 0.5, 100 * 6 / 12 * 0.5], rel=0.02)


def test_sums_beyond_the_registers_are_loaded_and_stored_for_each_term() -> None:
    platform, of = machine(load_cycles=0.5, store_cycles=1.0), work(loads=(Transfer("aligned", 4, 100.0),))
    one, fit, spilled = (
        terms(counts(of._replace(sums=sums)), platform)["in core"]
        for sums in (Sums(1.0, 1, 4, 100.0), Sums(13.0, 13, 4, 100.0), Sums(16.0, 16, 4, 100.0))
    )
    assert fit == one  # with a vector that all share, and two elements
    assert (spilled - fit) / 1e3 == pytest.approx(3 / 16 * 100 * 1.5, rel=0.02)


@pytest.mark.parametrize("sums", [None, Sums(4.0, 4, 4, 100.0)])
def test_arithmetic_and_loads_are_both_limits_of_a_step(sums: Sums | None) -> None:
    """Two limits that are alike are both missed: their cubes are added."""
    platform = machine(load_cycles=0.5)
    of = work(operations=(("f32", Operations(add=100, multiply=100)),), sums=sums)
    none, alike = (
        terms(counts(of._replace(loads=(Transfer("aligned", 4, n),))), platform)["in core"] for n in (0.0, 100.0)
    )
    assert alike / none == pytest.approx(2 ** (1 / 3), rel=0.02)


def test_reused_values_beyond_the_registers_are_stored_and_loaded_again() -> None:
    """Sixteen registers, of which an expression needs six: ten are free."""
    platform, of = machine(load_cycles=0.5, store_cycles=1.0), work(loads=(Transfer("aligned", 4, 100.0),), needs=6.0)
    none, fit, beyond, beside = (
        terms(counts(of._replace(reused=reused)), platform)["in core"]
        for reused in (
            (),
            (Reuse(4, 10.0, 40.0, 10.0),),
            (Reuse(4, 20.0, 40.0, 10.0),),
            (Reuse(4, 20.0, 40.0, 10.0), Reuse(4, 4.0, 60.0, 0.0, uniform=True)),
        )
    )
    assert fit == none
    assert (beyond - none) / 1e3 == pytest.approx(10 / 20 * (40 * 0.5 + 10), rel=0.02)
    assert (beside - none) / 1e3 == pytest.approx(14 / 20 * (40 * 0.5 + 10), rel=0.02)  # literals save more by each


def test_literals_take_a_register_however_many_a_vector_takes() -> None:
    platform = machine(load_cycles=0.5, store_cycles=1.0)
    of = work(lanes=8, loads=(Transfer("aligned", 4, 100.0),))
    none, literals, values = (
        terms(counts(of._replace(reused=reused)), platform)["in core"]
        for reused in ((), (Reuse(4, 32.0, 40.0, 0.0, uniform=True),), (Reuse(4, 16.0, 40.0, 0.0),))
    )
    assert (literals - none) / 1e3 == pytest.approx(16 / 32 * 40 * 0.5, rel=0.02)
    assert values - none == pytest.approx(2 * (literals - none))


@pytest.mark.parametrize(("kind", "cycles"), [("f32", 4.0), ("i32", 1.0)])
def test_a_point_alone_adds_its_terms_one_after_the_other(kind: str, cycles: float) -> None:
    """Beside no other that has sums in registers, too: so many products wait for each other."""
    platform = machine(scalar_cycles=0.1, window_instructions=100.0)
    of = work(operations=((kind, Operations(add=1000, multiply=1000)),), sums=Sums(4.0, 4, 4, 1000.0), steps=0.0)
    none, some = (terms(counts(of._replace(singles=n)), platform)["in core"] for n in (0.0, 1e3))
    instructions = 2002.0  # with a load and a store
    assert some - none == pytest.approx(1000 * cycles * instructions / (instructions + 100))


def test_lanes_that_are_picked_out_of_strides_take_registers_of_sums() -> None:
    platform = machine(load_cycles=0.5, store_cycles=1.0)
    of = work(loads=(Transfer("strided", 4, 100.0, 2),))
    one, fit, spilled = (
        terms(counts(of._replace(sums=sums)), platform)["in core"]
        for sums in (Sums(1.0, 1, 4, 100.0), Sums(8.0, 2, 4, 100.0), Sums(12.0, 3, 4, 100.0))
    )
    assert fit == one
    moved = 3 / 3 * 100 * 1.5
    assert 0.8 * moved < (spilled - fit) / 1e3 < moved  # beside the permutations


def test_short_elements_are_gathered_by_machines_that_can() -> None:
    bytes_ = work(loads=(Transfer("gathered", 1, 1.0),))
    able = with_core(Core(instructions=Instructions(gathered_bytes=1)), gather_cycles_per_lane=1.0)
    alone = with_core(ORDINARY, gather_cycles_per_lane=1.0)
    assert terms(counts(bytes_), able)["in core"] < terms(counts(bytes_), alone)["in core"]


def test_rows_beyond_those_that_prefetchers_follow_hide_less() -> None:
    many = work(streams=32.0, loaded=(1e9,), stored=(0.0,), working=(FAR,), steps=1e8)
    all_of_them, half = (
        sum(terms(counts(many), with_core(Core(prefetch=Prefetch(rows=n)))).values()) for n in (32, 16)
    )
    assert all_of_them < half


def test_traffic_is_what_each_cache_does_not_keep() -> None:
    platform = machine()
    levels = [cache.size_bytes for cache in platform.caches]
    moved = work(loaded=(1e6, 1e5), stored=(1e3, 1e3), working=(levels[0] * 2.0, levels[1] / 100), streamed_bytes=7.0)
    assert Ecm().traffic(counts(moved), platform) == {"out": (1e6 + 1e3 + 7.0, 1e5 + 1e3 + 7.0, 1e5 + 1e3 + 7.0)}
    looked_up = work(working=(levels[0] / 100,), looked_up=(50.0, 50.0), table=FAR)
    assert Ecm().traffic(counts(looked_up), platform)["out"][-1] > 0


def test_rows_side_by_side_that_share_sets_lose_their_lines_between_steps() -> None:
    """Rows that are stored, and as many that are loaded, in the eight ways of a set: of 16 every second line is gone,
    of 9 one. A vector at any place is in two lines now and then."""
    platform = machine()
    first, second = platform.caches[:2]
    way, line = first.size_bytes // first.ways, first.line_bytes
    found = []
    for apart, loaded, stored in ((way, 8, 8), (way, 5, 4), (way, 4, 4), (way // 2, 8, 8), (way + line, 8, 8)):
        at = [tuple(k * apart for k in range(rows)) for rows in (loaded, stored)]
        of = work(together=SideBySide(*at, (4,)), steps=1e6, lanes=8)
        found.append(terms(counts(of), platform)["memory"] - terms(counts(work(lanes=8)), platform)["memory"])
    level = platform.ecm_parameters.levels[0]
    each = second.latency_cycles + line * (1 / level.load_bytes_per_cycle + 1 / level.store_bytes_per_cycle)
    lines = 1 + 7 * 4 / line
    assert found == pytest.approx([lines * each * 1e3 / 2, lines * each * 1e3 / 9, 0.0, 0.0, 0.0])
