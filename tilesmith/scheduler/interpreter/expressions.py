"""Values of expressions on whole boxes, by NumPy broadcasting; a part of the interpreter (see `interpret`)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilesmith.scheduler.interpreter.boxes import Box, Buffer, gather
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.arguments import Image, Scalar, checked_images, checked_params
from tilesmith.scheduler.ir.pipeline.evaluation import operation
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    RVar,
    Var,
    children,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.semantics import Array

CHUNK = 1 << 22  # elements evaluated at once when a loop is unrolled into an array axis


@dataclass(frozen=True, slots=True)
class Env:
    """Values of the variables in scope: arrays that broadcast to `rank` axes, `size` points in all.

    `lead` is the length of the leading axis where a loop was made one. `own` is the stage whose update is
    being evaluated: it is read raw.
    """

    variables: Mapping[str, Array]
    rank: int
    size: int
    lead: int = 1
    own: str | None = None

    def bind(self, names: tuple[str, ...], points: Array) -> Env:
        """One more leading axis, along which the variables `names` run through the rows of `points`."""
        shape = (len(points),) + (1,) * self.rank
        new = {name: points[:, i].astype(np.int32).reshape(shape) for i, name in enumerate(names)}
        size = self.size * len(points)
        return replace(self, variables={**self.variables, **new}, rank=self.rank + 1, size=size, lead=len(points))


NOTHING_IN_SCOPE = Env({}, 0, 1)


class Evaluator(ABC):
    """Values of one pipeline's expressions for one set of inputs; who inherits knows those of stages and inputs."""

    def __init__(self, pipeline: Pipeline, inputs: Mapping[str, Image], params: Mapping[str, Scalar]) -> None:
        self.pipeline = pipeline
        self.inputs = {i.name: i for i in pipeline.inputs}
        self.stages = {s.name: s for s in pipeline.stages}
        self.images = checked_images(pipeline, inputs)
        self.params = checked_params(pipeline, params)
        for p in pipeline.params:
            if p.value is not None:
                self.params[p.name] = self.evaluate(p.value, NOTHING_IN_SCOPE)

    @abstractmethod
    def ensure(self, name: str, box: Box) -> Buffer:
        """The values of input or stage `name` over at least `box`."""

    @abstractmethod
    def grow(self, stage: Stage, at: list[Array]) -> Buffer:
        """The values of `stage` in the middle of an update, with room for the points `at`."""

    def evaluate(self, e: Expr, env: Env) -> Array:
        """The value of `e`, of its type, broadcastable to the grid of `env`."""
        match e:
            case Var():
                return env.variables[e.name]
            case ParamRef():
                return self.params[e.name]
            case InputBound():
                image, dim = self.images[e.input], self.inputs[e.input].dims.index(e.dim)
                return np.asarray(image.min[dim] if e.which == "min" else image.extent[dim], np.int32)
            case Access():
                return self._read(e, [np.asarray(self.evaluate(i, env)) for i in e.indices], env)
            case Reduce():
                return self._reduce(e, env)
            case _:
                return operation(e, [self.evaluate(part, env) for part in children(e)])

    def _read(self, e: Access, indices: list[Array], env: Env) -> Array:
        if e.name == env.own:
            buffer = self.grow(self.stages[e.name], indices)
            return gather(buffer.arrays[e.component], buffer.box, indices, env.rank)
        inside, outside, boundary = self.see(e.name, indices, env)
        buffer = self.ensure(e.name, tuple((int(np.min(i)), int(np.max(i))) for i in inside))
        values = gather(buffer.arrays[e.component], buffer.box, inside, env.rank)
        if outside is None or boundary is None or boundary.value is None:
            return values
        beyond = self.evaluate(boundary.value, NOTHING_IN_SCOPE)
        return np.where(outside, semantics.convert(beyond, boundary.value.type, e.type), values)

    def see(self, name: str, indices: list[Array], env: Env) -> tuple[list[Array], Array | None, Boundary | None]:
        """The indices that a reader of `name` at `indices` really reads, and which of its points lie outside of the
        domain of a constant boundary."""
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

    def _reduce(self, e: Reduce, env: Env) -> Array:
        """The reduction's points become a leading axis, a chunk at a time, which is folded in order."""
        best = semantics.identity(e.op, e.body.type)
        firsts = [self._integer(r.lo) for r in e.domain]
        chosen = [np.asarray(first, np.int32) for first in firsts]
        for chunk in self.chunks(e.domain, env):
            values = along(self.evaluate(e.body, chunk), chunk)
            masks = None if e.where is None else along(self.evaluate(e.where, chunk), chunk)
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

    def chunks(self, domain: tuple[RVar, ...], env: Env) -> Iterator[Env]:
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

    def update_chunks(self, stage: Stage, update: Update, box: Box) -> Iterator[Env]:
        """The points of an update of `stage` on `box`, some points of its domain at a time."""
        whole = grid(stage.dims, box)
        free = {d: whole.variables[d] for d in _free_dims(stage, update)}
        env = replace(whole, variables=free, size=math.prod(a.size for a in free.values()), own=stage.name)
        return self.chunks(update.domain, env)

    def _range(self, r: RVar) -> range:
        low = self._integer(r.lo)
        return range(low, low + max(self._integer(r.extent), 0))

    def _integer(self, e: Expr) -> int:
        return int(self.evaluate(e, NOTHING_IN_SCOPE))


def grid(dims: tuple[str, ...], box: Box) -> Env:
    """The dims as int32 arrays, each along its own axis: the first dim along the last axis."""
    rank = len(dims)
    variables = {}
    for n, (dim, (first, last)) in enumerate(zip(dims, box, strict=True)):
        shape = [1] * rank
        shape[rank - 1 - n] = last - first + 1
        variables[dim] = np.arange(first, last + 1, dtype=np.int32).reshape(shape)
    return Env(variables, rank, math.prod(last - first + 1 for first, last in box))


def along(values: Array, env: Env) -> Array:
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
