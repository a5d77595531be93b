"""Widening of factors: elements that all lanes of a contraction of 16 bits multiply by become those of a stage.

    sum(int32(w(x, 2 * r)) * int32(int16(a(2 * r, y)) - zero)
        + int32(w(x, 2 * r + 1)) * int32(int16(a(2 * r + 1, y)) - zero) for r in range(256))
      ->
    a_wide(r, y) = int16(a(r, y)) - zero
    sum(int32(w(x, 2 * r)) * int32(a_wide(2 * r, y)) + int32(w(x, 2 * r + 1)) * int32(a_wide(2 * r + 1, y)) ...)

All lanes multiply by the same two factors. In 16 bits, side by side, they are one load; of bytes, of what is quantised
or far apart they are put together in scalar code, again for each vector of points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilesmith.scheduler.analysis.access_functions import Span, span_of, variable
from tilesmith.scheduler.analysis.accesses import range_of
from tilesmith.scheduler.analysis.bounded_reads import BoundedRead, bounded_read
from tilesmith.scheduler.analysis.short_products import short_factors, terms
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Cast,
    Expr,
    Reduce,
    has_accesses,
    map_children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage, rewritten
from tilesmith.scheduler.ir.pipeline.types import INT16, INT32
from tilesmith.scheduler.rewrites.names import fresh, taken


def with_wide_factors(pipeline: Pipeline) -> Pipeline:
    """*Before*: boundaries are arithmetic; contractions of 16 bits have two products an iteration. *After*: factors of
    these that do not move with the rows of the stage, and are made of one element of an image, are elements of 16 bits
    of a stage, right before the first that reads it, in which those of two products are neighbours in memory. A
    boundary within which they are read is that stage's, which has a margin. The same values, and the same is required.
    *Ignores* factors that are such neighbours where they are, and places that are data, or whose ends are not known.
    Again, this changes nothing."""
    widening = _Widening(pipeline)
    stages: list[Stage] = []
    for stage in pipeline.stages:
        found = widening.stage(stage)
        stages += (*widening.added, found)
        widening.added.clear()
    return replace(pipeline, stages=tuple(stages)) if len(stages) > len(pipeline.stages) else pipeline


class _Widening:
    """The stages of a pipeline one by one; `added` has those that are new."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.added: list[Stage] = []
        self._images: dict[str, Input | Stage] = {i.name: i for i in pipeline.inputs}
        self._images |= {s.name: s for s in pipeline.stages}
        self._names = taken(pipeline)
        self._made: dict[tuple[Expr, tuple[str, ...]], str] = {}

    def stage(self, stage: Stage) -> Stage:
        """The stage, with its factors read from stages that are new."""
        if not any(map(_products, reductions(stage))):
            return stage
        env = {d: variable(d) for d in stage.dims}
        return rewritten(stage, lambda e: self._rewritten(e, stage.storage[0], env), lambda e: e)

    def _rewritten(self, e: Expr, row: str, env: Mapping[str, Span]) -> Expr:
        if isinstance(e, Reduce):
            env = {**env, **{r.name: range_of(r) for r in e.domain}}
        e = map_children(e, lambda part: self._rewritten(part, row, env))
        products = _products(e)
        if not isinstance(e, Reduce) or not products:
            return e
        first, second = products
        wide: dict[Expr, Expr] = {}
        for n, other in ((0, 1), (1, 0)):
            if row in variables_of(first[other]) and row not in variables_of(first[n]):
                wide |= self._wide(first[n], second[n], env)
        return replace(e, body=_with(e.body, wide)) if wide else e

    def _wide(self, first: Expr, second: Expr, env: Mapping[str, Span]) -> dict[Expr, Expr]:
        """The reads that stand for two factors; none where they stay."""
        read = {e: self._read(e, env) for e in (first, second)}
        known = {e: found for e, found in read.items() if found is not None}
        if len(known) < 2 or len({(image.name, at.value) for image, at in known.values()}) > 1:
            return {}
        (image, one), (_, two) = known.values()
        apart = [d for d, a, b in zip(image.dims, one.indices, two.indices, strict=True) if a != b]
        if len(apart) != 1 or (isinstance(first, Access) and first.type == INT16 and image.storage[0] == apart[0]):
            return {}
        storage = (apart[0], *(d for d in image.storage if d != apart[0]))
        name = self._stage_of(image, one.value, storage)
        return {e: Access(name, at.indices, 0, INT16) for e, (_, at) in known.items()}

    def _read(self, e: Expr, env: Mapping[str, Span]) -> tuple[Input | Stage, BoundedRead] | None:
        """The image that a factor is made of, and the factor as a function of the place in it; None of others."""
        moving = {a for a in walk(e) if isinstance(a, Access) and variables_of(a)}
        access = moving.pop() if len(moving) == 1 else None
        if access is None or any(map(has_accesses, access.indices)):
            return None
        image = self._images[access.name]
        found = bounded_read(e, access, image.dims)
        return None if found is None or not all(span_of(i, env).known for i in found.indices) else (image, found)

    def _stage_of(self, image: Input | Stage, value: Expr, storage: tuple[str, ...]) -> str:
        """The name of the stage that has the factors."""
        name = self._made.get((value, storage))
        if name is None:
            name = self._made[value, storage] = fresh(image.name, "wide", self._names)
            self._names.add(name)
            widened = value if value.type == INT16 else Cast(value, INT16)
            self.added.append(Stage(name, image.dims, (widened,), (), None, storage))
        return name


def _products(e: Expr) -> tuple[tuple[Expr, ...], ...]:
    """The factors of the two products that an iteration of a contraction adds; none of other expressions."""
    if not isinstance(e, Reduce) or e.op != "sum" or e.type != INT32 or e.where is not None:
        return ()
    found = tuple(map(short_factors, terms(e.body)))
    return found if len(found) == 2 and all(len(factors) == 2 for factors in found) else ()


def _with(e: Expr, wide: Mapping[Expr, Expr]) -> Expr:
    """A sum of products with other factors."""
    if isinstance(e, Cast) and e.operand in wide:
        return Cast(wide[e.operand], INT32)
    return map_children(e, lambda part: _with(part, wide)) if isinstance(e, Binary) else e
