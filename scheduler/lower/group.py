"""One group to loops: its output's tiled nest, and at each level the stages computed there.

Boxes flow inwards: entering a loop, the output's box shrinks, and every stage computed inside gets the union of
its readers' footprints. A stage that is stored outside a loop it is computed in slides along it: it keeps
how far it has been produced and computes only what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scheduler.analysis.accesses import accesses
from scheduler.analysis.bounds import Box, box_hull, footprint, reads, settled_box, variables
from scheduler.analysis.dependence import pure_dims
from scheduler.analysis.index import Index, const, divide, maximum, minimum, sym
from scheduler.analysis.neighbours import ROWS_TOGETHER, overlaps
from scheduler.analysis.spans import Span, compose, variable
from scheduler.analysis.unread import Half
from scheduler.analysis.windows import Windows, group_follows, group_spans, windows
from scheduler.lang.expr import Var, walk
from scheduler.lang.pipeline import Stage
from scheduler.lower.builder import Builder
from scheduler.lower.evaluate import Sources
from scheduler.lower.fused import grid_start
from scheduler.lower.interleaved import expect_channels
from scheduler.lower.nest import Nest, run, shares_loads, values_of
from scheduler.lower.program import Bind, Buffer, Comment, Extents, Fence, If, Loop, Mutable, Scratch, SetIndex
from scheduler.lower.reductions import has_long_reduction
from scheduler.lower.rows import joined_row
from scheduler.lower.updates import left_to_values, run_updates
from scheduler.schedule import INLINE, Group, Placement, UpdateLoops, Vector, dim_of, inner

Boxes = dict[str, Box]
UNROLLED_EXTENT = 16
"""A longer loop is not unrolled, whatever the schedule says."""
SHARED_POINTS = 8
"""So many points are computed side by side at most for the sake of shared loads: the vectors have to fit registers."""
SPARE_VECTORS = 4
"""As far ahead as four windows one after the other reach."""
SIDE_BY_SIDE = 8
"""As many sums in registers hide the latency of an addition."""


@dataclass(frozen=True, slots=True)
class Level:
    """A loop of the group, outermost is 0. `step` None: the whole extent in one go, no loop is printed."""

    name: str
    dim: str
    step: int | None


@dataclass(slots=True)
class Slide:
    """A stage sliding along the loop that is open: `done` is the first row that has not been produced yet."""

    dim: int
    done: str


@dataclass(slots=True)
class GroupLowering:
    """Lowers one group. `root` are the boxes of the whole image, `stages` the group's members and inlined stages in
    topological order, `expected` gives the (min, extent) of a stage's dim at the estimates; `sources.buffers` gets an
    entry for every member."""

    builder: Builder
    sources: Sources
    group: Group
    output: Stage
    output_buffers: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    root: Mapping[str, Box]
    expected: Callable[[str, str], tuple[int, int]]
    halves: Mapping[str, Half]
    spans: dict[str, tuple[Span, ...]] = field(init=False)
    follows: dict[str, tuple[frozenset[str], ...]] = field(init=False)
    levels: tuple[Level, ...] = field(init=False)
    members: dict[str, Placement] = field(init=False)
    registers: frozenset[str] = field(init=False)
    anchor: Index = field(init=False)
    scratch: list[Extents] = field(default_factory=list)
    _depends: dict[str, set[str]] = field(default_factory=dict)
    warm: list[str] = field(default_factory=list)
    row_by_row: dict[Index, Index] = field(default_factory=dict)
    _slides: dict[tuple[str, int], int] = field(init=False)
    _windows: dict[int, Windows] = field(init=False)

    def __post_init__(self) -> None:
        group = self.group
        self.members = {p.stage: p for p in group.placements if p.compute != INLINE}
        self.registers = self._in_registers()
        self.levels = tuple(self._level(name) for name in reversed(group.loops))
        self.spans = group_spans(self.output, self.stages)
        self.follows = group_follows(self.output, self.stages)
        self._slides, self._windows = self._plan_slides()
        self.anchor = self._anchor() if self.registers else const(0)

    # the plan ------------------------------------------------------------

    def _level(self, name: str) -> Level:
        dim = dim_of(name)
        if name != inner(dim):
            tile = self.group.tile(dim)
            return Level(name, dim, None if tile is None else tile.size)
        vector = self.group.vector
        return Level(name, dim, vector.lanes if vector is not None and vector.dim == dim else 1)

    def _in_registers(self) -> frozenset[str]:
        """The stages whose memory is registers: those the schedule says, and what lives for one vector beside them."""
        asked = {name for name, p in self.members.items() if p.storage == "registers"}
        if not asked or self.group.vector is None:
            return frozenset()
        loop = inner(self.group.vector.dim)
        return frozenset(asked | {n for n, p in self.members.items() if p.compute == p.store == loop})

    def index(self, loop: str) -> int:
        """The number of a loop; -1 for root."""
        return next((n for n, level in enumerate(self.levels) if level.name == loop), -1)

    def _plan_slides(self) -> tuple[dict[tuple[str, int], int], dict[int, Windows]]:
        """Which stages slide along which loop, in which dim of theirs, and the windows of each loop."""
        slides: dict[tuple[str, int], int] = {}
        for name, p in self.members.items():
            for n in range(self.index(p.store) + 1, self.index(p.compute) + 1):
                follow = [d for d, dims in enumerate(self.follows[name]) if self.levels[n].dim in dims]
                if len(follow) == 1 and self.spans[name][follow[0]].known:
                    slides[name, n] = follow[0]
        plans = {}
        for n, level in enumerate(self.levels):
            here = {s: d for (s, m), d in slides.items() if m == n and self._foldable(s, n, d)}
            if not here or level.step is None or (level.name == inner(level.dim) and level.step > 1):
                continue
            inside = [s for s in self.stages if s.name not in self.members or self._computed_inside(s.name, n)]
            # ahead of its first row a loop over tiles would have nothing to run inside: its first iteration fills them
            rows = None if level.name == inner(level.dim) else level.step
            plans[n] = windows(self.output, inside, self.spans, self.follows, level.dim, here, rows)
        return slides, plans

    def _computed_inside(self, name: str, n: int) -> bool:
        return self.index(self.members[name].compute) >= n

    def _foldable(self, name: str, n: int, d: int) -> bool:
        """A ring along the first loop inside the store level, in a dim that is not read as a vector. Along a loop over
        tiles there is one of what is computed once a tile."""
        p, level = self.members[name], self.levels[n]
        here = level.name == inner(level.dim) or self.index(p.compute) == n
        return p.fold and here and self.index(p.store) + 1 == n and d != self._unit(self._stage(name))

    def _stage(self, name: str) -> Stage:
        return next(s for s in self.stages if s.name == name)

    @staticmethod
    def _unit(stage: Stage) -> int:
        return stage.dims.index(stage.storage[0]) if stage.dims else 0

    # lowering ------------------------------------------------------------

    def run(self) -> tuple[Extents, ...]:
        """Emits the group into the builder's open scope. Returns the scratch buffers of a thread."""
        b = self.builder
        b.emit(Comment(f"{self.output.name}: {', '.join(reversed(self.group.loops)) or 'one value'}"))
        boxes: Boxes = {self.output.name: self.root[self.output.name]}
        self._declare_buffers()
        self._propagate(boxes, -1, {})
        parallel = self.group.parallel
        bind_here = not any(level.name == parallel and level.step is not None for level in self.levels)
        layout = Scratch(tuple(self.scratch))
        if self.scratch:
            b.emit(layout)
            if bind_here:
                b.emit(Bind(layout))
                for extents in layout.buffers:
                    b.declare(extents.buffer.pointer)
        b.prefetch, b.rows_ahead = self.group.prefetch, self._rows_ahead()
        self._body(0, boxes, layout, {})
        b.prefetch, b.rows_ahead = 0, {}
        if self.group.stream and bind_here:
            b.emit(Fence())
        return tuple(self.scratch)

    def _rows_ahead(self) -> dict[str, dict[int, int]]:
        """Of what the group reads from outside, by dim, how many rows further on the next tile of unrolled ones is."""
        sizes = {d: t.size for d in self.group.unroll if (t := self.group.tile(d)) is not None and t.size is not None}
        found: dict[str, dict[int, int]] = {}
        for stage in (*self.stages, self.output) if sizes else ():
            own = self.spans.get(stage.name) or tuple(map(variable, stage.dims))
            follows = dict(zip(stage.dims, own, strict=True))
            for a in accesses(stage):
                for d, span in enumerate(a.spans):
                    moved = span if span.var is None else compose(span, follows[span.var])
                    if moved.known and moved.var in sizes:
                        found.setdefault(a.producer, {})[d] = int(moved.rate * sizes[moved.var])
        return found

    def _declare_buffers(self) -> None:
        """Scratch buffers of all members, with extents that hold for every iteration of their store level."""
        for stage in self.stages:
            if stage.name not in self.members or stage.name in self.registers:
                continue
            p = self.members[stage.name]
            order = tuple(stage.dims.index(d) for d in stage.storage)
            for component, type_ in enumerate(stage.types):
                buffer = Buffer(stage.name, component, type_, stage.dims, self._unit(stage), "thread")
                if stage.dims:
                    expect_channels(buffer, stage.storage, self.expected(stage.name, stage.storage[0])[1])
                buffer.pointer = self.builder.fresh(stage.name)
                extents = []
                for d in range(len(stage.dims)):
                    ring = self._ring(p, d)
                    buffer.ring.append(ring)
                    size = const(ring) if ring is not None else self._extent(stage, d, self.index(p.store))
                    if self._on_grid(stage, d):
                        size = size + 2 * self.room + self._lanes  # whole vectors reach beyond both ends
                    extents.append(self.builder.let(size, f"{stage.name}_{stage.dims[d]}_size"))
                    buffer.origin.append(const(0))
                    unit = d == buffer.unit
                    buffer.stride.append(const(1) if unit else sym(self.builder.fresh(f"{stage.name}_stride")))
                buffer.extent = list(extents)
                self.sources.buffers[stage.name, component] = buffer
                self.scratch.append(Extents(buffer, order, tuple(extents[d] for d in order)))

    def _ring(self, p: Placement, d: int) -> int | None:
        n = self.index(p.store) + 1
        if self._slides.get((p.stage, n)) != d or n not in self._windows:
            return None
        rows = self._windows[n].rows.get(p.stage)
        return None if rows is None else 1 << (rows - 1).bit_length()

    def _extent(self, stage: Stage, d: int, at: int) -> Index:
        """The most elements of dim `d` that an iteration of level `at` needs."""
        lo, hi = self.root[stage.name][d]
        whole = maximum(hi - lo + 1, const(1))
        span = self.spans[stage.name][d]
        if not span.known:
            return whole
        if span.var is None:
            return minimum(const(span.extent(1)), whole)
        points = self._points(span.var, at)
        if points.is_const:
            return minimum(const(span.extent(points.const)), whole)
        k = span.rate.denominator
        extra = const(span.extent(1))
        grown = divide((points - 1).scaled(abs(span.rate.numerator)) + (k - 1), k)
        return minimum(grown + extra, whole)

    def _points(self, dim: str, at: int) -> Index:
        """How many points of the output's `dim` one iteration of level `at` covers."""
        lo, hi = self.root[self.output.name][self.output.dims.index(dim)]
        points = maximum(hi - lo + 1, const(1))
        for level in self.levels[: at + 1]:
            if level.dim == dim and level.step is not None:
                points = minimum(points, const(level.step))
                if level.step == 1:
                    return const(1)
        return points

    # boxes ------------------------------------------------------------

    def _name(self, value: Index, hint: str) -> Index:
        named = self.builder.let(value, hint)
        if named != value:
            inside: set[str] = set()
            for s in value.symbols():
                inside |= {s} | self._depends.get(s, set())
            self._depends[named.terms[0][0].key] = inside
        return named

    def _moves(self, value: Index, var: str) -> bool:
        return any(s == var or var in self._depends.get(s, ()) for s in value.symbols())

    def _propagate(self, boxes: Boxes, n: int, held: Mapping[str, Box], loop: _OpenLoop | None = None) -> None:
        """Fills in the boxes of all stages computed at level `n` or inside, readers first, from the output's box.

        `held` are the boxes of the level outside for stages that are stored outside loop `n`: those slide, or
        are computed once.
        """
        inside = [s for s in self.stages if s.name not in self.members or self._computed_inside(s.name, n)]
        need: dict[str, Box] = {}
        for stage in (self.output, *reversed(inside)):
            if stage.name != self.output.name:
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
        # what moves is computed again where it does not slide; of the rest a loop outside may have left but what is new
        whole = tuple(
            inside if d in movers or inside == left else (maximum(inside[0], left[0]), minimum(inside[1], left[1]))
            for d, (inside, left) in enumerate(zip(box, outside, strict=True))
        )
        if len(movers) > 1:
            return whole
        d = movers[0]
        if stage.dims[d] not in pure_dims(stage):
            return whole  # its updates run over the whole of it
        span = self.spans[stage.name][d]
        if span.known and span.rate < 0:
            return whole  # it comes from above: nothing is new at the end
        done = loop.done.get(stage.name)
        if done is None:
            done = self.builder.fresh(f"{stage.name}_{stage.dims[d]}_done")
            loop.done[stage.name] = done
            self.builder.declare(done)  # inside the loop: nothing that depends on it may be moved out
            self._depends[done] = {loop.var}
            loop.start[done] = outside[d][0]
            if self._fills_row_by_row(n, span):
                self.row_by_row[sym(done)] = outside[d][0]
        loop.end[done] = maximum(sym(done), box[d][1] + 1)
        first = sym(done)
        if span.known and span.rate > span.width + 1:
            first = maximum(first, box[d][0])  # rows between those of two iterations are read by none
        new = list(outside)
        new[d] = (first, box[d][1])
        return tuple(new)

    def _fills_row_by_row(self, n: int, span: Span) -> bool:
        """Whether the iterations ahead of loop `n` fill the window of `span`, so that one row is new in each."""
        plan = self._windows.get(n)
        if plan is None or not span.known or span.rate > 1:
            return False
        return plan.warm_up * span.rate >= span.width + (span.rate < 1)

    # loops ------------------------------------------------------------

    def _body(self, n: int, boxes: Boxes, layout: Scratch, once: Mapping[str, Index]) -> None:
        """The inside of level n - 1: buffers that begin here, stages computed here, then level n. The stages of
        `once` are computed where their index is not negative: in the first iteration."""
        for stage in self.stages:
            p = self.members.get(stage.name)
            if p is not None and self.index(p.store) == n - 1:
                self._begin(stage, boxes[stage.name])
        for stage in self.stages:
            p = self.members.get(stage.name)
            if p is None or self.index(p.compute) != n - 1:
                continue
            if stage.name not in once:
                self.compute(stage, p, boxes[stage.name])
                continue
            with self.builder.condition() as body:
                self.compute(stage, p, boxes[stage.name])
            self.builder.emit(If((once[stage.name],), tuple(body)))
        if not self._more(n):
            self._compute_output(n, boxes[self.output.name])
            return
        level = self.levels[n]
        if self._is_fused(level):
            joined_row(self, n, level, boxes)
        elif level.step is None:
            self._body(n + 1, boxes, layout, once)
        else:
            self._loop(n, level, level.step, boxes, layout)

    def _more(self, n: int) -> bool:
        """Whether a loop at level n or inside has to be opened for a member, a tile or the threads."""
        inside = any(self.index(p.compute) >= n for p in self.members.values())
        tiled = any(v.name != inner(v.dim) and v.step is not None for v in self.levels[n:])
        threads = any(v.name == self.group.parallel for v in self.levels[n:])
        return n < len(self.levels) and (inside or tiled or threads)

    def _begin(self, stage: Stage, box: Box) -> None:
        if stage.name in self.registers:
            return
        for component in range(len(stage.types)):
            buffer = self.sources.buffers[stage.name, component]
            for d, (lo, _) in enumerate(box):
                if buffer.ring[d] is None:
                    buffer.origin[d] = lo
                    if self._on_grid(stage, d):
                        start = grid_start(lo - self.room, self.anchor, self._lanes)
                        buffer.origin[d] = self._name(start, "start")

    @property
    def room(self) -> int:
        """Elements that rows of rings have to spare at both ends, for vectors that the row does not need."""
        return SPARE_VECTORS * self._lanes

    @property
    def _lanes(self) -> int:
        assert self.group.vector is not None
        return self.group.vector.lanes

    def _on_grid(self, stage: Stage, d: int) -> bool:
        """Whether dim `d` of a stage in memory is the one that rows with stages in registers move along."""
        p, vector = self.members[stage.name], self.group.vector
        if not self.registers or vector is None or p.compute != inner(vector.dim) or p.store == p.compute:
            return False
        span = self.spans[stage.name][d]
        return d == self._unit(stage) and span.known and span.var == vector.dim and span.rate == 1

    def _anchor(self) -> Index:
        """Where vectors of rows with stages in registers may begin: where rows of what the group reads do."""
        assert self.group.vector is not None
        along = self.group.vector.dim
        for stage in (*self.stages, self.output):
            moving = {v for v, dims in zip(stage.dims, self.follows.get(stage.name, ()), strict=False) if along in dims}
            for a in accesses(stage):
                buffer = self.sources.buffers.get((a.producer, 0))
                if buffer is None or a.producer in self.members or not buffer.dims:
                    continue
                if any(isinstance(e, Var) and e.name in moving for e in walk(a.access.indices[buffer.unit])):
                    return buffer.origin[buffer.unit]
        return self.root[self.output.name][self.output.dims.index(along)][0]

    def compute(self, stage: Stage, p: Placement, box: Box, sources: Sources | None = None) -> None:
        buffers = tuple(self.sources.buffers[stage.name, c] for c in range(len(stage.types)))
        self.builder.emit(Comment(f"{stage.name}: computed at {p.compute}, stored at {p.store}"))
        order = (*p.order, *(d for d in stage.storage if d not in p.order))
        unroll = {} if p.vector is None else self._worth_unrolling(stage, p.vector.dim)
        order = (*unroll, *(d for d in order if d not in unroll))
        blocks = {} if p.vector is None else self._blocks(stage, p.vector.dim, unroll, self.index(p.compute))
        self._fill(sources or self.sources, stage, buffers, order, p.vector, unroll, blocks, p.updates, box)

    def _fill(
        self,
        sources: Sources,
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
        b = self.builder
        past = (buffers[0], stage.dims) if self.group.stream and stage is self.output else None
        half, lanes = self.halves.get(stage.name), {*unroll, *blocks, *(() if vector is None else (vector.dim,))}
        half = None if half is None or lanes & {half.slow, half.fast} else half
        body = values_of(b, stage, buffers)
        for part in left_to_values(b, sources, stage, updates, box):
            bounds = dict(zip(stage.dims, part, strict=True))
            run(b, sources, Nest(stage.name, body, bounds, order, vector, unroll, blocks, past=past, half=half))
        run_updates(b, sources, stage, buffers, updates, box, {d: self.expected(stage.name, d) for d in stage.dims})

    def _worth_unrolling(self, stage: Stage, along: str) -> dict[str, tuple[int, int]]:
        """Short dims of a stage that other points share loads over, with the range that they are expected to have:
        channels that are all weighted by one alpha are computed side by side, and shifts of what is compared."""
        found: dict[str, tuple[int, int]] = {}
        points = 1
        for d in stage.dims:
            expected = self.expected(stage.name, d)
            if d == along or expected[1] < 2 or points * expected[1] > SHARED_POINTS:
                continue
            if shares_loads(stage, d, along, self.sources.inlined):
                found[d] = expected
                points *= expected[1]
        return found

    def _blocks(
        self, stage: Stage, along: str, unroll: Mapping[str, tuple[int | None, int]], at: int
    ) -> dict[str, int]:
        """A dim of many iterations, of which some are computed side by side, at level `at`: where long reductions share
        what they load, or where windows of neighbours overlap."""
        if unroll:
            return {}
        long = has_long_reduction(stage)
        for d, span in zip(stage.dims, self.spans[stage.name], strict=True):
            if d == along:
                continue
            if long and self.expected(stage.name, d)[1] >= 2 * SIDE_BY_SIDE:
                if shares_loads(stage, d, along, self.sources.inlined):
                    return {d: SIDE_BY_SIDE}
            elif not long and overlaps(stage, d, along) and self._rows(span, at) >= ROWS_TOGETHER:
                return {d: ROWS_TOGETHER}
        return {}

    def _rows(self, span: Span, at: int) -> int:
        """How many points of a dim of that span an iteration of level `at` is expected to have, more or less."""
        if not span.known or span.var is None:
            return 1
        return int(self.builder.expected(self._points(span.var, at)) * span.rate)

    def _compute_output(self, n: int, box: Box) -> None:
        open_dims = [dim_of(v.name) for v in reversed(self.levels[n:]) if v.name == inner(v.dim)]
        order = (*open_dims, *(d for d in self.output.dims if d not in open_dims))
        group, unroll = self.group, self.unrolled()
        blocks = {} if group.vector is None else self._blocks(self.output, group.vector.dim, unroll, n - 1)
        self._fill(
            self.sources, self.output, self.output_buffers, order, group.vector, unroll, blocks, group.updates, box
        )

    def unrolled(self) -> dict[str, tuple[int | None, int]]:
        """The output's dims to unroll, with the (min, extent) that they are expected to have: those of tiles begin
        anywhere."""
        found: dict[str, tuple[int | None, int]] = {}
        for d in self.group.unroll:
            tile = self.group.tile(d)
            size = None if tile is None else tile.size
            found[d] = self.expected(self.output.name, d) if size is None else (None, size)
        return {d: (start, extent) for d, (start, extent) in found.items() if extent <= UNROLLED_EXTENT}

    def _is_fused(self, level: Level) -> bool:
        """Whether `level` is the vectorised loop of a row with stages in registers."""
        vector = self.group.vector
        return bool(self.registers) and vector is not None and level.name == inner(vector.dim)

    def _loop(self, n: int, level: Level, step: int, boxes: Boxes, layout: Scratch) -> None:
        b = self.builder
        d = self.output.dims.index(level.dim)
        lo, hi = boxes[self.output.name][d]
        plan = self._windows.get(n)
        warm = plan.warm_up if plan is not None else 0
        held = {s: boxes[s] for s, p in self.members.items() if self.index(p.store) < n <= self.index(p.compute)}
        parallel = level.name == self.group.parallel
        with b.scope() as body:
            var = b.fresh(level.dim)
            here = b.declare(var)
            if parallel and layout.buffers:
                b.emit(Bind(layout))
                for extents in layout.buffers:
                    b.declare(extents.buffer.pointer)
            loop = _OpenLoop(var)
            first = maximum(here, lo) if warm else here
            last = here if step == 1 else minimum(here + (step - 1), hi)
            inside: Boxes = dict(boxes)
            row = list(boxes[self.output.name])
            row[d] = (self._name(first, f"{level.dim}_lo"), self._name(last, f"{level.dim}_hi"))
            inside[self.output.name] = tuple(row)
            self._propagate(inside, n, held, loop)
            self.warm += [level.dim] if warm else []
            self._body(n + 1, inside, layout, dict.fromkeys(loop.once, lo - warm - here))
            self.warm = self.warm[:-1] if warm else self.warm
            for done, end in loop.end.items():
                b.emit(SetIndex(done, end))
            if parallel and self.group.stream:
                b.emit(Fence())
        for done, start in loop.start.items():
            b.emit(Mutable(done, start))
        comment = f"{level.name} of {self.output.name}" + (f", {warm} ahead to fill windows" if warm else "")
        shares = parallel and level.dim in self.group.unroll  # neighbours read the same rows
        b.emit(Loop(var, lo - warm, hi, const(step), tuple(body), parallel=parallel, shares=shares, comment=comment))


@dataclass(slots=True)
class _OpenLoop:
    """What the loop that is being lowered has to keep from iteration to iteration."""

    var: str
    done: dict[str, str] = field(default_factory=dict)
    start: dict[str, Index] = field(default_factory=dict)
    end: dict[str, Index] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
