"""The loops that compute one stage on a box: rows cut into vectors and edges, the rest plain loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.analysis.accesses import accesses
from scheduler.analysis.bounds import Box
from scheduler.analysis.index import Index, const, divide, maximum, minimum, sym
from scheduler.lang.expr import Var, walk
from scheduler.lang.pipeline import Stage, Update
from scheduler.lower.builder import Builder, TooWide
from scheduler.lower.evaluate import Axis, Evaluator, NeedAlignment, NotUniformBound, Sources
from scheduler.lower.memory import store
from scheduler.lower.program import Buffer, Comment, If, Lane, Loop, VectorSplit
from scheduler.schedule import Vector


@dataclass(frozen=True, slots=True)
class Nest:
    """How to compute a stage: its own loops innermost first, the dim to vectorise, and the dims to unroll with the
    (min, extent) that they are expected to have."""

    stage: Stage
    buffers: tuple[Buffer, ...]
    order: tuple[str, ...]
    vector: Vector | None
    unroll: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def compute(b: Builder, sources: Sources, nest: Nest, box: Box) -> None:
    """Emits the loops that fill `box` (inclusive bounds; nothing happens where it is empty) of the stage's buffers.

    *Legal when* every element that the stage reads for `box` has been computed. Where the dims to unroll have the
    extents expected, they are constants inside the other loops; else they are loops around them. Vectors are tried
    first; a row that cannot be cut into edges and middle is computed by scalars.
    """
    ranges = dict(zip(nest.stage.dims, box, strict=True))
    expected = {d: u for d, u in nest.unroll.items() if ranges[d][0] != ranges[d][1]}
    plain = (*(d for d in nest.order if d not in expected), *(d for d in nest.order if d in expected))
    looped = replace(nest, order=plain, unroll={})
    if not expected:
        _tried(b, sources, looped, box)
        return
    fixed = tuple(
        (const(expected[d][0]), const(sum(expected[d]) - 1)) if d in expected else bounds
        for d, bounds in ranges.items()
    )
    same: list[Index] = []
    for d in expected:
        for bound, wanted in zip(ranges[d], fixed[nest.stage.dims.index(d)], strict=True):
            same += [bound - wanted, wanted - bound]
    if any(x.is_const and x.const < 0 for x in same):
        _tried(b, sources, looped, box)
        return
    asked = tuple(x for x in same if not x.is_const)
    if not asked:
        _tried(b, sources, replace(nest, unroll=expected), fixed)
        return
    with b.condition() as unrolled:
        _tried(b, sources, replace(nest, unroll=expected), fixed)
    with b.condition() as otherwise:
        _tried(b, sources, looped, box)
    b.emit(If(asked, tuple(unrolled), None, tuple(otherwise)))


def _tried(b: Builder, sources: Sources, nest: Nest, box: Box) -> None:
    vector = nest.vector
    align = b.alignments.get(nest.stage.name, 1)
    while True:
        mark = b.mark()
        try:
            _nest(b, sources, nest, dict(zip(nest.stage.dims, box, strict=True)), {}, nest.order[::-1], vector, align)
            return
        except NeedAlignment as need:
            b.rollback(mark)
            align = b.alignments[nest.stage.name] = need.align
        except TooWide:
            b.rollback(mark)
            assert vector is not None
            vector = Vector(vector.dim, vector.lanes // 2) if vector.lanes > 2 else None
            align = 1
        except NotUniformBound:
            b.rollback(mark)
            vector = None


def _nest(
    b: Builder,
    sources: Sources,
    nest: Nest,
    bounds: Mapping[str, tuple[Index, Index]],
    env: dict[str, Lane],
    dims: tuple[str, ...],
    vector: Vector | None,
    align: int,
) -> None:
    """`dims` are the loops still to open, outermost first; `env` the variables of those that are open."""
    if not dims:
        _point(b, sources, nest, env)
        return
    dim, rest = dims[0], dims[1:]
    lo, hi = bounds[dim]
    if vector is not None and vector.dim == dim:
        _row(b, sources, nest, bounds, env, rest, vector, align)
        return
    if lo == hi:
        _nest(b, sources, nest, bounds, {**env, dim: Lane(lo)}, rest, vector, align)
        return
    if dim in nest.unroll:
        for n in range(lo.const, hi.const + 1):
            _nest(b, sources, nest, bounds, {**env, dim: Lane(const(n))}, rest, vector, align)
        return
    with b.scope() as body:
        var = b.fresh(dim)
        _nest(b, sources, nest, bounds, {**env, dim: Lane(b.declare(var))}, rest, vector, align)
    b.emit(Loop(var, lo, hi, const(1), tuple(body)))


def _point(b: Builder, sources: Sources, nest: Nest, env: dict[str, Lane]) -> None:
    evaluator = Evaluator(b, sources, None)
    frame = evaluator.frame(env)
    values = [evaluator.value(v, frame) for v in nest.stage.values]
    for buffer, value in zip(nest.buffers, values, strict=True):
        store(b, buffer, tuple(env[d] for d in nest.stage.dims), value)


def _row(
    b: Builder,
    sources: Sources,
    nest: Nest,
    bounds: Mapping[str, tuple[Index, Index]],
    env: dict[str, Lane],
    rest: tuple[str, ...],
    vector: Vector,
    align: int,
) -> None:
    """The vectorised loop: a middle of whole vectors, the last one moved back to end with the middle, and scalars
    at both edges (also for rows shorter than a vector)."""
    dim, lanes = vector.dim, vector.lanes
    lo, hi = bounds[dim]
    first, last, from_, to = (b.fresh(f"{dim}_{part}") for part in ("first", "last", "from", "to"))
    with b.scope() as body:
        counter, q = b.fresh(f"{dim}_step"), b.fresh(f"{dim}v")
        axis = Axis(q, align, lanes, b.depth)
        lane = Lane(b.declare(q).scaled(align), tuple(range(lanes)))
        evaluator = Evaluator(b, sources, axis)
        _vector_body(b, evaluator, nest, bounds, {**env, dim: lane}, rest)
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
    for name in (first, last, from_, to):
        b.declare(name)
    b.emit(VectorSplit(first, last, from_, to, start, end, lanes, align))
    b.emit(
        Loop(counter, sym(first), sym(last) + (lanes // align - 1), const(lanes // align), tuple(body), last=(q, last))
    )
    with b.scope() as edge:
        var = b.fresh(dim)
        _nest(b, sources, replace(nest, unroll={}), bounds, {**env, dim: Lane(b.declare(var))}, rest, None, 1)
    b.emit(Loop(var, lo, hi, const(1), tuple(edge), skip=(from_, to)))


def _vector_body(
    b: Builder,
    evaluator: Evaluator,
    nest: Nest,
    bounds: Mapping[str, tuple[Index, Index]],
    env: dict[str, Lane],
    rest: tuple[str, ...],
) -> None:
    if rest:
        dim, lo, hi = rest[0], *bounds[rest[0]]
        if lo == hi:
            _vector_body(b, evaluator, nest, bounds, {**env, dim: Lane(lo)}, rest[1:])
            return
        if dim in nest.unroll:
            for n in range(lo.const, hi.const + 1):
                _vector_body(b, evaluator, nest, bounds, {**env, dim: Lane(const(n))}, rest[1:])
            return
        with b.scope() as body:
            var = b.fresh(dim)
            _vector_body(b, evaluator, nest, bounds, {**env, dim: Lane(b.declare(var))}, rest[1:])
        b.emit(Loop(var, lo, hi, const(1), tuple(body)))
        return
    frame = evaluator.frame(env)
    values = [evaluator.value(v, frame) for v in nest.stage.values]
    for buffer, value in zip(nest.buffers, values, strict=True):
        store(b, buffer, tuple(env[d] for d in nest.stage.dims), value)


def shares_loads(stage: Stage, dim: str, along: str, inlined: Mapping[str, Stage]) -> bool:
    """Whether points of `stage` that differ in `dim` only read a same vector along `along`, inlined stages included."""
    for a in accesses(stage):
        names = [{v.name for v in walk(i) if isinstance(v, Var)} for i in a.access.indices]
        if not any(along in n for n in names):
            continue
        if not any(dim in n for n in names):
            return True
        inner = inlined.get(a.producer)
        if inner is None:
            continue
        through = [d for d, n in zip(inner.dims, names, strict=True) if dim in n]
        moving = [d for d, n in zip(inner.dims, names, strict=True) if along in n]
        if len(through) == len(moving) == 1 and shares_loads(inner, through[0], moving[0], inlined):
            return True
    return False


def run_update(
    b: Builder, sources: Sources, stage: Stage, buffers: tuple[Buffer, ...], update: Update, box: Box
) -> None:
    """Emits one update as plain loops in the order of its definition: free dims outside, then the domain, its
    last variable outermost. *Legal when* the stage's buffers cover `box`, which is settled."""
    used = _free_dims(stage, update)
    bounds = dict(zip(stage.dims, box, strict=True))

    def nest(names: tuple[str, ...], env: dict[str, Lane]) -> None:
        if not names:
            _update_point(b, sources, stage, buffers, update, env)
            return
        name, rest = names[0], names[1:]
        if name in domain:
            evaluator = Evaluator(b, sources, None, own=stage.name)
            frame = evaluator.frame(env)
            lo = evaluator.lane(domain[name].lo, frame).base
            hi = lo + evaluator.lane(domain[name].extent, frame).base - 1
        else:
            lo, hi = bounds[name]
        with b.scope() as body:
            var = b.fresh(name)
            nest(rest, {**env, name: Lane(b.declare(var))})
        b.emit(Loop(var, lo, hi, const(1), tuple(body)))

    domain = {r.name: r for r in update.domain}
    b.emit(Comment(f"update of {stage.name}"))
    # a free dim is independent of the domain: its loop may stand outside
    nest((*reversed(used), *(r.name for r in reversed(update.domain))), {})


def _free_dims(stage: Stage, update: Update) -> tuple[str, ...]:
    parts = (*update.at, *update.values, *([] if update.where is None else [update.where]))
    names = {v.name for e in parts for v in walk(e) if isinstance(v, Var)}
    return tuple(d for d in stage.dims if d in names)


def _update_point(
    b: Builder,
    sources: Sources,
    stage: Stage,
    buffers: tuple[Buffer, ...],
    update: Update,
    env: dict[str, Lane],
) -> None:
    evaluator = Evaluator(b, sources, None, own=stage.name)
    frame = evaluator.frame(env)

    def write() -> None:
        inner = Evaluator(b, sources, None, own=stage.name)
        point = inner.frame(env)
        at = tuple(inner.lane(i, point) for i in update.at)
        values = [inner.value(v, point) for v in update.values]
        for buffer, value in zip(buffers, values, strict=True):
            store(b, buffer, at, value)

    if update.where is None:
        write()
        return
    condition = evaluator.value(update.where, frame)
    with b.condition() as body:
        write()
    b.emit(If((), tuple(body), condition))
