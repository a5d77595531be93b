"""How the stages of a group are run, counted for models of time: vectors, rows, and (`analysis.traffic`) what moves
through the caches. Beside the counts of `analysis.counts`, for all candidate tiles at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import ceil, inf, prod
from typing import NamedTuple

from cost_models.amounts import Amount, ceiling, chosen, largest, smallest
from cost_models.counts import GroupCounts, StageCounts
from cost_models.work import GroupWork, Transfer, Way, Work
from scheduler.analysis.accesses import accesses
from scheduler.analysis.arithmetic import Typed, together
from scheduler.analysis.counts import SMALL_EXTENT, Counter, Levels, in_registers
from scheduler.analysis.facts import Read, StageFacts
from scheduler.analysis.members import Effective, Members
from scheduler.analysis.nest import Nest
from scheduler.analysis.pixels import BITS, PAIRED, fours
from scheduler.analysis.spans import Span
from scheduler.analysis.tables import FEWEST, MOST_PARTS, PART
from scheduler.analysis.traffic import LINE, POINT, WHOLE, Traffic, pad_bytes, state


class Run(NamedTuple):
    """How one stage is run: along `row`, one of its dims or None, `lanes` points at a time; 1 is scalar code.
    `registers`: it is computed in the row of its readers, and kept in registers."""

    row: str | None
    lanes: int
    registers: bool = False


class Running(NamedTuple):
    """How a group is run: each stage that is not inline, and the position of the loop that threads share. `stream`: its
    output is written past the caches, as those of other groups in `past` were. `prefetch`: what it reads from outside
    is asked for so many bytes ahead."""

    stages: Mapping[str, Run]
    parallel: int | None = None
    updates_parallel: bool = False
    stream: bool = False
    prefetch: int = 0
    past: frozenset[str] = frozenset()


def worked_counts(
    members: Members,
    reads: Mapping[str, Effective],
    nest: Nest,
    levels: Mapping[str, Levels],
    threads: int,
    running: Running,
    whole: bool = True,
) -> GroupCounts:
    """The counts of a group (see `analysis.counts.group_counts`) with its work, as models of time need it. `running`
    has the output and all stages of `levels`. If not as a `whole`, loads and the stages that are inline are counted as
    part of the work only."""
    traffic = _traffic(members, reads, nest, levels)
    counts = traffic.counter.group(threads, local_loads=False, whole=whole)
    worker = WorkCounter(traffic, running)
    stages = tuple(s if s.inlined else worker.stage(s) for s in counts.stages)
    return counts._replace(stages=stages, work=worker.group(stages))


def _traffic(members: Members, reads: Mapping[str, Effective], nest: Nest, levels: Mapping[str, Levels]) -> Traffic:
    """The footprints of a group, for whatever else of its running differs."""
    known: dict[tuple[int, int], tuple[object, object, Traffic]]
    known = members.remembered.setdefault(("traffic", nest), {})
    found = known.get((id(reads), id(levels)))
    if found is None:
        traffic = Traffic(Counter(members, reads, nest, levels), in_registers(levels))
        found = known[id(reads), id(levels)] = reads, levels, traffic
    return found[2]


def circulating_bytes(members: Members) -> float:
    """Bytes of all inputs and outputs of the pipeline, and of what else the group reads from outside and writes."""
    found: float | None = members.remembered.get("circulating")
    if found is None:
        facts = members.facts
        names = {n for n, s in facts.stages.items() if s.is_input or n in facts.graph.outputs}
        names |= {r.producer for name in members.names for r in facts.stages[name].reads}
        outside = sorted(n for n in names if not members.is_local(n) or n == members.output)
        found = float(sum(facts.stages[n].root_points * facts.stages[n].bytes_per_point for n in outside))
        members.remembered["circulating"] = found
    return found


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
        self.on_grid = self._on_grid()
        self.parts = self._parts()
        self.again = self._again()

    def _parts(self) -> dict[str, tuple[float, ...]]:
        """Of what the stages of the row of the output read the parts that they load themselves, where that is not all:
        what several of them read in one step is loaded once."""
        points: dict[str, list[float]] = {}
        for name in sorted(self.one_loop):
            for read in self.counter.reads[name].reads:
                if read.producer not in self.registers:
                    points.setdefault(read.producer, []).append(read.points)
        shares = {producer: max(found) / sum(found) for producer, found in points.items() if len(found) > 1}
        if not shares:
            return {}
        return {
            name: tuple(shares.get(r.producer, 1.0) for r in self.counter.reads[name].reads) for name in self.one_loop
        }

    def _again(self) -> dict[str, tuple[Amount, Amount]]:
        """Of every stage that reads rows which another has read before, as the loop around the row of the output runs:
        these bytes, and what the group touches in between. Stages of one loop share what they load already."""
        counter, traffic, nest = self.counter, self.traffic, self.counter.nest
        found: dict[str, tuple[Amount, Amount]] = {}
        if self.row >= nest.first_inter:
            return found
        along, everything = nest.dim(self.row), len(nest.loops)
        for reads in traffic.outside.values():
            rows = [
                (motion.last, motion.points, name, read)
                for name, read in (reads if len(reads) > 1 else ())
                if counter.levels[name].compute <= self.row and not (read.rough or read.looked_up)
                if (motion := counter.through(name, read, along)) is not None
            ]
            if not rows:
                continue
            foremost, _, first, its = max(rows, key=lambda row: row[0])
            for last, points, name, read in rows:
                if name == first or self.one_loop.issuperset((name, first)):
                    continue
                own, other = traffic.array(name, read), traffic.array(first, its)
                size = smallest(own.moved(everything), other.moved(everything))
                between = traffic.touched(self.row) + self._row_bytes() * ((foremost - last) / points)
                others, longest = found.get(name, (0.0, 0.0))
                found[name] = others + size, largest(longest, between)
        return found

    def _row_bytes(self) -> Amount:
        """Bytes of what the group reads from outside and of its output that are new in an iteration of the loop around
        the row of the output."""
        traffic, everything = self.traffic, len(self.counter.nest.loops)
        total = traffic.output.moved(everything)
        for reads in traffic.outside.values():
            total = total + reduce(largest, (traffic.array(*r).moved(everything) for r in reads))
        return total / traffic.nest.executions[self.row]

    def _on_grid(self) -> frozenset[str]:
        """Of the stages of one loop those whose vectors begin where its others do. Rings join it where one row of each
        is computed at a time; else all of them are rows of their own, and so is what only they read of registers."""
        output = self.counter.members.output
        if all(n == output or n in self.registers or self._row_by_row(n) for n in self.one_loop):
            return self.one_loop
        found, pending = {output}, [output]
        while pending:
            read = {r.producer for r in self.counter.reads[pending.pop()].reads} & self.registers
            pending += sorted(read - found)
            found |= read
        return frozenset(found)

    def _row_by_row(self, name: str) -> bool:
        """Whether one row of a stage is new in an iteration of the loop around the row of the output."""
        nest = self.counter.nest
        along = self.running.stages[self.counter.members.output].row
        spans = (s for s in self.counter.members.follows[name].values() if s.var is None or s.var != along)
        return all(
            s.known
            and (s.extent(1) == 1 if s.var is None else nest.intra(s.var) >= self.row or nest.axes[s.var].extent == 1)
            for s in spans
        )

    def _of_reads(self, name: str) -> Iterator[tuple[Read, float]]:
        """What a stage reads, and the part of it that it loads itself."""
        reads = self.counter.reads[name].reads
        return zip(reads, self.parts.get(name) or (1.0,) * len(reads), strict=True)

    def group(self, stages: Sequence[StageCounts]) -> GroupWork:
        """What is of the whole group."""
        nest = self.counter.nest
        parallel: Amount = 1.0
        if self.running.parallel is not None:
            axis = nest.axes[nest.dim(self.running.parallel)]
            inter = nest.inter(axis.dim) == self.running.parallel
            parallel = axis.counts * 1.0 if inter else axis.sizes * 1.0
        elif self.running.updates_parallel:
            parallel = inf
        tiles: Amount = 1.0
        for axis in nest.axes.values():
            tiles = tiles * axis.counts
        first = min(s.work.level for s in stages if s.work is not None)
        working = (*(0.0,) * first, *map(self.traffic.touched, range(first, len(nest.loops) + 1)))
        members = self.counter.members
        past = share_past(members, self.running.past)
        return GroupWork(parallel, tiles, circulating_bytes(members), self.running.prefetch, working, past)

    def stage(self, counts: StageCounts) -> StageCounts:
        """The counts of a stage that is not inline, with its work."""
        counter, name = self.counter, counts.stage
        run = self.running.stages[name]
        made = tuple((counter.made.get(r.producer), r.producer in self.registers) for r in counter.reads[name].reads)
        streamed = self.running.stream and name == counter.members.output
        ahead = self.running.prefetch > 0 and self._rows_side_by_side(self._along_row(name, run))
        on_grid = name in self.on_grid
        key = ("work", counter.keys[name], run, self.row, streamed, ahead, made, on_grid, self.parts.get(name))
        found: StageCounts | None = counter.known.get(key)
        if found is None:
            found = counts._replace(loads=(), work=self._work(name, run, counts.points, streamed))
            counter.known[key] = found
        if name in self.again and found.work is not None:
            found = found._replace(work=found.work._replace(again=self.again[name]))
        return found._replace(loads=counts.loads) if counts.loads else found

    def _work(self, name: str, run: Run, points: Amount, streamed: bool) -> Work:
        rows, steps, singles = self._rows(name, run, points)
        typed, loads, stores = self._code(name, run)
        level, working, loaded, stored = self._states(name, run, points, rows)
        looked_up, table = self._places(name, points, level)
        if streamed:
            stored = (0.0,) * len(stored)
        facts = self.counter.members.facts.stages[name]
        return Work(
            self._fused(name) or name == self.counter.members.output,
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
            self._held(name, run),
            self._streams(name, run),
            level,
            looked_up,
            table,
        )

    def _torn(self, facts: StageFacts, run: Run, rows: Amount) -> Amount:
        """Rows of the output whose ends are ordinary stores into lines that vectors have been written to past the
        caches: they end inside of lines, and vectors are shorter, or ends are vectors that overlap others. Those of a
        tile do not, but of outputs of the pipeline, whose rows may begin anywhere, by short vectors."""
        size = facts.bytes_per_point
        short = run.lanes * size < LINE
        if run.row is None or facts.extent(facts.storage[0]) * size % LINE == 0:
            return 0.0
        if short and facts.name in self.counter.members.facts.graph.outputs:
            return rows
        return rows / self.counter.nest.axes[run.row].counts if short or self._clamped(facts.name) else 0.0

    def _clamped(self, name: str) -> bool:
        """Whether the ends of a stage's rows are computed apart: clamps keep inside what they read."""
        stages = (self.counter.members.facts.definitions[n] for n in (name, *self.counter.reads[name].inlined))
        return any(s.clamps and s.var == e.storage[0] for e in stages for a in accesses(e) for s in a.spans)

    def _code(self, name: str, run: Run) -> tuple[Typed, tuple[Transfer, ...], tuple[Transfer, ...]]:
        """Operations, loads and stores of a point."""
        members, reads = self.counter.members, self.counter.reads[name]
        known: dict[object, tuple[Typed, tuple[Transfer, ...], tuple[Transfer, ...]]]
        known = members.facts.remembered.setdefault("code", {})
        places = tuple((r.producer in self.registers, r.producer in members.follows) for r in reads.reads)
        alike = self._alike(name, run)
        key = (name, run, reads, places, name in self.on_grid, self.parts.get(name), alike)
        found = known.get(key)
        if found is None:
            found = known[key] = self._find_code(name, run, alike)
        return found

    def _alike(self, name: str, run: Run) -> frozenset[str]:
        """The stages inline in a stage that are the same for a whole vector of it."""
        inlined = self.counter.reads[name].inlined
        if run.lanes == 1 or run.row is None or not inlined:
            return frozenset()
        follows = self.counter.members.follows
        along = follows[name][run.row].var
        return frozenset(p for p in inlined if all(s.known and s.var != along for s in follows[p].values()))

    def _find_code(
        self, name: str, run: Run, alike: frozenset[str]
    ) -> tuple[Typed, tuple[Transfer, ...], tuple[Transfer, ...]]:
        stages, reads = self.counter.members.facts.stages, self.counter.reads[name]
        facts = stages[name]
        typed = facts.typed
        if reads.inlined:
            executed = ((n / run.lanes if p in alike else n, stages[p].typed) for p, n in reads.executed.items())
            typed = together([(1, typed), *executed])
        loads = tuple(
            t if part == 1.0 else t._replace(times=t.times * part)
            for read, part in self._of_reads(name)
            for t in self._transfers(name, run, read)
        )
        stores = () if run.registers else self._stores(facts, run)
        for update in facts.updates:
            place: Way = "gathered" if update.looked_up else "aligned"
            own = Transfer(place, facts.bytes_per_point, update.iterations / facts.root_points)
            loads, stores = (*loads, own), (*stores, own)
        return typed, loads, stores

    def _streams(self, name: str, run: Run) -> float:
        """Rows of memory that are walked side by side."""
        together = self.counter.reads[name].side_by_side
        rows = 0.0 if run.registers else float(together)
        for read in self.counter.reads[name].reads:
            if read.producer not in self.registers:
                width = sum(float(s.width) for s in read.roughly if s.var == run.row and s.known)
                rows += max(1.0, read.points * together / (1 + width))
        return rows

    def _held(self, name: str, run: Run) -> tuple[tuple[int, float], ...]:
        """What is kept in registers for a stage from one step to the next: vectors, with the bytes of their elements.
        Of each row that it reads there, those from the furthest ahead of its own, computed by then, to the furthest
        behind."""
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
        return tuple(held)

    def _run_bytes(self, name: str, run: Run, points: Amount, rows: Amount) -> Amount:
        """Bytes in order that a row walks; infinite where the next row goes on where it ends, as those of the group's
        own buffers do, or is asked for ahead."""
        members = self.counter.members
        facts = members.facts.stages[name]
        if run.row is not None and _apart(facts, run.row) > facts.bytes_per_point:
            return facts.bytes_per_point  # down a column each is in another row
        if name != members.output and all(members.is_local(r.producer) for r in self.counter.reads[name].reads):
            return inf
        along = self._along_row(name, run)
        if along is None:
            return inf
        axis = self.counter.nest.axes[along]
        length = points / largest(rows, 1.0) * facts.bytes_per_point
        if self._rows_side_by_side(along):
            return inf if self.running.prefetch else length
        if state(self.counter.nest, axis.dim, self._level(name)) == WHOLE:
            return inf
        return chosen(axis.counts > 1, length, inf)

    def _next(self, name: str, run: Run) -> int | None:
        """The level whose next iteration goes on with a row that a tile breaks off; None where no tile does."""
        along = self._along_row(name, run)
        return None if along is None else self.counter.nest.inter(along)

    def _along_row(self, name: str, run: Run) -> str | None:
        """The dim of the output that a row of the stage follows."""
        return None if run.row is None else self.counter.members.followed(name, run.row)

    def _rows_side_by_side(self, along: str | None) -> bool:
        """Whether a tile has rows along that dim of the output that are walked at once: the one that goes on where one
        ends is the next tile's."""
        nest = self.counter.nest
        return along is not None and any(a.is_cut for a in nest.axes.values() if nest.intra(a.dim) < nest.intra(along))

    # rows and vectors

    def _rows(self, name: str, run: Run, points: Amount) -> tuple[Amount, Amount, Amount]:
        """Rows, steps, and points computed one by one."""
        counter, facts = self.counter, self.counter.members.facts.stages[name]
        if run.row is None or facts.updates:
            return (points if run.row is None else points / max(1, facts.extent(run.row))), points / run.lanes, 0.0
        span = counter.members.follows[name][run.row]
        if span.var is None or not span.known:
            length = float(span.extent(1) if span.known else facts.extent(run.row))
            return self._cut(points / length, length, run.lanes)
        axis, line = counter.nest.axes[span.var], counter.members.line(span, facts.extent(run.row))
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
        """Whether a stage is computed vector by vector in the row of the output."""
        return name != self.counter.members.output and self.counter.levels[name].compute < self.row

    @staticmethod
    def _cut(rows: Amount, length: Amount, lanes: int) -> tuple[Amount, Amount, Amount]:
        """Rows of one length: the last vector of a row begins early, where the row is not shorter than a vector."""
        if lanes == 1:
            return rows, rows * length, rows * 0.0
        vectors = ceiling(length / lanes)
        short = length < lanes
        return rows, rows * chosen(short, 0.0, vectors), rows * chosen(short, length, 0.0)

    # registers and the first level

    def _transfers(self, name: str, run: Run, read: Read) -> tuple[Transfer, ...]:
        """How a stage reads one producer."""
        producer = self.counter.members.facts.stages[read.producer]
        size, times = producer.bytes_per_point, read.executed
        if read.producer in self.registers:
            spans = [s for s in read.roughly if s.var == run.row and s.known and s.width]
            moved = sum(1.0 for s in spans) and times * (1 - 1 / (1 + float(spans[0].width)))
            return (Transfer("shuffled", size, moved),) if moved else ()
        spans_of = dict(zip(producer.dims, read.roughly, strict=True))
        parts = self._table(producer, read, run)
        if parts:
            return (Transfer("table", size, times, parts),)
        if read.looked_up or (producer.storage and not spans_of[producer.storage[0]].known):
            if self._is_pixels(producer):
                return (Transfer("pixels", size, times, producer.extents[-1]),)
            return (Transfer("pairs" if self._in_pairs(producer, spans_of, run) else "gathered", size, times),)
        if run.row is None or not producer.dims:
            return (Transfer("aligned", size, times),)
        moving = [d for d, s in zip(producer.dims, read.roughly, strict=True) if s.var == run.row]
        if not moving:
            return (Transfer("uniform", size, times),)
        spans = [s for s in read.roughly if s.var == run.row]
        return self._along(producer, moving[0], spans[0], size, times, name in self.on_grid)

    @staticmethod
    def _in_pairs(producer: StageFacts, spans_of: Mapping[str, Span], run: Run) -> bool:
        """Whether of each place that is looked up two neighbours in memory are read, which are one load."""
        row = spans_of[producer.storage[0]]
        return producer.bytes_per_point * 8 == BITS and run.lanes >= PAIRED and row.known and row.extent(1) == 2

    def _is_pixels(self, producer: StageFacts) -> bool:
        """Whether all channels of a place are one load, as those of outputs of other groups are."""
        members = self.counter.members
        return not members.is_local(producer.name) and producer.name in fours(members.facts)

    @staticmethod
    def _table(producer: StageFacts, read: Read, run: Run) -> int:
        """How many parts a table of bytes has in which data tells the place and vectors look up all at once; else 0."""
        if not (read.looked_up and producer.bytes_per_point == 1 and producer.storage and run.lanes >= FEWEST):
            return 0
        parts = -(-producer.extent(producer.storage[0]) // PART)
        others = (s for d, s in zip(producer.dims, read.roughly, strict=True) if d != producer.storage[0])
        return parts if parts <= MOST_PARTS and all(s.var != run.row for s in others) else 0

    @staticmethod
    def _along(
        producer: StageFacts, dim: str, span: Span, size: int, times: float, on_grid: bool
    ) -> tuple[Transfer, ...]:
        """Elements of `dim` of a producer that follow the row of the reader by `span`. `on_grid`: vectors begin where
        those of other stages do, so that lanes which read the same element are not the same in each."""
        before = producer.storage[: producer.storage.index(dim)]
        apart = prod(producer.extent(d) for d in before)
        rate = abs(float(span.rate))
        if apart > SMALL_EXTENT or rate * apart > SMALL_EXTENT or (on_grid and rate < 1):
            return (Transfer("gathered", size, times),)
        if apart > 1 or rate > 1:
            return (Transfer("strided", size, times, int(max(1, rate) * apart)),)
        if rate < 1:
            return (Transfer("unaligned", size, times * rate), Transfer("shuffled", size, times))
        places = 1 + float(span.width)
        aligned = times / places
        found = (Transfer("aligned", size, aligned),)
        return found if places <= 1 else (*found, Transfer("unaligned", size, times - aligned))

    def _stores(self, facts: StageFacts, run: Run) -> tuple[Transfer, ...]:
        size = facts.bytes_per_point
        if run.row is None or not facts.storage or facts.storage[0] == run.row:
            return (Transfer("aligned", size, 1.0),)
        before = facts.storage[: facts.storage.index(run.row)]
        apart = prod(facts.extent(d) for d in before)
        return (Transfer("strided", size, 1.0, apart) if apart <= SMALL_EXTENT else Transfer("gathered", size, 1.0),)

    # layer conditions

    def _states(
        self, name: str, run: Run, points: Amount, rows: Amount
    ) -> tuple[int, tuple[Amount, ...], tuple[Amount, ...], tuple[Amount, ...]]:
        """The first level of the group's loops that is a state of the stage's; the working set of its own rows, if they
        are one; and of every state bytes loaded and bytes stored."""
        counter, nest = self.counter, self.counter.nest
        from_memory = [
            (r, part) for r, part in self._of_reads(name) if r.producer not in self.registers and not r.looked_up
        ]
        reads = [r for r, _ in from_memory]
        fused, facts = self._fused(name), counter.members.facts.stages[name]
        own = None
        if name == counter.members.output:
            level = min(self.row, nest.first_inter)
        else:
            level = self._level(name)
            own = None if fused or facts.updates else self._own_row(name, run, reads, points, rows)
        arrays = [(self.traffic.array(name, r), part) for r, part in from_memory]
        output = self.traffic.array(name, None)
        stages = counter.members.facts.stages
        everything: Amount | None = None
        if facts.updates or any(r.rough or not all(s.known for s in r.spans) for r in reads):
            # of a box that data tells a place in only that place is read, and an update reads what it runs through once
            everything = points * sum(r.points * stages[r.producer].bytes_per_point for r in reads)
        loaded: list[Amount] = []
        stored: list[Amount] = []
        if own is not None:
            steps = sum(r.points * _step_bytes(stages[r.producer], r, run.row) for r in reads)
            loaded.append(smallest(own[1], points * steps))
            stored.append(own[2])
        for at in range(level, len(nest.loops) + 1):
            moved: Amount = 0.0
            for array, part in arrays:
                moved = moved + array.moved(at) * part
            if at == level and own is None and run.row is not None and not facts.updates:
                # of a box of rows only those are read for a row that it reads somewhere
                moved = smallest(moved, self._own_row(name, run, reads, points, rows)[1])
            loaded.append(moved if everything is None else smallest(moved, everything))
            stored.append(0.0 if run.registers else output.moved(at))
        return level, () if own is None else own[:1], tuple(loaded), tuple(stored)

    def _places(self, name: str, points: Amount, level: int) -> tuple[tuple[Amount, ...], Amount]:
        """Of what is read at places that data says bytes loaded, of every state of the group from `level` on and of the
        one in which nothing of it stays, where each place is a line; and what a point may look up."""
        found = [(r, part) for r, part in self._of_reads(name) if r.looked_up and r.producer not in self.registers]
        if not found:
            return (), 0.0
        lines = points * (sum(r.points * part for r, part in found) * LINE)
        arrays = [(self.traffic.array(name, r), part) for r, part in found]
        states = range(level, len(self.counter.nest.loops) + 1)
        moved = (sum((array.moved(at) * part for array, part in arrays), 0.0) for at in states)
        table = sum((array.one(0) for array, _ in arrays), 0.0)
        return (lines, *(smallest(m, lines) for m in moved)), table

    def _own_row(
        self, name: str, run: Run, reads: list[Read], points: Amount, rows: Amount
    ) -> tuple[Amount, Amount, Amount]:
        """The state in which no more than a row stays."""
        facts = self.counter.members.facts
        stage = facts.stages[name]
        length = largest(1.0, points / largest(rows, 1.0))
        out = length * _apart(stage, run.row)
        loaded: Amount = 0.0
        for read in reads:
            producer = facts.stages[read.producer]
            windows: float = 1.0
            elements: Amount = 1.0
            for dim, span in zip(producer.dims, read.roughly, strict=True):
                if not span.known:
                    windows *= min(read.points, producer.extent(dim))
                elif span.var == run.row and span.var is not None:
                    elements = elements * (abs(float(span.rate)) * length + float(span.width))
                else:
                    windows *= span.extent(1)
            windows = min(windows, max(1.0, read.points))
            size = _step_bytes(producer, read, run.row)
            loaded = loaded + windows * (elements * size + pad_bytes(size))
        return loaded + out, rows * loaded, rows * out


def _step_bytes(producer: StageFacts, read: Read, row: str | None) -> int:
    """Bytes of a producer that a step along the row of its reader touches, of one of those that it reads there."""
    along = (
        d for d, s in zip(producer.dims, read.roughly, strict=True) if s.known and s.var is not None and s.var == row
    )
    return _apart(producer, next(along, None))


def _apart(stage: StageFacts, dim: str | None) -> int:
    """Bytes that a step along a dim of a stage touches: an element, or a line of its own where rows lie between."""
    size = stage.bytes_per_point
    if dim is None or dim not in stage.storage:
        return size
    between = prod(stage.extent(d) for d in stage.storage[: stage.storage.index(dim)])
    return size if between <= SMALL_EXTENT else max(size, LINE)
