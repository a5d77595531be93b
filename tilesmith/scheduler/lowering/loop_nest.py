"""Lowering of loop nests, a body over a box: rows cut into vectors and edges, the rest plain loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tilesmith.records import record
from tilesmith.scheduler.analysis.bounds_inference import Interval
from tilesmith.scheduler.features.pipeline.streaming_stores import line_vectors
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, multiply, sym
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit, TooWide
from tilesmith.scheduler.ir.loop.program import Apart, ClampedIndex, If, Let, Loop, PeelVectors, Statement
from tilesmith.scheduler.ir.loop.traversal import walk as statements_of
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, Lane
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.lowering.code_size import executed
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import Axis, NeedAlignment, NotUniformBound
from tilesmith.scheduler.lowering.nest import Nest
from tilesmith.scheduler.lowering.residue_splitting import by_remainder
from tilesmith.scheduler.lowering.row_room import stays_in_room
from tilesmith.scheduler.lowering.streaming_stores import beyond
from tilesmith.scheduler.lowering.transposed_reads import TransposedReads
from tilesmith.scheduler.lowering.unrolled_dims import flat_parts, in_blocks, iterations, written_out

WORTH_A_CALL = 20
"""Statements of the scalars of rows shorter than a vector from which on they stand apart."""


def run(b: Builder, sources: Sources, nest: Nest) -> None:
    """Emits the loops. Nothing happens where a bound is empty.

    *Legal when* every element that the body reads has been computed. Where the dims to unroll have the extents
    expected, they are constants inside the other loops; else they are loops around them. Vectors are tried first; a
    row that cannot be cut into edges and middle is computed by scalars.
    """
    known = written_out(nest.bounds, nest.unroll)
    expected = [d for d in nest.unroll if nest.bounds[d][0] != nest.bounds[d][1]]
    plain = (*(d for d in nest.order if d not in expected), *(d for d in nest.order if d in expected))
    looped = replace(nest, order=nest.order if nest.once else plain, unroll={})
    other = replace(looped, blocks={}, transposed=False) if nest.transposed else looped  # seldom, and long
    if known is None:
        _tried(b, sources, looped)
        return
    fixed, asked = in_blocks(b, known, nest.aligned)
    unrolled_nest = replace(nest, unroll={d: nest.unroll[d] for d in fixed}, bounds={**nest.bounds, **fixed})
    if not asked:
        _tried(b, sources, unrolled_nest)
        return
    whole: list[int] = []
    with b.condition() as vectors:  # the whole of rows that are at least a vector long
        with b.condition() as unrolled:
            _tried(b, sources, replace(unrolled_nest, whole=whole))
        with b.condition(seldom=nest.vector is not None) as otherwise:
            _tried(b, sources, replace(other, whole=whole))
        seldom = (Apart(tuple(otherwise), seldom=True),) if nest.vector else tuple(otherwise)
        b.emit(If(asked, tuple(unrolled), None, seldom))
    if not whole or nest.vector is None:
        b.scopes[-1].statements.extend(vectors)
        return
    with b.condition() as scalars:
        _tried(b, sources, replace(other, vector=None))
    lo, hi = nest.bounds[nest.vector.dim]
    b.emit(If((hi - lo - (max(whole) - 1),), tuple(vectors), None, (Apart(tuple(scalars), seldom=True),)))


def _fitting_vector(nest: Nest) -> Vector | None:
    """The vector of a nest, of no more lanes than its row is known to have points, unless there is room beyond; None of
    one point. Vectors that no row has would not only be code that is never run: compilers take the loop around for cold
    where they find that it always gets to what is seldom run."""
    if nest.vector is None:
        return None
    lo, hi = nest.bounds[nest.vector.dim]
    points = (hi - lo).const + 1 if (hi - lo).is_const else nest.vector.lanes
    if points >= nest.vector.lanes or (nest.roomy and points > 1):
        return nest.vector
    return Vector(nest.vector.dim, 1 << points.bit_length() - 1) if points > 1 else None


def _tried(b: Builder, sources: Sources, nest: Nest) -> None:
    vector, align, noted = _fitting_vector(nest), 1, len(nest.whole or ())
    while True:
        if nest.whole is not None:
            del nest.whole[noted:]  # of an attempt that failed
        try:
            with b.attempt():
                _nest(_OpenNest(b, sources, nest, [{}], nest.order[::-1], vector, align))
            return
        except Misfit as misfit:
            if vector is None:  # what runs inside has vectors of its own, and does not get others from here
                raise
            match misfit:
                case NeedAlignment():
                    align = misfit.align
                case TooWide():
                    vector, align = Vector(vector.dim, vector.lanes // 2) if vector.lanes > 2 else None, 1
                case NotUniformBound():  # there is no telling where clamps are active: every lane has its own
                    vector = None if nest.exact or nest.once else vector
                    nest = replace(nest, exact=True)
                case _:
                    raise


Envs: TypeAlias = list[dict[str, Lane]]


@record(frozen=True, slots=True)
class _OpenNest:
    """A nest some of whose loops are open, in the open scope of a builder. `envs` are the variables of these, several
    where points are computed side by side; `dims` the loops still to open, outermost first. The loop over `vector`
    begins at multiples of `align`; a row with `splits` may be written once for each remainder of an index."""

    b: Builder
    sources: Sources
    nest: Nest
    envs: Envs
    dims: tuple[str, ...]
    vector: Vector | None
    align: int = 1
    splits: bool = False

    @property
    def row(self) -> tuple[str, int, Index, Index]:
        """The dim of the row that is vectorised, with the lanes and the ends."""
        assert self.vector is not None
        return self.vector.dim, self.vector.lanes, *self.nest.bounds[self.vector.dim]

    def evaluator(self, axis: Axis | None, exact: bool = False, moved: Index | None = None) -> Evaluator:
        """An evaluator in the open scope."""
        return Evaluator(self.b, self.sources, axis, own=self.nest.own, exact=exact, moved=moved)

    def along(self, lane: Lane) -> Envs:
        """The variables, with that of the row."""
        assert self.vector is not None
        return [{**env, self.vector.dim: lane} for env in self.envs]

    def part(self, ends: Interval) -> _OpenNest:
        """The nest with the row between other ends."""
        assert self.vector is not None
        return replace(self, nest=replace(self.nest, bounds={**self.nest.bounds, self.vector.dim: ends}))


def _nest(o: _OpenNest) -> None:
    """The loops that are still to open, with the body inside."""
    b, nest, half = o.b, o.nest, o.nest.half
    if half is not None and half.slow not in o.dims and half.fast not in o.dims:
        inside = replace(o, nest=replace(nest, half=None))
        read = {half.at(env[half.slow].base, env[half.fast].base) for env in o.envs}
        if len(read) > 1 or all(at.is_const and at.const >= 0 for at in read):
            _nest(inside)
            return
        with b.condition() as body:
            _nest(inside)
        b.emit(If(tuple(read), tuple(body)))
        return
    if not o.dims:
        nest.body(o.evaluator(None), o.envs)
        return
    dim, opened = o.dims[0], replace(o, dims=o.dims[1:])
    if o.vector is not None and o.vector.dim == dim:
        by_remainder(b, lambda splits: _row(replace(opened, splits=splits)))
        return
    _open(o, dim, lambda envs: _nest(replace(opened, envs=envs)))


def _open(o: _OpenNest, dim: str, inside: Callable[[Envs], None]) -> None:
    """The loop over `dim`, or what stands for it: nothing, its iterations written out, or blocks of them."""
    b, nest, envs = o.b, o.nest, o.envs
    lo, hi = nest.bounds[dim]
    if lo == hi:
        inside([{**env, dim: Lane(lo)} for env in envs])
        return
    if dim in nest.unroll:
        inside([{**env, dim: at} for at in iterations((lo, hi)) for env in envs])
        return
    size = nest.blocks.get(dim, 1)
    parallel = dim == nest.parallel
    if size > 1 and nest.transposed and not parallel:
        _whole_blocks(b, dim, lo, hi, size, envs, inside)
        return
    if size > 1 and dim in nest.aligned:
        _aligned_blocks(b, dim, lo, hi, (size, nest.aligned[dim]), envs, inside, parallel)
        return
    if size > 1:
        whole = divide(hi - lo + 1, size).scaled(size)
        _loop(b, dim, lo, lo + whole - 1, size, envs, inside, parallel)
        lo = b.let(lo + whole, f"{dim}_rest")
        if lo == hi + 1:
            return
    _loop(b, dim, lo, hi, 1, envs, inside, parallel)


def _whole_blocks(
    b: Builder,
    dim: str,
    lo: Index,
    hi: Index,
    size: int,
    envs: Envs,
    inside: Callable[[Envs], None],
) -> None:
    """The loop over blocks, the last of which begins early to end with the loop: points may be computed twice. One by
    one where they are fewer than a block."""
    with b.condition() as blocks:
        with b.scope() as body:
            var, seen = b.fresh(f"{dim}_block"), b.fresh(dim)
            b.declare(var)
            at = b.declare(seen, ends=(lo, hi - (size - 1)), step=size)
            inside([{**env, dim: Lane(at + k)} for k in range(size) for env in envs])
        last = b.let(hi - (size - 1), f"{dim}_last")
        b.emit(Loop(var, lo, hi, const(size), tuple(body), seen=ClampedIndex(seen, None, last)))
    with b.condition() as alone:
        _loop(b, dim, lo, hi, 1, envs, inside, False)
    b.emit(If((hi - lo - (size - 1),), tuple(blocks), None, (Apart(tuple(alone), seldom=True),)))


def _aligned_blocks(
    b: Builder,
    dim: str,
    lo: Index,
    hi: Index,
    sizes: tuple[int, int],
    envs: Envs,
    inside: Callable[[Envs], None],
    parallel: bool,
) -> None:
    """The loop over blocks of so many points that begin at multiples of a number, and one over the points before and
    after these."""
    size, of = sizes
    first = b.let(divide(lo + (of - 1), of), f"{dim}_first")
    count = b.let(maximum(divide(hi + 1 - first.scaled(of), size), const(0)), f"{dim}_blocks").scaled(size // of)
    with b.scope() as body:
        var = b.fresh(f"{dim}_block")
        at = b.declare(var).scaled(of)
        inside([{**env, dim: Lane(at + k)} for k in range(size) for env in envs])
    b.emit(Loop(var, first, first + count - 1, const(size // of), tuple(body), parallel=parallel))
    with b.scope() as body:
        var = b.fresh(dim)
        at = b.declare(var, ends=(lo, hi), step=1)
        inside([{**env, dim: Lane(at)} for env in envs])
    skip = (first.scaled(of), (first + count).scaled(of))
    b.emit(Loop(var, lo, hi, const(1), tuple(body), skip=skip))


def _loop(
    b: Builder,
    dim: str,
    lo: Index,
    hi: Index,
    size: int,
    envs: Envs,
    inside: Callable[[Envs], None],
    parallel: bool,
) -> None:
    with b.scope() as body:
        var = b.fresh(dim)
        at = b.declare(var, ends=(lo, hi - (size - 1)), step=size)
        inside([{**env, dim: Lane(at + k)} for k in range(size) for env in envs])
    b.emit(Loop(var, lo, hi, const(size), tuple(body), parallel=parallel))


@record(frozen=True, slots=True)
class _Vectors:
    """The vectors of a row, the body of a loop that is still to be emitted: its variable `counter`, and `seen`, that
    of the body. Vectors have all their lanes where `constraints` are not negative, and rely on `given`. `names` are
    those of `PeelVectors`; `past` is the beginning of the vectors, where they stream."""

    body: tuple[Statement, ...]
    axis: Axis
    counter: str
    seen: str
    names: tuple[str, str, str, str]
    constraints: list[Index]
    given: list[Index]
    past: tuple[Buffer, tuple[Lane, ...]] | None


def _vectors(o: _OpenNest, narrow: bool | None = None) -> _Vectors:
    b, align, (dim, lanes, _, _) = o.b, o.align, o.row
    first, last, from_, to = (b.fresh(f"{dim}_{part}") for part in ("first", "last", "from", "to"))
    given: list[Index] = []
    with b.scope(given=given, narrow=narrow) as body:
        counter, q = b.fresh(f"{dim}_step"), b.fresh(f"{dim}v")
        axis = Axis(q, align, lanes, b.depth, sym(q).scaled(align), o.splits, o.nest.flattened)
        lane = Lane(b.declare(q).scaled(align), tuple(range(lanes)))
        past = _past(o, sym(first).scaled(align))
        moved = None if past is None else (sym(counter) - sym(q)).scaled(align)
        evaluator = o.evaluator(axis, moved=moved)
        b.declare(counter)
        _vector_body(replace(o, envs=o.along(lane)), evaluator)
    return _Vectors(tuple(body), axis, counter, q, (first, last, from_, to), evaluator.constraints, given, past)


def _row(o: _OpenNest) -> None:
    """The vectorised loop: a middle of whole vectors, the last one moved back to end with the middle (where a point
    may be computed twice), and scalars at both edges (also for rows shorter than a vector). Wide edges, where clamps
    are at work, are vectors too, which clamp lane by lane. Where vectors may reach beyond both ends they are all."""
    b, nest, align, (dim, lanes, lo, hi) = o.b, o.nest, o.align, o.row
    if nest.exact:
        _edges(o, None)
        return
    if shorter := _shorter(o):
        _ending_shorter(o, shorter)
        return
    v = _vectors(o)
    if nest.roomy and not v.constraints:
        roomy = _vectors(o, narrow=False) if v.given else v  # whole vectors are worth more than offsets of 32 bits
        if not (roomy.constraints or roomy.given) and stays_in_room(b, roomy.axis, roomy.body):
            _vectors_in_room(o, roomy)
            return
    start, end = _clear(o, v)
    by_blocks = nest.once and align == 1 and bool(v.constraints) and _is_worth_blocks(o, start, end)
    if by_blocks:
        start = b.let(lo + divide(start - lo + (lanes - 1), lanes).scaled(lanes), f"{dim}_start")
        end = start + divide(end - start, lanes).scaled(lanes)
    elif nest.once:
        start = b.let(divide(start + (align - 1), align).scaled(align), f"{dim}_start")
        end = start + divide(end - start, lanes).scaled(lanes)
    for name in v.names:
        b.declare(name)
    has_head = not nest.ordered or bool(v.constraints) or align > 1  # else vectors begin with the row
    first, last, before, after = v.names
    b.emit(PeelVectors(first, last, before if has_head else "", after, start, end, lanes, align, tuple(v.given)))
    from_, to = (sym(name) for name in v.names[2:])
    edge = _blocks if by_blocks else _scalars
    head, tail = (lo, minimum(from_ - 1, hi)), (minimum(to, hi + 1), hi)  # vectors may begin beyond the row
    if nest.ordered and has_head:
        edge(o.part(head))
    _whole_vectors(o, v)
    if by_blocks or nest.ordered:
        for part in (tail,) if nest.ordered else (head, tail):
            edge(o.part(part))
        return
    _rest(o, v, _left(o, start, end))


def _shorter(o: _OpenNest) -> int:
    """Lanes of the fewest registers that have room for what whole vectors leave of a row at the estimates, if those are
    fewer than a vector takes and nothing is clamped; else 0."""
    b, nest, (_, lanes, lo, hi) = o.b, o.nest, o.row
    fixed = nest.once or nest.ordered or nest.roomy or o.align > 1 or nest.past is not None
    if fixed or not nest.unroll or not 0 < nest.register < lanes:
        return 0
    whole, left = divmod(nest.estimate(hi - lo + 1), lanes)
    shorter = -(-left // nest.register) * nest.register
    if not whole or not 0 < shorter < lanes:
        return 0
    with b.trial():
        v = _vectors(o)
    return 0 if v.constraints or v.given else shorter


def _ending_shorter(o: _OpenNest, shorter: int) -> None:
    """The row in whole vectors, the last of which is moved back unless a `shorter` one has room for what is left."""
    b, (dim, lanes, lo, hi) = o.b, o.row
    nest = replace(o.nest, register=0)
    whole = divide(hi - lo + (lanes - shorter), lanes).scaled(lanes)
    end = b.let(minimum(lo + whole, hi + 1), f"{dim}_short")
    _row(replace(o, nest=nest).part((lo, end - 1)))
    with b.condition() as body:
        _row(replace(o, nest=nest, vector=Vector(dim, shorter)).part((maximum(lo, hi - (shorter - 1)), hi)))
    b.emit(If((hi - end,), tuple(body)))


def _vectors_in_room(o: _OpenNest, v: _Vectors) -> None:
    """The whole row in vectors, which reach into the room at both of its ends."""
    b, align, (dim, lanes, lo, hi) = o.b, o.align, o.row
    start = b.let(divide(lo, align), f"{dim}_first")
    final = b.let(maximum(start, divide(hi - (lanes - align), align)), f"{dim}_last")
    until = minimum(divide(hi, align), start + (hi - lo))  # nothing where the row is empty
    b.emit(Loop(v.counter, start, until, const(lanes // align), v.body, seen=ClampedIndex(v.seen, None, final)))


def _clear(o: _OpenNest, v: _Vectors) -> Interval:
    """The part of a row, from its start up to its end, in which all constraints of its vectors hold."""
    align, (_, lanes, lo, hi) = o.align, o.row
    start, end = lo, hi + 1
    for c in v.constraints:
        moving = c.coefficient(v.seen)
        fixed = c - sym(v.seen).scaled(moving)
        if moving > 0:
            start = maximum(start, divide(fixed.scaled(-1) + (moving - 1), moving).scaled(align))
        elif moving < 0:
            # the constraint holds for vectors that start at x or before; the last covers x .. x + lanes - 1
            end = minimum(end, divide(fixed, -moving).scaled(align) + lanes)
        else:
            raise NotUniformBound
    return start, end


def _left(o: _OpenNest, start: Index, end: Index) -> tuple[int, int]:
    """The points that whole vectors between `start` and `end` are expected to leave of a row, and the vectors that
    these fit in."""
    align, (_, lanes, lo, hi) = o.align, o.row
    begin = divide(maximum(start, lo) + (align - 1), align).scaled(align)
    stop = divide(minimum(end, hi + 1) - lanes, align).scaled(align) + lanes
    row, head, tail = (o.nest.estimate(x) for x in (hi - lo + 1, begin - lo, hi + 1 - stop))
    ends = (head, tail) if head + tail + lanes <= row else (row,)
    return sum(ends), sum(-(-n // lanes) for n in ends)


def _is_worth_blocks(o: _OpenNest, start: Index, end: Index) -> bool:
    """True if whole vectors from `start` up to `end` are expected to leave as many points as a vector has lanes."""
    _, lanes, lo, hi = o.row
    inside = o.nest.estimate(minimum(end, hi + 1) - maximum(start, lo))
    return o.nest.estimate(hi - lo + 1) - inside // lanes * lanes >= lanes


def _whole_vectors(o: _OpenNest, v: _Vectors) -> None:
    """The loop over the vectors of a row that have all their lanes."""
    b, nest, align, (dim, lanes, _, _) = o.b, o.nest, o.align, o.row
    first, last = (sym(name) for name in v.names[:2])
    begin, end, step = first, last + (lanes // align - 1), const(lanes // align)
    if v.past is not None:  # whole lines of memory, the first of which may begin before the row
        some = minimum(maximum(last - begin + 1, const(0)), const(1))
        before = divide(beyond(b, *v.past), align)
        begin = begin - b.let(multiply(before, some), f"{dim}_beyond")
    if nest.back and nest.once and not nest.ordered:  # whole vectors, none of which is moved back
        b.emit(Loop(v.counter, begin, end, step, (Let(v.seen, first + last - sym(v.counter)), *v.body)))
    else:
        seen = ClampedIndex(v.seen, first if v.past is not None else None, last)
        b.emit(Loop(v.counter, begin, end, step, v.body, seen=seen))


def _rest(o: _OpenNest, v: _Vectors, left: tuple[int, int]) -> None:
    """The points of a row that its whole vectors leave, so many as are expected and the vectors that these fit in."""
    b, nest, (_, lanes, lo, hi) = o.b, o.nest, o.row
    from_, to = (sym(name) for name in v.names[2:])
    skip = (from_, to)
    if nest.whole is not None and not (v.constraints or nest.once or v.given) and o.align == 1 and v.past is None:
        nest.whole.append(lanes)
        return
    points, vectors = left
    if v.constraints and not nest.once and points > vectors:
        _edges(o, skip, left)
        return
    with b.condition() as scalars:
        _scalars(o, skip)
    shorter = not (v.constraints or nest.once)  # only rows that are have points left
    if shorter and sum(1 for _ in statements_of(tuple(scalars))) >= WORTH_A_CALL:
        b.emit(If((hi - lo + from_ - to,), (Apart(tuple(scalars), seldom=True),)))
    else:
        b.scopes[-1].statements.extend(scalars)


class _NotWorthVectors(Misfit):
    """Vectors that clamp lane by lane are more instructions than the points of an edge, or too wide."""


def _edges(o: _OpenNest, skip: Ends | None, left: tuple[int, int] | None = None) -> None:
    """The points of a row but for those to skip: in vectors that clamp lane by lane where the row has so many, and if
    so many points, and vectors that these fit in, are expected to be `left`, where they are fewer instructions."""
    b, (_, lanes, lo, hi) = o.b, o.row
    with b.condition() as scalars:
        _scalars(o, skip)
    try:
        with b.attempt():
            with b.condition() as vectors:
                made = _clamped(o, skip)
            if not made or (left and not _are_fewer(o, vectors, scalars, *left)):
                raise _NotWorthVectors
    except _NotWorthVectors:
        b.scopes[-1].statements.extend(scalars)
        return
    b.emit(If((hi - lo - (lanes - 1),), (Apart(tuple(vectors)),), None, (Apart(tuple(scalars), seldom=True),)))


def _are_fewer(o: _OpenNest, clamped: list[Statement], scalars: list[Statement], points: int, vectors: int) -> bool:
    """True if so many vectors take fewer instructions than so many points one by one, which are the loops of both."""
    vector, point = (
        sum(executed(s.body, o.b.vectors.vector_bytes, o.nest.estimate) for s in block if isinstance(s, Loop))
        for block in (clamped, scalars)
    )
    return vectors * vector < points * point


def _past(o: _OpenNest, first: Index) -> tuple[Buffer, tuple[Lane, ...]] | None:
    """The beginning of vectors that stream, which start at `first`; None where there are none: those of whole lines
    do."""
    b, nest = o.b, o.nest
    if nest.past is None or nest.vector is None or len(o.envs) != 1:
        return None
    buffer, dims = nest.past
    if line_vectors(nest.vector.lanes * buffer.type.bytes, b.line_bytes, b.vectors.streamed_bytes) != 1:
        return None
    if any(nest.bounds[d][0] != nest.bounds[d][1] and d not in nest.unroll for d in o.dims):
        return None
    at = {**o.envs[0], **{d: Lane(nest.bounds[d][0]) for d in o.dims}, nest.vector.dim: Lane(first)}
    return buffer, tuple(at[d] for d in dims)


def _at_edges(nest: Nest) -> Nest:
    """The nest at the ends of rows, which are short code: what is unrolled are loops, but around long sums."""
    return replace(nest, flat=None) if nest.sums else replace(nest, unroll={}, flat=None)


def _scalars(o: _OpenNest, skip: Ends | None = None) -> None:
    """The points that vectors leave of a row, one by one."""
    b, (dim, _, lo, hi) = o.b, o.row
    with b.scope() as body:
        var = b.fresh(dim)
        at = Lane(b.declare(var))
        _nest(replace(o, nest=_at_edges(o.nest), envs=o.along(at), vector=None))
    b.emit(Loop(var, lo, hi, const(1), tuple(body), skip=skip))


def _blocks(o: _OpenNest) -> None:
    """An edge of a row no point of which may be visited twice: vectors whose lanes clamp on their own, then points."""
    b, (dim, lanes, lo, hi) = o.b, o.row
    try:
        with b.attempt():
            q = b.fresh(f"{dim}_at")
            with b.scope() as body:
                _clamped_body(o, q)
            b.emit(Loop(q, lo, hi - (lanes - 1), const(lanes), tuple(body)))
            left = lo + divide(hi - lo + 1, lanes).scaled(lanes)
    except TooWide:
        left = lo
    with b.condition() as scalars:
        _scalars(o.part((left, hi)), None)
    b.emit(If((hi - left,), (Apart(tuple(scalars), seldom=True),)))


def _clamped(o: _OpenNest, skip: Ends | None) -> bool:
    """Both edges of a row that is at least a vector long, in vectors whose lanes clamp on their own. The last one ends
    with the row. False where they would be too wide."""
    b, (dim, lanes, lo, hi) = o.b, o.row
    try:
        with b.attempt():
            most, var, q = (b.fresh(f"{dim}_{part}") for part in ("most", "edge", "at"))
            b.emit(Let(most, hi - (lanes - 1)))
            b.declare(most)
            with b.scope() as body:
                _clamped_body(o, q)
    except TooWide:
        return False
    b.emit(Loop(var, lo, hi, const(lanes), tuple(body), skip=skip, seen=ClampedIndex(q, None, sym(most))))
    return True


def _clamped_body(o: _OpenNest, q: str) -> None:
    """The body at the vector that begins at `q`, whose lanes clamp on their own."""
    b, lanes = o.b, o.row[1]
    lane = Lane(b.declare(q), tuple(range(lanes)))
    evaluator = o.evaluator(Axis(q, 1, lanes, b.depth, splits=o.splits), exact=True)
    _vector_body(replace(o, nest=_at_edges(o.nest), envs=o.along(lane)), evaluator)


def _vector_body(o: _OpenNest, evaluator: Evaluator) -> None:
    """The loops inside of that over vectors, with the body."""
    nest = o.nest
    if not o.dims:
        if nest.transposed and len(o.envs) > 1:
            _note_across(o, evaluator)
        nest.body(evaluator, o.envs)
        return
    dim, opened = o.dims[0], replace(o, dims=o.dims[1:])

    def inside(envs: Envs) -> None:
        _vector_body(replace(opened, envs=envs), evaluator)

    if nest.vector is not None and nest.flattened and dim == nest.flat:
        inside([part for env in o.envs for part in flat_parts(env, nest.vector.dim, dim, nest.bounds[dim])])
        return
    _open(o, dim, inside)


def _note_across(o: _OpenNest, evaluator: Evaluator) -> None:
    """Has the evaluator know what the body reads across rows at all points of a block."""
    across = TransposedReads()
    noting = o.evaluator(evaluator.axis, evaluator.exact, evaluator.moved)
    noting.across = across
    with o.b.trial(), o.b.scope():
        o.nest.body(noting, o.envs)
    if across.settle():
        evaluator.across = across
