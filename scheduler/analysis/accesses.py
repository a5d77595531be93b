"""What a stage reads, and where: one entry an access, with a span for every dim of what is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.analysis.remember import once_per_stage
from scheduler.analysis.spans import UNKNOWN, Span, constant, span_of, variable
from scheduler.lang.expr import Access, Call, Const, Expr, Reduce, RVar, Var, children, walk
from scheduler.lang.pipeline import Stage


@dataclass(frozen=True, slots=True)
class StageAccess:
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


@once_per_stage
def accesses(stage: Stage) -> tuple[StageAccess, ...]:
    """Every distinct access of the stage's definitions, in the order they are written.

    The same expression read twice under the same reduction counts once. Accesses in bounds of reductions
    and in other accesses' indices are included.
    """
    found: dict[tuple[int, Access, tuple[RVar, ...]], StageAccess] = {}
    loops = {d: variable(d) for d in stage.dims}
    for value in stage.values:
        _collect(value, 0, loops, (), found)
    for n, update in enumerate(stage.updates, start=1):
        env = {**loops, **{r.name: range_of(r) for r in update.domain}}
        parts = [p for r in update.domain for p in (r.lo, r.extent)]
        parts += [*update.at, *update.values] + ([update.where] if update.where is not None else [])
        for part in parts:
            _collect(part, n, env, update.domain, found)
    return tuple(found.values())


def range_of(r: RVar) -> Span:
    """The span of a reduction variable: UNKNOWN where its range is no constant."""
    if isinstance(r.lo, Const) and isinstance(r.extent, Const):
        lo, extent = int(r.lo.value), int(r.extent.value)
        return constant(lo, lo + max(extent, 1) - 1)
    return UNKNOWN


def _collect(
    e: Expr,
    definition: int,
    env: dict[str, Span],
    reductions: tuple[RVar, ...],
    found: dict[tuple[int, Access, tuple[RVar, ...]], StageAccess],
    share: float = 1.0,
) -> None:
    if isinstance(e, Reduce):
        for r in e.domain:
            _collect(r.lo, definition, env, reductions, found, share)
            _collect(r.extent, definition, env, reductions, found, share)
        inner = {**env, **{r.name: range_of(r) for r in e.domain}}
        for part in (e.where, e.body):
            if part is not None:
                _collect(part, definition, inner, (*reductions, *e.domain), found, share)
        return
    choices = len(e.args) - 1 if isinstance(e, Call) and e.function == "mux" else 1
    for n, child in enumerate(children(e)):
        if isinstance(child, Const | Var):
            continue
        _collect(child, definition, env, reductions, found, share / choices if n else share)
    if isinstance(e, Access):
        key = (definition, e, reductions)
        known = found.get(key)
        if known is None:
            spans, parts = tuple(span_of(i, env) for i in e.indices), [tuple(walk(i)) for i in e.indices]
            used = tuple(frozenset(n.name for n in nodes if isinstance(n, Var)) for nodes in parts)
            data = tuple(any(isinstance(n, Access) for n in nodes) for nodes in parts)
            found[key] = StageAccess(e.name, e.component, definition, e, spans, used, data, reductions, share)
        elif known.share < 1:
            found[key] = replace(known, share=min(1.0, known.share + share))
