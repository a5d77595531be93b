"""The reference interpreter: what a pipeline computes, obvious rather than fast.

Independent of analysis, lowering and emission. It works on concrete boxes: a stage is evaluated on whole
boxes with NumPy broadcasting, and which box of a producer is needed is found by evaluating the indices of
every access over the consumer's box and taking their least and greatest. What single operators mean is in
`semantics`; this module gives the rest its meaning:

- What is required does not depend on conditions: it includes what the side of a select that is not taken reads,
  and the points of a reduction or update that its predicate leaves out.
- A stage with updates is computed over the hull of what is required of it, what its updates write and what
  they read of it.
- Within its own updates a stage is read as it stands at that moment, without its boundary. Every other reader
  sees the boundary. The caller gets the stage's own values.
- A reduction folds in the order of its loops, from `semantics.identity`. For argmin and argmax a point replaces
  the best so far if it is strictly better; they start from the worst value at the first value of every variable.
- A boundary's domain whose extent is below 1 at run time is its first point, and nothing where the kind is constant.
- Coordinates are 32-bit. What needs others is refused, and so is an index whose arithmetic leaves 32 bits where that
  shows: at its end, or where `//`, `%`, `min` or the like see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from scheduler.lang import semantics
from scheduler.lang.arguments import (
    ArgumentError,
    Image,
    Region,
    RegionError,
    Scalar,
    checked_images,
    checked_params,
    checked_regions,
)
from scheduler.lang.expr import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    RVar,
    Select,
    Unary,
    Var,
    children,
    map_children,
    walk,
)
from scheduler.lang.pipeline import Boundary, Input, Pipeline, Stage, Update
from scheduler.lang.semantics import Array
from scheduler.lang.types import INT32

Box: TypeAlias = tuple[tuple[int, int], ...]  # (first, last) per dim, both included

__all__ = ["ArgumentError", "Image", "Region", "RegionError", "Scalar", "interpret", "required_regions"]

CHUNK = 1 << 22  # elements evaluated at once when a loop is unrolled into an array axis


def interpret(
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, Scalar],
    regions: Mapping[str, Region],
) -> dict[str, tuple[Array, ...]]:
    """The outputs named in `regions` over those regions ((min, extent) per dim), one array a tuple component.

    The arrays' axes are the reverse of the dims. Params that are not given take their defaults.
    Raises ArgumentError if images, params or regions do not fit the pipeline, RegionError if an input does
    not cover what is read of it.
    """
    boxes = {name: _box_of(region) for name, region in checked_regions(pipeline, regions).items()}
    evaluator = _Evaluator(pipeline, inputs, params)
    required = evaluator.plan(boxes)
    for image in pipeline.inputs:
        if image.name in required:
            evaluator.check_input(image, required[image.name])
    for stage in pipeline.stages:
        if stage.name in required:
            evaluator.ensure(stage.name, required[stage.name])
    return {name: evaluator.cut(name, box) for name, box in boxes.items()}


def required_regions(
    pipeline: Pipeline,
    inputs: Mapping[str, Image],
    params: Mapping[str, Scalar],
    regions: Mapping[str, Region],
) -> dict[str, Region]:
    """The region of every stage and input that is needed for `regions` of the outputs; those not needed are left out.

    Takes the same arguments as `interpret`. Of an input with a boundary it is what is read inside the image;
    of one without, what is read, whether the image has it or not. Raises RegionError only where an index
    depends on pixels that are outside of an input.
    """
    boxes = {name: _box_of(region) for name, region in checked_regions(pipeline, regions).items()}
    required = _Evaluator(pipeline, inputs, params).plan(boxes)
    return {name: tuple((low, high - low + 1) for low, high in box) for name, box in required.items()}


@dataclass(frozen=True, slots=True)
class _Env:
    """Values of the variables in scope: arrays that broadcast to `rank` axes, `size` points in all.

    `lead` is the length of the leading axis where a loop was made one. `own` is the stage whose update is
    being evaluated: it is read raw.
    """

    variables: Mapping[str, Array]
    rank: int
    size: int
    lead: int = 1
    own: str | None = None

    def bind(self, names: tuple[str, ...], points: Array) -> _Env:
        """One more leading axis, along which the variables `names` run through the rows of `points`."""
        shape = (len(points),) + (1,) * self.rank
        new = {name: points[:, i].astype(np.int32).reshape(shape) for i, name in enumerate(names)}
        size = self.size * len(points)
        return replace(self, variables={**self.variables, **new}, rank=self.rank + 1, size=size, lead=len(points))


_NOTHING_IN_SCOPE = _Env({}, 0, 1)


@dataclass(slots=True)
class _Buffer:
    """Values over a box. Axes are the reverse of the dims."""

    box: Box
    arrays: tuple[Array, ...]


class _Evaluator:
    """Values of one pipeline's stages for one set of inputs, computed when asked for and kept."""

    def __init__(self, pipeline: Pipeline, inputs: Mapping[str, Image], params: Mapping[str, Scalar]) -> None:
        self.pipeline = pipeline
        self.inputs = {i.name: i for i in pipeline.inputs}
        self.stages = {s.name: s for s in pipeline.stages}
        self.images = checked_images(pipeline, inputs)
        self.params = checked_params(pipeline, params)
        for p in pipeline.params:
            if p.value is not None:
                self.params[p.name] = self.evaluate(p.value, _NOTHING_IN_SCOPE)
        self.buffers: dict[str, _Buffer] = {}
        self.demanded: dict[tuple[str, Box], tuple[Box, dict[str, Box]]] = {}
        for name, image in self.images.items():
            box = tuple((m, m + e - 1) for m, e in zip(image.min, image.extent, strict=True))
            self.buffers[name] = _Buffer(box, (image.array,))

    # What is required

    def plan(self, outputs: Mapping[str, Box]) -> dict[str, Box]:
        """The box of every stage and input that the given boxes of the outputs need."""
        required = dict(outputs)
        for stage in reversed(self.pipeline.stages):
            if stage.name in required:
                required[stage.name], of_producers = self.demands(stage, required[stage.name])
                for name, box in of_producers.items():
                    required[name] = _hull(required.get(name), box)
        return required

    def demands(self, stage: Stage, box: Box) -> tuple[Box, dict[str, Box]]:
        """The box that `stage` is computed over where `box` of it is wanted, and the boxes of its producers."""
        known = self.demanded.get((stage.name, box))
        if known is None:
            known = self.demanded[stage.name, box] = self._demands(stage, box)
        return known

    def _demands(self, stage: Stage, box: Box) -> tuple[Box, dict[str, Box]]:
        found: dict[str, Box] = {stage.name: box}
        own_only: dict[str, Box] = {}
        for update in stage.updates:  # first what grows the box itself
            for env in self._update_chunks(stage, update, box):
                for e in update.at:
                    self._held(e, env, stage.name)
                if not any(_reads(e, stage.name) for e in update.at):
                    self._note(own_only, stage.name, [self.evaluate(e, env) for e in update.at])
                for e in _update_expressions(update):
                    self._collect(e, env, own_only, only=stage.name)
        box = _hull(own_only.get(stage.name), box)
        for update in stage.updates:
            for env in self._update_chunks(stage, update, box):
                for e in _update_expressions(update):
                    self._collect(e, env, found)
        env = _grid(stage.dims, box)
        for value in stage.values:
            self._collect(value, env, found)
        del found[stage.name]
        return box, found

    def _update_chunks(self, stage: Stage, update: Update, box: Box) -> Iterator[_Env]:
        grid = _grid(stage.dims, box)
        free = {d: grid.variables[d] for d in _free_dims(stage, update)}
        env = replace(grid, variables=free, size=math.prod(a.size for a in free.values()), own=stage.name)
        return self._chunks(update.domain, env)

    def _collect(self, e: Expr, env: _Env, found: dict[str, Box], only: str | None = None) -> None:
        """Add to `found` the boxes that `e` reads. Accesses whose indices read the stage being updated are left
        out: their place is known only when they are evaluated, which computes what is missing."""
        match e:
            case Access():
                for i in e.indices:
                    self._collect(i, env, found, only)
                for i in e.indices:
                    self._held(i, env, e.name)
                if only in (None, e.name) and not any(_reads(i, env.own) for i in e.indices):
                    indices = [np.asarray(self.evaluate(i, env)) for i in e.indices]
                    self._note(found, e.name, self._see(e.name, indices, env)[0])
            case Reduce():
                for chunk in self._chunks(e.domain, env):
                    for child in (e.body,) if e.where is None else (e.where, e.body):
                        self._collect(child, chunk, found, only)
            case _:
                for child in children(e):
                    self._collect(child, env, found, only)

    def _held(self, e: Expr, env: _Env, name: str) -> None:
        """Raise ArgumentError where an index of `name`, or what other than sums, differences and products has as an
        operand in it, is arithmetic of places that leaves int32."""
        if isinstance(e, Access | Reduce):
            return
        if e.type != INT32 or any(isinstance(n, Access | Reduce) for n in walk(e)):
            for child in children(e):
                self._held(child, env, name)
            return
        exact = self._exact(e, env, name)
        low, high = int(np.min(exact)), int(np.max(exact))
        if low < INT32.min or high > INT32.max:
            raise ArgumentError(f"an index of {name} runs from {low} to {high}, beyond 32-bit coordinates")

    def _exact(self, e: Expr, env: _Env, name: str) -> Array:
        match e:
            case Binary(op="+" | "-" | "*", type=t) if t == INT32:
                a, b = self._exact(e.left, env, name), self._exact(e.right, env, name)
                return np.asarray(a + b if e.op == "+" else a - b if e.op == "-" else a * b)
            case Unary(op="-", type=t) if t == INT32:
                return np.asarray(-self._exact(e.operand, env, name))
        for child in children(e):
            self._held(child, env, name)
        return np.asarray(self.evaluate(e, env), np.int64)

    def _note(self, found: dict[str, Box], name: str, indices: list[Array]) -> None:
        box = tuple((int(np.min(i)), int(np.max(i))) for i in indices)
        found[name] = _hull(found.get(name), box)

    def check_input(self, image: Input, required: Box) -> None:
        """Raise RegionError unless the image passed covers `required`."""
        for dim, (low, high), (first, last) in zip(image.dims, required, self.buffers[image.name].box, strict=True):
            if low < first or high > last:
                raise RegionError(
                    f"input {image.name}, dim {dim}: {low}..{high} is required, the image has {first}..{last}"
                )

    # Values of stages

    def ensure(self, name: str, box: Box) -> _Buffer:
        """The values of input or stage `name` over at least `box`."""
        known = self.buffers.get(name)
        if known is not None and _covers(known.box, box):
            return known
        if name in self.inputs:
            self.check_input(self.inputs[name], box)
        stage = self.stages[name]
        box, of_producers = self.demands(stage, _hull(None if known is None else known.box, box))
        for producer, needed in of_producers.items():
            if producer in self.stages:
                self.ensure(producer, needed)
        self.buffers[name] = self._pure(stage, box)
        for update in stage.updates:
            self._run(stage, update)
        return self.buffers[name]

    def cut(self, name: str, box: Box) -> tuple[Array, ...]:
        """A copy of the values of stage `name` over `box`."""
        buffer = self.ensure(name, box)
        window = tuple(
            slice(low - first, high - first + 1)
            for (low, high), (first, _) in reversed(list(zip(box, buffer.box, strict=True)))
        )
        return tuple(np.array(a[window]) for a in buffer.arrays)

    def _pure(self, stage: Stage, box: Box) -> _Buffer:
        env = _grid(stage.dims, box)
        shape = tuple(last - first + 1 for first, last in reversed(box))
        return _Buffer(box, tuple(np.array(np.broadcast_to(self.evaluate(v, env), shape)) for v in stage.values))

    def _run(self, stage: Stage, update: Update) -> None:
        """Run one update, point by point; dims that the update leaves free are whole axes.

        What does not read the stage itself cannot change on the way, and is evaluated for all points beforehand.
        """
        ahead: dict[str, Expr] = {}

        def hoist(e: Expr) -> Expr:
            if not _reads(e, stage.name):
                ahead[f"#{len(ahead)}"] = e
                return Var(f"#{len(ahead) - 1}", e.type)
            return e if isinstance(e, Reduce) else map_children(e, hoist)

        where = None if update.where is None else hoist(update.where)
        at, values = [hoist(e) for e in update.at], [hoist(v) for v in update.values]
        in_order = replace(update, domain=tuple(reversed(update.domain)))
        for env in self._update_chunks(stage, in_order, self.buffers[stage.name].box):
            known = {name: _along(value, env) for name, value in env.variables.items()}
            known |= {name: _along(self.evaluate(e, env), env) for name, e in ahead.items()}
            for n in range(env.lead):
                point = replace(env, variables={k: v[n] for k, v in known.items()}, rank=env.rank - 1, lead=1)
                mask = np.asarray(True) if where is None else self.evaluate(where, point)
                if np.any(mask):
                    places = [np.array(self.evaluate(e, point), np.int64) for e in at]
                    new = [np.array(self.evaluate(v, point)) for v in values]  # copies: all are read before any write
                    self._write(stage, places, new, mask)

    def _write(self, stage: Stage, at: list[Array], values: list[Array], mask: Array) -> None:
        self._grow(stage, at)
        buffer = self.buffers[stage.name]
        rank = len(buffer.box)
        where = tuple(
            (i - first).reshape((1,) * (rank - i.ndim) + i.shape)
            for i, (first, _) in reversed(list(zip(at, buffer.box, strict=True)))
        )
        for array, value in zip(buffer.arrays, values, strict=True):
            array[where] = value if np.all(mask) else np.where(mask, value, array[where])

    def _grow(self, stage: Stage, at: list[Array]) -> None:
        """Make room for the points `at` in the middle of an update: no update has touched what is new."""
        old = self.buffers[stage.name]
        box = _hull(old.box, tuple((int(np.min(i)), int(np.max(i))) for i in at))
        if box != old.box:
            new = self._pure(stage, box)
            window = tuple(
                slice(first - low, last - low + 1)
                for (first, last), (low, _) in reversed(list(zip(old.box, box, strict=True)))
            )
            for wide, narrow in zip(new.arrays, old.arrays, strict=True):
                wide[window] = narrow
            self.buffers[stage.name] = new

    # Values of expressions

    def evaluate(self, e: Expr, env: _Env) -> Array:
        """The value of `e`, of its type, broadcastable to the grid of `env`."""
        match e:
            case Const():
                return semantics.constant(e.value, e.type)
            case Var():
                return env.variables[e.name]
            case ParamRef():
                return self.params[e.name]
            case InputBound():
                image, dim = self.images[e.input], self.inputs[e.input].dims.index(e.dim)
                return np.asarray(image.min[dim] if e.which == "min" else image.extent[dim], np.int32)
            case Access():
                return self._read(e, [np.asarray(self.evaluate(i, env)) for i in e.indices], env)
            case Binary():
                return semantics.binary(e.op, self.evaluate(e.left, env), self.evaluate(e.right, env), e.type)
            case Unary():
                return semantics.unary(e.op, self.evaluate(e.operand, env), e.type)
            case Compare():
                return semantics.compare(e.op, self.evaluate(e.left, env), self.evaluate(e.right, env))
            case Logical():
                left, right = self.evaluate(e.left, env), self.evaluate(e.right, env)
                return np.asarray(np.logical_and(left, right) if e.op == "and" else np.logical_or(left, right))
            case Select():
                condition, a, b = (self.evaluate(c, env) for c in (e.condition, e.if_true, e.if_false))
                return np.where(condition, a, b)
            case Call():
                args = tuple(self.evaluate(a, env) for a in e.args)
                return semantics.call(e.function, args, tuple(a.type for a in e.args), e.type)
            case Cast():
                return semantics.convert(self.evaluate(e.operand, env), e.operand.type, e.type, e.saturate)
            case Reduce():
                return self._reduce(e, env)

    def _read(self, e: Access, indices: list[Array], env: _Env) -> Array:
        if e.name == env.own:
            self._grow(self.stages[e.name], indices)
            buffer = self.buffers[e.name]
            return _gather(buffer.arrays[e.component], buffer.box, indices, env.rank)
        inside, outside, boundary = self._see(e.name, indices, env)
        buffer = self.ensure(e.name, tuple((int(np.min(i)), int(np.max(i))) for i in inside))
        values = _gather(buffer.arrays[e.component], buffer.box, inside, env.rank)
        if outside is None or boundary is None or boundary.value is None:
            return values
        beyond = self.evaluate(boundary.value, _NOTHING_IN_SCOPE)
        return np.where(outside, semantics.convert(beyond, boundary.value.type, e.type), values)

    def _see(self, name: str, indices: list[Array], env: _Env) -> tuple[list[Array], Array | None, Boundary | None]:
        """Where a reader of `name` at `indices` really looks, and which of its points lie outside of the domain of a
        constant boundary."""
        boundary = self.inputs[name].boundary if name in self.inputs else self.stages[name].boundary
        if boundary is None or name == env.own:
            return indices, None, boundary
        if boundary.domain is None:
            domain = list(zip(self.images[name].min, self.images[name].extent, strict=True))
        else:
            domain = [(self._integer(low), self._integer(extent)) for low, extent in boundary.domain]
        inside = [
            semantics.boundary_index(boundary.kind, i, low, max(extent, 1))
            for i, (low, extent) in zip(indices, domain, strict=True)
        ]
        if boundary.kind != "constant":
            return inside, None, boundary
        outside = np.asarray(False)
        for i, (low, extent) in zip(indices, domain, strict=True):
            outside = np.logical_or(outside, np.logical_or(i < low, i >= low + extent))
        return inside, outside, boundary

    def _reduce(self, e: Reduce, env: _Env) -> Array:
        """The reduction's points become a leading axis, a chunk at a time, which is folded in order."""
        best = semantics.identity(e.op, e.body.type)
        firsts = [self._integer(r.lo) for r in e.domain]
        chosen = [np.asarray(first, np.int32) for first in firsts]
        for chunk in self._chunks(e.domain, env):
            values = _along(self.evaluate(e.body, chunk), chunk)
            masks = None if e.where is None else _along(self.evaluate(e.where, chunk), chunk)
            for k in range(len(values)):
                if e.op in ("argmin", "argmax"):
                    better = semantics.compare("<" if e.op == "argmin" else ">", values[k], best)
                    better = better if masks is None else np.logical_and(better, masks[k])
                    points = (chunk.variables[r.name].reshape(-1)[k] for r in e.domain)
                    chosen = [np.where(better, p, c) for p, c in zip(points, chosen, strict=True)]
                    best = np.where(better, values[k], best)
                else:
                    folded = self._fold(e, best, values[k])
                    best = folded if masks is None else np.where(masks[k], folded, best)
        if e.op in ("argmin", "argmax"):
            return (*chosen, best)[e.component]
        return best

    def _fold(self, e: Reduce, best: Array, value: Array) -> Array:
        match e.op:
            case "sum":
                return semantics.binary("+", best, value, e.type)
            case "product":
                return semantics.binary("*", best, value, e.type)
            case "any":
                return np.asarray(np.logical_or(best, value))
            case "all":
                return np.asarray(np.logical_and(best, value))
            case _:
                return semantics.call(e.op, (best, value), (e.type, e.type), e.type)

    def _chunks(self, domain: tuple[RVar, ...], env: _Env) -> Iterator[_Env]:
        """`env` with the points of `domain` along one more axis, the last variable fastest, some points at a time."""
        ranges = [np.asarray(self._range(r), np.int64) for r in domain]
        total = math.prod(len(r) for r in ranges)
        step = max(1, CHUNK // max(env.size, 1))
        for start in range(0, total, step):
            flat = np.arange(start, min(start + step, total))
            places = np.unravel_index(flat, tuple(len(r) for r in ranges)) if ranges else ()
            columns = [r[p] for r, p in zip(ranges, places, strict=True)]
            points = np.stack(columns, axis=1) if columns else np.zeros((len(flat), 0), np.int64)
            yield env.bind(tuple(r.name for r in domain), points)

    def _range(self, r: RVar) -> range:
        low = self._integer(r.lo)
        return range(low, low + max(self._integer(r.extent), 0))

    def _integer(self, e: Expr) -> int:
        return int(self.evaluate(e, _NOTHING_IN_SCOPE))


def _grid(dims: tuple[str, ...], box: Box) -> _Env:
    """The dims as int32 arrays, each along its own axis: the first dim along the last axis."""
    rank = len(dims)
    variables = {}
    for n, (dim, (first, last)) in enumerate(zip(dims, box, strict=True)):
        shape = [1] * rank
        shape[rank - 1 - n] = last - first + 1
        variables[dim] = np.arange(first, last + 1, dtype=np.int32).reshape(shape)
    return _Env(variables, rank, math.prod(last - first + 1 for first, last in box))


def _along(values: Array, env: _Env) -> Array:
    """`values` with the leading axis of `env` in full, also where they do not depend on it."""
    values = np.asarray(values)
    values = values.reshape((1,) * (env.rank - values.ndim) + values.shape)
    return np.broadcast_to(values, (env.lead, *values.shape[1:]))


def _free_dims(stage: Stage, update: Update) -> tuple[str, ...]:
    """The dims that the update runs through in whole: those that stand at their own place on its left-hand side."""
    bound = {r.name for r in update.domain}
    return tuple(
        d for d, e in zip(stage.dims, update.at, strict=True) if isinstance(e, Var) and e.name == d and d not in bound
    )


def _update_expressions(update: Update) -> tuple[Expr, ...]:
    where = () if update.where is None else (update.where,)
    return (*where, *update.at, *update.values)


def _reads(e: Expr, name: str | None) -> bool:
    return any(isinstance(n, Access) and n.name == name for n in walk(e))


def _gather(array: Array, box: Box, indices: list[Array], rank: int) -> Array:
    """`array[indices]` for an array over `box`; `indices` are in the order of the dims.

    Where each index varies along an axis of its own and in order, which is so for stencils, whole slices are cut.
    """
    at = [np.asarray(i, np.int64) - first for i, (first, _) in reversed(list(zip(indices, box, strict=True)))]
    at = [i.reshape((1,) * (rank - i.ndim) + i.shape) for i in at]
    if all(i.size == 1 for i in at):
        return np.asarray(array[tuple(int(i.item()) for i in at)]).reshape((1,) * rank)
    axes = [[a for a, n in enumerate(i.shape) if n > 1] for i in at]
    varying = [a[0] for a in axes if a]
    if any(len(a) > 1 for a in axes) or varying != sorted(set(varying)):
        return np.asarray(array[tuple(at)])
    lines = [i.reshape(-1) for i in at]
    array = array[tuple(slice(int(line.min()), int(line.max()) + 1) for line in lines)]
    shape = [1] * rank
    for axis, line in enumerate(lines):
        line = line - line.min()
        steps = np.diff(line)
        if len(line) > 1 and np.all(steps == steps[0]) and steps[0] > 0:
            array = array[(slice(None),) * axis + (slice(None, None, int(steps[0])),)]
        elif len(line) > 1:
            array = np.take(array, line, axis=axis)
        if axes[axis]:
            shape[axes[axis][0]] = len(line)
    return array.reshape(shape)


def _box_of(region: Region) -> Box:
    return tuple((low, low + extent - 1) for low, extent in region)


def _hull(a: Box | None, b: Box) -> Box:
    if a is None:
        return b
    return tuple((min(p, r), max(q, s)) for (p, q), (r, s) in zip(a, b, strict=True))


def _covers(outer: Box, inner: Box) -> bool:
    return all(p <= r and s <= q for (p, q), (r, s) in zip(outer, inner, strict=True))
