"""Random legal schedules of a pipeline, as broad as the rules of legality allow; the same seed gives the same one.

All is drawn from a `Random`, the plainest choice by the smallest draw, so that Hypothesis can be that `Random`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.dependence import default_order, independent, may_reorder, pure_dims
from tilesmith.scheduler.analysis.row_recurrences import LEAST_LANES, row_recurrence
from tilesmith.scheduler.analysis.separability import Window, windows
from tilesmith.scheduler.analysis.sliding_windows import shifted_along
from tilesmith.scheduler.analysis.stage_graph import StageGraph, expressions, is_plain, stage_graph
from tilesmith.scheduler.analysis.update_sweeps import shared_sweep
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.pipeline.expressions import Access, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.schedule.primitives.unroll import MAX_UNROLL
from tilesmith.scheduler.ir.schedule.schedule import (
    INLINE,
    Factor,
    Group,
    Packing,
    Placement,
    Schedule,
    Separation,
    Tile,
    UpdateLoops,
    Vector,
    dim_of,
    inner,
    outer,
)
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.pack_operands import along
from tilesmith.scheduler.rewrites.passes import rewrite, with_joinings, with_packings, with_separations
from tilesmith.scheduler.rewrites.rfactor import factored, reductions
from tilesmith.scheduler.rewrites.split_separable import put_in, split
from tilesmith.scheduler.search.output_fusion import together, ways

TILE_SIZES = (None, None, 1, 2, 3, 4, 5, 7, 8, 13, 16, 32, 64)
LANES = (2, 4, 8, 16)
PREFETCH = (0, 0, 64, 1000, 4096)
ATTEMPTS = 20
MOST_PARTS = 1500
"""Parts of a stage's expressions, counted for every place that it is inlined in. A stage with more is not inlined:
stencils of stencils grow beyond what a compiler does in seconds."""


def random_schedule(pipeline: Pipeline, seed: int, registers: bool = False, strict: bool = False) -> Schedule:
    """A legal schedule of `pipeline`: grouping, levels, stores, tiles, orders, vectors, unrolling, threads, folding,
    inlining, the loops of updates, factors, separations are all drawn; `registers` draws registers as storage too.
    It is `strict`, or may be."""
    return drawn_schedule(pipeline, Random(seed), registers, strict)


def drawn_schedule(pipeline: Pipeline, random: Random, registers: bool = False, strict: bool = False) -> Schedule:
    """A legal schedule drawn from `random`. What legality refuses is drawn again: the draws follow all of its rules
    but those that take an analysis, and `test_random_schedules` counts that few are refused."""
    for _ in range(ATTEMPTS):
        try:
            schedule = attempt(pipeline, random, registers, strict)
            check(rewrite(pipeline, schedule))
        except IllegalSchedule:
            continue
        return schedule
    raise AssertionError(f"no legal schedule of '{pipeline.name}' was drawn in {ATTEMPTS} attempts")


def attempt(pipeline: Pipeline, random: Random, registers: bool = False, strict: bool = False) -> Schedule:
    """A schedule drawn from `random`, legal most of the time."""
    return _Drawing(pipeline, random, registers, strict).schedule()


@dataclass
class _Nest:
    """A group while it is drawn. `levels` are the loops where members may be, innermost first."""

    stage: Stage
    loops: tuple[str, ...]
    tiles: tuple[Tile, ...]
    parallel: str | None
    vector: Vector | None
    unroll: tuple[str, ...]
    levels: list[str]
    updates: tuple[UpdateLoops, ...] = ()
    placements: dict[str, Placement] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def _windows_through(stage: Stage, through: Stage) -> tuple[Window, ...]:
    """Windows of the stage with one put in that it reads; kept, as many schedules are drawn for one pipeline."""
    return tuple(windows(put_in(stage, through)))


class _Drawing:
    def __init__(self, pipeline: Pipeline, random: Random, registers: bool, strict: bool) -> None:
        self.r = random
        self.registers = registers
        self.strict = self.chance(0.3) or strict
        self.factors = self._factors(pipeline)
        cut = Schedule(pipeline.name, "random", (), self.strict, factors=self.factors)
        plan = rewrite(pipeline, cut)
        self.separations = self._separations(plan.pipeline)
        plan = with_separations(plan, self.separations)
        others_read = len(ways(plan.pipeline)) > 1 and self.chance(0.5)
        self.joinings = tuple(j for j in together(plan.pipeline, others_read) if self.chance(0.5))
        plan = with_joinings(plan, self.joinings)
        self.packings = self._packings(plan.pipeline)
        self.pipeline = with_packings(plan, self.packings).pipeline
        self.graph: StageGraph = stage_graph(self.pipeline)
        self.stages = {s.name: s for s in self.pipeline.stages}
        self.nests: dict[str, _Nest] = {}
        self.parts = {s.name: sum(1 for e in expressions(s) for _ in walk(e)) for s in self.pipeline.stages}
        self.copies: dict[str, int] = {}

    def chance(self, p: float) -> bool:
        """With the smallest draw: no."""
        return self.r.random() >= 1 - p

    def schedule(self) -> Schedule:
        """Readers first: every stage is put where all its readers can have it, or into a group of its own."""
        inside = self.r.choice((0.0, 1.0, 0.8, 0.5))
        owners: dict[str, set[str]] = {}
        for name in reversed(self.graph.stages):
            readers = {o for c in self.graph.consumers[name] for o in owners[c]}
            owners[name] = readers
            member = name not in self.graph.outputs and self.chance(inside) and self._placed(name, readers)
            if not member:
                owners[name] = {name}
                self.nests[name] = self._nest(self.stages[name])
        groups = tuple(self._group(self.nests[name]) for name in self.graph.stages if name in self.nests)
        cuts = (self.factors, self.separations, self.joinings, self.packings)
        return Schedule(self.pipeline.name, "random", groups, self.strict, None, *cuts)

    def _group(self, n: _Nest) -> Group:
        placements = tuple(n.placements[name] for name in self.graph.stages if name in n.placements)
        fast = n.vector is not None and n.vector.dim == n.stage.storage[0] and not n.stage.updates
        return Group(
            n.stage.name, n.loops, n.tiles, n.parallel, n.vector, n.unroll, placements, n.updates,
            stream=fast and self.chance(0.2), prefetch=self.r.choice(PREFETCH),
        )  # fmt: skip

    def _packings(self, pipeline: Pipeline) -> tuple[Packing, ...]:
        """A copy of some of what stages read along a dim."""
        read = [
            (stage, a.producer, dim)
            for stage in pipeline.stages
            for a in accesses(stage)
            for dim in stage.dims
            if a.producer != stage.name and len(along(stage, a.producer, dim)) == 1
        ]
        own = Random(f"packings of {pipeline.name}")
        if not read or own.random() < 0.8:
            return ()
        stage, operand, dim = own.choice(read)
        return (Packing(stage.name, operand, dim, fresh(operand, f"for_{stage.name}", taken(pipeline))),)

    def _factors(self, pipeline: Pipeline) -> tuple[Factor, ...]:
        """None mostly; otherwise those of a few cuts that can be."""
        if not self.chance(0.35):
            return ()
        found: tuple[Factor, ...] = ()
        for n in range(self.r.choice((1, 1, 2))):
            cuts = [(s.name, k, r.name) for s in pipeline.stages for k, e in enumerate(reductions(s)) for r in e.domain]
            for name, k, variable in self.r.sample(cuts, len(cuts)):
                factor = Factor(name, k, variable, self.r.choice((2, 3, 4, 8)), f"part{n}", self.chance(0.4))
                try:
                    pipeline = factored(pipeline, (factor,), self.strict)
                except IllegalSchedule:
                    continue
                found = (*found, factor)
                break
        return found

    def _separations(self, pipeline: Pipeline) -> tuple[Separation, ...]:
        """Of the windows that can be split most, each along any of its dims, and some of what is left of them."""
        found: list[Separation] = []
        stages = {s.name: s for s in pipeline.stages}
        pending = list(pipeline.stages)
        while pending:
            stage, number = pending.pop(), 0
            exchanged = self._exchanged(stage, stages, f"half{len(found)}")
            if exchanged is not None:
                separation, partial, stage = exchanged
                found.append(separation)
                pending.append(partial)
            while number < len(here := windows(stage)):
                strict = self.strict and here[number].root.type.is_float
                if strict or self.chance(0.3):
                    number += 1
                    continue
                dim = self.r.choice(here[number].dims)
                found.append(Separation(stage.name, number, dim, f"half{len(found)}"))
                partial, stage = split(stage, found[-1])
                pending.append(partial)
        return tuple(found)

    def _exchanged(self, stage: Stage, stages: dict[str, Stage], name: str) -> tuple[Separation, Stage, Stage] | None:
        """A separation of the stage with one put in that it reads, and the two stages that this makes."""
        read = sorted({n.name for v in stage.values for n in walk(v) if isinstance(n, Access)} & stages.keys())
        for through in (stages[n] for n in read if is_plain(stages[n])):
            places = sum(isinstance(n, Access) and n.name == through.name for v in stage.values for n in walk(v))
            if places * sum(1 for _ in walk(through.values[0])) > MOST_PARTS:
                continue
            for number, window in enumerate(_windows_through(stage, through)):
                strict = self.strict and window.root.type.is_float
                if not strict and self.chance(0.3):
                    separation = Separation(stage.name, number, self.r.choice(window.dims), name, through.name)
                    return separation, *split(stage, separation, through=through)
        return None

    # the loops of a group

    def _nest(self, stage: Stage) -> _Nest:
        pure = pure_dims(stage)
        tiles = tuple(Tile(d, self.r.choice(TILE_SIZES)) for d in stage.dims if d in pure and self.chance(0.7))
        unroll = self._unroll(stage, tiles)
        vector = self._vector([d for d in stage.storage if d not in unroll])
        loops = self._loops(stage, tiles, unroll, vector)
        levels = []
        for loop in reversed(loops):
            if dim_of(loop) not in pure:
                break
            if loop not in {inner(d) for d in unroll}:
                levels.insert(0, loop)
        parallel = None
        if levels and loops[-1] == levels[-1] and not (vector and loops[-1] == inner(vector.dim)) and self.chance(0.6):
            parallel = loops[-1]
        updates = self._updates(stage, threads=parallel is None)
        return _Nest(stage, loops, tiles, parallel, vector, unroll, levels, updates)

    def _unroll(self, stage: Stage, tiles: tuple[Tile, ...]) -> tuple[str, ...]:
        estimate = self.pipeline.estimate(stage.name)
        sizes = {d: 1 if estimate is None else estimate[n][1] for n, d in enumerate(stage.dims)}
        sizes.update({t.dim: t.size for t in tiles if t.size is not None})
        return tuple(d for d in stage.dims if sizes[d] <= min(8, MAX_UNROLL) and self.chance(0.4))

    def _vector(self, dims: list[str]) -> Vector | None:
        if not dims or not self.chance(0.7):
            return None
        dim = dims[0] if not self.chance(0.15) else self.r.choice(dims)
        return Vector(dim, self.r.choice(LANES))

    def _loops(
        self, stage: Stage, tiles: tuple[Tile, ...], unroll: tuple[str, ...], vector: Vector | None
    ) -> tuple[str, ...]:
        pure = pure_dims(stage)
        intra = [inner(d) for d in stage.storage]
        inter = [outer(t.dim) for t in tiles]
        unrolled = {inner(d) for d in unroll}
        if self.chance(0.6):
            self.r.shuffle(intra)
        if self.chance(0.6):
            self.r.shuffle(inter)
        if self.chance(0.6):  # unrolled loops innermost, as the search has them; anywhere otherwise
            intra.sort(key=lambda loop: loop not in unrolled)
        if len(pure) < len(stage.dims) and self.chance(0.6):  # so that something may be computed inside
            intra.sort(key=lambda loop: dim_of(loop) in pure)
        if vector is not None:
            loop = inner(vector.dim)
            intra.remove(loop)
            first = next((n for n, other in enumerate(intra) if other not in unrolled), len(intra))
            intra.insert(self.r.randint(0, first), loop)
        return (*intra, *inter)

    def _updates(self, stage: Stage, threads: bool) -> tuple[UpdateLoops, ...]:
        """The loops of every update, in any order that is proved to be right; nothing now and then."""
        if not stage.updates or not self.chance(0.8):
            return ()
        found = []
        for update in stage.updates:
            loops = default_order(stage, update)
            for _ in range(3):
                other = tuple(self.r.sample(loops, len(loops)))
                if may_reorder(stage, update, other, self.strict):
                    loops = other
                    break
            free = [loop for loop in loops if independent(stage, update, loops, loop)]
            parallel = loops[-1] if threads and loops and loops[-1] in free and self.chance(0.6) else None
            free = [loop for loop in free if loop != parallel]
            vector = Vector(self.r.choice(free), self.r.choice(LANES)) if free and self.chance(0.7) else None
            near = [(n, k) for n in loops for k in LANES if n not in free and independent(stage, update, loops, n, k)]
            if vector is None and any(n != parallel for n, _ in near):  # an echo reads what is further back
                vector = Vector(*self.r.choice([(n, k) for n, k in near if n != parallel]))
            recurrence = row_recurrence(stage, update, self.strict)
            if recurrence is not None and recurrence.loop == loops[0] and self.chance(0.7):
                vector = Vector(recurrence.loop, self.r.choice([n for n in LANES if n >= LEAST_LANES]))
            found.append(UpdateLoops(loops, vector, parallel))
        alone = tuple(replace(u, parallel=None) for u in found)
        blocks = shared_sweep(stage, alone) if threads else None
        if blocks is not None and self.chance(0.5):
            shared = blocks.updates[-1]
            return (*(replace(u, parallel=blocks.dim) for u in alone[:shared]), *alone[shared:])
        return tuple(found)

    # members

    def _placed(self, name: str, readers: set[str]) -> bool:
        """Whether `name` became a member of the groups in `readers`."""
        stage = self.stages[name]
        if len(readers) > 1 and (stage.updates or not self.chance(0.6)):
            return False
        found = {reader: self._placement(stage, self.nests[reader]) for reader in sorted(readers)}
        for reader, placement in found.items():
            if placement is not None and None not in found.values():
                self.nests[reader].placements[name] = placement
        return None not in found.values()

    def _inlinable(self, stage: Stage) -> bool:
        """Whether `stage` may be inlined, and its value is not written out too often then. Its readers are placed."""
        copies = 0
        for consumer in self.graph.consumers[stage.name]:
            reads = sum(isinstance(n, Access) and n.name == stage.name
                        for e in expressions(self.stages[consumer]) for n in walk(e))  # fmt: skip
            inlined = any(consumer in n.placements and n.placements[consumer].compute == INLINE
                          for n in self.nests.values())  # fmt: skip
            copies += reads * (self.copies.get(consumer, 1) if inlined else 1)
        self.copies[stage.name] = copies
        return not stage.updates and copies * self.parts[stage.name] <= MOST_PARTS

    def _real_consumers(self, name: str, nest: _Nest) -> list[Placement | None]:
        """Placements of the readers of `name` that are not inline, None for the group's output."""
        found: list[Placement | None] = []
        pending, seen = [name], {name}
        while pending:
            for consumer in self.graph.consumers[pending.pop()]:
                if consumer in seen or (consumer != nest.stage.name and consumer not in nest.placements):
                    continue
                seen.add(consumer)
                placement = nest.placements.get(consumer)
                if placement is not None and placement.compute == INLINE:
                    pending.append(consumer)
                else:
                    found.append(placement)
        return found

    def _placement(self, stage: Stage, nest: _Nest) -> Placement | None:
        loops, consumers = nest.loops, self._real_consumers(stage.name, nest)
        least = max(-1 if c is None else loops.index(c.compute) for c in consumers)
        levels = [loop for loop in nest.levels if loops.index(loop) >= least]
        if self._inlinable(stage) and (not levels or self.chance(0.25)):
            return Placement(stage.name, INLINE, INLINE)
        if not levels:
            return None
        updated = stage.updates or nest.stage.updates
        if self.registers and nest.vector is not None and not updated and self.chance(0.8):
            row = inner(nest.vector.dim)
            at = loops.index(row)
            together = all(c is None or c.compute == row for c in consumers)
            further = loops[at + 1] if at + 1 < len(loops) else None
            if together and further in nest.levels:
                vector = nest.vector if nest.vector.dim in stage.dims else None
                placement = Placement(stage.name, row, further, storage="registers", vector=vector)
                if self._row_is_legal(nest, placement):
                    return placement
        at = self.r.randrange(len(levels))
        store = at if self.chance(0.3) else self.r.randrange(at, min(len(levels), at + 3))
        own = self._vector(list(stage.storage))
        order = list(stage.storage)
        if self.chance(0.5):
            self.r.shuffle(order)
        if own is not None:
            order.sort(key=lambda d: d != own.dim)
        placement = Placement(
            stage.name,
            levels[at],
            levels[store],
            fold=not self.chance(0.2),
            order=tuple(order) if own is not None or self.chance(0.8) else (),
            vector=own,
            updates=self._updates(stage, threads=False),
        )
        if self._row_is_legal(nest, placement):
            return placement
        return replace(placement, compute=levels[-1], store=levels[-1]) if len(levels) > 1 else None

    def _row_is_legal(self, nest: _Nest, placement: Placement) -> bool:
        """Whether what is computed beside registers is read by shifts only, were `placement` there too."""
        placed = {**nest.placements, placement.stage: placement}
        here = [placed[name] for name in self.graph.stages if name in placed]
        if nest.vector is None or all(p.storage != "registers" for p in here):
            return True
        row = inner(nest.vector.dim)
        shifted = shifted_along(nest.stage, [self.stages[p.stage] for p in here], nest.vector.dim)
        for p in here:
            held = p.storage == "registers" or p.compute == p.store
            if p.compute == row and (self.stages[p.stage].updates or (held and p.stage not in shifted)):
                return False
        return True
