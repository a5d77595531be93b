"""Scans along rows of memory, vectors across the rows: blocks of as many rows as lanes are transposed in registers, so
that a step of the scan is one vector of a point of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, modulo
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit
from tilesmith.scheduler.ir.loop.program import Accumulator, Apart, Assign, If, Loop, PeeledLoop
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Select, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.types import BOOL
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import Axis, Places
from tilesmith.scheduler.lowering.loop_nest import Nest, run
from tilesmith.scheduler.lowering.memory import load, store
from tilesmith.scheduler.lowering.transposition import transposed

MOST_WRITTEN_OUT = 8192
"""Operations of a block of rows at most, all of whose steps are written out: code of more is no faster for that, and
takes compilers minutes."""


class NotTransposed(Misfit):
    """The update reads what blocks of rows do not have: it runs row by row."""


def run_transposed(
    b: Builder, sources: Sources, nest: Nest, stage: Stage, buffers: tuple[Buffer, ...], update: Update
) -> None:
    """Emits the loops of a scan along rows, whose vectors run across these: `nest` has the scan innermost, and its
    vectors next. Rows that are no whole block, and scans that read other places, run point by point.

    *Legal when* what `nest` does is: iterations of the vectorised loop are independent.
    """
    assert nest.vector is not None
    scan, across, *outside = nest.order
    lanes = nest.vector.lanes
    alone = replace(nest, vector=None, unroll={})
    if lanes * sum(_operations(v, sources, {}) for v in update.values) > MOST_WRITTEN_OUT:
        run(b, sources, alone)
        return

    def blocks(_: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        for env in envs:
            _blocks(b, sources, _Scan(stage, update, buffers, scan, across, lanes, env, alone))

    try:
        with b.attempt():
            run(b, sources, replace(alone, order=tuple(outside), body=blocks))
    except Misfit:
        run(b, sources, alone)


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan of an update: its loop, that across its rows, and the variables outside of both. `nest` runs it point by
    point."""

    stage: Stage
    update: Update
    buffers: tuple[Buffer, ...]
    loop: str
    across: str
    lanes: int
    outside: Mapping[str, Lane]
    nest: Nest


def _operations(e: Expr, sources: Sources, known: dict[str, int]) -> int:
    """The operations of an expression, with those of the stages that are inlined into it."""
    count = 0
    for node in walk(e):
        count += 1
        if isinstance(node, Access) and node.name in sources.inlined:
            if node.name not in known:
                known[node.name] = sum(_operations(v, sources, known) for v in sources.inlined[node.name].values)
            count += known[node.name]
    return count


def is_row_scan(stage: Stage, order: tuple[str, ...], vector: str, update: Update) -> bool:
    """True if the innermost of the loops is the scan along rows of memory, and vectors run in the next one."""
    names = {v.name for v in update.domain}
    if len(order) < 2 or order[1] != vector or order[0] not in names or vector not in stage.dims:
        return False
    along = stage.storage[0]  # a reduction into each point of a row is no scan along it
    place = update.at[stage.dims.index(along)]
    return vector != along and any(isinstance(e, Var) and e.name == order[0] for e in walk(place))


def _blocks(b: Builder, sources: Sources, scan: _Scan) -> None:
    """The loop over blocks of rows, and the rows that are left."""
    first, last = scan.nest.bounds[scan.across]
    lanes = scan.lanes
    with b.scope() as block:
        row = b.fresh(scan.across)
        at = b.declare(row, ends=(first, last - (lanes - 1)))
        _block(b, sources, scan, Axis(row, 1, lanes, b.depth), at)
    b.emit(Loop(row, first, last - (lanes - 1), const(lanes), tuple(block)))
    left = first + divide(maximum(last - first + 1, const(0)), lanes).scaled(lanes)
    _alone(b, sources, scan, (b.let(left, f"{scan.across}_left"), last))


def _alone(b: Builder, sources: Sources, scan: _Scan, rows: tuple[Index, Index]) -> None:
    """These rows one by one."""
    nest, here = scan.nest, {name: (at.base, at.base) for name, at in scan.outside.items()}
    run(b, sources, replace(nest, bounds={**nest.bounds, **here, scan.across: rows}, parallel=None))


def _block(b: Builder, sources: Sources, scan: _Scan, axis: Axis, at: Index) -> None:
    """One block of rows: tiles that lie as vectors in memory do, and the steps before and after these."""
    lanes, (first, last) = axis.lanes, scan.nest.bounds[scan.loop]
    rows, buffer = Lane(at, tuple(range(lanes))), scan.buffers[0]
    with b.condition() as several:
        tile = _Tile(b, sources, scan, axis, rows)
        place = tile.place_of(first) - buffer.origin[buffer.unit]
        before = modulo(place.scaled(-1) if tile.sign > 0 else place + 1, lanes)
        begin = b.let(minimum(first + before, last + 1), f"{scan.loop}_begin")
        end = b.let(begin + divide(last - begin + 1, lanes).scaled(lanes), f"{scan.loop}_end")
        with b.scope() as steps:
            step = b.fresh(scan.loop)
            env = {**scan.outside, scan.across: rows, scan.loop: Lane(b.declare(step))}
            evaluator = Evaluator(b, sources, axis, own=scan.stage.name)
            scan.nest.body(evaluator, [env])
        with b.scope() as middle:
            with b.scope() as tiles:
                var = b.fresh(scan.loop)
                tile.run(b.declare(var, ends=(first, last - (lanes - 1))))
            tile.begin(begin)
            b.emit(Loop(var, begin, end - lanes, const(lanes), tuple(tiles)))
        b.emit(PeeledLoop(step, first, last, (begin, end), tuple(steps), tuple(middle)))
    within = tuple(dict.fromkeys((*evaluator.constraints, *tile.evaluator.constraints)))
    if within:  # elsewhere clamps are at work
        with b.condition() as alone:
            _alone(b, sources, scan, (at, at + (lanes - 1)))
        several = [If(within, tuple(several), None, (Apart(tuple(alone), seldom=True),))]
    b.emit(If((last - first,), tuple(several)))


Key = tuple[str, int, tuple[Index, ...]]
"""Rows of an image or a stage: its name and component, and their places in the dims but that along them."""


@dataclass(slots=True)
class _Tile:
    """As many steps of a scan as there are lanes. What it reads of rows is transposed, by step; what it reads of steps
    before the tile is carried from tile to tile. As `Streams` it answers the evaluator with these."""

    b: Builder
    sources: Sources
    scan: _Scan
    axis: Axis
    rows: Lane
    at: Index = field(init=False)
    place: Index = field(init=False)
    sign: int = field(init=False)
    own: tuple[Index, ...] = field(init=False)
    dims: Mapping[str, int] = field(init=False)
    evaluator: Evaluator = field(init=False)
    step: int = 0
    held: dict[Key, list[Value]] = field(default_factory=dict)
    made: list[list[Value]] = field(default_factory=list)
    carried: dict[tuple[Key, int], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(isinstance(e, Access) for place in self.scan.update.at for e in walk(place)):
            raise NotTransposed
        self.dims = {name: 0 for name, _ in self.sources.buffers}
        self.evaluator = Evaluator(self.b, self.sources, self.axis, own=self.scan.stage.name, streams=self)
        written, following = (self._written(const(n)) for n in (0, 1))
        unit = self.scan.buffers[0].unit
        moved = following[unit].base - written[unit].base
        if not moved.is_const or abs(moved.const) != 1 or any(t == BOOL for t in self.scan.stage.types):
            raise NotTransposed
        self.sign = moved.const
        self.own = _rest(self.scan.buffers[0], written, self.rows)
        if self.own != _rest(self.scan.buffers[0], following, self.rows):
            raise NotTransposed

    def place_of(self, at: Index) -> Index:
        """The place in a row that is written in that iteration of the scan."""
        return self._written(at)[self.scan.buffers[0].unit].base

    def _written(self, at: Index) -> tuple[Lane, ...]:
        frame = self.evaluator.frame(self._variables(at))
        return tuple(self.evaluator.lane(i, frame) for i in self.scan.update.at)

    def _variables(self, at: Index) -> dict[str, Lane]:
        return {**self.scan.outside, self.scan.across: self.rows, self.scan.loop: Lane(at)}

    # steps ------------------------------------------------------------

    def run(self, at: Index) -> None:
        """Emits the steps of the tile that begins in that iteration, and what comes from memory and goes there."""
        self.at, self.place = at, self.place_of(at)
        b, lanes, stage, update = self.b, self.axis.lanes, self.scan.stage, self.scan.update
        self.made = [[] for _ in stage.types]
        for self.step in range(lanes):
            frame = self.evaluator.frame(self._variables(self.at + self.step))
            values = [self.evaluator.value(v, frame) for v in update.values]
            if update.where is not None:
                values = self._chosen(values, self.evaluator.value(update.where, frame))
            for component, value in enumerate(values):
                self.made[component].append(self._spread(value))
        for component, buffer in enumerate(self.scan.buffers):
            columns = self.made[component][:: self.sign]
            for n, row in enumerate(transposed(b, columns)):
                store(b, buffer, self._row(buffer, self.own, n), row)
        for (key, back), cell in self.carried.items():
            b.emit(Assign(cell, self._at(key, lanes - back)))

    def _chosen(self, values: list[Value], condition: Value) -> list[Value]:
        """The new values where the condition holds, else what was there."""
        found, where = [], self.scan.update.where
        assert where is not None
        for component, (value, e) in enumerate(zip(values, self.scan.update.values, strict=True)):
            kept = self._loaded((self.scan.stage.name, component, self.own))[self.step]
            found.append(self.evaluator.op(ops.Select(condition, value, kept), Select(where, e, e, e.type)))
        return found

    def _spread(self, value: Value) -> Value:
        return value if value.lanes > 1 else self.b.define(ops.Broadcast(value), value.type, self.axis.lanes)

    def begin(self, first: Index) -> None:
        """Emits what is carried into the first tile, which begins in that iteration."""
        start = self.place_of(first)
        for (key, back), cell in self.carried.items():
            buffer = self.sources.buffers[key[:2]] if key[0] != self.scan.stage.name else self.scan.buffers[key[1]]
            places = list(self._row(buffer, key[2], 0))
            places[self._across(buffer, key[2])] = self._moving(buffer, key[2])
            places[buffer.unit] = Lane(start - self.sign * back)
            self.b.emit(Accumulator(cell, load(self.b, buffer, tuple(places), cell.type, True, self.b.depth)))

    # reads ------------------------------------------------------------

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value of a row at a step of this tile or before; None of what is the same for all rows."""
        buffer = self.sources.buffers.get((name, component))
        if buffer is None or all(x.uniform for x in index):
            return None
        key = (name, component, _rest(buffer, index, self.rows))
        ahead = (index[buffer.unit].base - self.place).scaled(self.sign)
        if not ahead.is_const or buffer.type == BOOL or not index[buffer.unit].uniform:
            raise NotTransposed
        if name == self.scan.stage.name and key[2] != self.own:
            apart = (a - b for a, b in zip(key[2], self.own, strict=True))
            if not any(x.is_const and x.const for x in apart):
                raise NotTransposed
        return self._at(key, ahead.const)

    def loads(self, places: Places, buffer: Buffer, index: tuple[Lane, ...]) -> None:
        """Refuses loads that differ from row to row, and those of what is updated."""
        if buffer.stage == self.scan.stage.name or not all(x.uniform for x in index):
            raise NotTransposed

    def _at(self, key: Key, step: int) -> Value:
        """The vector of rows at a step, counted from the first of the tile."""
        if not -self.axis.lanes <= step < self.axis.lanes:
            raise NotTransposed
        own = key[0] == self.scan.stage.name and key[2] == self.own
        if step < 0:
            return self._before(key, -step)
        if own and step < len(self.made[key[1]]):
            return self.made[key[1]][step]
        return self._loaded(key)[step]

    def _before(self, key: Key, back: int) -> Value:
        cell = self.carried.get((key, back))
        if cell is None:
            type_ = self.sources.buffers[key[:2]].type
            cell = self.carried[key, back] = Value(type_, self.axis.lanes, self.b.fresh(f"{key[0]}_before"))
            self.b.depths[cell.name] = self.b.depth
        return cell

    def _loaded(self, key: Key) -> list[Value]:
        """What rows held before the tile, by step."""
        found = self.held.get(key)
        if found is None:
            b, buffer = self.b, self.sources.buffers[key[:2]]
            places = (self._row(buffer, key[2], n) for n in range(self.axis.lanes))
            rows = [load(b, buffer, at, buffer.type, True, b.depth) for at in places]
            found = self.held[key] = transposed(b, rows)[:: self.sign]
        return found

    # places ------------------------------------------------------------

    def _row(self, buffer: Buffer, rest: tuple[Index, ...], n: int) -> tuple[Lane, ...]:
        """The elements of the tile in its row `n`."""
        lanes, across = self.axis.lanes, self._across(buffer, rest)
        start = self.place if self.sign > 0 else self.place - (lanes - 1)
        at = [Lane(x + (n if d == across else 0)) for d, x in enumerate(rest)]
        at[buffer.unit] = Lane(start, tuple(range(lanes)))
        return tuple(at)

    def _across(self, buffer: Buffer, rest: tuple[Index, ...]) -> int:
        """The dim of an image or a stage that goes from row to row."""
        return next(d for d, x in enumerate(rest) if d != buffer.unit and x.mentions(self.axis.q))

    def _moving(self, buffer: Buffer, rest: tuple[Index, ...]) -> Lane:
        return Lane(rest[self._across(buffer, rest)], self.rows.pattern)


def _rest(buffer: Buffer, index: tuple[Lane, ...], rows: Lane) -> tuple[Index, ...]:
    """Places in the dims but that along rows, of which one goes from row to row; raises NotTransposed of others."""
    moving = [d for d, x in enumerate(index) if not x.uniform]
    if len(moving) != 1 or moving[0] == buffer.unit or index[moving[0]].pattern != rows.pattern:
        raise NotTransposed
    mentioned = [d for d, x in enumerate(index) if any(x.base.mentions(s) for s in rows.base.symbols())]
    if mentioned != moving:
        raise NotTransposed
    return tuple(const(0) if d == buffer.unit else x.base for d, x in enumerate(index))
