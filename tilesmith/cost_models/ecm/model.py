"""An execution-cache-memory model: the time of a schedule, from what its stages compute and what they move.

A stage takes, of one thread,

    in-core     = arithmetic beside loads and stores of the first level + starting rows, with their indices, and loops
    L2, L3, ... = bytes that layer conditions let through a level, over the level's bandwidth, and what lines wait
                  that no prefetcher has asked for
    memory      = the same beyond the last level, over what memory gives a thread

and these overlap, but for caches and what stores bring from memory: the longer of two counts whole, of the other what
prefetching does not hide. Threads divide the work by iterations of the parallel loop, rounded up; what they share
(bandwidth) does not grow with them beyond its limit. A group adds forks and tiles.

After the ECM model of Treibig and Hager (PPAM 2009) and Stengel et al. (ICS 2015), and their layer conditions; overlap
as on cores whose prefetchers run ahead.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isinf
from typing import NamedTuple

from numpy import ndarray

from tilesmith.cost_models.amounts import Amount, ceiling, chosen, largest, smallest, summed
from tilesmith.cost_models.counts import GroupCounts
from tilesmith.cost_models.ecm.columns import begun, lost_between_steps, translation
from tilesmith.cost_models.ecm.doubts import doubts
from tilesmith.cost_models.ecm.machine import Machine, machine_of
from tilesmith.cost_models.ecm.occupancy import OccupiedCache, fits, occupied_caches, passing, through
from tilesmith.cost_models.ecm.steps import Step, both, pass_cycles, pass_instructions, step, waiting
from tilesmith.cost_models.interface import IN_CORE, MICROSECONDS, Breakdown, StageCost, Term
from tilesmith.cost_models.work import GroupWork, Pass, Work
from tilesmith.platforms import Platform

KEPT = 4096
"""Ways to compute a point whose cycles are kept."""


@dataclass(frozen=True, slots=True)
class Ecm:
    """The model; see the module. `known` are cycles that were found before, by the identity of what they follow from,
    and `alike` by its value."""

    name: str = "ecm"
    unit: str = MICROSECONDS
    known: dict[Hashable, tuple[Work, Step]] = field(default_factory=dict, init=False, repr=False, compare=False)
    alike: dict[Hashable, tuple[Machine, Step]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def price(self, counts: GroupCounts, platform: Platform) -> Breakdown:
        """The time of a group, per stage: terms `in core`, one a level of memory for what does not hide, and, with the
        group's output, `start`. `counts` must have been made with work."""
        machine = machine_of(platform)
        found, start = self._priced(counts, machine, platform.threads)
        names = (IN_CORE, *machine.names, "memory")
        run = (s.stage for s in counts.stages if s.work is not None)
        terms = {stage: tuple(map(Term, names, amounts)) for stage, amounts in zip(run, found, strict=True)}
        stages = tuple(
            StageCost(
                s.stage,
                counts.output,
                terms.get(s.stage, ()),
                () if s.work is None else doubts(s.stage, s.work, machine),
            )
            for s in counts.stages
        )
        last = stages[-1]
        ended = replace(last, terms=(*last.terms, Term("start", start)))
        return Breakdown(self.name, self.unit, (*stages[:-1], ended))

    def total(self, counts: GroupCounts, platform: Platform) -> Amount:
        """The time of a group, all of it together."""
        found, start = self._priced(counts, machine_of(platform), platform.threads)
        return summed([summed(terms) for terms in found]) + start

    def traffic(self, counts: GroupCounts, platform: Platform) -> dict[str, tuple[Amount, ...]]:
        """Bytes that each stage that is run loads and stores through the first cache, the second, ...; the last are
        those of memory. `counts` must have been made with work."""
        assert counts.work is not None
        machine = machine_of(platform)
        works = {s.stage: s.work for s in counts.stages if s.work is not None}
        caches = occupied_caches(list(works.values()), counts.work, machine)
        return {stage: through(w, passing(w, caches, machine)) for stage, w in works.items()}

    def _priced(self, counts: GroupCounts, m: Machine, threads: int) -> tuple[list[tuple[Amount, ...]], Amount]:
        """The terms of every stage, and the start of the group."""
        assert counts.work is not None
        works = [s.work for s in counts.stages if s.work is not None]
        share = _share(counts.work, threads)
        found = _terms(works, [self._step(w, m) for w in works], counts.work, m, share)
        return found, _start(counts.work, m, share, threads)

    def _step(self, work: Work, m: Machine) -> Step:
        """By identity first, since hashing all the parts costs more."""
        parts = (work.operations, work.loads, work.stores, work.before, work.reused, work.edges)
        others = (work.held, work.needs, work.asked, work.sums, work.chain, work.addresses)
        key = (id(m), work.lanes, *map(id, parts), *others)
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= KEPT:
                self.known.clear()
            found = self.known[key] = (work, self._alike(work, m, (id(m), work.lanes, *parts, *others)))
        return found[1]

    def _alike(self, work: Work, m: Machine, key: Hashable) -> Step:
        found = self.alike.get(key)
        if found is None:
            if len(self.alike) >= KEPT:
                self.alike.clear()
            found = self.alike[key] = (m, step(work, m))
        return found[1]


def _share(work: GroupWork, threads: int) -> Amount:
    """The part of the group's time that the thread with the most to do takes: one iteration of each round, of a last
    round of one iteration the shorter one."""
    if not isinstance(work.parallel, ndarray) and isinf(work.parallel):
        return 1.0 / threads
    whole, rounds = ceiling(work.parallel), ceiling(work.parallel / threads)
    alone = whole - (rounds - 1.0) * threads == 1
    return (rounds - chosen(alone, whole - work.parallel, 0.0)) / work.parallel


def _terms(
    works: list[Work], steps: list[Step], group: GroupWork, m: Machine, share: Amount
) -> list[tuple[Amount, ...]]:
    """The time of every stage in the core, and what each level adds to it."""
    times = [_times(w, works) for w in works]
    own_times = _in_core(works, steps, times, group.chain, m)
    lines = _lines(works, steps, times, group, m)
    lines = [
        of._replace(late_stores=of.late_stores * _awaited(w, own, m))
        for w, own, of in zip(works, own_times, lines, strict=True)
    ]
    core = [
        (amount + summed([_core_time(p, m) for p in w.passes if p.instead])) * share
        for amount, w in zip(own_times, works, strict=True)
    ]
    caches = occupied_caches(works, group, m)
    transfers = [_transfer_times(w, caches, m, share, of) for w, of in zip(works, lines, strict=True)]
    each = [(own, *moved) for own, moved, w in zip(core, transfers, works, strict=True) if w.in_output]
    together = [summed(amounts) for amounts in zip(*each, strict=True)]  # in one loop, all that it waits for hides
    p, asked = m.parameters, min(1.0, group.prefetch / m.in_flight_bytes)
    ahead = p.memory_hidden_share + asked * (p.memory_hidden_share_prefetched - p.memory_hidden_share)
    found = []
    for w, alone, moved, of in zip(works, core, transfers, lines, strict=True):
        own, *levels, memory, written, _ = together if w.in_output else (alone, *moved)
        inside = summed(levels)
        long = of.followed * p.prefetch_share
        scale = _Overlap(own, inside, memory, written).shown(p.cache_hidden_share * long, ahead * long)
        *levels, memory, _, waits = moved
        parts = (alone, *(time * scale for time in levels), memory * scale + waits)
        times_of_passes = [_pass_times(p, caches, m, share, of) for p in w.passes if not p.instead]
        found.append(tuple(map(summed, zip(parts, *times_of_passes, strict=True))) if times_of_passes else parts)
    return found


def _pass_times(p: Pass, caches: list[OccupiedCache], m: Machine, share: Amount, lines: _Lines) -> tuple[Amount, ...]:
    """The time of an update that passes over its stage, in the core, and what each level adds to it: what it loads it
    stores in the same place, so that a line goes for each that comes. Its rows are those of the values."""
    if p.across:  # blocks of rows, each of which is walked from end to end
        lines = _Lines(1.0, 0.0, 0.0, 0.0, 0.0)
    core = _core_time(p, m) * share
    stays = [fits(p.working, cache.size) for cache in caches]
    beyond = [p.bytes * (1.0 - stay) for stay in stays]
    levels = [
        largest(served * largest(load + lines.late_loads * max(late - load, 0.0), store) * share, 2 * served * together)
        for (load, store, together, late), served in zip(m.outer, (a - b for a, b in pairwise(beyond)), strict=True)
    ]
    one, all_threads, late = m.memory
    waiting = lines.late_loads * max(late - one, 0.0)
    stored = m.parameters.write_allocate_factor
    memory = largest(beyond[-1] * (stored * one + waiting) * share, stored * beyond[-1] * all_threads)
    of, long = m.parameters, lines.followed * m.parameters.prefetch_share
    scale = _Overlap(core, sum(levels, 0.0), memory).shown(of.cache_hidden_share * long, of.memory_hidden_share * long)
    return (core, *(time * scale for time in levels), memory * scale)


def _core_time(p: Pass, m: Machine) -> Amount:
    """The time of an update in the core, of one thread for all of it."""
    cycles = p.steps * _of_pass(p, m) + p.singles * _of_pass(p._replace(lanes=1), m)
    return cycles * m.cycle + p.rows * m.row


def _of_pass(p: Pass, m: Machine) -> float:
    """Cycles of a step of an update, which overlaps with the next ones as far as a core looks ahead."""
    return _in_window(pass_cycles(p, m), p.latency, pass_instructions(p, m), m)


class _Lines(NamedTuple):
    """Shares of a stage's lines: that prefetchers can follow, that are loaded and stored late since none has asked for
    them, that the program asks for ahead beyond the end of a row, and of these that are gone before the tile that they
    are of comes."""

    followed: Amount
    late_loads: Amount
    late_stores: Amount
    wasted: Amount
    lost: Amount


def _lines(works: list[Work], steps: list[Step], times: list[float], group: GroupWork, m: Machine) -> list[_Lines]:
    """Lines of every stage. What comes beyond the end of a row is of use where the next tile goes on with it, and what
    is touched before that stays in the cache that prefetchers fill; or in the last level, which is nearer than memory.
    Not so where loops of other stages run before it. Of stages that share the loop of the output its rows are followed.
    Stores leave a core in order and wait for each other, and prefetchers stop where a page ends."""
    p, rows, page = m.core.prefetch, float(m.core.prefetch.rows), m.core.pages.page_bytes
    across = [[begun(c, w, m) for c in w.columns] for w in works]
    streams = [_rows_walked(w, parts) * t for w, parts, t in zip(works, across, times, strict=True)]
    shared = sum(n for n, w in zip(streams, works, strict=True) if w.in_output)
    several = len(m.inside) > 1
    next_tiles = {w.next: group.working[w.next] for w in works if w.next is not None} if several else {}
    gone = {level: largest(1.0 - fits(working, m.inside[1]), 1e-9) for level, working in next_tiles.items()}
    found: list[_Lines] = []
    walked = sum(w.walked * t for w, t in zip(works, times, strict=True) if w.in_output)
    output, looped = works[-1], {w.level for w in works if not w.in_output}
    backwards = zip(reversed(works), reversed(steps), reversed(streams), reversed(across), strict=True)
    for w, of, own, parts in backwards:
        loads = w.run_bytes / largest(gone[w.next], _apart(w, output, looped)) if w.next in gone else w.run_bytes
        late_stores = 1.0 / (1.0 + w.run_bytes / page)
        if w.in_output and found:
            followed = found[0].followed
        else:
            many = shared if w.in_output else own
            followed = (1.0 - 1.0 / (1.0 + loads / p.half_followed_bytes)) * smallest(1.0, rows / largest(many, 1.0))
        wasted = lost = smallest(1.0, group.prefetch / loads)
        if group.prefetch and w.next in next_tiles:
            lost = wasted * (1.0 - fits(next_tiles[w.next], m.inside[-1]))
        late_loads: Amount = 1.0 / (1.0 + loads / p.half_late_bytes)
        for column, part in zip(w.columns, parts, strict=True):  # of rows too many to be followed all others are late
            late_loads = largest(late_loads, (1.0 - rows / largest(column.rows, rows)) * part)
        if w.walked and (together := walked if w.in_output else w.walked) > rows:
            late_loads = largest(late_loads, _unfollowed(w, of, together, group, m))
            late_stores = 1.0
        found.append(_Lines(followed, late_loads, late_stores, wasted, lost))
    return found[::-1]


def _apart(w: Work, output: Work, looped: set[int]) -> Amount:
    """The share of a stage's rows that loops of other stages run before: of those whose loops are around the row of the
    output the first each time. The levels that are `looped` are those of stages with loops of their own."""
    if w.level != output.level or w.level not in looped:
        return 0.0
    return smallest(1.0, output.rows / largest(w.rows, 1.0))


def _rows_walked(w: Work, across: list[Amount]) -> Amount:
    """Rows of memory that a stage walks side by side, `across` of its columns that are begun."""
    rows = (c.rows * part for c, part in zip(w.columns, across, strict=True))
    return summed([w.streams, *rows]) if across else w.streams


def _awaited(w: Work, core: Amount, m: Machine) -> Amount:
    """The part of the time that a line which is stored late takes to get there for which the next one waits: none of it
    where the next is computed for as long, as points of long reductions are."""
    lines = (w.stored[0] + w.streamed_bytes) / m.caches[0].line_bytes
    return largest(0.0, 1.0 - core / largest(lines * m.latency, 1e-30))


def _unfollowed(w: Work, of: Step, rows: float, group: GroupWork, m: Machine) -> Amount:
    """The share of the lines of a stage that are late since its loop walks along more `rows` at once than prefetchers
    follow, of which each is forgotten before its turn comes: all of them, unless the program asks for them and they
    stay in the second level meanwhile. Of long steps a core sees few lines ahead: those count for more that wait with
    fewer others than could be under way."""
    p = m.parameters
    late: Amount = 1.0
    if group.prefetch and len(m.inside) > 1:
        late = late * (1.0 - fits(rows * group.prefetch, m.inside[1]))
    lines = w.loaded[0] / largest(w.steps * m.caches[0].line_bytes, 1.0)
    seen = largest(1.0, lines * (1.0 + p.window_instructions / max(of.instructions, 1.0)))
    return late * (p.memory_parallelism / smallest(seen, p.memory_parallelism))


class _Overlap(NamedTuple):
    """Times that overlap: in the core, for lines of caches and of memory; of the last so much for what is `written`."""

    core: Amount
    caches: Amount
    memory: Amount
    written: Amount = 0.0

    def shown(self, of_caches: Amount, of_memory: Amount) -> Amount:
        """The share of the time for lines that adds to that in the core, where these shares of caches and memory can
        hide. A core waits for what its stores bring with the same buffers as for lines of caches, so that none of that
        hides behind these; of what loads bring the share of memory does. Of the shorter time, theirs together or the
        core's, both shares on the average are hidden."""
        moved = largest(self.caches + self.memory, 1e-30)
        hidden_in_caches = of_memory * (1.0 - self.written / largest(self.memory, 1e-30))
        lines = _beside(self.caches, self.memory, hidden_in_caches)
        hidden = (of_caches * self.caches + of_memory * self.memory) / moved
        return (_beside(self.core, lines, hidden) - self.core) / moved


def _beside(a: Amount, b: Amount, hidden: Amount) -> Amount:
    """The time of two things at once, of which this share of the shorter one hides behind the longer one."""
    return largest(a, b) + (1.0 - hidden) * smallest(a, b)


def _transfer_times(w: Work, caches: list[OccupiedCache], m: Machine, share: Amount, lines: _Lines) -> list[Amount]:
    """Times of what each level beyond the first, and memory, gives a stage and takes of it, and the part of memory's
    for what stores write there by way of the caches; and of the lines from memory that data says the place of: no
    prefetcher asks for them, and no core has so much else to do meanwhile."""
    if _is_idle(w):
        return [0.0] * (len(m.outer) + 3)
    loads, stores, places = passing(w, caches, m)
    found = []
    for n, (load, store, together, late) in enumerate(m.outer):
        served, taken = largest(loads[n] - loads[n + 1], 0.0), largest(stores[n] - stores[n + 1], 0.0)
        rate = load + lines.late_loads * (late - load) if late > load else load
        alone = served * rate + taken * (store + lines.late_stores * late)
        if w.looked_up:
            alone = alone + largest(places[n] - places[n + 1], 0.0) * max(late, load)
        found.append(largest(alone * share, (served + taken) * together))
    p, (one, all_threads, late) = m.parameters, m.memory
    read, written = loads[-1], stores[-1]
    beyond = read * (1.0 + lines.lost) + written * p.write_allocate_factor
    waiting = read * (1.0 - lines.wasted + lines.lost) * lines.late_loads * max(late - one, 0.0)
    waiting = waiting + written * lines.late_stores * late
    if w.streamed_bytes:
        beyond = beyond + w.streamed_bytes * p.streaming_store_factor
        waiting = waiting + w.streamed_bytes * lines.late_stores * late * caches[-1].goes + w.torn * 2 * m.latency
    waits: Amount = 0.0
    if w.looked_up:
        waits = largest(places[-1] * (max(late, one) * share), places[-1] * all_threads)
    memory = largest((beyond * one + waiting) * share, beyond * all_threads)
    if w.together is not None and m.outer:  # each line comes and goes again, one store after the other
        load, store, *_ = m.outer[0]
        each = m.caches[1].latency_cycles * m.cycle + m.caches[0].line_bytes * (load + store)
        waits = waits + w.steps * (lost_between_steps(w.together, w.lanes, m.caches[0]) * each * share)
    if w.awaited_bytes:
        waits = waits + w.awaited_bytes * late * share
    if w.columns:  # pages are found while lines are on their way
        waits = waits + largest(translation(w.columns, m) * share - sum(found, memory), 0.0)
    return [*found, memory, memory * (written * p.write_allocate_factor / largest(beyond, 1e-30)), waits]


def _is_idle(w: Work) -> bool:
    """True of a stage that moves nothing beyond registers, as most in the middle of fused rows."""
    nothing = type(w.loaded[0]) is float and w.loaded[0] == 0.0 and type(w.stored[0]) is float and w.stored[0] == 0.0
    return nothing and not (w.looked_up or w.streamed_bytes or w.awaited_bytes or w.columns or w.together is not None)


def _in_core(works: list[Work], steps: list[Step], times: list[float], chain: float, m: Machine) -> list[Amount]:
    """Time of one thread for all of each stage, were all data in the first level. Arithmetic of one stage runs beside
    loads and stores of another in the same loop: of these the same limits all, or how long the `chain` through all of
    them takes."""
    held = sum(s.held * t for s, t in zip(steps, times, strict=True))
    spilled = max(0.0, held + max(w.needs for w in works) - m.registers)
    one_loop = [w.in_output and not _is_apart(s, n, m) for w, s, n in zip(works, steps, times, strict=True)]
    ends = _ends(works) if sum(w.in_output for w in works) > 1 else None
    beside = [s for s, here in zip(steps, one_loop, strict=True) if here]
    rates = [_rate(w, works[-1]) for w, here in zip(works, one_loop, strict=True) if here]
    computes = sum((s.arithmetic - s.transfers) * n for s, n in zip(beside, rates, strict=True)) >= 0.0
    waits = _waits_of_loop(works, steps, times, chain, m)
    found: list[Amount] = []
    for w, of, here in zip(works, steps, one_loop, strict=True):
        if here and len(beside) > 1 and w.lanes > 1:
            cycles = (of.arithmetic if computes else of.transfers) * waits
        else:
            cycles = _in_window(both(of.arithmetic, of.transfers), w.chain.whole, of.instructions, m)
        cycles += spilled / held * of.spills if of.held else 0.0
        # the loop is begun by the output
        row: Amount = of.row - m.row if w.in_output and w is not works[-1] else of.row
        if w.in_output and ends is not None:
            row = row + ends * of.near * m.cycle
        found.append(w.steps * (cycles * m.cycle) + w.singles * (of.single * m.cycle) + w.rows * row)
    return found


def _is_apart(step: Step, times: float, m: Machine) -> bool:
    """True if a stage that shares a loop is computed in loops of its own inside of it, of more instructions than a core
    looks ahead: none of another stage runs beside these."""
    return times > 1.0 and times * step.instructions > m.parameters.window_instructions


def waits(counts: GroupCounts, platform: Platform) -> bool:
    """True if steps of the loop over vectors of a group's output wait for their own operations for longer than these,
    and their loads and stores, take, but for reloads: of those wider vectors have no more, and literals are loaded once
    for all. `counts` must have been made with work, of one candidate."""
    assert counts.work is not None
    m = machine_of(platform)
    works = [s.work._replace(reused=()) for s in counts.stages if s.work is not None]
    steps, times = [step(w, m) for w in works], [_times(w, works) for w in works]
    *limits, instructions = _loop(works, steps, times, m)
    return waiting(counts.work.chain or works[-1].chain.whole, instructions, m) > max(limits)


def _waits_of_loop(works: list[Work], steps: list[Step], times: list[float], chain: float, m: Machine) -> float:
    """Factor by which the steps of the stages that share a loop are longer than their longer limit, for waiting for one
    another and for the other limit."""
    arithmetic, transfers, instructions = _loop(works, steps, times, m)
    longer = max(arithmetic, transfers)
    return _in_window(both(arithmetic, transfers), chain, instructions, m) / longer if longer else 1.0


def _loop(works: list[Work], steps: list[Step], times: list[float], m: Machine) -> tuple[float, float, float]:
    """Cycles of a step of all stages that share the loop of the output, where none waits, of its arithmetic and of its
    loads and stores, and its instructions."""
    arithmetic = transfers = instructions = 0.0
    for w, s, n in zip(works, steps, times, strict=True):
        if w.in_output and w.lanes > 1 and not _is_apart(s, n, m):
            arithmetic += s.arithmetic * n
            transfers += s.transfers * n
            instructions += s.instructions * n
    return arithmetic, transfers, instructions


def _in_window(cycles: float, chain: float, instructions: float, m: Machine) -> float:
    """Cycles of a step of so many `instructions`, which take `cycles` where none waits for another, and of which those
    that do take `chain` cycles one after the other."""
    return both(cycles, waiting(chain, instructions, m))


def _ends(works: list[Work]) -> Amount:
    """Steps of a row with stages in registers in which vectors may leave it: the first, the last, and those in which
    windows fill; or those of its edges, where these are wider."""
    steps = [w.steps / largest(w.rows, 1.0) for w in works if w.in_output]
    most = steps[0]
    for n in steps[1:]:
        most = largest(most, n)
    wide = [w.edges.steps for w in works if w.in_output and w.edges is not None and not w.edges.share]
    return largest(2.0 + most - steps[-1], smallest(max(wide, default=0.0), most))


def _times(work: Work, works: list[Work]) -> float:
    """Number of times that a stage is computed in one step of the loop that it shares with the output."""
    if not work.in_output or work is works[-1]:
        return 1.0
    return max(1.0, _rate(work, works[-1]))


def _rate(work: Work, output: Work) -> float:
    """Steps of a stage for one of the output."""
    rate = work.steps / largest(output.steps, 1.0)
    return float(rate.min() if isinstance(rate, ndarray) else rate)


def _start(work: GroupWork, m: Machine, share: Amount, threads: int) -> Amount:
    """Time to begin a group and its tiles."""
    forked = chosen(work.parallel > 1, m.parameters.fork_join_ns, 0.0) if threads > 1 else 0.0
    return forked * 1e-3 + work.tiles * share * m.parameters.tile_start_ns * 1e-3
