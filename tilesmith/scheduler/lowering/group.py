"""Lowering of one group to loops: its output's tiled nest, and at each level the stages computed there.

Boxes flow inwards: entering a loop, the output's box shrinks, and every stage computed inside gets the union of
its readers' footprints. A stage that is stored outside a loop it is computed in slides along it: it keeps
how far it has been produced and computes only what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.bounds_inference import Box, box_hull, footprint, reads, settled_box, variables
from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.features.groups.register_tiles import shares_loads
from tilesmith.scheduler.features.groups.unroll_and_jam import ROWS_TOGETHER, blocks_together, overlaps
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction
from tilesmith.scheduler.ir.index import Changes, Index, change, const, maximum, minimum, sym
from tilesmith.scheduler.ir.loop.computations import BlockedDim, Compute, DimRange
from tilesmith.scheduler.ir.loop.program import (
    AssignIndex,
    Bind,
    Comment,
    Extents,
    Fence,
    If,
    Loop,
    MutableIndex,
    Scratch,
)
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.expressions import Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Placement, UpdateLoops, Vector, dim_of, inner
from tilesmith.scheduler.lowering.group_plan import Level
from tilesmith.scheduler.lowering.interleaved_channels import expect_channels
from tilesmith.scheduler.lowering.open_group import OpenGroup
from tilesmith.scheduler.lowering.rotating_windows import grid_start
from tilesmith.scheduler.lowering.row_loops import joined_row, unrolled_dims
from tilesmith.scheduler.lowering.row_room import give_room, widest, with_room
from tilesmith.scheduler.lowering.transposed_reads import transposed_dims

Boxes = dict[str, Box]


@dataclass(slots=True)
class GroupLowering(OpenGroup):
    """Lowers one group; `buffers` gets an entry for every member. `scratch` is the memory of a thread, `estimate` gives
    an index at the estimates. Vectors that compute or read the stages `aligned` start at multiples of something."""

    estimate: Callable[[Index], int]
    aligned: frozenset[str]
    scratch: list[Extents] = field(default_factory=list)
    _depends: dict[str, set[str]] = field(default_factory=dict)
    _values: dict[str, Index] = field(default_factory=dict)
    _changes: dict[str, Changes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.anchor = self._anchor() if self.plan.registers else const(0)

    # lowering ------------------------------------------------------------

    def run(self) -> tuple[Extents, ...]:
        """Emits the group into the builder's open scope. Returns the scratch buffers of a thread."""
        b = self.builder
        b.emit(Comment(f"{self.plan.output.name}: {', '.join(reversed(self.plan.group.loops)) or 'one value'}"))
        boxes: Boxes = {self.plan.output.name: self.plan.root[self.plan.output.name]}
        self._declare_buffers()
        self._propagate(boxes, -1, {})
        parallel = self.plan.group.parallel
        bind_here = not any(level.name == parallel and level.step is not None for level in self.plan.levels)
        layout = Scratch(f"scratch_of_{self.plan.output.name}", tuple(self.scratch))
        if self.scratch:
            b.emit(layout)
            if bind_here:
                b.emit(Bind(layout))
        self._body(0, boxes, layout, {})
        if self.plan.group.stream and bind_here:
            b.emit(Fence())
        return tuple(self.scratch)

    def _declare_buffers(self) -> None:
        """Scratch buffers of all members, with extents that hold for every iteration of their store level."""
        for stage in self.plan.stages:
            if stage.name not in self.plan.members or stage.name in self.plan.registers:
                continue
            p = self.plan.members[stage.name]
            order = tuple(stage.dims.index(d) for d in stage.storage)
            for component, type_ in enumerate(stage.types):
                buffer = Buffer(stage.name, component, type_, stage.dims, self.plan.unit(stage), "thread")
                if stage.dims:
                    expect_channels(buffer, stage.storage, self.plan.expected(stage.name, stage.storage[0])[1])
                buffer.pointer = Pointer(self.builder.fresh(stage.name))
                extents = []
                for d in range(len(stage.dims)):
                    ring = self.plan.ring(p, d)
                    buffer.ring.append(ring)
                    size = const(ring) if ring is not None else self.plan.extent(stage, d, self.plan.index(p.store))
                    if self.plan.on_grid(stage, d):
                        size = size + 2 * self.plan.room + self.plan.lanes  # whole vectors reach beyond both ends
                    elif d == buffer.unit:
                        give_room(self.builder, buffer, p.vector, widest(self.plan.group), stage.name in self.aligned)
                        size = with_room(buffer, size, p.vector)
                    extents.append(self.builder.let(size, f"{stage.name}_{stage.dims[d]}_size"))
                    buffer.origin.append(const(0))
                    unit = d == buffer.unit
                    buffer.stride.append(const(1) if unit else sym(self.builder.fresh(f"{stage.name}_stride")))
                buffer.extent = list(extents)
                self.buffers[stage.name, component] = buffer
                self.scratch.append(Extents(buffer, order, tuple(extents[d] for d in order)))

    # boxes ------------------------------------------------------------

    def _name(self, value: Index, hint: str) -> Index:
        named = self.builder.let(value, hint)
        if named != value:
            inside: set[str] = set()
            for s in value.symbols():
                inside |= {s} | self._depends.get(s, set())
            self._depends[named.terms[0][0].key] = inside
            self._values[named.terms[0][0].key] = value
        return named

    def _rises_by_one(self, value: Index, var: str) -> bool:
        """Monotonicity: `value` never falls from one iteration of `var` to the next, and grows by one at most."""
        found = change(value, var, self._values, self._changes.setdefault(var, {}))
        return found is not None and found[0] >= 0 and found[1] <= 1

    def _moves(self, value: Index, var: str) -> bool:
        return any(s == var or var in self._depends.get(s, ()) for s in value.symbols())

    def _propagate(self, boxes: Boxes, n: int, held: Mapping[str, Box], loop: _OpenLoop | None = None) -> None:
        """Fills in the boxes of all stages computed at level `n` or inside, readers first, from the output's box.

        `held` are the boxes of the level outside for stages that are stored outside loop `n`: those slide, or
        are computed once.
        """
        inside = self.plan.inside(n)
        need: dict[str, Box] = {}
        for stage in (self.plan.output, *reversed(inside)):
            if stage.name != self.plan.output.name:
                if stage.name not in need:
                    continue
                box = tuple(
                    (self._name(lo, f"{stage.name}_{d}_lo"), self._name(hi, f"{stage.name}_{d}_hi"))
                    for d, (lo, hi) in zip(stage.dims, settled_box(stage, need[stage.name]), strict=True)
                )
                if loop is not None and stage.name in held:
                    box = self._slide(stage, box, held[stage.name], n, loop)
                boxes[stage.name] = box
            env = variables(stage, boxes[stage.name])
            for read in reads(stage):
                if read.producer != stage.name and any(read.producer == s.name for s in inside):
                    need[read.producer] = box_hull(need.get(read.producer), footprint(read, env))

    def _slide(self, stage: Stage, box: Box, outside: Box, n: int, loop: _OpenLoop) -> Box:
        """The part of `box` that is new in this iteration of `loop`."""
        movers = [d for d, (lo, hi) in enumerate(box) if self._moves(lo, loop.var) or self._moves(hi, loop.var)]
        if not movers:
            loop.once.add(stage.name)
            return outside
        # What moves is computed again where it does not slide. Of the rest a loop outside has left what is new: it may
        # be more than this iteration reads, and later ones rely on it.
        whole = tuple([box[d] if d in movers else left for d, left in enumerate(outside)])
        if len(movers) > 1:  # blocks, and the row within them: a new block is computed in whole, as priced
            movers = [d for d in movers if self.plan.slides.get((stage.name, n)) == d]
        if len(movers) != 1:
            return whole
        d = movers[0]
        if stage.dims[d] not in pure_dims(stage):
            return whole  # its updates run over the whole of it
        span = self.plan.spans[stage.name][d]
        if span.known and span.rate < 0:
            return whole  # it comes from above: nothing is new at the end
        done = loop.done.get(stage.name)
        if done is None:
            done = self.builder.fresh(f"{stage.name}_{stage.dims[d]}_done")
            loop.done[stage.name] = done
            self.builder.declare(done)  # inside the loop: nothing that depends on it may be moved out
            self._depends[done] = {loop.var}
            loop.start[done] = outside[d][0]
            if self.plan.fills_row_by_row(n, span) and self._rises_by_one(box[d][1], loop.var):
                self.row_by_row[sym(done)] = outside[d][0]
        loop.end[done] = maximum(sym(done), box[d][1] + 1)
        first = sym(done)
        if span.known and span.rate > span.width + 1:
            first = maximum(first, box[d][0])  # rows between those of two iterations are read by none
        new = list(outside)
        new[d] = (first, box[d][1])
        return tuple(new)

    # loops ------------------------------------------------------------

    def _body(self, n: int, boxes: Boxes, layout: Scratch, once: Mapping[str, Index]) -> None:
        """The inside of level n - 1: buffers that begin here, stages computed here, then level n. The stages of
        `once` are computed where their index is not negative: in the first iteration."""
        for stage in self.plan.stages:
            p = self.plan.members.get(stage.name)
            if p is not None and self.plan.index(p.store) == n - 1:
                self._begin(stage, boxes[stage.name])
        for stage in self.plan.stages:
            p = self.plan.members.get(stage.name)
            if p is None or self.plan.index(p.compute) != n - 1:
                continue
            if stage.name not in once:
                self.compute(stage, p, boxes[stage.name])
                continue
            with self.builder.condition() as body:
                self.compute(stage, p, boxes[stage.name])
            self.builder.emit(If((once[stage.name],), tuple(body)))
        if not self.plan.goes_on(n):
            self._compute_output(n, boxes[self.plan.output.name])
            return
        level = self.plan.levels[n]
        if self.plan.is_fused(level):
            joined_row(self, n, level, boxes)
        elif level.step is None:
            self._body(n + 1, boxes, layout, once)
        else:
            self._loop(n, level, level.step, boxes, layout)

    def _begin(self, stage: Stage, box: Box) -> None:
        if stage.name in self.plan.registers:
            return
        for component in range(len(stage.types)):
            buffer = self.buffers[stage.name, component]
            for d, (lo, _) in enumerate(box):
                if buffer.ring[d] is None:
                    buffer.origin[d] = lo - (buffer.margin if d == buffer.unit else 0)
                    if self.plan.on_grid(stage, d):
                        start = grid_start(lo - self.plan.room, self.anchor, self.plan.lanes)
                        buffer.origin[d] = self._name(start, "start")

    def _anchor(self) -> Index:
        """The points at which vectors of rows with stages in registers may begin: those where rows of what the group
        reads do."""
        assert self.plan.group.vector is not None
        along = self.plan.group.vector.dim
        for stage in (*self.plan.stages, self.plan.output):
            moving = {
                v for v, dims in zip(stage.dims, self.plan.follows.get(stage.name, ()), strict=False) if along in dims
            }
            for a in accesses(stage):
                buffer = self.buffers.get((a.producer, 0))
                if buffer is None or a.producer in self.plan.members or not buffer.dims:
                    continue
                if any(isinstance(e, Var) and e.name in moving for e in walk(a.access.indices[buffer.unit])):
                    return buffer.origin[buffer.unit]
        return self.plan.root[self.plan.output.name][self.plan.output.dims.index(along)][0]

    def compute(self, stage: Stage, p: Placement, box: Box, inlined: Mapping[str, Stage] | None = None) -> None:
        inlined = self.inlined if inlined is None else inlined
        buffers = tuple(self.buffers[stage.name, c] for c in range(len(stage.types)))
        self.builder.emit(Comment(f"{stage.name}: computed at {p.compute}, stored at {p.store}"))
        order = (*p.order, *(d for d in stage.storage if d not in p.order))
        unroll = {} if p.vector is None else self._channels(stage, p) or self._worth_unrolling(stage, p.vector.dim)
        order = (*unroll, *(d for d in order if d not in unroll))
        blocks = {} if p.vector is None else self._blocks(stage, p.vector.dim, unroll, self.plan.index(p.compute))
        self._fill(inlined, stage, buffers, order, p.vector, unroll, blocks, p.updates, box)

    def _fill(
        self,
        inlined: Mapping[str, Stage],
        stage: Stage,
        buffers: tuple[Buffer, ...],
        order: tuple[str, ...],
        vector: Vector | None,
        unroll: Mapping[str, tuple[int | None, int]],
        blocks: Mapping[str, int],
        updates: tuple[UpdateLoops, ...],
        box: Box,
    ) -> None:
        """A box of a stage, or what is read of it: its values, then its updates."""
        self.builder.emit(
            Compute(
                stage.name,
                buffers,
                tuple(DimRange(d, *ends) for d, ends in zip(stage.dims, box, strict=True)),
                order,
                self.reads([stage], inlined),
                vector,
                unrolled_dims(unroll),
                next((BlockedDim(d, points) for d, points in blocks.items()), None),
                updates,
                self.plan.group.stream and stage is self.plan.output,
            )
        )

    def _channels(self, stage: Stage, p: Placement) -> dict[str, tuple[int, int]]:
        """The channels of a stage that lie beside its vectors, with the range that they are expected to have: all are
        computed together."""
        channel, beside = stage.storage[0], self.buffers[stage.name, 0]
        first = p.order[:1] == (channel,) and p.vector is not None and p.vector.dim == stage.dims[beside.pixels]
        return {channel: self.plan.expected(stage.name, channel)} if beside.channels and first else {}

    def _worth_unrolling(self, stage: Stage, along: str) -> dict[str, tuple[int, int]]:
        """Short dims of a stage that other points share loads over, with the range that they are expected to have:
        channels that are all weighted by one alpha are computed side by side, and shifts of what is compared."""
        found: dict[str, tuple[int, int]] = {}
        points = 1
        for d in stage.dims:
            expected = self.plan.expected(stage.name, d)
            if d == along or expected[1] < 2 or points * expected[1] > self.builder.core.registers.held:
                continue
            if shares_loads(stage, d, along, self.inlined):
                found[d] = expected
                points *= expected[1]
        return found

    def _blocks(
        self, stage: Stage, along: str, unroll: Mapping[str, tuple[int | None, int]], at: int
    ) -> dict[str, int]:
        """A dim of many iterations, of which some are computed side by side, at level `at`: where they read across rows
        of memory, where long reductions share what they load, or where windows of neighbours overlap."""
        for d, points in transposed_dims(stage, along, self.inlined, self.buffers).items():
            span = self.plan.spans[stage.name][stage.dims.index(d)]
            # updates run over the whole of a dim, whatever the level
            rows = self._rows(span, at) if span.known or not stage.updates else self.plan.expected(stage.name, d)[1]
            if d not in unroll and rows >= points:
                return {d: points}
        if unroll:
            return {}
        long, sums = has_long_reduction(stage, self.inlined), self.builder.core.registers.sums
        for d, span in zip(stage.dims, self.plan.spans[stage.name], strict=True):
            if d == along:
                continue
            if long and self.plan.expected(stage.name, d)[1] >= 2 * sums:
                if shares_loads(stage, d, along, self.inlined):
                    return {d: sums}
            elif not long and overlaps(stage, d, along):
                rows, points = self._rows(span, at), blocks_together(stage, d)
                if rows >= ROWS_TOGETHER:
                    return {d: points if rows >= points else ROWS_TOGETHER}
        return {}

    def _rows(self, span: Span, at: int) -> int:
        """The expected number of points of a dim of that span in an iteration of level `at`."""
        if not span.known or span.var is None:
            return 1
        return int(self.estimate(self.plan.points(span.var, at)) * span.rate)

    def _compute_output(self, n: int, box: Box) -> None:
        open_dims = [dim_of(v.name) for v in reversed(self.plan.levels[n:]) if v.name == inner(v.dim)]
        order = (*open_dims, *(d for d in self.plan.output.dims if d not in open_dims))
        group, unroll = self.plan.group, self.plan.unrolled()
        blocks = {} if group.vector is None else self._blocks(self.plan.output, group.vector.dim, unroll, n - 1)
        self._fill(
            self.inlined, self.plan.output, self.output_buffers, order, group.vector, unroll, blocks, group.updates, box
        )

    def _loop(self, n: int, level: Level, step: int, boxes: Boxes, layout: Scratch) -> None:
        b = self.builder
        lo, hi = boxes[self.plan.output.name][self.plan.output.dims.index(level.dim)]
        windows = self.plan.windows.get(n)
        warm = windows.warm_up if windows is not None else 0
        parallel = level.name == self.plan.group.parallel
        back = self._moves_back(n, level) and not _divides(step, (lo, hi))
        end = maximum(hi - (step - 1), lo) if back and parallel else hi
        with b.scope() as body:
            loop = _OpenLoop(b.fresh(level.dim))
            here = b.declare(loop.var)
            if parallel and layout.buffers:
                b.emit(Bind(layout))
            if end is hi:
                self._iteration(n, _tile(here, (lo, hi), step, back=back, warm=warm > 0), boxes, layout, loop, warm)
            else:
                self._last_tile_too(n, here, step, boxes, layout)
            if parallel and self.plan.group.stream:
                b.emit(Fence())
        for done, start in loop.start.items():
            b.emit(MutableIndex(done, start))
        comment = f"{level.name} of {self.plan.output.name}" + (f", {warm} ahead to fill windows" if warm else "")
        b.emit(Loop(loop.var, lo - warm, end, const(step), tuple(body), parallel=parallel, comment=comment))

    def _last_tile_too(self, n: int, here: Index, step: int, boxes: Boxes, layout: Scratch) -> None:
        """The loop over the tiles of an iteration of a parallel loop: of the last one the tile that begins `here`, and
        then the dim's last, which is moved back over it and so is no other thread's."""
        b, dim = self.builder, self.plan.levels[n].dim
        lo, hi = boxes[self.plan.output.name][self.plan.output.dims.index(dim)]
        with b.scope() as body:
            loop = _OpenLoop(b.fresh(dim))
            tile = _tile(b.declare(loop.var), (lo, hi), step, back=True)
            self._iteration(n, tile, boxes, layout, loop)
        past = maximum(here + (2 * step - 1) - hi, const(0))  # where there is no room for one more
        end = minimum(here + (step - 1) + past, hi)
        b.emit(Loop(loop.var, here, end, const(step), tuple(body), once=True, comment="a tile, and the last"))

    def _iteration(
        self,
        n: int,
        tile: tuple[Index, Index],
        boxes: Boxes,
        layout: Scratch,
        loop: _OpenLoop,
        warm: int = 0,
    ) -> None:
        """The inside of an iteration of `loop`, of level `n`, which covers the points of `tile` of the output."""
        level, output = self.plan.levels[n], self.plan.output
        d = output.dims.index(level.dim)
        held = {name: boxes[name] for name in self.plan.passing(n)}
        inside: Boxes = dict(boxes)
        row = list(boxes[output.name])
        row[d] = (self._name(tile[0], f"{level.dim}_lo"), self._name(tile[1], f"{level.dim}_hi"))
        inside[output.name] = tuple(row)
        self._propagate(inside, n, held, loop)
        self.warm += [level.dim] if warm else []
        self._body(n + 1, inside, layout, dict.fromkeys(loop.once, boxes[output.name][d][0] - warm - sym(loop.var)))
        self.warm = self.warm[:-1] if warm else self.warm
        for done, end in loop.end.items():
            self.builder.emit(AssignIndex(done, end))

    def _moves_back(self, n: int, level: Level) -> bool:
        """True if the last tile is moved back to end with the dim, so that it has as many points as all others: points
        that are computed side by side take as long one by one as all of them together. Some are computed twice, with
        all that is stored inside of the tile."""
        side_by_side = level.dim in self.plan.unrolled() and level.name != inner(level.dim)
        return side_by_side and not self.plan.passing(n) and not self.plan.output.updates


def _tile(here: Index, ends: tuple[Index, Index], step: int, back: bool, warm: bool = False) -> tuple[Index, Index]:
    """The points of a tile that begins `here`; moved `back` where fewer than `step` are left, or from the first where
    the loop begins ahead of it."""
    lo, hi = ends
    last = here + (step - 1) if _divides(step, ends) else minimum(here + (step - 1), hi)
    if back:
        return maximum(last - (step - 1), lo), last
    return maximum(here, lo) if warm else here, last


def _divides(step: int, ends: tuple[Index, Index]) -> bool:
    """True if every iteration has `step` points, at every size."""
    points = ends[1] - ends[0] + 1
    return step == 1 or (points.is_const and points.const % step == 0)


@dataclass(slots=True)
class _OpenLoop:
    """State of the loop that is being lowered, kept from iteration to iteration."""

    var: str
    done: dict[str, str] = field(default_factory=dict)
    start: dict[str, Index] = field(default_factory=dict)
    end: dict[str, Index] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
