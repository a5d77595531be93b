"""Plan of a group before a loop of it is lowered: its levels, which stages slide along them, and how much of a stage an
iteration needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilesmith.scheduler.analysis.access_functions import Span, compose, variable
from tilesmith.scheduler.analysis.accesses import accesses, span_inside
from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.analysis.sliding_windows import Windows, group_follows, group_spans, windows
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, dim_of, inner

UNROLLED_EXTENT = 16
"""A longer loop is not unrolled, whatever the schedule says."""
SPARE_VECTORS = 4
"""Vectors that four windows, one after the other, reach ahead."""


@dataclass(frozen=True, slots=True)
class Level:
    """A loop of the group, outermost is 0. `step` None: the whole extent in one go, no loop is printed."""

    name: str
    dim: str
    step: int | None


@dataclass(slots=True)
class GroupPlan:
    """One group. `root` are the boxes of the whole image, `stages` the group's members and inlined stages in
    topological order, `expected` gives the (min, extent) of a stage's dim at the estimates. `slides` has the dim in
    which a stage slides along a level, `windows` those of each level."""

    group: Group
    output: Stage
    stages: tuple[Stage, ...]
    root: Mapping[str, Box]
    expected: Callable[[str, str], tuple[int, int]]
    spans: dict[str, tuple[Span, ...]] = field(init=False)
    follows: dict[str, tuple[frozenset[str], ...]] = field(init=False)
    levels: tuple[Level, ...] = field(init=False)
    members: dict[str, Placement] = field(init=False)
    registers: frozenset[str] = field(init=False)
    slides: dict[tuple[str, int], int] = field(init=False)
    windows: dict[int, Windows] = field(init=False)

    def __post_init__(self) -> None:
        self.members = {p.stage: p for p in self.group.placements if p.compute != INLINE}
        self.registers = self._in_registers()
        self.levels = tuple(self._level(name) for name in reversed(self.group.loops))
        self.spans = group_spans(self.output, self.stages)
        self.follows = group_follows(self.output, self.stages)
        self.slides, self.windows = self._plan_slides()

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
        """The stages that slide, the loop and the dim that they slide along, and the windows of each loop."""
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
            # ahead of its first row a loop over tiles would have nothing to run inside: its first iteration fills them
            rows = None if level.name == inner(level.dim) else level.step
            plans[n] = windows(self.output, self.inside(n), self.spans, self.follows, level.dim, here, rows)
        return slides, plans

    def inside(self, n: int) -> list[Stage]:
        """The members that are computed at level `n` or inside of it, and all inlined stages."""
        return [s for s in self.stages if s.name not in self.members or self.index(self.members[s.name].compute) >= n]

    def passing(self, n: int) -> list[str]:
        """The members that are stored outside of level `n`, and computed at it or inside of it."""
        return [s for s, p in self.members.items() if self.index(p.store) < n <= self.index(p.compute)]

    def _foldable(self, name: str, n: int, d: int) -> bool:
        """A ring along the first loop inside the store level, in a dim that is not read as a vector. Along a loop over
        tiles there is one of what is computed once a tile."""
        p, level = self.members[name], self.levels[n]
        here = level.name == inner(level.dim) or self.index(p.compute) == n
        return p.fold and here and self.index(p.store) + 1 == n and d != self.unit(self._stage(name))

    def _stage(self, name: str) -> Stage:
        return next(s for s in self.stages if s.name == name)

    @staticmethod
    def unit(stage: Stage) -> int:
        """The dim of a stage that is fastest in memory."""
        return stage.dims.index(stage.storage[0]) if stage.dims else 0

    def ring(self, p: Placement, d: int) -> int | None:
        """The number of rows of dim `d` that are kept, a power of two; None where all are."""
        n = self.index(p.store) + 1
        if self.slides.get((p.stage, n)) != d or n not in self.windows:
            return None
        rows = self.windows[n].rows.get(p.stage)
        return None if rows is None else 1 << (rows - 1).bit_length()

    def extent(self, stage: Stage, d: int, at: int) -> Index:
        """The most elements of dim `d` that an iteration of level `at` needs."""
        lo, hi = self.root[stage.name][d]
        whole = maximum(hi - lo + 1, const(1))
        span = self.spans[stage.name][d]
        if not span.known:
            return whole
        if span.var is None:
            return minimum(const(span.extent(1)), whole)
        points = self.points(span.var, at)
        if points.is_const:
            return minimum(const(span.extent(points.const)), whole)
        k = span.rate.denominator
        extra = const(span.extent(1))
        grown = divide((points - 1).scaled(abs(span.rate.numerator)) + (k - 1), k)
        return minimum(grown + extra, whole)

    def points(self, dim: str, at: int) -> Index:
        """The number of points of the output's `dim` that one iteration of level `at` covers."""
        lo, hi = self.root[self.output.name][self.output.dims.index(dim)]
        points = maximum(hi - lo + 1, const(1))
        for level in self.levels[: at + 1]:
            if level.dim == dim and level.step is not None:
                points = minimum(points, const(level.step))
                if level.step == 1:
                    return const(1)
        return points

    def rows_ahead(self) -> dict[str, dict[int, int]]:
        """The distance in rows to the next tile of unrolled rows, by dim, for each array that the group reads from
        outside."""
        sizes = {d: t.size for d in self.group.unroll if (t := self.group.tile(d)) is not None and t.size is not None}
        found: dict[str, dict[int, int]] = {}
        for stage in (*self.stages, self.output) if sizes else ():
            own = self.spans.get(stage.name) or tuple(map(variable, stage.dims))
            follows = dict(zip(stage.dims, own, strict=True))
            for a in accesses(stage):
                for d, known in enumerate(a.spans):
                    span = known if known.known else span_inside(stage, a, d)
                    moved = span if span.var is None else compose(span, follows[span.var])
                    if moved.known and moved.var in sizes:
                        found.setdefault(a.producer, {})[d] = int(moved.rate * sizes[moved.var])
        return found

    def unrolled(self) -> dict[str, tuple[int | None, int]]:
        """The output's dims to unroll, with the (min, extent) that they are expected to have: those of tiles begin
        anywhere."""
        found: dict[str, tuple[int | None, int]] = {}
        for d in self.group.unroll:
            tile = self.group.tile(d)
            size = None if tile is None else tile.size
            found[d] = self.expected(self.output.name, d) if size is None else (None, size)
        return {d: (start, extent) for d, (start, extent) in found.items() if extent <= UNROLLED_EXTENT}

    def is_fused(self, level: Level) -> bool:
        """True if `level` is the vectorised loop of a row with stages in registers."""
        vector = self.group.vector
        return bool(self.registers) and vector is not None and level.name == inner(vector.dim)

    def goes_on(self, n: int) -> bool:
        """True if a loop at level n or inside has to be opened for a member, a tile or the threads."""
        inside = any(self.index(p.compute) >= n for p in self.members.values())
        tiled = any(v.name != inner(v.dim) and v.step is not None for v in self.levels[n:])
        threads = any(v.name == self.group.parallel for v in self.levels[n:])
        return n < len(self.levels) and (inside or tiled or threads)

    def fills_row_by_row(self, n: int, span: Span) -> bool:
        """True if the iterations ahead of loop `n` fill the window of `span`, so that one row is new in each."""
        plan = self.windows.get(n)
        if plan is None or not span.known or span.rate > 1:
            return False
        return plan.warm_up * span.rate >= span.width + (span.rate < 1)

    @property
    def room(self) -> int:
        """Elements that rows of rings have to spare at both ends, for vectors that the row does not need."""
        return SPARE_VECTORS * self.lanes

    @property
    def lanes(self) -> int:
        """The lanes of the group's vectors."""
        assert self.group.vector is not None
        return self.group.vector.lanes

    def on_grid(self, stage: Stage, d: int) -> bool:
        """True if dim `d` of a stage in memory is the one that rows with stages in registers move along."""
        p, vector = self.members[stage.name], self.group.vector
        if not self.registers or vector is None or p.compute != inner(vector.dim) or p.store == p.compute:
            return False
        span = self.spans[stage.name][d]
        return d == self.unit(stage) and span.known and span.var == vector.dim and span.rate == 1
