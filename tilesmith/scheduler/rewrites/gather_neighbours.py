"""Gathering of neighbours: terms of a sum that read the elements which vectors step over become a reduction, so that
they are read in the order of memory (see `analysis.neighbour_sums`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from operator import is_

from tilesmith.scheduler.analysis.access_functions import span_of, variable
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.neighbour_sums import GROUPS, summed_variable, total_type
from tilesmith.scheduler.analysis.translation_equivalence import Place, Placed, placed
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Const,
    Expr,
    Reduce,
    RVar,
    Var,
    children,
    map_children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import INT32


def gathered(pipeline: Pipeline) -> Pipeline:
    """*Before*: `a(2 * x) + a(2 * x + 1)`, sums of integers as they were written. *After*: `sum(a(2 * x + n) for n in
    range(2))`. *Legal when* integers wrap: the order of terms does not matter. *Ignores* stages with updates."""
    owners: tuple[Input | Stage, ...] = (*pipeline.inputs, *pipeline.stages)
    fastest = {o.name: o.dims.index(o.storage[0]) for o in owners if o.storage}
    stages = tuple(_stage(s, fastest) for s in pipeline.stages)
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=stages)


def _stage(stage: Stage, fastest: Mapping[str, int]) -> Stage:
    strided = (s.rate in GROUPS and s.var in stage.storage[:1] for a in accesses(stage) for s in a.spans)
    if stage.updates or not any(strided):
        return stage
    named = variables_of(*stage.values) | {*stage.dims}
    name = next(n for n in _names() if n not in named)
    rewriter = _Rewriter(stage.storage[0], name, fastest)
    values = tuple(map(rewriter.whole, stage.values))
    same = all(a is b for a, b in zip(values, stage.values, strict=True))
    return stage if same else replace(stage, values=values)


def _names() -> Iterator[str]:
    yield "near"
    yield from (f"near_{n}" for n in range(1 << 30))


class _Rewriter:
    """Rewrites the values of a stage whose rows run along a dim; `name` is that of the variables of reductions."""

    def __init__(self, along: str, name: str, fastest: Mapping[str, int]) -> None:
        self.along, self.name, self.fastest = along, name, fastest
        self.known: dict[int, tuple[Expr, Expr]] = {}

    def whole(self, e: Expr) -> Expr:
        """A value with its sums rewritten: parts before what is made of them, so that no recursion goes deep."""
        parts = list(walk(e))
        inside = {
            id(t) for part in parts if _is_sum(part) for t in children(part) if _is_sum(t) and t.type == part.type
        }
        for part in reversed(parts):
            if id(part) not in inside:
                self.value(part)
        return self.value(e)

    def value(self, e: Expr) -> Expr:
        """A part with its sums rewritten."""
        if id(e) not in self.known:
            self.known[id(e)] = e, self._sum(e) if _is_sum(e) else map_children(e, self.value)
        return self.known[id(e)][1]

    def _sum(self, e: Expr) -> Expr:
        terms = list(_terms(e))
        alike: dict[tuple[Expr, Expr], dict[int, tuple[int, Placed]]] = {}
        for n, term in enumerate(terms):
            found = placed(term, (self.along,))
            if found.places:
                ((_, place),) = found.places
                alike.setdefault((found.function, place.base), {})[place.shift] = n, found
        left = {*range(len(terms))}
        sums: list[Expr] = []
        for (_, base), those in alike.items():
            span = span_of(base, {self.along: variable(self.along)})
            size = int(span.rate) if span.known and span.rate in GROUPS else 0
            for shift in sorted(those) if size else ():
                group = [those[s] for s in range(shift, shift + size) if s in those]
                made = self._reduction(e, group[0][1], Place(base, shift), size) if len(group) == size else None
                if made is not None and left.issuperset(n for n, _ in group):
                    left -= {n for n, _ in group}
                    sums.append(made)
        rest = [self.value(terms[n]) for n in sorted(left)]
        if not sums and all(map(is_, rest, terms)):
            return e
        return reduce(lambda a, b: Binary("+", a, b, e.type), (*sums, *rest))

    def _reduction(self, e: Expr, term: Placed, place: Place, size: int) -> Reduce | None:
        r = RVar(self.name, Const(0, INT32), Const(size, INT32))
        moving = Place(Binary("+", place.base, Var(self.name), INT32), place.shift)
        found = Reduce("sum", term.at({self.along: moving}), (r,), None, 0, e.type)
        ours = summed_variable(found, self.along, {}, self.fastest.get)
        return found if ours is not None and total_type(found, ours) is not None else None


def _is_sum(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "+" and e.type.is_integer


def _terms(e: Expr) -> Iterator[Expr]:
    pending = [e]
    while pending:
        part = pending.pop()
        if _is_sum(part) and part.type == e.type:
            assert isinstance(part, Binary)
            pending += [part.right, part.left]
        else:
            yield part
