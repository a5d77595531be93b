"""Lowering of loop nests, a body over a box: rows cut into vectors and edges, the rest plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilesmith.scheduler.analysis.bounds_inference import Interval
from tilesmith.scheduler.analysis.dead_points import Half
from tilesmith.scheduler.features.streaming_stores import line_vectors
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, multiply, sym
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit, TooWide
from tilesmith.scheduler.ir.loop.program import Apart, ClampedIndex, If, Let, Loop, PeelVectors
from tilesmith.scheduler.ir.loop.traversal import walk as statements_of
from tilesmith.scheduler.ir.loop.values import Buffer, Ends, Lane
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.schedule.schedule import Vector
from tilesmith.scheduler.lowering.evaluation import Sources
from tilesmith.scheduler.lowering.expressions import Evaluator
from tilesmith.scheduler.lowering.index_vectorization import Axis, NeedAlignment, NotUniformBound
from tilesmith.scheduler.lowering.memory import beyond, store, store_channels, store_past
from tilesmith.scheduler.lowering.reductions import together
from tilesmith.scheduler.lowering.residue_splitting import by_remainder
from tilesmith.scheduler.lowering.row_room import stays_in_room
from tilesmith.scheduler.lowering.transposed_reads import TransposedReads

MOST_OF_ROW = 8
"""Edges are wide that are expected to be one part in so many of a row."""

WORTH_A_CALL = 20
"""Statements of the scalars of rows shorter than a vector from which on they stand apart."""

Body = Callable[[Evaluator, Sequence[Mapping[str, Lane]]], None]
"""Emits what is done at a point, or at a vector of them: the evaluator of the open scope, and the loops' variables;
several of these where points are computed side by side."""


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest to lower: `body` over `bounds` (inclusive), its loops innermost first, the loop to vectorise, the
    loop run by threads, and the loops to unroll with the (min, extent) that they are expected to have. Of a loop of
    `blocks` so many iterations are computed side by side. `name` is the stage's.

    `whole`, if it is a list, notes the lanes of rows that vectors cover where these fit: no scalars are emitted.
    `roomy`: rows begin where those of memory do, and have room at both ends. `sums`: values are long reductions.
    `own` is the stage that an update reads and writes; `once`: no point may be visited twice. `past` is the buffer,
    with its dims, that vectors go to past the caches. Of a `half` no points are computed but those that are read.
    `estimate` gives an index at the estimates. `exact`: every lane clamps on its own. `back`: rows follow each other
    towards the beginning of memory, and so do their vectors: what fetches ahead follows addresses that go one way.
    `transposed`: what points of the blocks read across rows of memory is. `flat`: the dim of channels, if rows are flat
    (see `analysis.flat_rows`): where it is unrolled, vectors are of all elements of the row.
    """

    name: str
    body: Body
    bounds: Mapping[str, Interval]
    order: tuple[str, ...]
    vector: Vector | None = None
    unroll: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    parallel: str | None = None
    own: str = ""
    once: bool = False
    past: tuple[Buffer, tuple[str, ...]] | None = None
    half: Half | None = None
    estimate: Callable[[Index], int] = field(default=lambda _: 1)
    whole: list[int] | None = None
    roomy: bool = False
    sums: bool = False
    exact: bool = False
    back: bool = False
    transposed: bool = False
    flat: str | None = None

    @property
    def flattened(self) -> bool:
        """Whether lanes are elements of the row, all channels of which are computed."""
        return self.flat is not None and self.flat in self.unroll and self.bounds[self.flat][0] == const(0)


def values_of(b: Builder, stage: Stage, buffers: tuple[Buffer, ...]) -> Body:
    """The body that computes the stage's values into its buffers."""

    def body(evaluator: Evaluator, envs: Sequence[Mapping[str, Lane]]) -> None:
        frames = [evaluator.frame(env) for env in envs]
        together(evaluator, stage.values, frames)
        stores = []
        for env, frame in zip(envs, frames, strict=True):
            values = [evaluator.value(v, frame) for v in stage.values]
            for buffer, value in zip(buffers, values, strict=True):
                at = tuple(env[d] for d in stage.dims)
                if evaluator.moved is not None:
                    store_past(b, buffer, at, value, evaluator.moved)
                elif buffer.channels:
                    stores.append((buffer, at, value))
                else:
                    store(b, buffer, at, value)
        store_channels(b, stores)

    return body


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
    fixed, asked = known
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


def written_out(
    bounds: Mapping[str, Interval], unroll: Mapping[str, tuple[int | None, int]]
) -> tuple[dict[str, Interval], tuple[Index, ...]] | None:
    """The dims to unroll with the bounds that they are expected to have, and what must not be negative for them to
    have these. Where a dim is expected to begin is None for tiles, which begin anywhere. None where there is nothing
    to unroll, or they never have them."""
    fixed = {}
    for d, (start, extent) in unroll.items():
        lo, hi = bounds[d]
        if lo != hi:
            first = lo if start is None else const(start)
            fixed[d] = (first, first + (extent - 1))
    same = [
        x for d, ends in fixed.items() for bound, wanted in zip(bounds[d], ends, strict=True)
        for x in (bound - wanted, wanted - bound)
    ]  # fmt: skip
    if not fixed or any(x.is_const and x.const < 0 for x in same):
        return None
    return fixed, tuple(x for x in same if not x.is_const)


def iterations(ends: Interval) -> Iterator[Lane]:
    """The iterations of a loop that is written out."""
    lo, hi = ends
    return (Lane(lo + n) for n in range((hi - lo).const + 1))


def _tried(b: Builder, sources: Sources, nest: Nest) -> None:
    vector, align, noted = nest.vector, 1, len(nest.whole or ())
    while True:
        if nest.whole is not None:
            del nest.whole[noted:]  # of an attempt that failed
        try:
            with b.attempt():
                _nest(b, sources, nest, [{}], nest.order[::-1], vector, align)
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


def _nest(
    b: Builder,
    sources: Sources,
    nest: Nest,
    envs: list[dict[str, Lane]],
    dims: tuple[str, ...],
    vector: Vector | None,
    align: int,
) -> None:
    """`dims` are the loops still to open, outermost first; `envs` the variables of those that are open."""
    if nest.half is not None and nest.half.slow not in dims and nest.half.fast not in dims:
        inside = replace(nest, half=None)
        read = {nest.half.at(env[nest.half.slow].base, env[nest.half.fast].base) for env in envs}
        if len(read) > 1 or all(at.is_const and at.const >= 0 for at in read):
            _nest(b, sources, inside, envs, dims, vector, align)
            return
        with b.condition() as body:
            _nest(b, sources, inside, envs, dims, vector, align)
        b.emit(If(tuple(read), tuple(body)))
        return
    if not dims:
        nest.body(Evaluator(b, sources, None, own=nest.own), envs)
        return
    dim, rest = dims[0], dims[1:]
    if vector is not None and vector.dim == dim:
        by_remainder(b, lambda splits: _row(b, sources, nest, envs, rest, vector, align, splits))
        return

    def opened_inside(opened: list[dict[str, Lane]]) -> None:
        _nest(b, sources, nest, opened, rest, vector, align)

    _open(b, nest, envs, dim, opened_inside)


def _open(
    b: Builder,
    nest: Nest,
    envs: list[dict[str, Lane]],
    dim: str,
    inside: Callable[[list[dict[str, Lane]]], None],
) -> None:
    """The loop over `dim`, or what stands for it: nothing, its iterations written out, or blocks of them."""
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
    envs: list[dict[str, Lane]],
    inside: Callable[[list[dict[str, Lane]]], None],
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


def _loop(
    b: Builder,
    dim: str,
    lo: Index,
    hi: Index,
    size: int,
    envs: list[dict[str, Lane]],
    inside: Callable[[list[dict[str, Lane]]], None],
    parallel: bool,
) -> None:
    with b.scope() as body:
        var = b.fresh(dim)
        at = b.declare(var, ends=(lo, hi - (size - 1)), step=size)
        inside([{**env, dim: Lane(at + k)} for k in range(size) for env in envs])
    b.emit(Loop(var, lo, hi, const(size), tuple(body), parallel=parallel))


def _row(
    b: Builder,
    sources: Sources,
    nest: Nest,
    envs: list[dict[str, Lane]],
    rest: tuple[str, ...],
    vector: Vector,
    align: int,
    splits: bool,
) -> None:
    """The vectorised loop: a middle of whole vectors, the last one moved back to end with the middle (where a point
    may be computed twice), and scalars at both edges (also for rows shorter than a vector). Wide edges, where clamps
    are at work, are vectors too, which clamp lane by lane. Where vectors may reach beyond both ends they are all."""
    dim, lanes = vector.dim, vector.lanes
    lo, hi = nest.bounds[dim]
    if nest.exact:
        _edges(b, sources, nest, envs, rest, vector, None, splits)
        return
    first, last, from_, to = (b.fresh(f"{dim}_{part}") for part in ("first", "last", "from", "to"))
    given: list[Index] = []
    with b.scope(given=given) as body:
        counter, q = b.fresh(f"{dim}_step"), b.fresh(f"{dim}v")
        axis = Axis(q, align, lanes, b.depth, sym(q).scaled(align), splits, nest.flattened)
        lane = Lane(b.declare(q).scaled(align), tuple(range(lanes)))
        past = _past(b, nest, envs, rest, sym(first).scaled(align))
        moved = None if past is None else (sym(counter) - sym(q)).scaled(align)
        evaluator = Evaluator(b, sources, axis, own=nest.own, moved=moved)
        b.declare(counter)
        _vector_body(b, evaluator, nest, [{**env, dim: lane} for env in envs], rest)
    if nest.roomy and not (evaluator.constraints or given) and stays_in_room(b, axis, body):
        start = b.let(divide(lo, align), f"{dim}_first")
        final = b.let(maximum(start, divide(hi - (lanes - align), align)), f"{dim}_last")
        until = minimum(divide(hi, align), start + (hi - lo))  # nothing where the row is empty
        b.emit(Loop(counter, start, until, const(lanes // align), tuple(body), seen=ClampedIndex(q, None, final)))
        return
    start, end = lo, hi + 1
    for c in evaluator.constraints:
        moving = c.coefficient(q)
        fixed = c - sym(q).scaled(moving)
        if moving > 0:
            start = maximum(start, divide(fixed.scaled(-1) + (moving - 1), moving).scaled(align))
        elif moving < 0:
            # the constraint holds for vectors that start at x or before; the last covers x .. x + lanes - 1
            end = minimum(end, divide(fixed, -moving).scaled(align) + lanes)
        else:
            raise NotUniformBound
    points = nest.estimate(hi - lo + 1)
    by_blocks = nest.once and align == 1 and bool(evaluator.constraints)
    if by_blocks:
        inside = nest.estimate(minimum(end, hi + 1) - maximum(start, lo))
        by_blocks = points - inside // lanes * lanes >= lanes
    if by_blocks:
        start = b.let(lo + divide(start - lo + (lanes - 1), lanes).scaled(lanes), f"{dim}_start")
        end = start + divide(end - start, lanes).scaled(lanes)
    elif nest.once:
        start = b.let(divide(start + (align - 1), align).scaled(align), f"{dim}_start")
        end = start + divide(end - start, lanes).scaled(lanes)
    for name in (first, last, from_, to):
        b.declare(name)
    b.emit(PeelVectors(first, last, from_, to, start, end, lanes, align, tuple(given)))
    begin, end_at, step = sym(first), sym(last) + (lanes // align - 1), const(lanes // align)
    if past is not None:  # whole lines of memory, the first of which may begin before the row
        some = minimum(maximum(sym(last) - begin + 1, const(0)), const(1))
        before = divide(beyond(b, past[0], past[1]), align)
        begin = begin - b.let(multiply(before, some), f"{dim}_beyond")
    if nest.back and nest.once:  # whole vectors, none of which is moved back
        b.emit(Loop(counter, begin, end_at, step, (Let(q, sym(first) + sym(last) - sym(counter)), *body)))
    else:
        seen = ClampedIndex(q, sym(first) if past is not None else None, sym(last))
        b.emit(Loop(counter, begin, end_at, step, tuple(body), seen=seen))
    skip = (sym(from_), sym(to))
    if by_blocks:
        for part in (
            (lo, minimum(sym(from_) - 1, hi)),
            (minimum(sym(to), hi + 1), hi),
        ):  # vectors may begin beyond a short row
            _blocks(b, sources, replace(nest, bounds={**nest.bounds, dim: part}), envs, rest, vector, splits)
        return
    wide = nest.estimate(hi - lo + 1 - maximum(minimum(end, hi + 1) - maximum(start, lo), const(0)))
    left = hi - lo + sym(from_) - sym(to)
    if nest.whole is not None and not (evaluator.constraints or nest.once or given) and align == 1 and past is None:
        nest.whole.append(lanes)
        return
    if wide * MOST_OF_ROW < points or nest.once or not evaluator.constraints:
        with b.condition() as scalars:
            _scalars(b, sources, nest, envs, rest, dim, skip)
        shorter = not (evaluator.constraints or nest.once)  # only rows that are have points left
        if shorter and sum(1 for _ in statements_of(tuple(scalars))) >= WORTH_A_CALL:
            b.emit(If((left,), (Apart(tuple(scalars), seldom=True),)))
        else:
            b.scopes[-1].statements.extend(scalars)
        return
    _edges(b, sources, nest, envs, rest, vector, skip, splits)


def _edges(
    b: Builder,
    sources: Sources,
    nest: Nest,
    envs: list[dict[str, Lane]],
    rest: tuple[str, ...],
    vector: Vector,
    skip: Ends | None,
    splits: bool,
) -> None:
    """The points of a row but for those to skip: in vectors that clamp lane by lane where the row has so many."""
    dim, lanes = vector.dim, vector.lanes
    lo, hi = nest.bounds[dim]
    with b.condition() as vectors:
        made = _clamped(b, sources, nest, envs, rest, vector, skip, splits)
    with b.condition() as scalars:
        _scalars(b, sources, nest, envs, rest, dim, skip)
    if made:
        b.emit(If((hi - lo - (lanes - 1),), (Apart(tuple(vectors)),), None, (Apart(tuple(scalars), seldom=True),)))
    else:
        b.scopes[-1].statements.extend(scalars)


def _past(
    b: Builder, nest: Nest, envs: Sequence[Mapping[str, Lane]], rest: tuple[str, ...], first: Index
) -> tuple[Buffer, tuple[Lane, ...]] | None:
    """The beginning of vectors that stream, which start at `first`; None where there are none: those of whole lines
    do."""
    if nest.past is None or nest.vector is None or len(envs) != 1:
        return None
    buffer, dims = nest.past
    if line_vectors(nest.vector.lanes * buffer.type.bytes, b.line_bytes, b.vectors.streamed_bytes) != 1:
        return None
    if any(nest.bounds[d][0] != nest.bounds[d][1] and d not in nest.unroll for d in rest):
        return None
    at = {**envs[0], **{d: Lane(nest.bounds[d][0]) for d in rest}, nest.vector.dim: Lane(first)}
    return buffer, tuple(at[d] for d in dims)


def _at_edges(nest: Nest) -> Nest:
    """The nest at the ends of rows, which are short code: what is unrolled are loops, but around long sums."""
    return replace(nest, flat=None) if nest.sums else replace(nest, unroll={}, flat=None)


def _scalars(
    b: Builder,
    sources: Sources,
    nest: Nest,
    envs: list[dict[str, Lane]],
    rest: tuple[str, ...],
    dim: str,
    skip: Ends | None,
) -> None:
    """The points that vectors leave of a row, one by one."""
    lo, hi = nest.bounds[dim]
    with b.scope() as body:
        var = b.fresh(dim)
        at = Lane(b.declare(var))
        _nest(b, sources, _at_edges(nest), [{**env, dim: at} for env in envs], rest, None, 1)
    b.emit(Loop(var, lo, hi, const(1), tuple(body), skip=skip))


def _blocks(
    b: Builder,
    sources: Sources,
    nest: Nest,
    envs: list[dict[str, Lane]],
    rest: tuple[str, ...],
    vector: Vector,
    splits: bool,
) -> None:
    """An edge of a row no point of which may be visited twice: vectors whose lanes clamp on their own, then points."""
    dim, lanes = vector.dim, vector.lanes
    lo, hi = nest.bounds[dim]
    try:
        with b.attempt():
            q = b.fresh(f"{dim}_at")
            with b.scope() as body:
                lane = Lane(b.declare(q), tuple(range(lanes)))
                evaluator = Evaluator(b, sources, Axis(q, 1, lanes, b.depth, splits=splits), own=nest.own, exact=True)
                _vector_body(b, evaluator, _at_edges(nest), [{**env, dim: lane} for env in envs], rest)
            b.emit(Loop(q, lo, hi - (lanes - 1), const(lanes), tuple(body)))
            left = lo + divide(hi - lo + 1, lanes).scaled(lanes)
    except TooWide:
        left = lo
    with b.condition() as scalars:
        _scalars(b, sources, replace(nest, bounds={**nest.bounds, dim: (left, hi)}), envs, rest, dim, None)
    b.emit(If((hi - left,), (Apart(tuple(scalars), seldom=True),)))


def _clamped(
    b: Builder,
    sources: Sources,
    nest: Nest,
    envs: list[dict[str, Lane]],
    rest: tuple[str, ...],
    vector: Vector,
    skip: Ends | None,
    splits: bool,
) -> bool:
    """Both edges of a row that is at least a vector long, in vectors whose lanes clamp on their own. The last one ends
    with the row. False where they would be too wide."""
    dim, lanes = vector.dim, vector.lanes
    lo, hi = nest.bounds[dim]
    try:
        with b.attempt():
            most, var, q = (b.fresh(f"{dim}_{part}") for part in ("most", "edge", "at"))
            b.emit(Let(most, hi - (lanes - 1)))
            b.declare(most)
            with b.scope() as body:
                lane = Lane(b.declare(q), tuple(range(lanes)))
                axis = Axis(q, 1, lanes, b.depth, splits=splits)
                evaluator = Evaluator(b, sources, axis, own=nest.own, exact=True)
                _vector_body(b, evaluator, _at_edges(nest), [{**env, dim: lane} for env in envs], rest)
    except TooWide:
        return False
    b.emit(Loop(var, lo, hi, const(lanes), tuple(body), skip=skip, seen=ClampedIndex(q, None, sym(most))))
    return True


def _vector_body(
    b: Builder, evaluator: Evaluator, nest: Nest, envs: list[dict[str, Lane]], rest: tuple[str, ...]
) -> None:
    if not rest:
        if nest.transposed and len(envs) > 1:
            _note_across(b, evaluator, nest, envs)
        nest.body(evaluator, envs)
        return

    def inside(opened: list[dict[str, Lane]]) -> None:
        _vector_body(b, evaluator, nest, opened, rest[1:])

    if nest.vector is not None and nest.flattened and rest[0] == nest.flat:
        inside([part for env in envs for part in _flat_parts(env, nest.vector.dim, rest[0], nest.bounds[rest[0]])])
        return
    _open(b, nest, envs, rest[0], inside)


def _flat_parts(env: Mapping[str, Lane], place: str, channel: str, channels: Interval) -> Iterator[dict[str, Lane]]:
    """The vectors of all elements of a vector of pixels, in the order of memory: the place and the channel of each."""
    base, lanes = env[place].base, len(env[place].pattern or ())
    count = (channels[1] - channels[0]).const + 1
    for part in range(count):
        found = [divmod(n, count) for n in range(part * lanes, (part + 1) * lanes)]
        places, own = zip(*found, strict=True)
        yield {**env, place: Lane(base, places), channel: Lane(channels[0], own)}


def _note_across(b: Builder, evaluator: Evaluator, nest: Nest, envs: Sequence[Mapping[str, Lane]]) -> None:
    """Has the evaluator know what the body reads across rows at all points of a block."""
    across = TransposedReads()
    noting = Evaluator(
        b, evaluator.sources, evaluator.axis, own=nest.own, exact=evaluator.exact, moved=evaluator.moved, across=across
    )
    with b.trial(), b.scope():
        nest.body(noting, envs)
    if across.settle():
        evaluator.across = across
