"""Accesses of a stage: one entry for each distinct one, with a span for every dim of what is read."""

from __future__ import annotations

from typing import NamedTuple

from tilesmith.scheduler.analysis.access_functions import UNKNOWN, Span, constant, span_of, variable
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.boundary_conditions import inside
from tilesmith.scheduler.ir.pipeline.expressions import Access, Call, Const, Expr, Reduce, RVar, Var, children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

_LEAVES = (Const, Var)


class StageAccess(NamedTuple):
    """One distinct access of a stage.

    `definition` is 0 for the pure value and n for the nth update. `spans` has one span per dim of the
    producer, in terms of the stage's own dims (and an update's domain variables); reduction variables with
    constant bounds are widened into lo and hi already; `reductions` are the variables around the access,
    outermost first, those of the update's domain included. `used` has the names of the variables in each index, and
    `data` is whether the index is made of what is read. `share` is less than 1 for what a `mux` picks from: one
    alternative is computed.
    """

    producer: str
    component: int
    definition: int
    access: Access
    spans: tuple[Span, ...]
    used: tuple[frozenset[str], ...]
    data: tuple[bool, ...]
    reductions: tuple[RVar, ...]
    share: float = 1.0


@once
def accesses(stage: Stage) -> tuple[StageAccess, ...]:
    """Every distinct access of the stage's definitions, in the order they are written.

    The same expression read twice under the same reduction counts once. Accesses in bounds of reductions
    and in other accesses' indices are included.
    """
    found = _Found()
    loops = {d: variable(d) for d in stage.dims}
    for value in stage.values:
        found.collect(value, _Scope(0, loops))
    for n, update in enumerate(stage.updates, start=1):
        scope = _Scope(n, loops).inside(update.domain)
        parts = [p for r in update.domain for p in (r.lo, r.extent)]
        parts += [*update.at, *update.values] + ([update.where] if update.where is not None else [])
        for part in parts:
            found.collect(part, scope)
    return tuple(found.listed)


def range_of(r: RVar) -> Span:
    """The span of a reduction variable: UNKNOWN where its range is no constant."""
    if isinstance(r.lo, Const) and isinstance(r.extent, Const):
        lo, extent = int(r.lo.value), int(r.extent.value)
        return constant(lo, lo + max(extent, 1) - 1)
    return UNKNOWN


def span_inside(stage: Stage, a: StageAccess, d: int) -> Span:
    """The span of an index of `stage` inside the image that it reads: boundaries change nothing there."""
    env = {n: variable(n) for n in stage.dims} | {r.name: range_of(r) for r in a.reductions}
    return span_of(inside(a.access.indices[d], a.producer), env)


class _Scope:
    """A definition, or the inside of a reduction: the spans of variables there, and what is known of indices."""

    def __init__(self, definition: int, env: dict[str, Span], reductions: tuple[RVar, ...] = ()) -> None:
        self.definition, self.env, self.reductions = definition, env, reductions
        self.known: dict[Expr, tuple[Span, frozenset[str], bool]] = {}

    def inside(self, domain: tuple[RVar, ...]) -> _Scope:
        """The scope of a reduction over `domain`."""
        ranges = {r.name: range_of(r) for r in domain}
        return _Scope(self.definition, {**self.env, **ranges}, (*self.reductions, *domain))

    def index(self, e: Expr) -> tuple[Span, frozenset[str], bool]:
        """The span of an index, the names of its variables, and whether it is made of what is read."""
        found = self.known.get(e)
        if found is None:
            names, data = set(), False
            for part in walk(e):
                if isinstance(part, Var):
                    names.add(part.name)
                elif isinstance(part, Access):
                    data = True
            found = self.known[e] = span_of(e, self.env), frozenset(names), data
        return found


class _Found:
    """The accesses of a stage, as they are found."""

    def __init__(self) -> None:
        self.listed: list[StageAccess] = []
        self.places: dict[tuple[int, Access, tuple[RVar, ...]], int] = {}

    def collect(self, e: Expr, scope: _Scope, share: float = 1.0) -> None:
        """Adds those of an expression, the inner ones first."""
        if isinstance(e, Reduce):
            for r in e.domain:
                self.collect(r.lo, scope, share)
                self.collect(r.extent, scope, share)
            inner = scope.inside(e.domain)
            for part in (e.where, e.body):
                if part is not None:
                    self.collect(part, inner, share)
            return
        choices = len(e.args) - 1 if isinstance(e, Call) and e.function == "mux" else 1
        for n, child in enumerate(children(e)):
            if not isinstance(child, _LEAVES):
                self.collect(child, scope, share / choices if n else share)
        if isinstance(e, Access):
            self._add(e, scope, share)

    def _add(self, e: Access, scope: _Scope, share: float) -> None:
        place = self.places.setdefault((scope.definition, e, scope.reductions), len(self.listed))
        if place < len(self.listed):
            known = self.listed[place]
            if known.share < 1:
                self.listed[place] = known._replace(share=min(1.0, known.share + share))
            return
        spans, used, data = zip(*map(scope.index, e.indices), strict=True) if e.indices else ((), (), ())
        self.listed.append(
            StageAccess(e.name, e.component, scope.definition, e, spans, used, data, scope.reductions, share)
        )
