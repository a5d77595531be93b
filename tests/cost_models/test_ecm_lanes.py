"""The model `ecm` against closed forms: lanes that are gathered and permuted, and what registers hold."""

from __future__ import annotations

import pytest
from support.ecm_counts import both, counts, machine, terms, with_core, work

from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import (
    Addresses,
    Chain,
    Reuse,
    Sums,
    Transfer,
    Way,
)
from tilesmith.platforms import CpuPlatform
from tilesmith.platforms.core import ORDINARY, Core, Instructions


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


def test_addresses_of_more_rows_side_by_side_than_general_registers_are_loads() -> None:
    """The addresses of a point's two rows are in registers in the proportion of those of all rows."""
    platform, of = machine(load_cycles=0.5), work(loads=(Transfer("aligned", 4, 100.0),))
    none, six, twelve = (
        terms(counts(of._replace(addresses=addresses)), platform)["in core"]
        for addresses in (None, Addresses(6.0, 2.0), Addresses(12.0, 2.0))
    )
    assert six == none
    assert (twelve - none) / 1e3 == pytest.approx(6 / 12 * 2 * 0.5, rel=0.02)


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
