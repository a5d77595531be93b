"""Required boxes of stages and inputs, from the values of indices; a part of the interpreter (see `interpret`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilesmith.scheduler.interpreter.boxes import Box, hull
from tilesmith.scheduler.interpreter.expressions import Env, Evaluator, grid
from tilesmith.scheduler.ir.pipeline.arguments import ArgumentError, Image, Scalar
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Expr, Reduce, Unary, children, reads_from, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.semantics import Array
from tilesmith.scheduler.ir.pipeline.types import INT32


class RegionEvaluator(Evaluator):
    """Boxes of producers that boxes of one pipeline's stages need, for one set of inputs."""

    def __init__(self, pipeline: Pipeline, inputs: Mapping[str, Image], params: Mapping[str, Scalar]) -> None:
        super().__init__(pipeline, inputs, params)
        self.demanded: dict[tuple[str, Box], tuple[Box, dict[str, Box]]] = {}

    def plan(self, outputs: Mapping[str, Box]) -> dict[str, Box]:
        """The box of every stage and input that the given boxes of the outputs need."""
        required = dict(outputs)
        for stage in reversed(self.pipeline.stages):
            if stage.name in required:
                required[stage.name], of_producers = self.demands(stage, required[stage.name])
                for name, box in of_producers.items():
                    required[name] = hull(required.get(name), box)
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
            for env in self.update_chunks(stage, update, box):
                for e in update.at:
                    self._held(e, env, stage.name)
                if not any(reads_from(e, stage.name) for e in update.at):
                    self._note(own_only, stage.name, [self.evaluate(e, env) for e in update.at])
                for e in _update_expressions(update):
                    self._collect(e, env, own_only, only=stage.name)
        box = hull(own_only.get(stage.name), box)
        for update in stage.updates:
            for env in self.update_chunks(stage, update, box):
                for e in _update_expressions(update):
                    self._collect(e, env, found)
        env = grid(stage.dims, box)
        for value in stage.values:
            self._collect(value, env, found)
        del found[stage.name]
        return box, found

    def _collect(self, e: Expr, env: Env, found: dict[str, Box], only: str | None = None) -> None:
        """Add to `found` the boxes that `e` reads. Accesses whose indices read the stage being updated are left
        out: their place is known only when they are evaluated, which computes what is missing."""
        match e:
            case Access():
                for i in e.indices:
                    self._collect(i, env, found, only)
                for i in e.indices:
                    self._held(i, env, e.name)
                if only in (None, e.name) and not any(reads_from(i, env.own) for i in e.indices):
                    indices = [np.asarray(self.evaluate(i, env)) for i in e.indices]
                    self._note(found, e.name, self.see(e.name, indices, env)[0])
            case Reduce():
                for chunk in self.chunks(e.domain, env):
                    for child in (e.body,) if e.where is None else (e.where, e.body):
                        self._collect(child, chunk, found, only)
            case _:
                for child in children(e):
                    self._collect(child, env, found, only)

    def _held(self, e: Expr, env: Env, name: str) -> None:
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

    def _exact(self, e: Expr, env: Env, name: str) -> Array:
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
        found[name] = hull(found.get(name), box)


def _update_expressions(update: Update) -> tuple[Expr, ...]:
    where = () if update.where is None else (update.where,)
    return (*where, *update.at, *update.values)
