"""Loops of updates: their order, vectors and threads, where these are proved to change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, prod

from tilesmith.cost_models.ecm.machine import machine_of
from tilesmith.cost_models.operations import Operations
from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.access_functions import constant, span_of, variable
from tilesmith.scheduler.analysis.dependence import default_order, independent, may_reorder, steady_parts
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.row_scans import paired_scans
from tilesmith.scheduler.analysis.update_sweeps import shared_sweep
from tilesmith.scheduler.features.groups.group_counts import SMALL_EXTENT
from tilesmith.scheduler.features.operations.dependence_chains import carried_by
from tilesmith.scheduler.features.operations.operation_counts import NO_REDUCTIONS, total, update_operations
from tilesmith.scheduler.features.operations.reduction_loops import is_written_out
from tilesmith.scheduler.features.pipeline.flat_rows import flat_update
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.pipeline.update_facts import UpdateFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Reduce, Var, free_variables, variables_of, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.row_lanes import lanes_along


@once
def _known(facts: Facts) -> dict[tuple[str, int, int, bool], tuple[UpdateLoops, ...]]:
    return {}


def update_loops(
    facts: Facts, name: str, computed_bytes: int, platform: Platform, strict: bool, threads: bool = False
) -> tuple[UpdateLoops, ...]:
    """The loops of every update of a stage. `threads`: at root, where no loop around the updates has them."""
    stage, definition = facts.stages[name], facts.definitions[name]
    if not stage.updates:
        return ()
    shared_by = platform.threads if threads else 1
    known, key = _known(facts), (name, computed_bytes, shared_by, strict)
    loops = known.get(key)
    if loops is None:
        updates = zip(definition.updates, stage.updates, strict=True)
        chosen = [_Chosen(facts, platform, definition, *update, computed_bytes, strict) for update in updates]
        chosen = _in_pairs(definition, chosen)
        if any(of.crowded() for of in chosen):  # blocks of rows that have several scans have as many rows for each
            chosen = [replace(of, halved=True) for of in chosen]
        loops = _blocks_shared(facts, name, chosen, platform) if shared_by > 1 else None
        loops = known[key] = loops or tuple(of.loops(shared_by) for of in chosen)
    return loops


def _blocks_shared(
    facts: Facts, name: str, chosen: Sequence[_Chosen], platform: Platform
) -> tuple[UpdateLoops, ...] | None:
    """The loops of all updates with threads that share the blocks of their sweep, where each may have one, and they are
    worth it; updates after these have threads of their own."""
    stage, definition = facts.stages[name], facts.definitions[name]
    alone = tuple(of.loops(1) for of in chosen)
    found = shared_sweep(definition, alone)
    if found is None or not platform.threads_wait:
        return None
    few = stage.extent(found.dim) < platform.threads * found.rows
    if few or sum(arithmetic(of.found) for of in chosen[: found.updates.stop]) < facts.core.balance.fork_operations:
        return None
    *before, last = alone[: found.updates.stop]
    shared = (replace(u, parallel=found.dim) for u in before)
    rest = (of.loops(platform.threads) for of in chosen[found.updates.stop :])
    return (*shared, last, *rest)


def _in_pairs(definition: Stage, chosen: list[_Chosen]) -> list[_Chosen]:
    """Loops of updates as `chosen`, but of two scans along rows, one after the other, which may have each block of rows
    before the next one, none is along the recurrence: blocks are transposed once for both, where each would join its
    lanes."""
    blocks = [replace(of, blocks=True) for of in chosen]
    first = paired_scans(definition, [of.loops(1) for of in blocks])
    return [blocks[n] if {n - 1, n} & first else of for n, of in enumerate(chosen)]


def arithmetic(found: UpdateFacts) -> float:
    """The cost of an update in operations: those of its arithmetic, and at least one an iteration."""
    return found.iterations * max(1.0, _together(found.operations))


def _together(operations: Operations) -> float:
    o = operations
    return o.add + o.multiply + o.select + o.convert + o.narrow + 10 * o.function


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The loops that are chosen for one `update` of a stage, of which this is `found`, computed in elements of so many
    bytes; by `blocks` of rows where it scans along these, whatever else it may be; vectors across them `halved` or
    not."""

    facts: Facts
    platform: Platform
    definition: Stage
    update: Update
    found: UpdateFacts
    computed_bytes: int
    strict: bool
    blocks: bool = False
    halved: bool = False

    def crowded(self) -> bool:
        """True if vectors across the rows of a scan, which take a line of memory of each, are of as many rows, those of
        what it reads with those that it writes, as prefetchers follow: of half as many it waits for memory less often.
        But not if its steps, of which each waits for the one before, then took longer than memory does."""
        loops, scan, stage = self.loops(1), self.found.scan, self.definition
        if scan is None or loops.vector is None or loops.vector.dim not in scan.across:
            return False
        lanes, along = loops.vector.lanes, {scan.loop, loops.vector.dim}
        read = {
            (e.name, e.component): e.type.bytes
            for value in self.update.values
            for e in walk(value)
            if isinstance(e, Access) and e.name != stage.name and along <= variables_of(e)
        }
        own, m = [t.bytes for t in stage.types], machine_of(self.platform)
        rows, bytes_ = lanes * (len(own) + len(read)), 2 * sum(own) + sum(read.values())
        if lanes * max(own) < self.platform.line_bytes or rows < m.core.prefetch.rows:
            return False
        chain = carried_by(stage, self.update, loops, self.found.trips, self.facts.core.latency_cycles)
        return chain * m.cycle <= lanes / 2 * bytes_ * m.memory[0]

    def loops(self, threads: int) -> UpdateLoops:
        """The loops, one of them of the `threads` where it is worth them."""
        found, pixels = self.found, flat_update(self.facts, self.definition.name, self.update)
        along = self._along_memory() if pixels is None or not self._lanes(pixels.place) else pixels.place
        lanes = self.platform.vector_bytes // max(1, self.computed_bytes) if along is None else self._lanes(along)
        order, vector = self._order(along), along if lanes else None
        if along is None and found.scan is not None:
            scan, across = found.scan.loop, found.scan.vectors_across(found.trips, lanes)
            wanted = (scan, *((across,) if across else ()), *(n for n in order if n not in (scan, across)))
            if self._may_be(wanted):
                by_blocks = self.blocks and across is not None and self._is_permuted()
                along_row = not by_blocks and self._along_recurrence(UpdateLoops(wanted, Vector(scan, lanes)))
                order, vector = wanted, scan if along_row else across
                lanes = lanes // 2 if self.halved and not along_row else lanes
        parallel = None
        if threads > 1 and arithmetic(found) >= self.facts.core.balance.fork_operations:
            order, parallel = self._threaded(order, vector, lanes, threads)
        chosen = UpdateLoops(order, None if vector is None else Vector(vector, lanes), parallel)
        if vector is None or self._along_recurrence(chosen):
            return chosen
        if self._may_be_lanes(order, vector, lanes):
            return UpdateLoops(order, Vector(vector, self._side_by_side(order, vector, lanes)), parallel)
        return UpdateLoops(order, None, parallel)

    def _side_by_side(self, order: tuple[str, ...], vector: str, lanes: int) -> int:
        """Lanes of several registers where the value has a long reduction, in whose loop each sum waits for the one
        before: as many as a value may be in, and as leave no more of the row alone than one does. Else `lanes`."""
        parts = [e for value in self.update.values for e in walk(value) if isinstance(e, Reduce)]
        if not any(vector in free_variables(e) and not is_written_out(e) for e in parts):
            return lanes
        vectors, most = self.found.trips(vector) // lanes, self.platform.vector_unit.widest_bytes
        wider = lanes
        while 2 * wider * self.computed_bytes <= most and vectors * lanes % (2 * wider) == 0:
            wider *= 2
        return wider if self._may_be_lanes(order, vector, wider) else lanes

    def _is_permuted(self) -> bool:
        """True if an instruction takes elements of the stage from any lane, as blocks that are transposed need."""
        least = self.facts.core.instructions.permuted_bytes
        return all(t.bytes >= least for t in self.definition.types)

    def _along_recurrence(self, loops: UpdateLoops) -> bool:
        """True if these are vectors along a recurrence, of which rows have some."""
        vector = loops.vector
        long = vector is not None and self.found.trips(vector.dim) >= PARAMS.vectors_of_recurrence * vector.lanes
        return long and along_recurrence(self.definition, self.update, loops, self.strict) is not None

    def _may_be(self, order: tuple[str, ...]) -> bool:
        return may_reorder(self.definition, self.update, order, self.strict)

    def _along_memory(self) -> str | None:
        """The loop that runs along memory: the fastest dim where the update goes through it whole, else the variable
        that stands alone in its place (give or take a constant). None where it must run in order, or is too short for
        vectors: that of a scan may be, as what is innermost there waits for no point before it."""
        definition, update = self.definition, self.update
        if not definition.storage:
            return None
        place = update.at[definition.dims.index(definition.storage[0])]
        names = variables_of(place)
        loops = dict(self.found.loops)
        for loop in names & loops.keys() if len(names) == 1 else ():
            scanned = loops[loop] > 1 and self._moves() - names
            lanes = self._lanes(loop)
            if (scanned or lanes) and self._may_be_lanes(self._with_innermost(loop), loop, lanes):
                return loop
        return None

    def _may_be_lanes(self, order: tuple[str, ...], loop: str, lanes: int) -> bool:
        """True if so many neighbours along the loop are independent, or all of it: an echo reads what is further
        back."""
        return independent(self.definition, self.update, order, loop, lanes or None)

    def _lanes(self, loop: str) -> int:
        """Lanes of vectors along a loop; 0 where it is shorter. What they leave of it runs point by point."""
        whole = 1 << self.found.trips(loop).bit_length() - 1
        return lanes_along(whole, self.found.iterations, self.computed_bytes, self.platform)

    def _moves(self) -> set[str]:
        """The variables of the domain that the place moves with."""
        used = variables_of(*self.update.at)
        return used & {r.name for r in self.update.domain}

    def _with_innermost(self, loop: str) -> tuple[str, ...]:
        """The defined order with `loop` innermost, where that is allowed; else as defined."""
        order = default_order(self.definition, self.update)
        moved = (loop, *(n for n in order if n != loop))
        return moved if may_reorder(self.definition, self.update, moved) else order

    def _order(self, vector: str | None) -> tuple[str, ...]:
        """Innermost first: a short domain that adds up in place, dims of few iterations, the vectors, all else as it is
        defined. A long domain, or one that moves from place to place or over rows that are far apart, is outside the
        vectors: rows are finished before the next ones are begun; but for a loop in which reductions are the same that
        are half of the work: they are then worked out once for all of it. As defined where that cannot be shown to be
        the same."""
        order, trips = default_order(self.definition, self.update), self.found.trips
        if vector is None:
            return self._nearest_first(order)
        domain = tuple(r.name for r in self.update.domain if r.name != vector)
        free = tuple(n for n in order if n not in domain and n != vector)
        few = tuple(n for n in free if trips(n) <= SMALL_EXTENT)
        rest = tuple(n for n in free if n not in few)
        short = prod(map(trips, domain)) <= PARAMS.update_terms_inside_vectors and not self._reads_far_rows(vector)
        # a place that has to be looked up is looked up once for the few that are there, whose sums are then in memory
        shared = _share_places(self.update, few) or vector not in self.definition.storage[:1]
        if short and not self._moves().intersection(domain):
            wanted = (*few, *domain, vector, *rest) if shared else (*domain, *few, vector, *rest)
        else:
            rows = self._rows_of_plane(vector, domain)
            rest = tuple(n for n in rest if n not in rows)
            wanted = (*few, vector, *rows, *domain, *rest) if shared else (vector, *rows, *domain, *few, *rest)
            for loop in wanted[1:]:
                inside = (loop, *(n for n in wanted if n != loop))
                if self._saves_half(inside) and self._may_be(inside):
                    return inside
        return wanted if self._may_be(wanted) else order

    def _nearest_first(self, order: tuple[str, ...]) -> tuple[str, ...]:
        """The order with a dim of few iterations innermost: that of interleaved parts, which neighbours take in turn,
        or one whose steps are nearer to each other in all that is read than those of the innermost loop, as channels of
        pixels are."""
        if not order:
            return order
        of = {loop: self._apart_in_reads(loop) for loop in order}
        first, name = of[order[0]], self.definition.name
        parts = self.definition.dims[-1:] if name in self.facts.partial - self.facts.strips else ()
        for dim in order[1:]:
            steps = list(zip(of[dim], first, strict=True))
            nearer = all(a <= b for a, b in steps) and any(0 < a < b for a, b in steps)
            inside = dim in parts or (nearer and dim in self.definition.dims)
            moved = (dim, *(n for n in order if n != dim))
            if inside and self.found.trips(dim) <= SMALL_EXTENT and self._may_be(moved):
                return moved
        return order

    def _apart_in_reads(self, loop: str) -> list[float]:
        """The elements from one place to the next along a loop, of each read of another stage."""
        update, found = self.update, list[float]()
        parts = (*update.at, *update.values, *(() if update.where is None else (update.where,)))
        for read in (n for part in parts for n in walk(part) if isinstance(n, Access)):
            if read.name != self.definition.name:
                producer, still = self.facts.stages[read.name], dict.fromkeys(self._loops(), constant(0, 0))
                spans = [span_of(i, {**still, loop: variable(loop)}) for i in read.indices]
                steps = (s.rate * producer.apart[d] for d, s in zip(producer.dims, spans, strict=True))
                found.append(abs(float(sum(steps))))
        return found

    def _loops(self) -> list[str]:
        return [n for n, _ in self.found.loops]

    def _rows_of_plane(self, vector: str, domain: tuple[str, ...]) -> tuple[str, ...]:
        """The long dims, beside that of the `vector`, of parts of memory from each of which a domain moves to another,
        as from plane to plane: as many as the second level keeps those of two steps of. Their rows are taken in the
        order of memory, and what a step reads of the one before it is near."""
        stage, storage = self.facts.stages[self.definition.name], self.definition.storage
        names = [{n.name for n in walk(i) if isinstance(n, Var)} for i in self.update.at]
        at = dict(zip(stage.dims, names, strict=True))
        read = {e.name for value in self.update.values for e in walk(value) if isinstance(e, Access)} - {stage.name}
        point = stage.bytes_per_point + sum(self.facts.stages[name].bytes_per_point for name in read)
        found: list[str] = []
        for d, further in pairwise(storage):
            apart = {used for place in storage[storage.index(further) :] for used in at[place]}
            if at[d] != {d} or not apart & {*domain} or 2 * stage.apart[further] * point > self.platform.l2_bytes:
                break
            found.append(d)
        return tuple(d for d in found if d != vector and self.found.trips(d) > SMALL_EXTENT) if vector in found else ()

    def _saves_half(self, order: tuple[str, ...]) -> bool:
        """True if half of the operations are of reductions that are the same in all iterations of the innermost
        loop."""
        times = float(self.found.trips(order[0]))
        steady = dict.fromkeys(steady_parts(self.definition, self.update, order), times)
        if not steady:
            return False
        once, each = (
            _together(total(update_operations(self.update, steady=parts))) for parts in (steady, NO_REDUCTIONS)
        )
        return 2 * once <= each

    def _reads_far_rows(self, vector: str) -> bool:
        """True if the domain of an update walks, for one vector, over more rows of an input than the first level keeps
        a line of each of, or than prefetchers follow: lines that vectors share come twice, and each of them late."""
        first, domain = self.platform.caches[0], {r.name for r in self.update.domain} - {vector}
        way = first.size_bytes // first.ways
        for read in (n for value in self.update.values for n in walk(value) if isinstance(n, Access)):
            image = self.facts.stages[read.name]
            if not image.is_input:  # of a stage there may be no more than a tile
                continue
            used = [variables_of(i) for i in read.indices]
            across = {d: names & domain for d, names in zip(image.dims, used, strict=True) if vector not in names}
            step = min((image.apart[d] for d, names in across.items() if names), default=0) * image.bytes_per_point
            rows = prod(map(self.found.trips, sorted(set().union(*across.values()))))
            kept = first.ways * max(1, way // gcd(step, way))
            if rows * step > first.size_bytes and rows > min(kept, self.platform.core.prefetch.rows):
                return True
        return False

    def _threaded(
        self, order: tuple[str, ...], vector: str | None, lanes: int, threads: int
    ) -> tuple[tuple[str, ...], str | None]:
        """The order with a loop outermost that threads may share, the longest if none is there already; strips of that
        over vectors where it is outermost."""
        trips = self.found.trips
        for loop in (*order[-1:], *sorted(order[:-1], key=trips, reverse=True)):
            if loop == vector and (loop != order[-1] or loop not in self.definition.storage[1:]):
                continue
            if trips(loop) < threads * (lanes if loop == vector else 1):
                continue
            moved = (*(n for n in order if n != loop), loop)
            if self._may_be(moved) and independent(self.definition, self.update, moved, loop):
                return moved, loop
        return order, None


def _share_places(update: Update, dims: tuple[str, ...]) -> bool:
    """True if the update reads at places that are data, the same ones all along `dims`."""
    reads = [n for value in update.values for n in walk(value) if isinstance(n, Access)]
    places = [list(walk(i)) for read in reads for i in read.indices]
    return any(
        any(isinstance(n, Access) for n in place) and not any(isinstance(n, Var) and n.name in dims for n in place)
        for place in places
    )
