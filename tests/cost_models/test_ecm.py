"""The model `ecm` against closed forms: the steps of one stage at a time, all figures of the machine known."""

from __future__ import annotations

import numpy as np
import pytest
from support.ecm_counts import FAR, both, counts, machine, terms, work

from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.ecm import Ecm, waits
from tilesmith.cost_models.ecm.steps import CLAMPED_LOAD
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import (
    Before,
    Chain,
    Edges,
    GroupWork,
    Pass,
    Reuse,
    Transfer,
)


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


def test_cycles_are_found_once_for_points_that_are_alike() -> None:
    """By value, of all that they follow from: points that share what they compute may differ at the edges of rows."""
    model, platform = Ecm(), machine()
    of = work()
    edge = Edges(0.5, 0.5, (("f32", Operations(add=40)),), of.loads)
    first, edged, again = (float(model.total(counts(w), platform)) for w in (of, of._replace(edges=edge), work()))
    assert first == again != edged
    assert len(model.alike) == 2


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


def test_elements_that_are_in_registers_for_all_of_a_row_are_no_instructions_of_a_step() -> None:
    """Few are: a load for each of the others."""
    platform = machine(row_start_ns=0.0, window_instructions=100.0)
    free = platform.vector_registers - platform.core.registers.working

    def time(elements: float, adds: int = 0) -> float:
        loads = (Transfer("aligned", 4, 1.0), Transfer("uniform", 4, elements))
        sums = (("i32", Operations(add=adds)),)
        return terms(counts(work(operations=sums, loads=loads, chain=Chain(1e5, 0.0))), platform)["in core"]

    assert time(0) == time(free) < time(free + 9) == pytest.approx(time(0, adds=9), rel=1e-2)


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
