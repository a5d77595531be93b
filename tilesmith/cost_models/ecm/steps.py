"""Cycles of one step of the innermost loop of a stage in the core, were all data in the first level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, log2
from typing import NamedTuple

from tilesmith.cost_models.ecm.machine import Machine
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import MOST_PIECES, Before, Edges, Pass, Transfer, Work
from tilesmith.platforms.base import HALVED_BYTES, TABLE_ENTRIES
from tilesmith.platforms.ecm import TypeCycles
from tilesmith.records import record

CLAMPED_LOAD = 10
"""Operations of scalar code in the C of a vector that may leave its row: two clamps, two comparisons, and what they
decide."""
TURNED_LOAD = 40
"""Operations in the C of a vector that may turn at an end of its row: where it lies, the places of its lanes in the
vectors at both ends, whether all are there, both, and what is taken of each."""
NEAR_OPERATIONS = 4
"""Operations on the places of a vector that may be near each other: how far they are from the first, and whether that
is too far."""
ROWS = ("aligned", "unaligned", "strided", "shared", "reversed")
"""Ways of vectors in the order of a row."""
NEXT_ELEMENTS = 2
"""Elements for all lanes in registers: that of this product, and the next one's, which is loaded meanwhile."""
PICKED = 4
"""Registers that lanes are picked with out of strides: the two that they lie in, and their places in each."""
GATHERED_AT_ONCE = 64
"""Bytes of the registers that the C has an instruction to gather for (`codegen.c.gathers`)."""
BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8}
"""Bytes of the types of elements."""


@record(frozen=True, slots=True)
class Step:
    """Cycles of one step of the innermost loop, of its arithmetic and of its loads and stores, which overlap; of a
    point computed alone; registers that are `held` from step to step, and the cycles more of a step if none of that
    were in registers. `row`: the time that a row takes to begin, in microseconds. `near`: the cycles more of
    a step at the ends of a row with stages in registers, where vectors may leave it. `instructions`: their number."""

    arithmetic: float
    transfers: float
    single: float
    held: float
    spills: float
    row: float
    near: float
    instructions: float


def step(work: Work, m: Machine) -> Step:
    """A step of a stage."""
    if work.before is not None:
        return _after(work._replace(before=None), work.before, m)
    if work.edges is not None:
        return _with_edges(work._replace(edges=None), work.edges, m)
    scalar = sum(scalar_operations(o) for _, o in work.operations) + sum(t.times for t in work.loads) + 1
    single = m.parameters.scalar_cycles * scalar
    row = m.row + _indices(work, m)
    held, spills = _held(work, m), _spills(work, m)
    if work.lanes == 1:
        return Step(single, 0.0, single, held, spills, row, 0.0, scalar)
    single = max(single, waiting(_chain_alone(work, m), scalar, m))
    near = (
        CLAMPED_LOAD * m.parameters.scalar_cycles * sum(_vectors(t, work.lanes, m) for t in work.loads if t.way in ROWS)
    )
    arithmetic = _arithmetic(work.operations, work.loads, work.lanes, m)
    return Step(arithmetic, _transfers(work, m), single, held, spills, row, near, _instructions(work, m))


def _with_edges(work: Work, edges: Edges, m: Machine) -> Step:
    """A step of a row, on average of its middle and of its edges, which vectors or scalars compute; or what a step at
    the ends takes more, where edges are no loop of their own."""
    inside = step(work, m)
    outside = step(work._replace(operations=edges.operations, loads=edges.loads, reused=()), m)
    # few steps of much code, no two alike: cores begin no more of its instructions than of scalar code
    outside = replace(outside, arithmetic=max(outside.arithmetic, outside.instructions * m.parameters.scalar_cycles))
    cycles, alone = max(outside.arithmetic, outside.transfers), work.lanes * outside.single
    if not edges.share:
        return replace(inside, near=max(0.0, cycles - max(inside.arithmetic, inside.transfers)))
    there = [n * edges.steps for n in (outside.arithmetic, outside.transfers, outside.instructions)]
    if edges.share * alone < edges.steps * cycles:
        instructions = alone / m.parameters.scalar_cycles
        there = [n * edges.share for n in (alone, 0.0, instructions)]
    each = inside.arithmetic, inside.transfers, inside.instructions
    mean = [a * (1.0 - edges.share) + b for a, b in zip(each, there, strict=True)]
    return replace(inside, arithmetic=mean[0], transfers=mean[1], instructions=mean[2])


def waiting(chain: float, instructions: float, m: Machine) -> float:
    """Cycles for which a step of so many instructions waits, of which those that wait for each other take `chain`
    cycles. An instruction begins no earlier than the one leaves that is as far ahead as a core looks: each step as much
    later than the one before as that is of the chain."""
    return chain * instructions / (instructions + m.parameters.window_instructions)


def _chain_alone(work: Work, m: Machine) -> float:
    """Cycles of the chain of a point that is computed alone: terms that it has registers for beside other points are
    added one after the other."""
    if work.sums is None:
        return work.chain.whole
    of = m.core.latency_cycles
    floats = any(name.startswith("f") for name, _ in work.operations)
    return max(work.chain.whole, work.sums.terms * (of.float_sum if floats else of.integer_sum))


def pass_cycles(p: Pass, m: Machine) -> float:
    """Cycles of a step of an update that passes over its stage. A block of rows is transposed by as many permutations
    a vector as lanes have bits, each time."""
    of = m.parameters
    if p.lanes == 1:
        return max(of.scalar_cycles * pass_instructions(p, m), p.chain)
    vectors = max(1.0, p.lanes * p.size / m.vector_bytes)
    arithmetic = _arithmetic(p.operations, p.transfers, p.lanes, m)
    if p.across:
        arithmetic += p.transposed * vectors * log2(p.lanes) * of.shuffle_cycles
        loaded = vectors * of.load_cycles + sum(_load(t, p.lanes, m) for t in p.transfers)
        return max(arithmetic, loaded + vectors * of.store_cycles, p.chain)
    for name, operations in p.joined:  # doubling by doubling, and to what came before, for this vector and the next
        once = _cycles(operations, of.of_type(name), name.startswith("f"))
        arithmetic += vectors * ((log2(p.lanes) + 1) * (of.shuffle_cycles + once) + once)
    loaded = vectors * (p.loads - p.gathered) * of.load_cycles + p.gathered * p.lanes * _gathered(p.size, m)
    loaded += sum(_load(t, p.lanes, m) for t in p.transfers)
    return max(arithmetic, loaded + vectors * of.store_cycles, p.chain)


def pass_instructions(p: Pass, m: Machine) -> float:
    """Instructions of a step of an update."""
    if p.lanes == 1:
        return sum(scalar_operations(o) for _, o in p.operations) + p.loads + sum(t.times for t in p.transfers) + 1
    found = (p.loads + 1) * max(1.0, p.lanes * p.size / m.vector_bytes)
    found += sum(_vectors(t, p.lanes, m) * (1.0 if t.way in ROWS else 2.0) for t in p.transfers)
    return found + _executed(p.operations, p.lanes, m)


def _after(work: Work, before: Before, m: Machine) -> Step:
    """A step of updates, with what has been computed before for as many points."""
    own, first = step(work, m), step(work._replace(**before._asdict()), m)
    share = work.lanes / before.lanes
    return replace(
        own,
        arithmetic=own.arithmetic + share * max(first.arithmetic, first.transfers),
        row=own.row + first.row - m.row,
        instructions=own.instructions + share * first.instructions,
    )


def _vectors(t: Transfer, lanes: int, m: Machine) -> float:
    """Registers that a step transfers."""
    return t.times * max(1.0, lanes * t.bytes / m.vector_bytes)


def _instructions(work: Work, m: Machine) -> float:
    """Instructions of a step."""
    found = _elements(work, m) + sum(_moving(t, work.lanes, m) for t in work.loads if t.way != "uniform")
    found += sum(_vectors(t, work.lanes, m) * (1.0 if t.way in ROWS else 2.0) for t in work.stores)
    return found + _executed(work.operations, work.lanes, m)


def _moving(t: Transfer, lanes: int, m: Machine) -> float:
    """Instructions of a load: where an instruction gathers, a lane is a load; of what none does, or the C has none for,
    those of scalar code that take as long."""
    p = m.parameters
    if t.way == "gathered" and t.bytes >= m.core.instructions.gathered_bytes and m.vector_bytes >= GATHERED_AT_ONCE:
        return t.times * lanes
    if t.way in ("gathered", "alone", "clamped", "turned"):
        return _load(t, lanes, m) / p.scalar_cycles
    return _vectors(t, lanes, m) * (1.0 if t.way in ROWS else 2.0)


def _executed(operations: Iterable[tuple[str, Operations]], lanes: int, m: Machine) -> float:
    """Instructions of the operations of a step."""
    found = 0.0
    for name, o in operations:
        each = o.add + o.multiply - (min(o.add, o.multiply) if name.startswith("f") else 0.0)
        each += 2 * o.divide_by_constant + o.divide + o.select + 1.5 * (o.convert + o.narrow)
        found += each * max(1.0, lanes * BYTES[name] / m.vector_bytes)
        found += m.parameters.call_instructions * o.function * lanes
    return found


def _held(work: Work, m: Machine) -> float:
    """Registers that a step leaves to the next: a vector may take several."""
    return sum(n * max(1.0, work.lanes * size / m.vector_bytes) for size, n in work.held)


def _spills(work: Work, m: Machine) -> float:
    """Cycles of a step if nothing that is held were in registers: moved on to where the next step looks for it, and
    loaded at each use."""
    p = m.parameters
    uses = sum(2 * t.times * max(1.0, work.lanes * t.bytes / m.vector_bytes) for t in work.loads if t.way == "shuffled")
    return _held(work, m) * (p.load_cycles + p.store_cycles) + uses * p.load_cycles


def _indices(work: Work, m: Machine) -> float:
    """Time that a row takes to work out where it reads: the same for all of its points."""
    return sum(o.index for _, o in work.operations) * m.parameters.scalar_cycles * m.cycle


def _arithmetic(
    operations: Iterable[tuple[str, Operations]], loads: Sequence[Transfer], lanes: int, m: Machine
) -> float:
    """Cycles of the arithmetic of one step, permutations and scalar code included. Integers that become longer or
    shorter are permuted, too. That is what fewer units do than add: their share of all units' time is added, and beside
    the rest the others compute."""
    p = m.parameters
    permuted, other = _permutations(loads, lanes, m), 0.0
    for name, o in operations:
        registers, of, floats = max(1.0, lanes * BYTES[name] / m.vector_bytes), p.of_type(name), name.startswith("f")
        other += o.uniform * p.scalar_cycles + registers * _cycles(o, of, fused=floats)
        if floats:
            other += registers * (o.convert * of.convert + o.narrow * of.narrow)
        else:  # one instruction makes two registers one shorter
            permuted += registers * o.convert * of.convert + max(1.0, registers / 2) * o.narrow * of.narrow
    all_units = permuted * (min(1.0, p.i32.add / p.i32.convert) if p.i32.convert else 1.0)
    return all_units + both(permuted - all_units, other)


def both(cycles: float, others: float) -> float:
    """Cycles of a step with two limits: where they are alike neither is reached."""
    return float((cycles**3 + others**3) ** (1 / 3))


def _permutations(loads: Sequence[Transfer], lanes: int, m: Machine) -> float:
    """Cycles of the permutations that put what one step loads together."""
    p = m.parameters
    cycles = sum(_vectors(t, lanes, m) for t in loads if t.way == "shared") * p.shuffle_cycles
    cycles += sum(_vectors(t, lanes, m) * _reversal(t, m) for t in loads if t.way == "reversed")
    cycles += sum(_vectors(t, lanes, m) * _shift(t, m) for t in loads if t.way == "shuffled")
    turned = (t for t in loads if t.way == "transposed")
    cycles += sum(_vectors(t, lanes, m) * log2(min(t.stride, lanes)) for t in turned) * p.shuffle_cycles
    cycles += sum(_strided(t, lanes, m).permutations for t in loads if t.way == "strided")
    near = sum(_near(t, lanes, m) for t in loads)
    cycles += near * (2 * p.shuffle_cycles + p.i32.select + NEAR_OPERATIONS * p.i32.add)
    one = min(p.shuffle_cycles, p.i16.convert)  # within parts of a register, as what becomes longer
    for t in loads:  # every piece of a table looks up all lanes, and of two pieces one is right
        pieces = _pieces(t, m)
        each = pieces * one + (pieces - 1) * p.i8.select if pieces else 0.0
        cycles += t.times * max(1.0, lanes / m.vector_bytes) * each
    return cycles


def _shift(t: Transfer, m: Machine) -> float:
    """Cycles of a vector out of two registers. Where lanes are shifted half by half, the second half of one and the
    first half of the other are joined before, half of the work of a shift, once for all shifts of these two."""
    joined = 1 / t.stride if m.vector_bytes == HALVED_BYTES else 1.0
    return (1 + joined) / 2 * m.parameters.shuffle_cycles


def _reversal(t: Transfer, m: Machine) -> float:
    """Cycles of a vector in reverse: of elements shorter than an instruction takes from any lane first part by part."""
    of = m.core.instructions
    one = t.bytes >= of.permuted_bytes or m.vector_bytes <= of.narrowest_bytes or m.table_entries >= TABLE_ENTRIES
    return m.parameters.shuffle_cycles * (1 if one else 2)


def _pieces(t: Transfer, m: Machine) -> int:
    """The pieces of a table that an instruction looks up in each; 0 where that goes by way of memory."""
    if t.way != "table" or not m.table_entries:
        return 0
    pieces = t.stride * TABLE_ENTRIES // m.table_entries
    return pieces if pieces <= MOST_PIECES else 0


def _cycles(o: Operations, t: TypeCycles, fused: bool) -> float:
    """Cycles of the operations of one point, were it a vector, but for conversions. Products are fused with sums, of
    floats."""
    add = o.add - min(o.add, o.multiply) if fused else o.add
    return (
        add * t.add
        + o.multiply * t.multiply
        + o.divide * t.divide
        + o.divide_by_constant * t.divide_by_constant
        + o.select * t.select
        + o.function * t.function
    )


def scalar_operations(o: Operations) -> float:
    """Operations of scalar code; divisions and functions for what they take."""
    plain = o.add + o.multiply + o.select + o.convert + o.narrow
    return plain + 4 * o.divide_by_constant + 20 * (o.divide + 2 * o.function)


def _transfers(work: Work, m: Machine) -> float:
    """Cycles of the loads, stores and prefetches of one step."""
    asks = work.asked * m.core.prefetch.request_loads * m.parameters.scalar_cycles
    asks += _elements(work, m) * m.parameters.load_cycles
    moved = sum(_load(t, work.lanes, m) for t in work.loads) + sum(_store(t, work.lanes, m) for t in work.stores)
    return asks + moved + _crowded(work, m) + _reloads(work, m)


def _elements(work: Work, m: Machine) -> float:
    """Elements for all lanes that a step loads: few are in registers from the begin of a row on."""
    uniform = sum(t.times for t in work.loads if t.way == "uniform")
    return max(0.0, uniform - max(0, m.registers - m.core.registers.working))


def _reloads(work: Work, m: Machine) -> float:
    """Cycles of a step for what is used more than once and has no register: those are given first to what saves most by
    each (F. C. Chow and J. L. Hennessy, The priority-based coloring approach to register allocation, TOPLAS 12(4),
    1990)."""
    p, wanted = m.parameters, list[tuple[float, float]]()
    for of in work.reused:
        each = 1.0 if of.uniform else max(1.0, work.lanes * of.size / m.vector_bytes)
        wanted.append((each * (of.loads * p.load_cycles + of.stores * p.store_cycles), each * of.live))
    free, found = max(0.0, m.registers - work.needs - _held(work, m)), 0.0
    for cycles, live in sorted(wanted, key=lambda of: -of[0] / of[1]):
        found += cycles * max(0.0, 1.0 - free / live)
        free = max(0.0, free - live)
    return found


def _crowded(work: Work, m: Machine) -> float:
    """Cycles of a step for what has no register of its own where points are computed together: addresses of the rows
    whose vectors they load and store, or from which they take an element each for all lanes, and sums, which are loaded
    and stored for each term. Where instructions take elements from memory, none is in a register."""
    p, cycles = m.parameters, 0.0
    apart = [t for t in work.loads if t.way == "uniform" and t.stride > 1]
    rows = sum(t.stride for t in apart)
    if rows > m.addresses:
        cycles += (1 - m.addresses / rows) * sum(t.times for t in apart) * p.load_cycles
    if work.addresses is not None and work.addresses.rows > m.addresses:
        cycles += (1 - m.addresses / work.addresses.rows) * work.addresses.times * p.load_cycles
    if work.sums is not None:
        elements = 0 if m.takes_elements else NEXT_ELEMENTS
        each = max(1.0, work.lanes * work.sums.size / m.vector_bytes)
        picked = PICKED * any(t.way == "strided" for t in work.loads)
        spilled = max(0.0, (work.sums.beside + 1) * each + elements + picked - m.registers)
        cycles += spilled / work.sums.points * work.sums.terms * (p.load_cycles + p.store_cycles)
    return cycles


def _load(t: Transfer, lanes: int, m: Machine) -> float:
    p = m.parameters
    vectors = max(1.0, lanes * t.bytes / m.vector_bytes)
    match t.way:
        case "aligned":
            return t.times * vectors * p.load_cycles
        case "unaligned" | "reversed":
            return t.times * vectors * p.unaligned_load_cycles
        case "clamped":
            return t.times * (vectors * p.unaligned_load_cycles + CLAMPED_LOAD * p.scalar_cycles)
        case "turned":
            return t.times * (2 * vectors * p.unaligned_load_cycles + TURNED_LOAD * p.scalar_cycles)
        case "shared":
            # lines are crossed by as many as there are bytes
            crossing = (p.unaligned_load_cycles - p.load_cycles) / t.stride
            return t.times * vectors * (p.load_cycles + crossing)
        case "strided":
            return _strided(t, lanes, m).loads
        case "table" if _pieces(t, m):
            return t.times * vectors * _pieces(t, m) * max(1.0, m.table_entries / m.vector_bytes) * p.load_cycles
        case "table":  # by way of memory, where loads and stores take turns
            return t.times * lanes * max(2 * p.load_cycles, p.store_cycles)
        case "near" if near := _near(t, lanes, m):
            return 2 * near * p.unaligned_load_cycles
        case "gathered" | "near":
            return t.times * lanes * _gathered(t.bytes, m)
        case "alone":  # no instruction takes places of 64 bits for as many lanes
            return t.times * lanes * max(p.gather_cycles_per_lane, p.lane_cycles)
        case "transposed":  # parts of registers, each from a row, are put together and interleaved
            parts = max(1.0, m.vector_bytes / (t.bytes * t.stride))
            return t.times * (lanes / t.stride * p.load_cycles + vectors * (parts - 1) * p.shuffle_cycles)
        case "pairs":
            return t.times * (lanes / 2 * p.gather_cycles_per_lane + vectors * p.shuffle_cycles)
        case "pixels":
            return t.times * lanes * (p.load_cycles + p.shuffle_cycles) / t.stride
    return 0.0


def _near(t: Transfer, lanes: int, m: Machine) -> float:
    """Pairs of registers from which a step picks elements at places near each other; 0 where it loads them one by one:
    beside registers of the narrowest places, and short elements of the longest."""
    of = m.core.instructions
    short = t.bytes < of.permuted_bytes or t.bytes < BYTES["i32"]
    if t.way != "near" or m.vector_bytes <= of.narrowest_bytes or (short and m.table_entries >= TABLE_ENTRIES):
        return 0.0
    return t.times * max(1.0, lanes * max(t.bytes, BYTES["i32"]) / m.vector_bytes)


class _Picks(NamedTuple):
    """Cycles of elements that are a stride apart: of the loads, and of the permutations that pick them out of these."""

    loads: float
    permutations: float


def _strided(t: Transfer, lanes: int, m: Machine) -> _Picks:
    """Elements a stride apart, picked of whole vectors two by two, or each lane alone. Of an odd stride each vector is
    as long as what is picked, so that they differ."""
    vectors = max(1.0, lanes * t.bytes / m.vector_bytes)
    loaded = t.stride * vectors if t.stride % 2 else max(1.0, lanes * t.bytes * t.stride / m.vector_bytes)
    each = min(loaded, lanes)
    picked = _Picks(t.times * each * m.parameters.load_cycles, t.times * max(each - 1, vectors) * _picked(t, m))
    return min(picked, _shifted(t, lanes, loaded, m), key=sum)


def _shifted(t: Transfer, lanes: int, loaded: float, m: Machine) -> _Picks:
    """Short elements of which all of each stride are read, as parts of longer ones that an instruction permutes: those
    of a stride are loaded once, the longer ones picked once, and each part is shifted into its place. Infinite of
    others."""
    p, longer = m.parameters, min(m.core.instructions.permuted_bytes, t.bytes * t.stride)
    if t.bytes >= longer or not t.whole or t.stride & (t.stride - 1):
        return _Picks(inf, inf)
    registers, levels = max(1.0, lanes * longer / m.vector_bytes), log2(t.bytes * t.stride / longer)
    one = m.vector_bytes <= m.core.instructions.narrowest_bytes or m.table_entries >= TABLE_ENTRIES
    joined = levels * t.times * t.bytes / longer * registers * p.shuffle_cycles * (1 if one else 2)
    loads = max(1.0, t.times / t.stride) * loaded * p.load_cycles
    return _Picks(loads, joined + t.times * registers * p.i32.add)


def _picked(t: Transfer, m: Machine) -> float:
    """Cycles of a vector picked from two: of elements that an instruction takes from any lane, or where vectors of as
    many places differ from one another, as those of an odd stride do, it is one. Of shorter ones both are permuted part
    by part, joined, and parts are put in order."""
    p, of = m.parameters, m.core.instructions
    if t.bytes >= of.permuted_bytes or t.stride % 2 or m.table_entries >= TABLE_ENTRIES:
        return p.shuffle_cycles
    parts = p.shuffle_cycles if m.vector_bytes > of.narrowest_bytes else 0.0
    return 2 * p.shuffle_cycles + p.i8.add + parts


def _store(t: Transfer, lanes: int, m: Machine) -> float:
    p = m.parameters
    vectors = max(1.0, lanes * t.bytes / m.vector_bytes)
    match t.way:
        case "strided":
            return t.times * vectors * (p.store_cycles + t.stride * p.shuffle_cycles)
        case "gathered":
            return t.times * lanes * _gathered(t.bytes, m)
    return t.times * vectors * p.store_cycles


def _gathered(size: int, m: Machine) -> float:
    """Cycles of an element at a place of its own. No instruction gathers short ones: the place is taken out of one
    vector, and the element is put into another."""
    p, shortest = m.parameters, m.core.instructions.gathered_bytes
    return p.gather_cycles_per_lane if size >= shortest else max(p.gather_cycles_per_lane, p.lane_cycles)
