"""The model `ecm` against closed forms: lines of caches and memory, columns, pages, and what waits for them."""

from __future__ import annotations

import pytest
from support.ecm_counts import FAR, counts, machine, terms, with_core, work

from tilesmith.cost_models.ecm import Ecm
from tilesmith.cost_models.ecm.machine import machine_of
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import (
    Column,
    Pass,
    SideBySide,
)
from tilesmith.platforms import CpuPlatform, catalog
from tilesmith.platforms.core import ORDINARY, Core, Pages, Prefetch


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


def test_places_that_data_says_wait_for_memory() -> None:
    """No prefetcher asks for their lines, and nothing hides behind them; of a table that stays little comes."""
    platform = machine(row_start_ns=0.0, memory_parallelism=10.0)
    lines = 1e6 * 64
    far = terms(counts(work(working=(FAR,), looked_up=(lines, lines), table=FAR)), platform)
    assert far["memory"] == pytest.approx(1e6 * platform.memory_latency_ns / 10 * 1e-3)
    near = terms(counts(work(working=(FAR,), looked_up=(lines, 64.0), table=64.0)), platform)
    assert near["memory"] == pytest.approx(far["memory"] / 1e6)
    assert near["in core"] == far["in core"]


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
