"""Recurrences along rows of memory, vectors along the rows: the points of a vector are joined to each other in
registers, and what came before the vector to all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tilesmith.scheduler.analysis.bounds_inference import Interval
from tilesmith.scheduler.analysis.row_recurrences import RowRecurrence
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, modulo, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit, literal
from tilesmith.scheduler.ir.loop.program import Accumulator, Assign, If, Loop, PeeledLoop, Statement
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import Axis, Places
from tilesmith.scheduler.lowering.loop_nest import run
from tilesmith.scheduler.lowering.memory import load, store
from tilesmith.scheduler.lowering.nest import Nest

NARROWER = 4
"""Part of a vector of memory that those are which rows begin and end with, or as short as there are."""


class NotInRegisters(Misfit):
    """A clamp of what is joined depends on more than the place in the row, or what is read may be of the same row: it
    runs point by point."""


@dataclass(frozen=True, slots=True)
class Follower:
    """The update after a recurrence, which goes through the same rows: what it reads, and its loops, of which the one
    of its domain has one iteration, or none where it does not write the row."""

    update: Update
    sources: Sources
    nest: Nest

    @property
    def rows(self) -> Interval:
        """The iterations that it has."""
        (loop,) = self.update.domain
        return self.nest.bounds[loop.name]


def run_recurrence(
    b: Builder,
    stage: Stage,
    buffer: Buffer,
    update: Update,
    found: RowRecurrence,
    sources: Sources,
    nest: Nest,
    then: Follower | None = None,
) -> bool:
    """Emits the loops of an update that goes along rows, the innermost by vectors: those of memory, with narrower ones
    before them and after, and points where these do not fit. `then` comes to each vector right after it. False, and
    nothing is emitted, where vectors are none.

    *Legal when* the nest does what the recurrence says, and its sums may be taken in any order; and what the next
    update reads of a row that it writes is what it writes there (see `analysis.update_sweeps.joins_last`).
    """
    assert nest.vector is not None
    lanes = nest.vector.lanes

    def rows(_: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        for env in envs:
            _row(_Row(b, stage, buffer, update, found, sources, nest, env, then), lanes)

    try:
        with b.attempt():
            run(b, sources, replace(nest, vector=None, unroll={}, order=nest.order[1:], body=rows))
    except Misfit:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of an update, with the variables outside of it, and the update that follows it."""

    b: Builder
    stage: Stage
    buffer: Buffer
    update: Update
    found: RowRecurrence
    sources: Sources
    nest: Nest
    outside: Mapping[str, Lane]
    then: Follower | None


def _row(o: _Row, lanes: int) -> None:
    """The points of a row: by vectors where no clamp is at work, in the middle by those of so many lanes that memory
    has."""
    b, loop, unit = o.b, o.found.loop, o.buffer.unit
    lo, hi = o.nest.bounds[loop]
    narrow = max(lanes // NARROWER, b.vectors.narrowest_bytes // o.buffer.type.bytes)
    with b.condition() as several:
        with b.scope() as points:
            var = b.fresh(loop)
            env = {**o.outside, loop: Lane(b.declare(var))}
            o.nest.body(Evaluator(b, o.sources, None, own=o.stage.name), [env])
        with b.scope() as middle:
            made = [
                _vectors(o, n, o.then if n == lanes else None)
                for n in ((narrow, lanes, narrow) if narrow < lanes else (lanes,))
            ]
            outside = Evaluator(b, o.sources, None, own=o.stage.name)
            first, after = lo, hi + 1
            for v in made:
                first, after = v.within(first, after)
            first = b.let(minimum(first, hi + 1), f"{loop}_first")
            after = b.let(maximum(after, first), f"{loop}_after")
            place = _places(o, outside, Lane(first))[unit].base - o.buffer.origin[unit]
            before = modulo(place.scaled(-1) if o.found.step > 0 else place + 1, lanes)
            begin = b.let(minimum(first + before, after), f"{loop}_begin")
            end = b.let(begin + divide(after - begin, lanes).scaled(lanes), f"{loop}_end")
            ends = [begin, end]
            if narrow < lanes:
                from_ = b.let(begin - divide(begin - first, narrow).scaled(narrow), f"{loop}_from")
                ends = [from_, *ends, b.let(end + divide(after - end, narrow).scaled(narrow), f"{loop}_to")]
            followed = maximum(begin, end - lanes)  # not the last vector, from which the scan goes on
            followed = followed if o.then is None else b.let(followed, f"{loop}_followed")
            for vectors, (begun, done) in zip(made, pairwise(ends), strict=True):
                start = list(_places(o, outside, Lane(begun)))
                start[unit] = Lane(start[unit].base - o.found.step)
                carried, step = vectors.carried, const(vectors.carried.lanes)
                one = load(b, o.buffer, tuple(start), carried.type, True, b.depth)
                b.emit(Accumulator(carried, b.define(ops.Broadcast(one), carried.type, carried.lanes)))
                body = tuple(vectors.body)
                if o.then is not None and vectors.then:
                    row, until = o.then.rows, followed - step
                    follows = (row[1] - row[0], until - sym(vectors.var))
                    body += (If(follows, tuple(vectors.then), None, tuple(vectors.stored)),)
                b.emit(Loop(vectors.var, begun, done - step, step, body))
        b.emit(PeeledLoop(var, lo, hi, (ends[0], ends[-1]), tuple(points), tuple(middle)))
    b.emit(If((hi - lo,), tuple(several)))
    if o.then is not None:
        _left(o, o.then, begin, followed)


def _left(o: _Row, then: Follower, begin: Index, end: Index) -> None:
    """The update that follows where it did not come to the vectors from `begin` to before `end`."""
    b, dim = o.b, o.stage.dims[o.buffer.unit]
    outside = Evaluator(b, o.sources, None, own=o.stage.name)
    one, other = (_places(o, outside, Lane(at))[o.buffer.unit].base for at in (begin, end))
    one, other = (one, other) if o.found.step > 0 else (other + 1, one + 1)
    (lo, hi), here = then.nest.bounds[dim], {d: (at.base, at.base) for d, at in o.outside.items()}
    one = b.let(minimum(maximum(one, lo), hi + 1), f"{dim}_joined")
    for part in ((lo, one - 1), (b.let(minimum(maximum(other, one), hi + 1), f"{dim}_left"), hi)):
        run(b, then.sources, replace(then.nest, bounds={**then.nest.bounds, **here, dim: part}))


def _places(o: _Row, evaluator: Evaluator, at: Lane) -> tuple[Lane, ...]:
    """The places that an iteration writes, or those of a vector."""
    frame = evaluator.frame({**o.outside, o.found.loop: at})
    return tuple(evaluator.lane(i, frame) for i in o.update.at)


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The body of a loop over vectors, `var`, with what is `carried` from each to the next. Where an update follows,
    `then`, that ends the body, or else what is `stored` does. The constraints must not be negative where it runs."""

    var: str
    carried: Value
    body: list[Statement]
    stored: list[Statement]
    then: list[Statement]
    constraints: list[Index]

    def within(self, first: Index, after: Index) -> tuple[Index, Index]:
        """The iterations from `first` to before `after` that vectors may have."""
        for c in self.constraints:
            moving = c.coefficient(self.var)
            fixed = c - sym(self.var).scaled(moving)
            if moving > 0:
                first = maximum(first, divide(fixed.scaled(-1) + (moving - 1), moving))
            elif moving < 0:
                after = minimum(after, divide(fixed, -moving) + self.carried.lanes)
            else:
                raise NotInRegisters
        return first, after


def _vectors(o: _Row, lanes: int, then: Follower | None) -> _Vectors:
    """The body of the loop over vectors of so many lanes, and of the update that follows."""
    b, found, type_ = o.b, o.found, o.buffer.type
    steps = _Steps(b, found, type_, lanes)
    weights = steps.weights()
    with b.scope() as body:
        var, carried = b.fresh(found.loop), Value(type_, lanes, b.fresh(f"{o.stage.name}_before"))
        b.depths[carried.name] = b.depth
        at = b.declare(var)
        evaluator = Evaluator(b, o.sources, Axis(var, 1, lanes, b.depth), own=o.stage.name)
        ahead = tuple(range(lanes))
        here = Lane(at, ahead) if found.step > 0 else Lane(at + (lanes - 1), tuple(-n for n in ahead))
        rest = evaluator.value(found.rest, evaluator.frame({**o.outside, found.loop: here}))
        value = steps.joined(rest if rest.lanes > 1 else b.define(ops.Broadcast(rest), type_, lanes))
        latest = b.define(ops.Shuffle(value, value, (steps.latest,) * lanes), type_, lanes)
        places, value = _places(o, evaluator, here), steps.join(value, steps.times(carried, weights))
        with b.condition() as stored:
            store(b, o.buffer, places, value)
        if then is None:
            body += stored
        b.emit(Assign(carried, steps.join(latest, steps.power(carried, lanes))))
        constraints, following = evaluator.constraints, list[Statement]()
        if then is not None:
            depth, (loop,), dim = b.depth, then.update.domain, o.stage.dims[o.buffer.unit]
            with b.condition() as following:
                row = _Made(o.stage, o.buffer.unit, depth, value)
                follower = Evaluator(b, then.sources, Axis(var, 1, lanes, depth), own=o.stage.name, streams=row)
                env = {d: o.outside[d] for d in o.stage.dims if d in o.outside}
                env |= {dim: places[o.buffer.unit], loop.name: Lane(then.rows[0])}
                frame = follower.frame(env)
                row.at = tuple(follower.lane(i, frame) for i in then.update.at)
                then.nest.body(follower, [env])
            constraints = [*constraints, *follower.constraints]
    return _Vectors(var, carried, body, stored, following, constraints)


@dataclass(slots=True)
class _Made:
    """The vector of a row that is in a register, at the place `at`: as `Streams` it answers the evaluator with it."""

    stage: Stage
    unit: int
    depth: int
    value: Value
    at: tuple[Lane, ...] = ()

    @property
    def dims(self) -> Mapping[str, int]:
        return {self.stage.name: self.unit}

    def read(self, name: str, component: int, index: tuple[Lane, ...]) -> Value | None:
        """The value where it is that of the vector; None where it is of another row."""
        if index == self.at:
            return self.value
        apart = (i.base - own.base for i, own in zip(index, self.at, strict=True))
        if any(n.is_const and n.const for n in apart):
            return None
        raise NotInRegisters

    def loads(self, places: Places, buffer: Buffer, index: tuple[Lane, ...]) -> None:
        """All others are loaded."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """Operations that join the lanes of a vector, in the order of its recurrence."""

    b: Builder
    found: RowRecurrence
    type_: ScalarType
    lanes: int

    @property
    def latest(self) -> int:
        """The lane of the last point."""
        return self.lanes - 1 if self.found.step > 0 else 0

    def join(self, x: Value, y: Value) -> Value:
        """Each lane of `x` joined to that of `y`."""
        op = ops.Binary("+", y, x) if self.found.op == "+" else ops.Call(self.found.op, (y, x))
        return self.b.define(op, self.type_, self.lanes)

    def times(self, x: Value, factor: Value | None) -> Value:
        """A product; without a factor `x` itself."""
        return x if factor is None else self.b.define(ops.Binary("*", x, factor), self.type_, self.lanes)

    def power(self, x: Value, steps: int) -> Value:
        """The value that `x` has so many points later: its product with that power of the factor."""
        factor = self.found.factor**steps
        return self.times(x, None if factor == 1 else literal(float(factor), self.type_))

    def joined(self, value: Value) -> Value:
        """Each lane joined to all lanes before it."""
        moved = 1
        while moved < self.lanes:
            value = self.join(value, self.power(self._later(value, moved), moved))
            moved *= 2
        return value

    def weights(self) -> Value | None:
        """The powers of the factor that a point before the vector has in its lanes; None if all are 1."""
        if self.found.factor == 1:
            return None
        one = literal(float(self.found.factor), self.type_)
        everywhere = self.b.define(ops.Broadcast(one), self.type_, self.lanes)
        return self.joined(self._moved(everywhere, self._nothing(), self.lanes - 1))

    def _later(self, value: Value, by: int) -> Value:
        """The lanes so many points later: those without one have what joins nothing, or what is joined already."""
        if self.found.op == "+":
            return self._moved(self._nothing(), value, self.lanes - by)
        forward = tuple(max(n - by, 0) for n in range(self.lanes))
        picks = forward if self.found.step > 0 else tuple(self.lanes - 1 - n for n in reversed(forward))
        return self.b.define(ops.Shuffle(value, value, picks), self.type_, self.lanes)

    def _moved(self, x: Value, y: Value, first: int) -> Value:
        """The lanes from `first` on of `x` and then `y`, as the recurrence goes."""
        if self.found.step < 0:
            x, y, first = y, x, self.lanes - first
        picks = tuple(range(first, first + self.lanes))
        return self.b.define(ops.Shuffle(x, y, picks), self.type_, self.lanes)

    def _nothing(self) -> Value:
        return self.b.define(ops.Broadcast(literal(0, self.type_)), self.type_, self.lanes)
