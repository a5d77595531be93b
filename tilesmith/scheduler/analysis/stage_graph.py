"""The graph of stages: who reads whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Reduce, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage


@dataclass(frozen=True, slots=True)
class StageGraph:
    """Edges between the live stages of a pipeline (those that an output needs), inputs left out.

    `stages` are in topological order. `producers` and `consumers` map every live stage to the stages that
    it reads and that read it, without itself, in topological order.
    """

    stages: tuple[str, ...]
    producers: dict[str, tuple[str, ...]]
    consumers: dict[str, tuple[str, ...]]
    outputs: tuple[str, ...]


def stage_graph(pipeline: Pipeline) -> StageGraph:
    """The graph of the stages that the outputs need; dead stages are left out."""
    order = {s.name: n for n, s in enumerate(pipeline.stages)}
    reads = {s.name: {a.producer for a in accesses(s)} & (order.keys() - {s.name}) for s in pipeline.stages}
    live: set[str] = set()
    pending = list(pipeline.outputs)
    while pending:
        name = pending.pop()
        if name not in live:
            live.add(name)
            pending.extend(reads[name])
    stages = tuple(s.name for s in pipeline.stages if s.name in live)
    consumers: dict[str, list[str]] = {name: [] for name in stages}
    for name in stages:
        for producer in reads[name]:
            consumers[producer].append(name)
    return StageGraph(
        stages,
        {name: tuple(sorted(reads[name], key=order.__getitem__)) for name in stages},
        {name: tuple(found) for name, found in consumers.items()},
        pipeline.outputs,
    )


def is_plain(stage: Stage) -> bool:
    """True if `stage` is one pure value: no updates, no tuple (such a one may be computed inside others)."""
    return len(stage.values) == 1 and not stage.updates


def expressions(stage: Stage) -> Iterator[Expr]:
    """Every expression of the stage: values, and those of its updates."""
    yield from stage.values
    for update in stage.updates:
        for r in update.domain:
            yield from (r.lo, r.extent)
        if update.where is not None:
            yield update.where
        yield from update.at
        yield from update.values


Part = TypeVar("Part", bound=Expr)


def parts(stage: Stage, kind: type[Part]) -> Sequence[Part]:
    """The parts of this class, of every expression of the stage, parents first: no walk of its own."""
    return all_parts(stage).get(kind, ())


@once
def all_parts(stage: Stage) -> dict[type, list[Any]]:
    """The parts of every expression of the stage by their classes. One walk: most passes and analyses look for what
    most stages have none of."""
    found: dict[type, list[Any]] = defaultdict(list)
    for e in expressions(stage):
        for part in walk(e):
            found[type(part)].append(part)
    return dict(found)


@once
def reads(stage: Stage) -> frozenset[str]:
    """The names of all that the stage's expressions read, its own among them."""
    return frozenset([a.name for a in parts(stage, Access)])


@once
def reductions(stage: Stage) -> tuple[Reduce, ...]:
    """The inline reductions of the stage's values."""
    if not stage.updates:
        return tuple(parts(stage, Reduce))
    return tuple(e for value in stage.values for e in walk(value) if isinstance(e, Reduce))
