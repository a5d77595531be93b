"""Rows whose stages share one loop over vectors: windows along the row rotate in registers.

A stage kept in registers is computed once per vector, as far ahead of the output as its furthest reader
needs (its lead); readers further back take lanes of it and of the vectors before it. Its old vectors live
as long as the row: compute level the vectorised loop, store level the loop around it, folded to registers.
A stage in a ring that is computed in the same loop is a stream too, which is also stored.

All vectors lie on one grid, which begins where rows of the group's input do, so that loads are aligned where the input
is; or at the multiple before of n elements, where stages read at x // n: the shape of that is then known. The loop
runs ahead of the row's first output until every window is filled, and on until the output is complete. Iterations in
which a load or a store would leave its buffer (the first ones and the last) take the nearest elements and store what
belongs to the row; all others are whole vectors, whether or not the row needs all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby

from tilesmith.scheduler.analysis.bounds_inference import Box
from tilesmith.scheduler.features.pipeline.streaming_stores import line_vectors
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, modulo, multiply, sym
from tilesmith.scheduler.ir.loop.builder import Builder, TooWide
from tilesmith.scheduler.ir.loop.ops import Broadcast, Load, ResizeMask
from tilesmith.scheduler.ir.loop.program import Accumulator, Assign, Body, Define, Loop, PeeledLoop
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import Axis, NeedAlignment, NotUniformBound
from tilesmith.scheduler.lowering.memory import store, store_channels
from tilesmith.scheduler.lowering.prefetches import ask_ends
from tilesmith.scheduler.lowering.register_streams import Coordinates, Stream, Streams, mask_bits
from tilesmith.scheduler.lowering.streaming_stores import held_back, stream, streams, vectors_into_line
from tilesmith.scheduler.lowering.unrolled_dims import iterations


@dataclass(frozen=True, slots=True)
class RowLoop:
    """The loop of a fused row: the output on the points of `box` (its vectorised dim is the loop), after the
    stages of `streams`; those of `rings` are stored as well, in the row that is given. Vectors start at `anchor` and
    whole vectors from there; rows of rings have `room` for so many elements more at both ends. Dims of `unroll`
    have constant bounds, and are written out. A row that is computed `seldom` has no loop of whole vectors."""

    output: Stage
    output_buffers: tuple[Buffer, ...]
    order: tuple[str, ...]
    dim: str
    lanes: int
    box: Mapping[str, tuple[Index, Index]]
    streams: Sequence[Stage]
    moving: Mapping[str, int]
    rings: Mapping[str, tuple[Box, Coordinates]]
    anchor: Index
    emit_output: bool = True
    unroll: frozenset[str] = frozenset()
    stream: bool = False
    room: int = 0
    seldom: bool = False


@dataclass(slots=True)
class Written:
    """A vector of the output that streams, and the register that has the one before it. `held` of its elements are
    written with the next. `line` vectors of memory make a line, and `into_line` of them lie between the beginning of
    one and the vector at the row's base; `apart` they lie in the loop of whole lines."""

    buffer: Buffer
    at: tuple[Lane, ...]
    line: int
    held: Index = field(default_factory=lambda: const(0))
    into_line: Index = field(default_factory=lambda: const(0))
    apart: Index = field(default_factory=lambda: const(0))
    before: Value | None = None


Streamed = tuple[Written, tuple[Lane, ...], Value]
"""A vector that is due, and where."""


def grid_start(lo: Index, anchor: Index, lanes: int) -> Index:
    """The start of the vector that holds `lo`."""
    return lo - modulo(lo - anchor, lanes)


def fused_row(b: Builder, sources: Sources, row: RowLoop) -> None:
    """Emits the loops of one row. *Legal when* every stage of `streams` moves along the row at the rate of the
    output where it is read by a plain shift (other reads compute it where they stand)."""
    lanes, align, clamped = row.lanes, 1, False
    while True:
        try:
            with b.attempt():
                _Fused(b, sources, row, lanes, align, clamped).run()
            return
        except NeedAlignment as need:
            align = need.align
        except TooWide:
            lanes, align = lanes // 2, 1
        except NotUniformBound:  # there is no telling where clamps are active: every lane has its own
            clamped = True


class _Fused:
    def __init__(self, b: Builder, sources: Sources, row: RowLoop, lanes: int, align: int, clamped: bool) -> None:
        self.b = b
        self.clamped = clamped
        self.row = row
        self.lanes = lanes
        self.align = align
        self.stages = {s.name: s for s in row.streams}
        names = {n: s for n, s in self.stages.items() if n not in row.rings}
        self.sources = replace(sources, inlined={**sources.inlined, **names})
        self.lo, self.hi = row.box[row.dim]
        start = grid_start(self.lo, row.anchor - modulo(row.anchor, align), lanes)
        self.base = b.let(divide(start, align), f"{row.dim}_base").scaled(align)
        self.planned: dict[tuple[str, int, Coordinates], Stream] = {}
        self.written: list[Written] = []
        self.reach: dict[str, tuple[int, int] | None] = {}
        self.roomy: frozenset[str] = frozenset()
        self.before = frozenset(b.depths)
        self.given: list[Index] = []

    def run(self) -> None:
        self._run(self._plan())

    def _run(self, constraints: list[tuple[int, Index]]) -> None:
        """The loops of the row: whole vectors where `constraints` and `given` hold."""
        b, lanes, granted = self.b, self.lanes, tuple(self.given)
        streams = self._ordered()
        for s in streams:
            for _ in range(s.history(lanes)):
                s.previous.append(
                    self._register(s.stage.name, s.stage.types[s.component], mask_bits(s.stage, s.component))
                )
        for w in self.written:
            w.before = self._register(self.row.output.name, w.buffer.type)
            w.held = held_back(b, w.buffer, w.at, self.base, lanes)
            if w.line > 1:
                w.into_line = vectors_into_line(b, w.buffer, w.at, self.base, lanes)
            ask_ends(b, w.buffer, w.at, self.lo, self.hi)
            constraints.append((lanes, self.base - w.held - self.lo))
            constraints.append((-lanes, self.hi - self.base + w.held - (lanes - 1)))
        # vectors start at base + lanes * k
        ends = [(s.first - s.lead, s.last - s.lead) for s in streams] + [(self.lo, self.hi)] * self.row.emit_output
        if not ends:
            return
        lo, hi = reduce(minimum, (e[0] for e in ends)), reduce(maximum, (e[1] for e in ends))
        self.roomy = self._roomy(streams, lo - self.lo, hi - self.hi)
        k_first = b.let(divide(lo - self.base, lanes), f"{self.row.dim}_first")
        k_last = b.let(divide(hi - self.base, lanes), f"{self.row.dim}_last")
        if self.clamped:
            k, body = self._iteration(streams, safe=True)
            b.emit(Loop(k, k_first, k_last, const(1), body, comment="vectors clamped lane by lane"))
            return
        whole, rest = k_first, k_last + 1
        for moving, fixed in constraints:
            if moving > 0:
                whole = maximum(whole, divide(fixed.scaled(-1) + (moving - 1), moving))
            else:
                rest = minimum(rest, divide(fixed, -moving) + 1)
        first = max(self.written, key=lambda w: w.line, default=None)
        parts = 1 if first is None else first.line
        if first is not None and parts > 1:  # from the beginning of a line on
            whole = b.let(whole, f"{self.row.dim}_filled")
            whole = whole + modulo(const(0) - first.into_line - whole, parts)
        for x in granted:
            whole = whole + multiply(minimum(maximum(x.scaled(-1), const(0)), const(1)), k_last - k_first + 1)
        whole = b.let(minimum(whole, k_last + 1), f"{self.row.dim}_whole")
        rest = maximum(rest, whole)
        if parts > 1:
            rest = whole + divide(rest - whole, parts).scaled(parts)
            for w in self.written:
                w.apart = const(0) if w is first else b.let(modulo(w.into_line + whole, w.line), "apart")
        rest = b.let(rest, f"{self.row.dim}_rest")
        with_care = None if whole == k_first and rest == k_last + 1 else self._iteration(streams, safe=True)
        if self.row.seldom and with_care is not None:
            b.emit(Loop(with_care[0], k_first, k_last, const(1), with_care[1], comment="vectors of a row, with care"))
        else:
            k, body = self._iteration(streams, safe=False, parts=parts)
            vectors = Loop(k, whole, rest - 1, const(parts), body, comment="whole vectors")
            if with_care is None:  # of a short row, at every size
                b.emit(vectors)
            else:
                at, careful = with_care
                b.emit(PeeledLoop(at, k_first, k_last, (whole, rest), careful, (vectors,), "both ends of the row"))
        self._flush(k_last)
        assert tuple(self.given) == granted

    # planning ------------------------------------------------------------------------------------------------------

    def _evaluator(self, k: str, planning: bool, safe: bool, part: int = 0) -> tuple[Evaluator, Lane, Streams]:
        b = self.b
        axis = Axis(k, self.align, self.lanes, b.depth, self.base)
        base = self.base + (sym(k) + part).scaled(self.lanes)
        rings = {name: at for name, (_, at) in self.row.rings.items()}
        streams = Streams(self.row.moving, self.stages, rings, base, self.lanes, planning, b, self.before, self.planned)
        streams.reach, streams.part = self.reach, part
        streams.ends, streams.base = (self.lo, self.hi), self.base
        evaluator = Evaluator(b, self.sources, axis, streams=streams, exact=safe, safe=safe, roomy=self.roomy)
        return evaluator, Lane(base, tuple(range(self.lanes))), streams

    def _plan(self) -> list[tuple[int, Index]]:
        """Finds the streams, their leads, and which iterations are whole vectors: those with
        coefficient * k + rest >= 0 for all (coefficient, rest)."""
        b = self.b
        constraints: list[tuple[int, Index]] = []
        with b.trial(), b.scope(given=self.given) as body:
            k = b.fresh(f"{self.row.dim}k")
            b.declare(k)
            evaluator, lane, streams = self._evaluator(k, planning=True, safe=self.clamped)
            inside: list[Index] = []
            if self.row.emit_output:
                self._output(evaluator, lane, None)
                if not self.written:
                    inside += [lane.base - self.lo, self.hi - lane.base - (self.lanes - 1)]
            for stage in reversed(self.row.streams):
                if stage.name in self.row.rings:
                    self._seed_ring(stage)
                for s in [s for key, s in self.planned.items() if key[0] == stage.name]:
                    furthest = max(s.most, streams.ahead.get(stage.name, s.most))
                    s.lead = -(-furthest // self.lanes) * self.lanes
                    streams.reader = s
                    self._value(evaluator, s, lane)
                    inside += self._inside(s, lane.base + s.lead)
            for c in (*evaluator.constraints, *inside):
                moving = c.coefficient(k)
                if moving == 0 or self._is_made_here(c, k):
                    raise NotUniformBound
                constraints.append((moving, c - sym(k).scaled(moving)))
            rows = {s.op.row for s in body if isinstance(s, Define) and isinstance(s.op, Load)}
            again = bool(self.row.rings) and len(rows) > self.b.core.prefetch.first_level_rows
            self.sources = replace(self.sources, ahead=replace(self.sources.ahead, again=again))
        return constraints

    def _is_made_here(self, x: Index, k: str) -> bool:
        """True if an index is made of what the row itself computes, as data is: ahead of it that is not known."""
        return any(s != k and s in self.b.depths and s not in self.before for s in x.symbols())

    def _inside(self, s: Stream, at: Index) -> list[Index]:
        """Indices that may not be negative for the vector of `s` at `at` to be whole: it is stored inside of its
        buffer, and has needed elements only where others may not be computed."""
        found, end = [], at + (self.lanes - 1)
        if s.stage.name in self.row.rings:
            d = self.row.moving[s.stage.name]
            buffer = self.sources.buffers[s.stage.name, s.component]
            found += [at - buffer.origin[d], buffer.origin[d] + buffer.extent[d] - 1 - end]
        if s.whole:
            first, last = s.within
            found += [at - self.lo - first, self.hi + last - end]
        return found

    def _seed_ring(self, stage: Stage) -> None:
        """The row that a ring gets is computed to its ends."""
        box, at = self.row.rings[stage.name]
        first, last = self.margins(stage.name, box)
        for component in range(len(stage.types)):
            s = self.planned.setdefault(
                (stage.name, component, at),
                Stream(stage, component, at, last, last, self.lo + first, self.hi + last, (first, last)),
            )
            s.first, s.last = minimum(s.first, self.lo + first), maximum(s.last, self.hi + last)
            s.within = min(s.within[0], first), max(s.within[1], last)

    def margins(self, name: str, box: Box) -> tuple[int, int]:
        """The margins of a ring's row beyond the output's, at both ends."""
        lo, hi = box[self.row.moving[name]]
        return (lo - self.lo).const, (hi - self.hi).const

    def _roomy(self, streams: list[Stream], first: Index, last: Index) -> frozenset[str]:
        """The rings whose rows have all elements that the row loads and stores, needed or not: from the vector that
        holds `lo + first` to the one that holds `hi + last`, in terms of the output's."""
        found = set()
        for name, (box, _) in self.row.rings.items() if first.is_const and last.is_const else ():
            reach = self.reach.get(name, (0, 0))
            if reach is None or not self.row.room:
                continue
            leads = [s.lead for s in streams if s.stage.name == name]
            least, most = min(reach[0], *leads), max(reach[1], *(lead + self.lanes - 1 for lead in leads))
            begin, end = self.margins(name, box)
            enough = first.const - (self.lanes - 1) + least >= begin - self.row.room
            enough = enough and last.const + most <= end + self.row.room
            found |= {name} if enough else set()
        return frozenset(found)

    def _ordered(self) -> list[Stream]:
        place = {s.name: n for n, s in enumerate(self.row.streams)}
        return sorted(self.planned.values(), key=lambda s: (place[s.stage.name], s.component, [x.key for x in s.at]))

    # emission ------------------------------------------------------------------------------------------------------

    def _register(self, hint: str, type_: ScalarType, mask: int = 0) -> Value:
        b = self.b
        cell = Value(type_, self.lanes, b.fresh(f"{hint}_before"), None, mask)
        b.declare(cell.name)
        zero = Value(type_, 1, "", False if type_ == BOOL else 0.0 if type_.is_float else 0)
        b.emit(Accumulator(cell, zero))
        return cell

    def _iteration(self, streams: list[Stream], safe: bool, parts: int = 1) -> tuple[str, Body]:
        """An iteration of the row, of `parts` vectors, and its variable. What streams is written last, one plane after
        the other, so that the vectors of a line follow each other, and no load waits with them."""
        b = self.b
        outside = b.depth
        cells = [list(s.previous) for s in streams]
        with b.scope(given=self.given) as body:
            k = b.fresh(f"{self.row.dim}k")
            b.declare(k)
            for s in streams:
                for cell in s.previous:  # nothing made of a register may leave the loop
                    b.depths[cell.name] = b.depth
            past = [self._vectors(k, part, streams, safe) for part in range(parts)]
            for plane in zip(*past, strict=True):
                self._stream(plane, parts, safe)
            for s, kept in zip(streams, cells, strict=True):
                for n in range(len(kept) - 1, -1, -1):
                    b.emit(Assign(kept[n], s.previous[n]))
                s.previous = kept
        for kept in cells:
            for cell in kept:
                b.depths[cell.name] = outside
        return k, tuple(body)

    def _vectors(self, k: str, part: int, streams: list[Stream], safe: bool) -> list[Streamed]:
        """One vector of each stage; the windows move on. Returns what streams."""
        evaluator, lane, at_hand = self._evaluator(k, planning=False, safe=safe, part=part)
        at_hand.compute = lambda s: self._fitted(self._value(evaluator, s, lane), s)
        for name, of_stage in groupby(streams, key=lambda s: s.stage.name):
            if name in self.row.rings:
                self._store_ring([(s, at_hand.vector(s)) for s in of_stage], lane, safe and name not in self.roomy)
        past = self._output(evaluator, lane, iter(self.written), safe) if self.row.emit_output else []
        windows = [[at_hand.vector(s), *s.previous] for s in streams]
        if evaluator.constraints and safe:
            raise NotUniformBound
        for s, window in zip(streams, windows, strict=True):
            s.previous = window[: len(s.previous)]
        at_hand.compute = None  # it has the evaluator, which has the streams
        return past

    def _stream(self, plane: Sequence[Streamed], parts: int, safe: bool) -> None:
        """The vectors of one plane, each with what is due of the one before it."""
        w = plane[0][0]
        assert w.before is not None
        before, within = w.before, (self.lo, self.hi) if safe else None
        # vectors one by one are parts of lines, and do not stream
        apart = const(0) if w.line == 1 else const(1) if parts == 1 else w.apart
        for _, at, value in plane:
            stream(self.b, w.buffer, at, value, before, w.held, apart, within)
            before = value
        self.b.emit(Assign(w.before, before))

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
        mask = mask_bits(s.stage, s.component)
        if value.lanes == self.lanes and (value.lanes == 1 or value.mask_bits == mask):
            return value
        op = Broadcast(value) if value.lanes == 1 else ResizeMask(value)
        return self.b.define(op, type_, self.lanes, mask_bits=mask)

    def _store_ring(self, vectors: Sequence[tuple[Stream, Value]], lane: Lane, safe: bool) -> None:
        """The vectors of a stage, in the row that its ring gets."""
        stage, stores = vectors[0][0].stage, []
        d, (box, _) = self.row.moving[stage.name], self.row.rings[stage.name]
        for s, value in vectors:
            others = iter(s.at)
            at = tuple(
                Lane(lane.base + s.lead, lane.pattern) if n == d else Lane(next(others)) for n in range(len(stage.dims))
            )
            stores.append((self.sources.buffers[stage.name, s.component], at, value))
        store_channels(self.b, stores, box[d] if safe else None)

    def _flush(self, last: Index) -> None:
        """Stores the elements of the last vectors that are held back."""
        for w in self.written:
            assert w.before is not None
            at = [Lane(self.base + last.scaled(self.lanes), x.pattern) if x.pattern else x for x in w.at]
            left = self.base + (last + 1).scaled(self.lanes) - w.held
            store(self.b, w.buffer, tuple(at), w.before, (maximum(left, self.lo), self.hi))

    def _output(
        self, evaluator: Evaluator, lane: Lane, written: Iterator[Written] | None, safe: bool = False
    ) -> list[Streamed]:
        """The output's points: the loops that are still open stand inside the vector's. Without `written` it is
        planned what that will be. Returns what streams."""
        outside = self.b.depth
        past: list[Streamed] = []
        plain: list[tuple[Buffer, tuple[Lane, ...], Value]] = []
        within = (self.lo, self.hi) if safe else None

        def flush() -> None:
            store_channels(self.b, plain, within)
            plain.clear()

        def point(env: dict[str, Lane]) -> None:
            ordered = {d: env[d] for d in self.row.output.dims}
            frame = evaluator.frame(ordered)
            values = [evaluator.value(v, frame) for v in self.row.output.values]
            at = tuple(ordered.values())
            for buffer, value in zip(self.row.output_buffers, values, strict=True):
                line = self._line(buffer, at, value, outside)
                if written is None:
                    self.written += [Written(buffer, at, line)] if line else []
                elif line:
                    past.append((next(written), at, value))
                if not line:
                    plain.append((buffer, at, value))

        dims = tuple(d for d in reversed(self.row.order) if d != self.row.dim)
        self._nest(dims, {self.row.dim: lane}, point, flush)
        flush()
        return past

    def _nest(
        self,
        dims: tuple[str, ...],
        env: dict[str, Lane],
        point: Callable[[dict[str, Lane]], None],
        flush: Callable[[], None],
    ) -> None:
        """Loops over `dims`, outermost first, around each `point`; at the end of an iteration there is a `flush`."""
        if not dims:
            point(env)
            return
        dim, rest = dims[0], dims[1:]
        lo, hi = self.row.box[dim]
        if lo == hi:
            self._nest(rest, {**env, dim: Lane(lo)}, point, flush)
        elif dim in self.row.unroll:
            for row in iterations((lo, hi)):
                self._nest(rest, {**env, dim: row}, point, flush)
        else:
            with self.b.scope() as body:
                var = self.b.fresh(dim)
                self._nest(rest, {**env, dim: Lane(self.b.declare(var, ends=(lo, hi)))}, point, flush)
                flush()
            self.b.emit(Loop(var, lo, hi, const(1), tuple(body)))

    def _line(self, buffer: Buffer, at: tuple[Lane, ...], value: Value, outside: int) -> int:
        """Vectors that make a line, of neighbours in memory that stream; 0 where they do not."""
        inside = self.b.depth != outside or value.lanes > self.b.register_lanes(value.type)
        if not self.row.stream or self.clamped or inside or not streams(buffer, at, value):
            return 0
        return line_vectors(value.lanes * value.type.bytes, self.b.line_bytes, self.b.vectors.streamed_bytes)
