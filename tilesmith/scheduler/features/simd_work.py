"""SIMD work of a group, counted for models of time: vectors, rows, and what moves between registers (`transfers`) and
through the caches (`layers`). Beside the counts of `features.group_counts`, for all candidate tiles at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf, prod
from typing import NamedTuple, TypeAlias

from tilesmith.cost_models.amounts import Amount, ceiling, chosen, largest
from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.work import Before, Chain, Column, GroupWork, Pass, Transfer, Way, Work
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.dependence import default_order, steady_parts, written_box
from tilesmith.scheduler.analysis.periodic_indices import repeats_of
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.row_scans import paired_scans
from tilesmith.scheduler.analysis.update_sweeps import sweep
from tilesmith.scheduler.features import l1_transfers
from tilesmith.scheduler.features.cache_traffic import POINT, WHOLE, Traffic, state
from tilesmith.scheduler.features.column_walks import columns, side_by_side, slower
from tilesmith.scheduler.features.dependence_chains import carried_by, chain, chain_of
from tilesmith.scheduler.features.execution_mode import Run, Running
from tilesmith.scheduler.features.flat_rows import flat_update, has_flat_rows
from tilesmith.scheduler.features.fusion_group import Effective, Members
from tilesmith.scheduler.features.group_counts import Counter, Levels, in_registers
from tilesmith.scheduler.features.layer_conditions import Layers, bytes_apart
from tilesmith.scheduler.features.loop_nest import Nest
from tilesmith.scheduler.features.neighbour_sums import summed_producers
from tilesmith.scheduler.features.operation_counts import Typed, joining_operations, together, update_operations
from tilesmith.scheduler.features.pipeline_features import Facts, Read, StageFacts, composed
from tilesmith.scheduler.features.reduction_loops import has_long_reduction
from tilesmith.scheduler.features.register_needs import register_need
from tilesmith.scheduler.features.streaming_stores import HELD, is_behind
from tilesmith.scheduler.features.transposed_reads import looped_dims
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector


class _Code(NamedTuple):
    operations: Typed
    loads: tuple[Transfer, ...]
    stores: tuple[Transfer, ...]
    before: Before | None = None


Footprints: TypeAlias = dict[tuple[Nest, int, int], tuple[Mapping[str, Effective], Mapping[str, Levels], Traffic]]
"""Footprints of one group by its nest, its reads and its levels; these by identity."""


def worked_counts(
    members: Members,
    reads: Mapping[str, Effective],
    nest: Nest,
    levels: Mapping[str, Levels],
    threads: int,
    running: Running,
    whole: bool = True,
    known: Footprints | None = None,
) -> GroupCounts:
    """The counts of a group (see `features.group_counts.group_counts`) with its work, as models of time need it.
    `running` has the output and all stages of `levels`. If not as a `whole`, loads and the stages that are inline are
    counted as part of the work only. The footprints that are `known` of the group are added to."""
    traffic = _traffic(members, reads, nest, levels, {} if known is None else known)
    counts = traffic.counter.group(threads, local_loads=False, whole=whole)
    worker = WorkCounter(traffic, running)
    stages = tuple(s if s.inlined else worker.stage(s) for s in counts.stages)
    return counts._replace(stages=stages, work=worker.group(stages))


def _traffic(
    members: Members, reads: Mapping[str, Effective], nest: Nest, levels: Mapping[str, Levels], known: Footprints
) -> Traffic:
    """The footprints of a group, for whatever else of its running differs."""
    key = (nest, id(reads), id(levels))
    found = known.get(key)
    if found is None:
        traffic = Traffic(Counter(members, reads, nest, levels), in_registers(levels))
        found = known[key] = reads, levels, traffic
    return found[2]


@once
def circulating_bytes(members: Members) -> float:
    """Bytes of all inputs and outputs of the pipeline, and of what else the group reads from outside and writes."""
    facts, (whole, ends) = members.facts, _ends(members.facts)
    inside = ends.intersection(members.names) - {members.output}
    read = {r.producer for name in members.names for r in facts.stages[name].reads}
    more = {n for n in read if n not in members.follows} | {members.output}
    return float(whole - _bytes(facts, inside) + _bytes(facts, more - ends))


@once
def _ends(facts: Facts) -> tuple[int, frozenset[str]]:
    """The bytes and the names of all inputs and outputs of the pipeline."""
    names = frozenset(n for n, s in facts.stages.items() if s.is_input or n in facts.graph.outputs)
    return _bytes(facts, names), names


def _bytes(facts: Facts, names: Iterable[str]) -> int:
    return sum(facts.stages[n].root_points * facts.stages[n].bytes_per_point for n in names)


@once
def _chains(facts: Facts) -> dict[object, Chain]:
    return {}


@once
def _register_needs(facts: Facts) -> dict[object, float]:
    return {}


@once
def _codes(facts: Facts) -> dict[object, _Code]:
    return {}


def share_past(members: Members, past: frozenset[str]) -> float:
    """The share of what the group reads from outside that other groups have written `past` the caches."""
    if not past:
        return 0.0
    stages = members.facts.stages
    names = {r.producer for name in members.names for r in stages[name].reads if not members.is_local(r.producer)}
    sizes = {n: stages[n].root_points * stages[n].bytes_per_point for n in names}
    return sum(size for n, size in sizes.items() if n in past) / max(1, sum(sizes.values()))


class WorkCounter:
    """Counts the work of one group. `row` is the level outside of the row of the output."""

    def __init__(self, traffic: Traffic, running: Running) -> None:
        self.counter, self.running, self.traffic = traffic.counter, running, traffic
        counter, self.registers = traffic.counter, traffic.registers
        row = running.stages[counter.members.output].row
        self.row = counter.nest.intra(row) + 1 if row is not None else 1
        fused = [n for n in running.stages if self._fused(n)]
        self.one_loop = frozenset((*fused, counter.members.output)) if fused else frozenset[str]()
        """The stages that are computed vector by vector in one loop, if there are several."""
        self.layers = Layers(traffic, self.row, self.one_loop)

    def group(self, stages: Sequence[StageCounts]) -> GroupWork:
        """The work of the whole group."""
        nest = self.counter.nest
        parallel: Amount = 1.0
        if self.running.parallel is not None:
            axis = nest.axes[nest.dim(self.running.parallel)]
            inter = nest.inter(axis.dim) == self.running.parallel
            parallel = axis.extent / axis.sizes if inter else axis.sizes * 1.0
        elif self.running.updates_parallel:
            parallel = inf
        tiles: Amount = 1.0
        for axis in nest.axes.values():
            tiles = tiles * axis.counts
        first = min(s.work.level for s in stages if s.work is not None)
        working = (*(0.0,) * first, *map(self.traffic.touched, range(first, len(nest.loops) + 1)))
        members = self.counter.members
        past = share_past(members, self.running.past)
        circulating, chained = circulating_bytes(members), self._chain_of_loop(stages)
        return GroupWork(parallel, tiles, circulating, self.running.prefetch, working, past, chained)

    def stage(self, counts: StageCounts) -> StageCounts:
        """The counts of a stage that is not inline, with its work."""
        counter, name = self.counter, counts.stage
        run = self.running.stages[name]
        made = tuple((counter.made.get(r.producer), r.producer in self.registers) for r in counter.reads[name].reads)
        streamed = self.running.stream and name == counter.members.output
        key = ("work", counter.keys[name], run, self.row, streamed, made, self.layers.parts.get(name))
        found: StageCounts | None = counter.known.get(key)
        if found is None:
            found = counts._replace(loads=(), work=self._work(name, run, counts.points, streamed))
            counter.known[key] = found
        if self.running.prefetch and found.work is not None:
            found = found._replace(work=self._asking(name, run, counts.points, found.work))
        if name in self.layers.again and found.work is not None:
            found = found._replace(work=found.work._replace(again=self.layers.again[name]))
        return found._replace(loads=counts.loads) if counts.loads else found

    def _work(self, name: str, run: Run, points: Amount, streamed: bool) -> Work:
        rows, steps, singles = self._rows(name, run, points)
        typed, loads, stores, before = self._code(name, run)
        if streamed and self.one_loop:  # a vector of memory is put together of two
            loads = (*loads, *(t._replace(way="shuffled") for t in stores))
        is_output = name == self.counter.members.output
        level = min(self.row, self.counter.nest.first_inter) if is_output else self._level(name)
        working, loaded, stored = self.layers.states(name, run, level, points, rows)
        looked_up, table = self.layers.places(name, points, level)
        if streamed:
            stored = (0.0,) * len(stored)
        facts, reads = self.counter.members.facts.stages[name], self.counter.reads[name]
        passes = self._passes(name, run) if facts.passes else ()
        across: tuple[Column, ...] = ()
        if not facts.updates:
            across = columns(self.counter.members, reads, run, points, rows, lambda r: self.layers.block(name, r, run))
        elif any(p.gathered for p in passes):
            across = columns(self.counter.members, reads, run, points, rows, lambda r: 1)
        return Work(
            self._fused(name) or is_output,
            run.lanes,
            typed,
            loads,
            stores,
            rows,
            steps,
            singles,
            working,
            loaded,
            stored,
            self._run_bytes(name, run, points, rows),
            self._next(name, run),
            float(facts.root_points * facts.bytes_per_point) if streamed else 0.0,
            self._torn(facts, run, rows) if streamed else 0.0,
            self._awaited_bytes(facts, run) if streamed else 0.0,
            self._held(name, run, streamed),
            self._streams(name, run),
            level,
            looked_up,
            table,
            columns=across,
            chain=self._shared_chain(name),
            before=before,
            passes=passes,
            together=side_by_side(self.counter.members, reads, run) if is_output and not facts.updates else None,
            needs=self._needs(name),
            walked=self._walked(name, run),
        )

    def _asking(self, name: str, run: Run, points: Amount, work: Work) -> Work:
        """The work of a stage that asks ahead for what it reads."""
        run_bytes = self._run_bytes(name, run, points, work.rows, ahead=True)
        return work._replace(run_bytes=run_bytes, asked=self._asked(name, run))

    def _passes(self, name: str, run: Run) -> tuple[Pass, ...]:
        """The updates of a stage that each pass over it, tile by tile: what a tile has of the stage is touched before
        the next pass comes to it."""
        facts = self.counter.members.facts
        stage, definition = facts.stages[name], facts.definitions[name]
        own = self.traffic.output if name == self.counter.members.output else self.traffic.array(name, None)
        working, computed = own.one(self._level(name)), self._computed_again(name)
        found = []
        every = run.updates or tuple(UpdateLoops(default_order(definition, update)) for update in definition.updates)
        paired, swept = paired_scans(definition, every), sweep(definition, every)
        for n, (update, known, loops) in enumerate(zip(definition.updates, stage.updates, every, strict=True)):
            vector = loops.vector
            lanes = 1 if vector is None else vector.lanes
            across = known.scan is not None and vector is not None and vector.dim in known.scan.across
            latency = carried_by(definition, update, loops, known.trips, facts.core.latency_cycles)
            times, joined = known.iterations * computed, along_recurrence(definition, update, loops)
            rows, vectors, alone = (0.0, 1.0, 0.0) if vector is None else self._vectors_of_pass(name, vector, across)
            if joined is not None:  # rows begin and end with narrower vectors
                rows = 1.0 / known.trips(joined.loop)
                vectors += 2.0 * rows
            steps, singles, size = times * vectors, times * alone, stage.bytes_per_point
            apart = float(stage.apart[vector.dim] * size) if across and vector is not None else 0.0
            transposed = (2 - (n in paired) - (n - 1 in paired)) if across else 0
            touched = working
            if n == 0 and written_box(definition, update, loops.loops) is not None:
                # computed in the place of the values, which are what comes and goes: only what it wrote it finds
                touched = working / max((known.trips(r.name) for r in update.domain), default=inf)
            elif n - 1 in paired:  # a block of rows
                touched = apart * lanes
            elif swept is not None and n < swept.updates:
                touched = float(stage.apart[swept.dim] * size * swept.rows)
            gathered = 0.0 if vector is None or across else self._gathered(name, n, run._replace(row=vector.dim))
            steady = {
                e: float(prod(known.trips(loop) for loop in inside))
                for e, inside in steady_parts(definition, update, loops.loops).items()
            }
            typed = update_operations(update, facts.estimates.trips, steady=steady) if steady else known.typed
            of = (lanes, typed, known.reads, gathered, size, across, transposed, latency)
            begun = times * rows * self._begun(name, update, loops)
            each = Pass(*of, begun, steps, singles, times * size, touched, apart)
            if joined is not None:
                each = each._replace(joined=joining_operations(joined))
            found.append(self._with_others(name, n, each, run, vector))
        return tuple(found)

    def _with_others(self, name: str, n: int, own: Pass, run: Run, vector: Vector | None) -> Pass:
        """A pass with what it reads of others and computes of what is inline in it, where updates alone read these: of
        that of a point its share. A scan along rows has blocks of those of others transposed."""
        reading = self._reading(name)
        if n not in reading or -1 in reading:
            return own
        facts, reads = self.counter.members.facts, self.counter.reads[name]
        stage, definitions = facts.stages[name], facts.definitions
        along = run._replace(row=None if vector is None else vector.dim, lanes=own.lanes)
        share = stage.root_points / sum(stage.updates[u].iterations for u in reading)
        others = together((times, facts.stages[p].typed) for p, times in reads.executed.items())

        def block(read: Read) -> int:
            dims = zip(facts.stages[read.producer].dims, read.roughly, strict=True)
            moving = [d for d, s in dims if s.var == along.row]
            return own.lanes if own.across and moving and facts.stages[read.producer].storage[0] not in moving else 1

        members, registers = self.counter.members, self.registers
        moved = (t for r in reads.reads for t in l1_transfers.loads(members, r, along, registers, block(r)))
        inside = self._chain_inside(name)
        whole, after = chain_of(definitions[name].updates[n].values, facts.core.latency_cycles)
        return own._replace(
            operations=together([(1, own.operations), (share, others)]) if others else own.operations,
            loads=stage.updates[n].own,
            gathered=0.0,
            transfers=tuple(t._replace(times=t.times * share) for t in moved),
            latency=max(whole, inside + after),
        )

    def _reading(self, name: str) -> set[int]:
        """The updates of a stage that read others, the first of which is 0; -1 are its values."""
        found = accesses(self.counter.members.facts.definitions[name])
        return {a.definition - 1 for a in found if a.producer != name}

    def _chain_inside(self, name: str) -> float:
        """The longest chain of what is inline in a stage."""
        ends, stages = self._chains(name), self.counter.members.facts.stages
        return max((ends[r.producer].whole for r in stages[name].reads if r.producer in ends), default=0.0)

    def _begun(self, name: str, update: Update, loops: UpdateLoops) -> float:
        """Beginnings of the loop over the vectors of an update, for each of their rows: none where another loop is
        inside of it, one for all channels of a flat row."""
        if loops.vector is None or loops.loops[:1] == (loops.vector.dim,):
            return 0.0 if loops.vector is None else 1.0
        facts = self.counter.members.facts
        pixels = flat_update(facts, name, update)
        flat = pixels is not None and pixels.place == loops.vector.dim and loops.loops[:2] == (*pixels,)
        return 1.0 / facts.stages[name].extent(loops.loops[0]) if flat else 0.0

    def _vectors_of_pass(self, name: str, vector: Vector, across: bool) -> tuple[Amount, Amount, Amount]:
        """The rows and the vectors of an update for each of its iterations, and the part of these that run alone: of
        rows that vectors run `across` those beyond whole blocks, of a row along memory those of one shorter than a
        vector."""
        members, nest, lanes = self.counter.members, self.counter.nest, vector.lanes
        span = members.follows[name].get(vector.dim)
        if span is None:
            return 0.0, 1.0 / lanes, 0.0
        if span.var is None or not span.known:
            length: Amount = float(members.facts.stages[name].extent(vector.dim))
        else:
            axis = nest.axes[span.var]
            line, around = members.line(span), state(nest, axis.dim, self._level(name))
            length = (
                line.window() if around == POINT else line.extent(axis.extent if around == WHOLE else axis.sizes) * 1.0
            )
        whole = -ceiling(-length / lanes) if across else chosen(length < lanes, 0.0, ceiling(length / lanes))
        return 1.0 / length, whole / length, largest(0.0, 1.0 - whole * lanes / length)

    def _gathered(self, name: str, update: int, run: Run) -> float:
        """Elements that an iteration of an update, the first of which is 0, loads of others each lane at a place of its
        own. Those of a point are shared out among the updates that read others."""
        stage, reading = self.counter.members.facts.stages[name], self._reading(name)
        if update not in reading or -1 in reading:
            return 0.0
        times = sum(
            t.times
            for read in self.counter.reads[name].reads
            for t in l1_transfers.loads(self.counter.members, read, run, self.registers, 1)
            if t.way in ("gathered", "alone")
        )
        return times * stage.root_points / sum(stage.updates[n].iterations for n in reading)

    def _computed_again(self, name: str) -> Amount:
        """How often each point of a stage is computed."""
        points = self.counter.stage(name, False, False).points
        return points / float(self.counter.members.facts.stages[name].root_points)

    def _shared_chain(self, name: str) -> Chain:
        """The chain of a stage; of a long reduction the part of each of the points whose sums run side by side."""
        found, reads = self._chain(name), self.counter.reads[name]
        definitions = self.counter.members.facts.definitions
        inlined = {n: definitions[n] for n in reads.inlined}
        if reads.side_by_side == 1 or not has_long_reduction(definitions[name], inlined):
            return found
        return Chain(*(cycles / reads.side_by_side for cycles in found))

    def _chain(self, name: str) -> Chain:
        """Cycles of the chains of operations of a point of a stage, by way of what is inline in it."""
        facts, reads = self.counter.members.facts, self.counter.reads[name]
        if facts.stages[name].updates:
            return Chain(0.0, 0.0)
        known, key = _chains(facts), (reads, self.running.stages[name].row)
        found = known.get(key)
        if found is None:
            found = known[key] = self._chains(name)[name]
        return found

    def _chains(self, name: str) -> dict[str, Chain]:
        """The chains of the values of a stage, and of what is inline in it."""
        facts, reads = self.counter.members.facts, self.counter.reads[name]
        computed = [n for n in self.counter.members.names if n in reads.inlined or n == name]
        along = self._along(name, computed)
        ends: dict[str, Chain] = {}
        for stage in computed:
            before = [ends[r.producer] for r in facts.stages[stage].reads if r.producer in ends]
            whole, after = chain(facts.definitions[stage], facts.core.latency_cycles, frozenset(along[stage]))
            inside = [(b.whole + after, b.after + after) for b in before]
            ends[stage] = Chain(*(max(ways) for ways in zip((whole, after), *inside, strict=True)))
        return ends

    def _along(self, name: str, computed: Sequence[str]) -> dict[str, set[str]]:
        """The dims of a stage and of what is inline in it that change along its row; `computed` are these in order."""
        stages, row = self.counter.members.facts.stages, self.running.stages[name].row
        found: dict[str, set[str]] = {n: set() for n in computed}
        found[name] |= set() if row is None else {row}
        for stage in reversed(computed):
            for read in stages[stage].reads:
                if read.producer in found:
                    dims = zip(stages[read.producer].dims, read.spans, strict=True)
                    found[read.producer] |= {d for d, s in dims if not s.known or s.var in found[stage]}
        return found

    def _needs(self, name: str) -> float:
        """Registers that a point of a stage needs while it is evaluated, with what is inline in it."""
        facts, reads = self.counter.members.facts, self.counter.reads[name]
        known, most = _register_needs(facts), float(facts.core.registers.working)
        found = known.get(reads)
        if found is None:
            needs: dict[str, float] = {}
            for stage in (n for n in self.counter.members.names if n in reads.inlined or n == name):
                needs[stage] = register_need(facts.definitions[stage], needs, most)
            found = known[reads] = needs[name]
        return found

    def _chain_of_loop(self, stages: Sequence[StageCounts]) -> float:
        """Chain through all stages that are computed in one step."""
        ends: dict[str, float] = {}
        for s in stages:
            if s.work is not None and s.stage in self.one_loop:
                before = (ends.get(r.producer, 0.0) for r in self.counter.reads[s.stage].reads)
                ends[s.stage] = max(s.work.chain.whole, max(before, default=0.0) + s.work.chain.after)
        return max(ends.values(), default=0.0)

    def _torn(self, facts: StageFacts, run: Run, rows: Amount) -> Amount:
        """Rows of the output whose ends are ordinary stores into lines that vectors have been written to past the
        caches: they end inside of lines, and vectors are shorter, or ends are vectors that overlap others; or clamps
        have the ends computed apart, but where stages share the loop, whose vectors are those of the lines. Those of a
        tile do not, but of outputs of the pipeline, whose rows may begin anywhere, by short vectors."""
        size = facts.bytes_per_point
        line = self.counter.members.facts.line_bytes
        short = run.lanes * size < line
        if run.row is None:
            return 0.0
        whole, apart = facts.extent(facts.storage[0]) * size % line == 0, self._clamped(facts.name)
        if whole and (not apart or self.one_loop):
            return 0.0
        if not whole and short and facts.name in self.counter.members.facts.graph.outputs:
            return rows
        return rows / self.counter.nest.axes[run.row].counts if short or apart else 0.0

    def _awaited_bytes(self, output: StageFacts, run: Run) -> float:
        """Bytes of the output, all or none, which loads wait for: those of what lies a little behind what is written,
        but for whole pages, agree with it in the bits of an address that are compared first. A stage that is computed
        ahead of the output loads what is ahead; buffers of the group's own begin elsewhere."""
        members, found = self.counter.members, self.counter.reads
        if run.row is None:
            return 0.0
        for name in self.one_loop or (output.name,):
            own = members.follows[name]
            ahead = any(s.var == run.row and (s.hi or 0) > 0 for s in own.values())
            for read in () if ahead else found[name].reads:
                if members.is_local(read.producer) or read.producer in self.registers:
                    continue
                producer = members.facts.stages[read.producer]
                spans = composed(read.roughly, dict(own))
                alike = producer.bytes_per_point == output.bytes_per_point
                if alike and is_behind(output, producer, spans, run.row, found[output.name].apart, members.facts):
                    return float(output.root_points * output.bytes_per_point)
        return 0.0

    def _clamped(self, name: str) -> bool:
        """True if the ends of a stage's rows are computed apart: clamps keep inside what they read."""
        stages = (self.counter.members.facts.definitions[n] for n in (name, *self.counter.reads[name].inlined))
        return any(s.clamps and s.var == e.storage[0] for e in stages for a in accesses(e) for s in a.spans)

    def _code(self, name: str, run: Run) -> _Code:
        """Operations, loads and stores of a point."""
        members, reads = self.counter.members, self.counter.reads[name]
        known = _codes(members.facts)
        places = tuple((r.producer in self.registers, r.producer in members.follows) for r in reads.reads)
        alike = self._alike(name, run)
        blocks = tuple(self.layers.block(name, r, run) for r in reads.reads)
        flat = self._is_flat(name, run)
        key = (name, run, reads, places, self.layers.parts.get(name), alike, blocks, flat)
        found = known.get(key)
        if found is None:
            found = known[key] = self._find_code(name, run, alike, flat)
        return found

    def _is_flat(self, name: str, run: Run) -> bool:
        """True if vectors of a stage are of all elements of a row of pixels (see `analysis.flat_rows`): where they have
        all channels, in a loop of their own."""
        members = self.counter.members
        facts = members.facts.stages[name]
        if run.lanes == 1 or run.row is None or facts.storage[1:2] != (run.row,) or facts.row != run.row:
            return False
        if name in self.one_loop or facts.storage[0] not in looped_dims(self.counter, name, self.row):
            return False
        return has_flat_rows(members.facts, name, self.counter.reads[name].inlined)

    def _alike(self, name: str, run: Run) -> frozenset[str]:
        """The stages inline in a stage that are the same for a whole vector of it: none whose place data says."""
        inlined = self.counter.reads[name].inlined
        if run.lanes == 1 or run.row is None or not inlined:
            return frozenset()
        follows, stages = self.counter.members.follows, self.counter.members.facts.stages
        along = follows[name][run.row].var
        if run.row not in stages[name].pure:  # it moves with no loop of the group
            return frozenset()
        looked_up = {r.producer for n in (name, *inlined) for r in stages[n].reads if r.looked_up}
        still = (p for p in inlined if all(s.known and s.var != along for s in follows[p].values()))
        return frozenset(still) - looked_up

    def _repeated(self, name: str, run: Run) -> frozenset[str]:
        """The stages inline in a stage that are the same in every vector of it, and are worked out before its loops:
        those of remainders of its places."""
        stages, definitions = self.counter.members.facts.stages, self.counter.members.facts.definitions
        inlined, found = self.counter.reads[name].inlined, set[str]()
        for p in inlined if run.lanes > 1 else ():
            repeats = repeats_of(definitions[p])
            if repeats is not None and run.lanes % repeats[1] == 0:
                reads = (r for n in (name, *inlined) for r in stages[n].reads if r.producer == p)
                found |= {p} if all(run.lanes % o.period == 0 for r in reads for o in r.orders) else set()
        return frozenset(found)

    def _find_code(self, name: str, run: Run, alike: frozenset[str], flat: bool) -> _Code:
        members, reads = self.counter.members, self.counter.reads[name]
        stages = members.facts.stages
        facts = stages[name]
        # what is the same for a vector is a scalar for each term of a loop, and else computed before the row
        long = has_long_reduction(members.facts.definitions[name], {})
        vectors = 1 if long else run.lanes
        repeated = self._repeated(name, run)
        executed = [
            (n / vectors if p in alike else n, stages[p].typed) for p, n in reads.executed.items() if p not in repeated
        ]
        typed = together([(1, facts.typed), *executed]) if executed else facts.typed
        grouped = summed_producers(members.facts, name, reads.inlined)
        loads = tuple(
            t if part == 1.0 else t._replace(times=t.times * part)
            for read, part in self.layers.of_reads(name)
            for t in l1_transfers.loads(
                members,
                read,
                run,
                self.registers,
                self.layers.block(name, read, run),
                flat,
                read.producer in grouped,
            )
        )
        stores = () if run.registers else l1_transfers.stores(facts, run, flat)
        if not facts.updates:
            return _Code(typed, loads, stores)
        if facts.passes:
            if -1 not in self._reading(name):  # see `_with_others`
                return _Code(facts.typed_before, (), stores)
            values = together([(1, facts.typed_before), *executed]) if executed else facts.typed_before
            return _Code(values, loads, stores)
        ways: list[tuple[Way, float]]
        ways = [("gathered" if u.looked_up else "aligned", u.iterations / facts.root_points) for u in facts.updates]
        updated = tuple(Transfer(way, facts.bytes_per_point, times) for way, times in ways)
        if run.before == run.lanes or not self._reads_before(name):
            return _Code(typed, (*loads, *updated), (*stores, *updated))
        first = together([(1, facts.typed_before), *executed])
        then = together([(1, facts.typed), (-1, facts.typed_before)])
        return _Code(then, updated, updated, Before(run.before, first, loads, stores))

    def _reads_before(self, name: str) -> bool:
        """True where all that a stage reads of others is read before its updates."""
        found = accesses(self.counter.members.facts.definitions[name])
        return all(a.producer == name or a.definition == 0 for a in found)

    def _streams(self, name: str, run: Run) -> float:
        """Rows of memory that are walked side by side, columns aside. The loops of a long reduction walk along
        a row for all of its terms there, one row after the other."""
        together, facts = self.counter.reads[name].side_by_side, self.counter.members.facts
        inlined = {n: facts.definitions[n] for n in self.counter.reads[name].inlined}
        long = has_long_reduction(facts.definitions[name], inlined)
        rows = 0.0 if run.registers else float(together)
        for read in self.counter.reads[name].reads:
            if read.producer not in self.registers:
                width = sum(float(s.width) for s in read.roughly if s.var == run.row and s.known)
                in_turn = long and width * facts.stages[read.producer].bytes_per_point >= facts.line_bytes
                rows += float(together) if in_turn else max(1.0, read.points * together / (1 + width))
        return rows

    def _asked(self, name: str, run: Run) -> float:
        """Lines that one step asks for ahead: of each row of what it reads from outside of the group, but those that
        the iteration before of the loop around has read, those that its vector spans. Of vectors shorter than a line
        several ask for the same one, which comes once; a load more does not show beside that. What several stages of a
        loop read is asked for once."""
        if run.lanes == 1:
            return 0.0
        members, asked = self.counter.members, 0.0
        effective, around = self.counter.reads[name], self._around(name, run)
        for read, part in self.layers.of_reads(name):
            along = [s for s in read.roughly if s.known and s.var == run.row]
            if members.is_local(read.producer) or not along:
                continue
            size = members.facts.stages[read.producer].bytes_per_point
            lines = run.lanes * float(abs(along[0].rate)) * size / members.facts.line_bytes
            rows = read.points / (1 + sum(float(s.width) for s in along))
            for s in read.roughly:
                if s.known and s.var is not None and s.var == around:
                    together = effective.apart.get(s.var, 1)
                    rows *= min(1.0, max(1.0, abs(float(s.rate)) * together) / s.extent(together))
            asked += max(1.0 / effective.side_by_side, rows) * lines * part
        return asked

    def _walked(self, name: str, run: Run) -> float:
        """Rows of images from outside of the group that one step goes along side by side, but those that the iteration
        before of the loop around has read; none where updates or loops inside of vectors go through them."""
        members, effective = self.counter.members, self.counter.reads[name]
        definitions = members.facts.definitions
        inlined = {n: definitions[n] for n in effective.inlined}
        if run.lanes == 1 or members.facts.stages[name].updates or has_long_reduction(definitions[name], inlined):
            return 0.0
        around, together, walked = self._around(name, run), effective.side_by_side, 0.0
        for read in effective.reads:
            producer = members.facts.stages[read.producer]
            spans = {d: s for d, s in zip(producer.dims, read.roughly, strict=True) if s.known}
            along = [d for d, s in spans.items() if s.var == run.row]
            if members.is_local(read.producer) or read.looked_up or not along:
                continue
            rows = read.points * together / (1 + sum(float(spans[d].width) for d in along))
            across = [spans[d] for d in slower(producer, along) if d in spans]  # interleaved channels are of one row
            extents = [(s, effective.apart.get(s.var or "", 1)) for s in across]
            rows = min(rows, float(prod(s.extent(n) for s, n in extents)))
            for s, n in extents:
                if s.var is not None and s.var == around:
                    rows *= min(1.0, max(1.0, abs(float(s.rate)) * n) / s.extent(n))
            walked += rows
        return walked

    def _around(self, name: str, run: Run) -> str | None:
        """The dim of a stage whose loop is the next around its row."""
        nest, follows = self.counter.nest, self.counter.members.follows[name]
        facts = self.counter.members.facts.stages[name]
        dims = _besides_row(facts, run)
        if self._fused(name) or name == self.counter.members.output:
            moving = [d for d in dims if follows[d].var is not None]
            return min(moving, key=lambda d: nest.intra(str(follows[d].var)), default=None)
        return dims[0] if dims else None

    def _held(self, name: str, run: Run, streamed: bool) -> tuple[tuple[int, float], ...]:
        """Vectors kept in registers for a stage from one step to the next, with the bytes of their elements. Of each
        row that it reads there, those from the furthest ahead of its own, computed by then, to the furthest behind. Of
        each that is written past the caches, HELD."""
        held, effective = [], self.counter.reads[name]
        for read in effective.reads:
            if read.producer in self.registers:
                vectors, rows = 0, 1.0
                for span in read.roughly:
                    if span.var == run.row and span.lo is not None and span.hi is not None:
                        vectors += max(0, ceil(span.hi / run.lanes) + ceil(-span.lo / run.lanes))
                    elif span.known:
                        rows *= span.extent(1 if span.var is None else effective.apart.get(span.var, 1))
                size = self.counter.members.facts.stages[read.producer].bytes_per_point
                held.append((size, vectors * min(rows, read.points * effective.side_by_side)))
        if streamed and self.one_loop:
            size = self.counter.members.facts.stages[name].bytes_per_point
            held.append((size, float(HELD * effective.side_by_side)))
        return tuple(held)

    def _run_bytes(self, name: str, run: Run, points: Amount, rows: Amount, ahead: bool = False) -> Amount:
        """Bytes in order that a row walks, with the next ones where these go on where it ends, as those of the group's
        own buffers do and those of an image whose loops are in the order of memory; infinite where there is no end of
        them, or the next one is asked for `ahead`."""
        members = self.counter.members
        facts = members.facts.stages[name]
        if run.row is not None and bytes_apart(facts, run.row, members.facts.line_bytes) > facts.bytes_per_point:
            return facts.bytes_per_point  # down a column each is in another row
        if name != members.output and all(members.is_local(r.producer) for r in self.counter.reads[name].reads):
            return inf
        along = self._along_row(name, run)
        if along is None:
            return inf
        axis = self.counter.nest.axes[along]
        length = points / largest(rows, 1.0) * facts.bytes_per_point
        if self._walked_at_once(name, run) or self._new_rows(name, run) > 1:
            return inf if ahead else length
        if not self._rows_in_order(name, along):
            return length
        planes = self._planes_bytes(name, along, length)
        if state(self.counter.nest, axis.dim, self._level(name)) == WHOLE:
            return planes
        return chosen(axis.counts > 1, length, planes)

    def _planes_bytes(self, name: str, along: str, length: Amount) -> Amount:
        """Bytes in order of whole rows of so many bytes: those of a tile's part of a plane, where the tile goes on to
        the next plane; else no limit."""
        nest, facts = self.counter.nest, self.counter.members.facts.stages[name]
        follows = self.counter.members.follows[name]
        moving = [
            (d, var) for d in facts.storage if (var := follows[d].var) not in (None, along) and facts.extent(d) > 1
        ]
        if len(moving) < 2:
            return inf
        (across, dim), *others = moving
        axis = nest.axes[str(dim)]
        if state(nest, axis.dim, self._level(name)) == WHOLE:
            return inf
        planes: Amount = 1.0
        for _, other in others:
            planes = planes * nest.axes[str(other)].sizes
        rows = axis.sizes * (facts.extent(across) / axis.extent)
        return chosen((axis.counts > 1) & (planes > 1), length * rows, inf)

    def _new_rows(self, name: str, run: Run) -> float:
        """Rows of one image outside of the group that an iteration of the loop around a stage's rows walks at once, and
        none before it has: where one ends another has been walked already."""
        around, rows, facts = self._around(name, run), 1.0, self.counter.members.facts.stages[name]
        follows = next(iter(_besides_row(facts, run)), None)
        together = self.counter.reads[name].apart.get(around, 1) if around is not None and around == follows else 1
        for read in self.counter.reads[name].reads:
            if not self.counter.members.is_local(read.producer):
                spans = (s for s in read.roughly if s.known and s.var is not None and s.var == around)
                new = (min(abs(float(s.rate)), float(s.extent(1)), read.points) for s in spans)
                rows = max(rows, *(n * together for n in new), 1.0)
        return rows

    def _rows_in_order(self, name: str, along: str) -> bool:
        """True if the loop around the rows of a stage goes from one to the next in memory. Inside of the level of a
        member loops are in the order of memory."""
        nest, facts = self.counter.nest, self.counter.members.facts.stages[name]
        follows = self.counter.members.follows[name]
        level = 0 if name == self.counter.members.output else self.counter.levels[name].compute
        around = []
        for dim in facts.storage:
            var = follows[dim].var
            if var == along or facts.extent(dim) == 1:
                continue
            if var is None:
                return True
            if nest.intra(var) > nest.intra(along):  # those that are unrolled are rows of their own
                around.append(max(level, nest.intra(var)))
        return not around or around[0] == min(around)

    def _next(self, name: str, run: Run) -> int | None:
        """The level whose next iteration goes on with a row that a tile breaks off; None where no tile does."""
        along = self._along_row(name, run)
        if along is None or self._new_rows(name, run) > 1 or not self._rows_in_order(name, along):
            return None
        return self.counter.nest.inter(along)

    def _along_row(self, name: str, run: Run) -> str | None:
        """The dim of the output that a row of the stage follows."""
        return None if run.row is None else self.counter.members.followed(name, run.row)

    def _walked_at_once(self, name: str, run: Run) -> bool:
        """True if a tile has rows of a stage that lie one after the other and are walked at once: the one that goes on
        where one ends is the next tile's. Of rows in several planes each goes on in its own."""
        nest, facts, along = self.counter.nest, self.counter.members.facts.stages[name], self._along_row(name, run)
        if run.row is None or along is None:
            return False
        beyond = facts.storage[facts.storage.index(run.row) + 1 :]
        var = next((self.counter.members.follows[name][d].var for d in beyond if facts.extent(d) > 1), None)
        return var is not None and nest.axes[var].is_cut and nest.intra(var) < nest.intra(along)

    # rows and vectors

    def _rows(self, name: str, run: Run, points: Amount) -> tuple[Amount, Amount, Amount]:
        """Rows, steps, and points computed one by one; updates run through the rows of what they update."""
        if run.row is None:
            return points, points / run.lanes, 0.0
        rows, steps, singles = self._vectors_of_rows(name, run, run.row, points)
        return (
            (rows, points / run.lanes, 0.0)
            if self.counter.members.facts.stages[name].updates
            else (rows, steps, singles)
        )

    def _vectors_of_rows(self, name: str, run: Run, dim: str, points: Amount) -> tuple[Amount, Amount, Amount]:
        counter, facts = self.counter, self.counter.members.facts.stages[name]
        span = counter.members.follows[name][dim]
        if span.var is None or not span.known:
            length = float(span.extent(1) if span.known else facts.extent(dim))
            return self._cut(points / length, length, run.lanes)
        axis, line = counter.nest.axes[span.var], counter.members.line(span, facts.extent(dim))
        of = self.running.stages[counter.members.output]
        if (
            self._of_a_vector(name)
            and axis.dim == of.row
            and counter.levels[name].store == counter.levels[name].compute
        ):
            return self._cut(points / (line.mean_window() * of.lanes), float(line.extent(of.lanes)), run.lanes)
        around = state(counter.nest, axis.dim, self._level(name))
        if around == POINT:
            return self._cut(points / line.mean_window(), float(line.window()), run.lanes)
        if around == WHOLE:
            length = float(line.extent(axis.extent))
            return self._cut(points / length, length, run.lanes)
        full, last = line.extent(axis.sizes) * 1.0, line.extent(axis.last) * 1.0
        row = points / ((axis.counts - 1) * full + last)  # rows of the image
        first = self._cut(row * (axis.counts - 1), full, run.lanes)
        second = self._cut(row, last, run.lanes)
        return first[0] + second[0], first[1] + second[1], first[2] + second[2]

    def _level(self, name: str) -> int:
        """The level at which a row of the stage is seen whole: where it is computed, but in the row of the output."""
        if name == self.counter.members.output:
            return self.counter.nest.first_inter
        return max(self.counter.levels[name].compute, self.row)

    def _fused(self, name: str) -> bool:
        """True if a stage is computed vector by vector in the row of the output, as where some are in registers."""
        return self._is_inside_row(name) and bool(self.registers)

    def _of_a_vector(self, name: str) -> bool:
        """True if rows of a stage are what one vector of the output reads."""
        return self._is_inside_row(name) and not self.registers

    def _is_inside_row(self, name: str) -> bool:
        return name != self.counter.members.output and self.counter.levels[name].compute < self.row

    @staticmethod
    def _cut(rows: Amount, length: Amount, lanes: int) -> tuple[Amount, Amount, Amount]:
        """Rows of one length: the last vector of a row begins early, where the row is not shorter than a vector."""
        if lanes == 1:
            return rows, rows * length, rows * 0.0
        vectors = ceiling(length / lanes)
        short = length < lanes
        return rows, rows * chosen(short, 0.0, vectors), rows * chosen(short, length, 0.0)


def _besides_row(facts: StageFacts, run: Run) -> list[str]:
    """The dims of a stage that its rows do not go along, as they lie in memory: channels beside each other they do."""
    dims = facts.storage if run.row is None or run.row != facts.row else facts.storage[facts.storage.index(run.row) :]
    return [d for d in dims if d != run.row and facts.extent(d) > 1]
