"""Hoisting of reductions: what a value reduces that does not depend on all loops around it becomes a stage of its own,
loop-invariant code motion.

    f(x, y) = a(x, y) / sum(a(k, y) for k in range(512))
      ->
    f_sum(y) = sum(a(k, y) for k in range(512)); f(x, y) = a(x, y) / f_sum(y)

Where it was written it is computed for each vector of points, and in a reduction for each term. The stage is computed
where the schedule says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Reduce, RVar, Var, children, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.tabulate_weights import MOST_DIMS, is_short

TUPLES = ("argmin", "argmax")


def hoisted(pipeline: Pipeline) -> Pipeline:
    """*Before*: any pipeline. *After*: long reductions of data that do not depend on all loops around them are stages,
    each right before the first that reads it, with the loops that they do depend on as dims. *Ignores* updates; places
    of extremes; indices, whose bounds are found where they are written. The same values, bit for bit. Again, this
    changes nothing."""
    hoisting = _Hoisting(pipeline)
    stages = [new for s in pipeline.stages for new in hoisting.stage(s)]
    return replace(pipeline, stages=tuple(stages)) if hoisting.made else pipeline


class _Hoisting:
    """The stages of a pipeline one by one, producers first. `made` are those that were made, by what they compute. What
    reads no data is left to `tabulate-weights`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.made: dict[tuple[Expr, int], Stage] = {}
        self._names = taken(pipeline)
        self._data = {i.name for i in pipeline.inputs}
        for s in pipeline.stages:
            if s.updates or any(a.name in self._data for a in parts(s, Access)):
                self._data.add(s.name)

    def stage(self, stage: Stage) -> Iterator[Stage]:
        """The stages that are made for a stage, and the stage with these read."""
        if not any(not is_short(e.domain) for e in parts(stage, Reduce)):
            yield stage
            return
        before = len(self.made)
        values = tuple(self._rewritten(v, stage, stage.dims) for v in stage.values)
        yield from [*self.made.values()][before:]
        same = all(a is b for a, b in zip(values, stage.values, strict=True))
        yield stage if same else replace(stage, values=values)

    def _rewritten(self, e: Expr, stage: Stage, loops: tuple[str, ...]) -> Expr:
        if isinstance(e, Access):
            return e  # places stay where bounds are found of them
        if not isinstance(e, Reduce):
            return map_children(e, lambda c: self._rewritten(c, stage, loops))
        own = tuple(r.name for r in e.domain)
        inside = (*(n for n in loops if n not in own), *own)
        found = map_children(e, lambda c: self._rewritten(c, stage, inside))
        assert isinstance(found, Reduce)
        free = _free(found)
        dims = tuple(n for n in loops if n in free)
        data = any(isinstance(n, Access) and n.name in self._data for n in walk(found))
        if is_short(e.domain) or not data or e.op in TUPLES or len(dims) == len(loops) or len(dims) > MOST_DIMS:
            return found
        return self._read(found, dims, stage)

    def _read(self, e: Reduce, dims: tuple[str, ...], stage: Stage) -> Expr:
        """The access, in a stage, to the stage of `e`, which depends on `dims`."""
        places: dict[str, Expr] = {d: Var(f"{n}.place") for n, d in enumerate(dims)}
        key = _renamed(substituted(e, places)), len(dims)
        if key not in self.made:
            name = fresh(stage.name, e.op, self._names)
            self._names.add(name)
            self._data.add(name)
            self.made[key] = Stage(name, dims, (e,), (), None, dims)
        return Access(self.made[key].name, tuple(map(Var, dims)), 0, e.type)


def _free(e: Expr) -> frozenset[str]:
    """The variables that an expression does not bind itself."""
    if isinstance(e, Var):
        return frozenset((e.name,))
    names = frozenset(name for c in children(e) for name in _free(c))
    return names - {r.name for r in e.domain} if isinstance(e, Reduce) else names


def _renamed(e: Expr, depth: int = 0) -> Expr:
    """An expression in which reductions name their variables by their places."""
    if isinstance(e, Reduce):
        names: dict[str, Expr] = {r.name: Var(f"{depth}.{n}.variable") for n, r in enumerate(e.domain)}
        where = None if e.where is None else substituted(e.where, names)
        domain = tuple(RVar(f"{depth}.{n}.variable", r.lo, r.extent) for n, r in enumerate(e.domain))
        e = replace(e, body=substituted(e.body, names), where=where, domain=domain)
    return map_children(e, lambda c: _renamed(c, depth + 1))
