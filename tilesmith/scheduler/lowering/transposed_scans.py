"""Scans along rows of memory, vectors across the rows: blocks of as many rows as lanes are transposed in registers, so
that a step of the scan is one vector of a point of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilesmith.scheduler.analysis.bounds_inference import Interval
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, modulo, multiply, sym
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
from tilesmith.scheduler.lowering.loop_nest import run
from tilesmith.scheduler.lowering.memory import load, store
from tilesmith.scheduler.lowering.nest import Nest
from tilesmith.scheduler.lowering.prefetches import ask_for
from tilesmith.scheduler.lowering.transposition import transposed

MOST_MISSED = 2
"""Tiles that two scans of a block do not have in common where they begin, at most: these run step by step."""

MOST_WRITTEN_OUT = 8192
"""Operations of a block of rows at most, all of whose steps are written out: code of more is no faster for that, and
takes compilers minutes."""


class NotTransposed(Misfit):
    """The update reads what blocks of rows do not have: it runs row by row."""


@dataclass(frozen=True, slots=True)
class RowNest:
    """An update that scans along rows of memory, with what it reads and its loop nest: the scan innermost, and the loop
    across rows, in vectors, next. Meanwhile it asks for what the values of the stage read so many rows `ahead`."""

    update: Update
    sources: Sources
    nest: Nest
    ahead: int = 0


def run_transposed(b: Builder, stage: Stage, buffers: tuple[Buffer, ...], scans: Sequence[RowNest]) -> None:
    """Emits the loops of one scan along rows, whose vectors run across these, or of two: each block of rows is then
    scanned twice before the next one. Rows that are no whole block, and scans that read other places, run point by
    point.

    *Legal when* what the nests do is: iterations of the vectorised loops are independent. Two scans have the same loops
    but for the innermost.
    """
    if _in_blocks(b, stage, buffers, scans):
        return
    for scan in scans:
        if len(scans) == 1 or not _in_blocks(b, stage, buffers, [scan]):
            run(b, scan.sources, _alone_nest(scan))


def _alone_nest(scan: RowNest) -> Nest:
    return replace(scan.nest, vector=None, unroll={})


def _in_blocks(b: Builder, stage: Stage, buffers: tuple[Buffer, ...], scans: Sequence[RowNest]) -> bool:
    """Emits the scans by blocks of rows. False, and nothing is emitted, where they cannot be."""
    nest = scans[0].nest
    assert nest.vector is not None
    lanes = nest.vector.lanes
    if any(lanes * sum(_operations(v, s.sources, {}) for v in s.update.values) > MOST_WRITTEN_OUT for s in scans):
        return False

    def blocks(_: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        for env in envs:
            made = []
            for s in scans:
                loop, across = s.nest.order[:2]
                alone = _alone_nest(s)
                made.append(_Scan(stage, s.update, buffers, s.sources, loop, across, lanes, env, alone, s.ahead))
            _blocks(b, made)

    try:
        with b.attempt():
            run(b, scans[0].sources, replace(_alone_nest(scans[0]), order=nest.order[2:], body=blocks))
    except Misfit:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan of an update: what it reads, its loop, that across its rows, and the variables outside of both. `nest`
    runs it point by point. What values read `ahead` rows further is asked for, if that is any."""

    stage: Stage
    update: Update
    buffers: tuple[Buffer, ...]
    sources: Sources
    loop: str
    across: str
    lanes: int
    outside: Mapping[str, Lane]
    nest: Nest
    ahead: int


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


def _blocks(b: Builder, scans: Sequence[_Scan]) -> None:
    """The loop over blocks of rows, and the rows that are left."""
    across, lanes = scans[0].across, scans[0].lanes
    first, last = scans[0].nest.bounds[across]
    with b.scope() as block:
        row = b.fresh(across)
        at = b.declare(row, ends=(first, last - (lanes - 1)))
        _block(b, scans, Axis(row, 1, lanes, b.depth), at)
    b.emit(Loop(row, first, last - (lanes - 1), const(lanes), tuple(block)))
    left = first + divide(maximum(last - first + 1, const(0)), lanes).scaled(lanes)
    rows = b.let(left, f"{across}_left"), last
    for scan in scans:
        _alone(b, scan, rows)


def _alone(b: Builder, scan: _Scan, rows: Interval) -> None:
    """These rows one by one."""
    nest, here = scan.nest, {name: (at.base, at.base) for name, at in scan.outside.items()}
    run(b, scan.sources, replace(nest, bounds={**nest.bounds, **here, scan.across: rows}, parallel=None))


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The iterations of a scan that run in tiles, from `begin` to before `end`. The first `kept` of them have tiles
    that lie in memory as they are computed, a column a row, between this scan and another one of the block."""

    begin: Index
    end: Index
    kept: Index | None = None


def _block(b: Builder, scans: Sequence[_Scan], axis: Axis, at: Index) -> None:
    """One block of rows, scanned once or twice: between two scans, tiles of both stay transposed."""
    if len(scans) == 1:
        _scanned(b, scans[0], axis, at)
        return
    found: list[tuple[_Tiles, int, Index, Index]] = []
    for scan in scans:
        tile = _Tile(b, scan, axis, Lane(at, tuple(range(scan.lanes))))
        tiles, (lo, hi) = _tiles(b, scan, tile)
        found.append((tiles, tile.sign, lo, hi))
    lanes, (_, sign, lo, hi) = axis.lanes, found[0]
    last = (lo, hi - lanes) if sign > 0 else (lo + lanes, hi)  # steps after the first scan's tiles read the last one
    first = b.let(maximum(last[0], *(lo for _, _, lo, _ in found[1:])), "kept_from")
    after = b.let(minimum(last[1], *(hi for _, _, _, hi in found[1:])), "kept_to")
    missed = [b.let(first - lo if sign > 0 else hi - after, "missed") for _, sign, lo, hi in found]
    few = minimum(sum(missed, const(0)).scaled(-1) + (MOST_MISSED * lanes + 1), after - first)
    some = b.let(minimum(maximum(few, const(0)), const(1)), "kept_some")
    kept = b.let(multiply(some, after - first), "kept")
    for n, (scan, (tiles, *_), before) in enumerate(zip(scans, found, missed, strict=True)):
        begin = b.let(tiles.begin + multiply(some, before), f"{scan.loop}_begin")
        _scanned(b, scan, axis, at, _Tiles(begin, tiles.end, kept), arrives=n > 0)


def _tiles(b: Builder, scan: _Scan, tile: _Tile) -> tuple[_Tiles, Interval]:
    """The tiles that lie as vectors in memory do, with the places of a row that they have: the first, and that after
    the last."""
    lanes, (first, last), buffer = scan.lanes, scan.nest.bounds[scan.loop], scan.buffers[0]
    place = tile.place_of(first) - buffer.origin[buffer.unit]
    before = modulo(place.scaled(-1) if tile.sign > 0 else place + 1, lanes)
    begin = b.let(minimum(first + before, last + 1), f"{scan.loop}_begin")
    end = b.let(begin + divide(last - begin + 1, lanes).scaled(lanes), f"{scan.loop}_end")
    ends = tile.place_of(begin), tile.place_of(end)
    return _Tiles(begin, end), ends if tile.sign > 0 else (ends[1] + 1, ends[0] + 1)


def _scanned(
    b: Builder, scan: _Scan, axis: Axis, at: Index, tiles: _Tiles | None = None, arrives: bool = False
) -> None:
    """One scan of a block of rows: its tiles, and the steps before and after these."""
    lanes, (first, last) = axis.lanes, scan.nest.bounds[scan.loop]
    rows = Lane(at, tuple(range(lanes)))
    with b.condition() as several:
        tile = _Tile(b, scan, axis, rows)
        if tiles is None:
            tiles, _ = _tiles(b, scan, tile)
        with b.scope() as steps:
            step = b.fresh(scan.loop)
            env = {**scan.outside, scan.across: rows, scan.loop: Lane(b.declare(step))}
            evaluator = Evaluator(b, scan.sources, axis, own=scan.stage.name)
            scan.nest.body(evaluator, [env])
        with b.scope() as middle:
            tiles = _middle(b, scan, tile, tiles, arrives)
        b.emit(PeeledLoop(step, first, last, (tiles.begin, tiles.end), tuple(steps), tuple(middle)))
    within = tuple(dict.fromkeys((*evaluator.constraints, *tile.evaluator.constraints)))
    if within and tiles.kept is not None:
        raise NotTransposed
    if within:  # elsewhere clamps are at work
        with b.condition() as alone:
            _alone(b, scan, (at, at + (lanes - 1)))
        several = [If(within, tuple(several), None, (Apart(tuple(alone), seldom=True),))]
    b.emit(If((last - first,), tuple(several)))


def _unclamped(b: Builder, tiles: _Tiles, var: str, along: Sequence[Index], lanes: int) -> _Tiles:
    """The tiles in which no clamp along the scan is at work: what is `along` is not negative."""
    if not along:
        return tiles
    first, after = tiles.begin, tiles.end
    for c in along:
        moving = c.coefficient(var)
        fixed = c - sym(var).scaled(moving)
        if moving > 0:
            first = maximum(first, divide(fixed.scaled(-1) + (moving - 1), moving))
        else:
            after = minimum(after, divide(fixed, -moving) + lanes)
    skipped = divide(first - tiles.begin + (lanes - 1), lanes).scaled(lanes)
    begin = b.let(minimum(tiles.begin + skipped, tiles.end), f"{var}_begin")
    return _Tiles(begin, b.let(begin + divide(maximum(after - begin, const(0)), lanes).scaled(lanes), f"{var}_end"))


def _middle(b: Builder, scan: _Scan, tile: _Tile, tiles: _Tiles, arrives: bool) -> _Tiles:
    """The tiles of a scan of a block: those that are kept as columns, then all others. Returns those that ran."""
    lanes, (lo, hi) = scan.lanes, scan.nest.bounds[scan.loop]
    ends = lo, hi - (lanes - 1)
    with b.scope() as columns:
        var = b.fresh(scan.loop)
        tile.run(b.declare(var, ends=ends))
    if tiles.kept is None:
        tiles = _unclamped(b, tiles, var, tile.evaluator.along, lanes)
        tile.begin(tiles.begin)
        b.emit(Loop(var, tiles.begin, tiles.end - lanes, const(lanes), tuple(columns)))
        return tiles
    with b.scope() as inside:
        kept = _Tile(b, scan, tile.axis, tile.rows, arrives=arrives, stays=not arrives, carried=tile.carried)
        first = b.fresh(scan.loop)
        kept.run(b.declare(first, ends=ends))
    if kept.evaluator.constraints or kept.evaluator.along:
        raise NotTransposed
    tile.begin(tiles.begin)
    rest = b.let(tiles.begin + tiles.kept, f"{scan.loop}_rest")
    b.emit(Loop(first, tiles.begin, rest - lanes, const(lanes), tuple(inside)))
    b.emit(Loop(var, rest, tiles.end - lanes, const(lanes), tuple(columns)))
    return tiles


Key = tuple[str, int, tuple[Index, ...]]
"""Rows of an image or a stage: its name and component, and their places in the dims but that along them."""


class _TileEvaluator(Evaluator):
    """Evaluates the steps of a tile, which begins at the symbol `begins` of the scan. Clamps of places that move along
    the scan are dropped, too, and noted in `along`: each must be >= 0 of a tile."""

    begins: str = ""
    along: tuple[Index, ...] = ()

    def follows_axis(self, lane: Lane) -> bool:
        """True of what moves along the scan, too."""
        return super().follows_axis(lane) or lane.base.mentions(self.begins)

    def require(self, nonnegative: Index) -> None:
        """See Places."""
        if not nonnegative.mentions(self.begins):
            super().require(nonnegative)
            return
        moving = nonnegative.coefficient(self.begins)
        fixed = nonnegative - sym(self.begins).scaled(moving)
        if fixed.mentions(self.begins) or self.builder.depth_of(fixed) > self.base_depth + 1:
            raise NotTransposed
        self.along = tuple(dict.fromkeys((*self.along, nonnegative)))


@dataclass(slots=True)
class _Tile:
    """As many steps of a scan as there are lanes. What it reads of rows is transposed, by step, but where a scan before
    left it so (`arrives`); what it computes is transposed back, unless it `stays`. What it reads of steps before the
    tile is carried from tile to tile. As `Streams` it answers the evaluator with these."""

    b: Builder
    scan: _Scan
    axis: Axis
    rows: Lane
    arrives: bool = False
    stays: bool = False
    carried: dict[tuple[Key, int], Value] = field(default_factory=dict)
    sources: Sources = field(init=False)
    at: Index = field(init=False)
    place: Index = field(init=False)
    sign: int = field(init=False)
    own: tuple[Index, ...] = field(init=False)
    dims: Mapping[str, int] = field(init=False)
    depth: int = field(init=False)
    evaluator: _TileEvaluator = field(init=False)
    step: int = 0
    held: dict[Key, list[Value]] = field(default_factory=dict)
    made: list[list[Value]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sources = self.scan.sources
        if any(isinstance(e, Access) for place in self.scan.update.at for e in walk(place)):
            raise NotTransposed
        self.dims = {name: 0 for name, _ in self.sources.buffers}
        self.depth = self.axis.depth
        self.evaluator = _TileEvaluator(self.b, self.sources, self.axis, own=self.scan.stage.name, streams=self)
        written, following = (self._written(const(n)) for n in (0, 1))
        unit = self.scan.buffers[0].unit
        moved = following[unit].base - written[unit].base
        if not moved.is_const or abs(moved.const) != 1 or any(t == BOOL for t in self.scan.stage.types):
            raise NotTransposed
        self.sign = moved.const
        own = _rest(self.scan.buffers[0], written, self.rows)
        if own is None or own != _rest(self.scan.buffers[0], following, self.rows):
            raise NotTransposed
        self.own = own

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
        self.evaluator.begins = at.terms[0][0].key
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
            for n, row in enumerate(columns if self.stays else transposed(b, columns)):
                store(b, buffer, self._row(buffer, self.own, n), row)
        if self.scan.ahead:
            self._ask()
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

    def _ask(self) -> None:
        """Asks for what the values of the stage will read for the same points of rows to come."""
        b, scan, lanes, stage = self.b, self.scan, self.axis.lanes, self.scan.stage
        evaluator = Evaluator(b, self.sources, None)
        start = self.place if self.sign > 0 else self.place - (lanes - 1)
        unit = stage.dims[scan.buffers[0].unit]
        for access in values_read(stage, self.sources.buffers):
            buffer = self.sources.buffers[access.name, access.component]
            for n in range(lanes):
                row = Lane(self.rows.base + (scan.ahead + n))
                frame = evaluator.frame({**scan.outside, scan.across: row, unit: Lane(start)})
                ask_for(b, buffer, tuple(evaluator.lane(i, frame) for i in access.indices), lanes)

    # reads ------------------------------------------------------------

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value of a row at a step of this tile or before; None of what is the same for all rows, and of what does
        not lie in rows that go along with the scan's."""
        buffer = self.sources.buffers.get((name, component))
        if buffer is None or all(x.uniform for x in index):
            return None
        rest = _rest(buffer, index, self.rows)
        ahead = (index[buffer.unit].base - self.place).scaled(self.sign)
        if rest is None or not ahead.is_const or not -self.axis.lanes <= ahead.const < self.axis.lanes:
            return None
        if name == self.scan.stage.name and rest != self.own:
            if self.arrives or self.stays:
                raise NotTransposed
            apart = (a - b for a, b in zip(rest, self.own, strict=True))
            if not any(x.is_const and x.const for x in apart):
                raise NotTransposed
        return self._at((name, component, rest), ahead.const)

    def loads(self, places: Places, buffer: Buffer, index: tuple[Lane, ...]) -> None:
        """Refuses loads of what is updated: it is not in memory yet."""
        if buffer.stage == self.scan.stage.name:
            raise NotTransposed

    def _at(self, key: Key, step: int) -> Value:
        """The vector of rows at a step, counted from the first of the tile."""
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
        """The values of rows before the tile, by step."""
        found = self.held.get(key)
        if found is None:
            b, buffer = self.b, self.sources.buffers[key[:2]]
            places = (self._row(buffer, key[2], n) for n in range(self.axis.lanes))
            rows = [load(b, buffer, at, buffer.type, True, b.depth) for at in places]
            kept = self.arrives and key[0] == self.scan.stage.name
            found = self.held[key] = (rows if kept else transposed(b, rows))[:: self.sign]
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


def values_read(stage: Stage, buffers: Mapping[tuple[str, int], Buffer]) -> tuple[Access, ...]:
    """Reads of a stage's values from memory that threads share, at places that its dims alone say."""
    reads = dict.fromkeys(e for value in stage.values for e in walk(value) if isinstance(e, Access))
    return tuple(
        e
        for e in reads
        if (buffer := buffers.get((e.name, e.component))) is not None
        and buffer.where != "thread"
        and not any(_is_no_dim(x, stage) for i in e.indices for x in walk(i))
    )


def _is_no_dim(e: Expr, stage: Stage) -> bool:
    return isinstance(e, Access) or (isinstance(e, Var) and e.name not in stage.dims)


def _rest(buffer: Buffer, index: tuple[Lane, ...], rows: Lane) -> tuple[Index, ...] | None:
    """Places in the dims but that along rows, of which one goes from row to row; None of others."""
    moving = [d for d, x in enumerate(index) if not x.uniform]
    if buffer.type == BOOL or len(moving) != 1 or moving[0] == buffer.unit or index[moving[0]].pattern != rows.pattern:
        return None
    mentioned = [d for d, x in enumerate(index) if any(x.base.mentions(s) for s in rows.base.symbols())]
    if mentioned != moving:
        return None
    return tuple(const(0) if d == buffer.unit else x.base for d, x in enumerate(index))
