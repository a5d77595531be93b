"""Rows whose stages share one loop over vectors: windows along the row rotate in registers.

A stage kept in registers is computed once per vector, as far ahead of the output as its furthest reader
needs (its lead); readers further back take lanes of it and of the vectors before it. Its old vectors live
as long as the row: compute level the vectorised loop, store level the loop around it, folded to registers.
A stage in a ring that is computed in the same loop is a stream too, which is also stored.

The loop runs ahead of the row's first output until every window is filled. Iterations that touch lanes
outside the row (the first ones and the last) load and store lane by lane; the others are whole vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.analysis.bounds import Box
from scheduler.analysis.index import Index, const, divide, maximum, minimum, sym
from scheduler.lang.pipeline import Stage
from scheduler.lang.types import BOOL
from scheduler.lower.builder import Builder, TooWide
from scheduler.lower.evaluate import Evaluator, Sources
from scheduler.lower.memory import store
from scheduler.lower.places import Axis, NotUniformBound
from scheduler.lower.program import Accumulator, Assign, Buffer, Lane, Loop, Value

Coordinates = tuple[Index, ...]


@dataclass(slots=True)
class Stream:
    """One row of a stage in registers: `at` are its coordinates in the other dims. Offsets are relative to the
    output's vector: readers ask for `least`..`lead`; `oldest` counts what their own windows reach back to."""

    stage: Stage
    component: int
    at: Coordinates
    lead: int
    least: int
    oldest: int
    current: Value | None = None
    previous: list[Value] = field(default_factory=list)

    def history(self, lanes: int) -> int:
        """How many vectors before the current one the readers reach."""
        return -(-(self.lead - self.least) // lanes)


@dataclass(slots=True)
class Streams:
    """The streams of a row, and the evaluator's way to them. `dims` has the moving dim of every stage that may be
    one, `rings` are those that are stored: rows that are no stream are read from their memory. While `planning`,
    requests are noted; then they are answered by lanes of the streams."""

    dims: Mapping[str, int]
    stages: Mapping[str, Stage]
    rings: frozenset[str]
    row_base: Index
    lanes: int
    planning: bool
    known: dict[tuple[str, int, Coordinates], Stream] = field(default_factory=dict)
    reader_oldest: int = 0
    depth: int = 0
    builder: Builder | None = None

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value of an access to stage `name`, or None where it is not a plain shift along a row at hand."""
        stage = self.stages[name]
        d = self.dims[stage.name]
        lane = index[d]
        if lane.pattern is None or any(not other.uniform for n, other in enumerate(index) if n != d):
            return None
        first = lane.pattern[0]
        shift = lane.base - self.row_base
        if not shift.is_const or lane.pattern != tuple(range(first, first + self.lanes)):
            return None
        at = tuple(other.base for n, other in enumerate(index) if n != d)
        assert self.builder is not None
        if any(self.builder.depth_of(x) >= self.depth for x in at):
            return None  # a row that changes inside the loop has no window
        return self._lanes(stage, component, at, shift.const + first)

    def _lanes(self, stage: Stage, component: int, at: Coordinates, offset: int) -> Value | None:
        b = self.builder
        assert b is not None
        type_ = stage.types[component]
        mask = 32 if type_ == BOOL else 0
        key = (stage.name, component, at)
        if self.planning:
            oldest = self.reader_oldest + offset
            s = self.known.setdefault(key, Stream(stage, component, at, offset, offset, oldest))
            s.lead, s.least, s.oldest = max(s.lead, offset), min(s.least, offset), min(s.oldest, oldest)
            if stage.name in self.rings:
                return None
            return b.define(
                "copy", (Value(type_, self.lanes, "planned", None, mask),), type_, self.lanes, (key, offset)
            )
        if stage.name in self.rings and key not in self.known:
            return None
        s = self.known[key]
        assert s.current is not None
        back, lanes = divmod(s.lead - offset, self.lanes)
        window = [s.current, *s.previous]
        if lanes == 0:
            return window[back]
        picks = tuple(self.lanes - lanes + j for j in range(self.lanes))
        args = (window[back + 1], window[back])
        return b.define("shuffle", args, type_, self.lanes, (picks,), hint=stage.name, mask_bits=mask)


@dataclass(frozen=True, slots=True)
class RowLoop:
    """What a fused row computes: the output on the points of `box` (its vectorised dim is the loop), after the
    stages of `streams`; those of `rings` are stored as well, in the row that is given."""

    output: Stage
    output_buffers: tuple[Buffer, ...]
    order: tuple[str, ...]
    dim: str
    lanes: int
    box: Mapping[str, tuple[Index, Index]]
    streams: Sequence[Stage]
    moving: Mapping[str, int]
    rings: Mapping[str, tuple[Box, Coordinates]]
    emit_output: bool


def fused_row(b: Builder, sources: Sources, row: RowLoop) -> None:
    """Emits the loops of one row. *Legal when* every stage of `streams` moves along the row at the rate of the
    output where it is read by a plain shift (other reads compute it where they stand)."""
    lanes, clamped = row.lanes, False
    while True:
        mark = b.mark()
        try:
            _Fused(b, sources, row, lanes, clamped).run()
            return
        except TooWide:
            b.rollback(mark)
            lanes //= 2
        except NotUniformBound:  # there is no telling where clamps are active: every lane has its own
            b.rollback(mark)
            clamped = True


class _Fused:
    def __init__(self, b: Builder, sources: Sources, row: RowLoop, lanes: int, clamped: bool) -> None:
        self.b = b
        self.clamped = clamped
        self.row = row
        self.lanes = lanes
        self.stages = {s.name: s for s in row.streams}
        names = {n: s for n, s in self.stages.items() if n not in row.rings}
        self.sources = Sources({**sources.inlined, **names}, sources.buffers, sources.params)
        self.lo, self.hi = row.box[row.dim]
        self.planned: dict[tuple[str, int, Coordinates], Stream] = {}

    def run(self) -> None:
        b = self.b
        constraints = self._plan()
        streams = self._ordered()
        reach = max((s.lead - s.oldest for s in streams), default=0)
        ahead = -(-reach // self.lanes)
        for s in streams:
            for _ in range(s.history(self.lanes)):
                s.previous.append(self._register(s))
        # vectors start at lo + lanes * k; whole ones are those inside the row where no clamp is active
        k_first = const(-ahead)
        start, end = self.lo, self.hi + 1
        for moving, fixed in constraints:
            if moving > 0:
                start = maximum(start, divide(fixed.scaled(-1) + (moving - 1), moving))
            else:
                end = minimum(end, divide(fixed, -moving) + self.lanes)
        k_last = b.let(divide(self.hi - self.lo, self.lanes), f"{self.row.dim}_last")
        whole = b.let(
            maximum(divide(start - self.lo + (self.lanes - 1), self.lanes), const(0)), f"{self.row.dim}_whole"
        )
        rest = divide(end - self.lo - self.lanes, self.lanes) + 1
        rest = b.let(maximum(minimum(rest, k_last + 1), whole), f"{self.row.dim}_rest")
        stop = minimum(whole - 1, k_last)
        if self.clamped:
            self._loop(k_first, k_last, streams, safe=True, comment="vectors clamped lane by lane")
            return
        self._loop(k_first, stop, streams, safe=True, comment="windows fill")
        self._loop(whole, rest - 1, streams, safe=False, comment="whole vectors")
        self._loop(rest, k_last, streams, safe=True, comment="the end of the row")

    # planning ------------------------------------------------------------------------------------------------------

    def _evaluator(self, k: str, planning: bool, safe: bool) -> tuple[Evaluator, Lane, Streams]:
        b = self.b
        axis = Axis(k, self.lanes, self.lanes, b.depth)
        base = self.lo + sym(k).scaled(self.lanes)
        streams = Streams(
            self.row.moving, self.stages, frozenset(self.row.rings), base, self.lanes, planning, self.planned,
            depth=b.depth, builder=b,
        )  # fmt: skip
        evaluator = Evaluator(b, self.sources, axis, streams=streams, exact=safe, fixed=True, safe=safe)
        return evaluator, Lane(base, tuple(range(self.lanes))), streams

    def _plan(self) -> list[tuple[int, Index]]:
        """Finds the streams, their leads, and where clamps are not active: (coefficient of x, rest), the sum of
        which is at least 0 for a vector that starts at x."""
        b = self.b
        mark = b.mark()
        constraints: list[tuple[int, Index]] = []
        with b.scope():
            k = b.fresh(f"{self.row.dim}k")
            b.declare(k)
            evaluator, lane, streams = self._evaluator(k, planning=True, safe=self.clamped)
            if self.row.emit_output:
                self._output(evaluator, lane, dry=True)
            for stage in reversed(self.row.streams):
                if stage.name in self.row.rings:
                    self._seed_ring(stage)
                for s in [s for key, s in self.planned.items() if key[0] == stage.name]:
                    streams.reader_oldest = s.oldest - s.lead
                    self._value(evaluator, s, lane)
            for c in evaluator.constraints:
                moving = c.coefficient(k)
                if moving == 0 or moving % self.lanes:
                    raise NotUniformBound
                step = moving // self.lanes
                # c = step * x + rest with x = lo + lanes * k
                constraints.append((step, c - sym(k).scaled(moving) - self.lo.scaled(step)))
        b.rollback(mark)
        return constraints

    def _seed_ring(self, stage: Stage) -> None:
        """The row that a ring gets is computed as far ahead as readers of any of its rows need, and to its end."""
        box, at = self.row.rings[stage.name]
        first, last = self.margins(stage.name, box)
        rows = [s for key, s in self.planned.items() if key[0] == stage.name]
        lead = max([last, *(s.lead for s in rows)])
        oldest = min([first, *(s.oldest for s in rows)])
        asked = {key: self.planned.pop(key) for key in list(self.planned) if key[0] == stage.name}
        for component in range(len(stage.types)):
            key = (stage.name, component, at)
            least = min(lead, asked[key].least) if key in asked else lead
            self.planned[key] = Stream(stage, component, at, lead, least, oldest)

    def margins(self, name: str, box: Box) -> tuple[int, int]:
        """How far the row of a ring reaches beyond the output's, at both ends."""
        lo, hi = box[self.row.moving[name]]
        return (lo - self.lo).const, (hi - self.hi).const

    def _ordered(self) -> list[Stream]:
        place = {s.name: n for n, s in enumerate(self.row.streams)}
        return sorted(self.planned.values(), key=lambda s: (place[s.stage.name], s.component, [x.key for x in s.at]))

    # emission ------------------------------------------------------------------------------------------------------

    def _register(self, s: Stream) -> Value:
        b, type_ = self.b, s.stage.types[s.component]
        cell = Value(type_, self.lanes, b.fresh(f"{s.stage.name}_before"), None, 32 if type_ == BOOL else 0)
        b.declare(cell.name)
        zero = Value(type_, 1, "", False if type_ == BOOL else 0.0 if type_.is_float else 0)
        b.emit(Accumulator(cell, zero))
        return cell

    def _loop(self, first: Index, last: Index, streams: list[Stream], safe: bool, comment: str) -> None:
        b = self.b
        outside = b.depth
        with b.scope() as body:
            k = b.fresh(f"{self.row.dim}k")
            b.declare(k)
            for s in streams:
                for cell in s.previous:  # nothing made of a register may leave the loop
                    b.depths[cell.name] = b.depth
            evaluator, lane, _ = self._evaluator(k, planning=False, safe=safe)
            for s in streams:
                s.current = self._fitted(self._value(evaluator, s, lane), s)
                if s.stage.name in self.row.rings:
                    self._store_ring(s, lane, safe)
            if self.row.emit_output:
                self._output(evaluator, lane, dry=False, safe=safe)
            if evaluator.constraints and safe:
                raise NotUniformBound
            for s in streams:
                window = [s.current, *s.previous]
                for n in range(len(s.previous) - 1, -1, -1):
                    value = window[n]
                    assert value is not None
                    b.emit(Assign(s.previous[n], value))
        for s in streams:
            for cell in s.previous:
                b.depths[cell.name] = outside
        b.emit(Loop(k, first, last, const(1), tuple(body), comment=comment))

    def _value(self, evaluator: Evaluator, s: Stream, lane: Lane) -> Value:
        """The stream's vector at its lead."""
        d = self.row.moving[s.stage.name]
        others = iter(s.at)
        env = {
            name: Lane(lane.base + s.lead, lane.pattern) if n == d else Lane(next(others))
            for n, name in enumerate(s.stage.dims)
        }
        return evaluator.value(s.stage.values[s.component], evaluator.frame(env))

    def _fitted(self, value: Value, s: Stream) -> Value:
        type_ = s.stage.types[s.component]
        mask = 32 if type_ == BOOL else 0
        op = "broadcast" if value.lanes == 1 else "copy" if value.mask_bits == mask else "mask"
        if op == "copy":
            return value
        return self.b.define(op, (value,), type_, self.lanes, mask_bits=mask)

    def _store_ring(self, s: Stream, lane: Lane, safe: bool) -> None:
        b, d = self.b, self.row.moving[s.stage.name]
        box, _ = self.row.rings[s.stage.name]
        buffer = self.sources.buffers[s.stage.name, s.component]
        others = iter(s.at)
        at = tuple(
            Lane(lane.base + s.lead, lane.pattern) if n == d else Lane(next(others)) for n in range(len(s.stage.dims))
        )
        assert s.current is not None
        store(b, buffer, at, s.current, box[d] if safe else None)

    def _output(self, evaluator: Evaluator, lane: Lane, dry: bool, safe: bool = False) -> None:
        """The output's points: the loops that are still open stand inside the vector's."""

        def nest(dims: tuple[str, ...], env: dict[str, Lane]) -> None:
            if dims:
                lo, hi = self.row.box[dims[0]]
                if lo == hi:
                    nest(dims[1:], {**env, dims[0]: Lane(lo)})
                    return
                with self.b.scope() as body:
                    var = self.b.fresh(dims[0])
                    nest(dims[1:], {**env, dims[0]: Lane(self.b.declare(var))})
                self.b.emit(Loop(var, lo, hi, const(1), tuple(body)))
                return
            ordered = {d: env[d] for d in self.row.output.dims}
            frame = evaluator.frame(ordered)
            values = [evaluator.value(v, frame) for v in self.row.output.values]
            if dry:
                return
            for buffer, value in zip(self.row.output_buffers, values, strict=True):
                store(self.b, buffer, tuple(ordered.values()), value, (self.lo, self.hi) if safe else None)

        nest(tuple(d for d in reversed(self.row.order) if d != self.row.dim), {self.row.dim: lane})
