"""Splitting of separable filters: windows that are products, split in two, along one dim first, then along the others.
A rewrite of the pipeline; what follows is a pipeline like any other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tilesmith.scheduler.analysis.separability import windows
from tilesmith.scheduler.analysis.stage_graph import is_plain
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Expr,
    Reduce,
    Var,
    map_children,
    reduction_loops_of,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.substitution import substituted, substitution
from tilesmith.scheduler.ir.schedule.schedule import Separation
from tilesmith.scheduler.rewrites.fold_updates import folded
from tilesmith.scheduler.rewrites.names import fresh, problem, taken
from tilesmith.scheduler.rewrites.propagate_boundaries import inherited
from tilesmith.scheduler.rewrites.reduction_order import fastest_dims, ordered


def separated(pipeline: Pipeline, separations: Iterable[Separation], strict: bool = False) -> Pipeline:
    """`pipeline`, which is normal, with each separation's window split, one separation after the other: a later one
    numbers the windows that are left, and may name the stage that an earlier one has made. Computes the same values,
    but that floats are added up in another order.

    A separation makes a stage, pure, of the part of the window along its dim. It has those dims of the stage that this
    part depends on, and stands where the window's other elements are: it is not computed again for each of them.
    Required regions do not grow. The pipeline is normal again: what is new of it is folded and ordered, and read within
    the edges that it has.

    Raises IllegalSchedule, naming the separation and the rule: for a stage, a window or a dim that there is not, or
    along which the window is no product; for a stage to be put in that has updates or several values; for floats if
    `strict`; for a name that is taken.
    """
    stages = {s.name: s for s in pipeline.stages}
    made: dict[str, list[str]] = {}
    names = taken(pipeline)
    for s in separations:
        wrong = problem(s.partial, names)
        if wrong is not None:
            raise _refused(s, wrong)
        if s.stage not in stages:
            raise _refused(s, "there is no such stage")
        if s.through is not None and s.through not in stages:
            raise _refused(s, f"there is no stage '{s.through}'")
        through = None if s.through is None else stages[s.through]
        stages[s.partial], stages[s.stage] = split(stages[s.stage], s, strict, through)
        made.setdefault(s.stage, []).append(s.partial)
        names.add(s.partial)

    def parts_first(name: str) -> Iterator[Stage]:
        for part in made.get(name, ()):
            yield from parts_first(part)
        yield stages[name]

    whole = replace(pipeline, stages=tuple(new for s in pipeline.stages for new in parts_first(s.name)))
    fastest, kept = fastest_dims(whole), {s.name: s for s in pipeline.stages}
    normal = (s if s is kept.get(s.name) else ordered(folded(s, strict), fastest, strict) for s in whole.stages)
    return inherited(replace(whole, stages=tuple(normal)))


def split(
    stage: Stage, separation: Separation, strict: bool = False, through: Stage | None = None
) -> tuple[Stage, Stage]:
    """The two stages that a separation makes of its stage, the part along its dim first; `through` is the stage of
    that name, where there is one. Of the same stages they are the same objects, with what is known of them: a search
    looks at halves before the pipeline is made of them. Raises as `separated`."""
    known, key = _known_halves(stage), (separation, strict, id(through))
    if key not in known:
        known[key] = _split(stage, separation, strict, through), through
    return known[key][0]


@once
def _known_halves(stage: Stage) -> dict[tuple[Separation, bool, int], tuple[tuple[Stage, Stage], Stage | None]]:
    """Halves, and the stage that was put in, which keeps its identity while they are known."""
    return {}


def _split(stage: Stage, separation: Separation, strict: bool, through: Stage | None) -> tuple[Stage, Stage]:
    if through is not None:
        if not is_plain(through):
            raise _refused(separation, f"'{through.name}' has updates or several values: it cannot be put in")
        if not any(isinstance(e, Access) and e.name == through.name for v in stage.values for e in walk(v)):
            raise _refused(separation, f"the stage does not read '{through.name}'")
        stage = put_in(stage, through)
    found = windows(stage)
    if not 0 <= separation.window < len(found):
        raise _refused(separation, f"the stage has {len(found)} windows that can be split")
    window = found[separation.window]
    if separation.dim not in window.dims:
        raise _refused(separation, f"window {separation.window} can be split along {' and '.join(window.dims)} only")
    if strict and window.root.type.is_float:
        raise _refused(separation, "floats are joined in the order written, as the schedule is strict")
    half = window.half(separation.dim, separation.partial)
    storage = tuple(d for d in stage.storage if d in half.dims)
    partial = Stage(half.name, half.dims, (half.value,), (), None, storage)
    return partial, replace(stage, values=tuple(_replaced(v, window.root, half.whole) for v in stage.values))


def _refused(s: Separation, rule: str) -> IllegalSchedule:
    return IllegalSchedule(f"separation '{s.partial}' of stage '{s.stage}' along '{s.dim}': {rule}")


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    """`e` with every `old` in it replaced."""
    if e is old or e == old:
        return new
    return map_children(e, lambda part: _replaced(part, old, new))


def put_in(stage: Stage, producer: Stage) -> Stage:
    """`stage` with the values of `producer`, which has no updates, where its own values read them; of the same stages
    the same object."""
    known = _known_with(stage)
    if id(producer) not in known:
        known[id(producer)] = _put_in(stage, producer), producer
    return known[id(producer)][0]


@once
def _known_with(stage: Stage) -> dict[int, tuple[Stage, Stage]]:
    """The stage with others put in, by their identity, which they keep while they are here."""
    return {}


def _put_in(stage: Stage, producer: Stage) -> Stage:
    taken = variables_of(*stage.values) | reduction_loops_of(*stage.values)
    parts = [substitution(apart(v, taken)) for v in producer.values]

    def rewrite(e: Expr) -> Expr:
        e = map_children(e, rewrite)
        if isinstance(e, Access) and e.name == producer.name:
            return parts[e.component](dict(zip(producer.dims, e.indices, strict=True)))
        return e

    return replace(stage, values=tuple(map(rewrite, stage.values)))


def apart(e: Expr, taken: Collection[str]) -> Expr:
    """`e` with the variables of its reductions named otherwise than those `taken`."""
    e = map_children(e, lambda part: apart(part, taken))
    if not isinstance(e, Reduce) or all(r.name not in taken for r in e.domain):
        return e
    known = {*taken, *(n.name for n in walk(e) if isinstance(n, Var)), *(r.name for r in e.domain)}
    names: dict[str, str] = {}
    for r in e.domain:
        names[r.name] = fresh(r.name, "in", known) if r.name in taken else r.name
        known.add(names[r.name])
    variables: dict[str, Expr] = {old: Var(new) for old, new in names.items()}
    return replace(
        e,
        domain=tuple(replace(r, name=names[r.name]) for r in e.domain),
        body=substituted(e.body, variables),
        where=None if e.where is None else substituted(e.where, variables),
    )
