"""Output fusion: outputs that are computed together, in one loop nest, as the values of one stage. A rewrite of the
pipeline; what follows is a pipeline like any other."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.ir.pipeline.arguments import Region
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.schedule.schedule import Joining
from tilesmith.scheduler.rewrites.names import problem, taken
from tilesmith.scheduler.rewrites.split_separable import put_in

MOST = 16
"""Values that a joint stage has at most, as many as a tuple of the language."""
MOST_PARTS = 5000
"""The values of an output have at most so many parts when those of others are put in."""


def joined(pipeline: Pipeline, joinings: Iterable[Joining]) -> Pipeline:
    """`pipeline`, which is normal, with the outputs of each joining as the values of one stage, in their order: the
    output that stands for them. Computes the same values, on one region that is asked for of all of them, and is
    normal.

    Where one of the outputs reads another at the point itself, that one's value is put in. Those that are read
    otherwise stay stages of their names (`kept`), of which the joint stage has copies.

    Raises IllegalSchedule, naming the joining and the rule: for stages that are no outputs, or in two joinings, or of
    which there are less than two or too many values; that differ in their dims, their storage order or their estimates;
    that have updates, or are too large with those put in; for a name that is taken.
    """
    names = taken(pipeline)
    for j in joinings:
        wrong = problem(j.joint, names) or obstacle(pipeline, j.stages)
        if wrong is not None:
            raise IllegalSchedule(f"joining '{j.joint}' of {', '.join(j.stages)}: {wrong}")
        pipeline = _with(pipeline, j)
        names.add(j.joint)
    return pipeline


def obstacle(pipeline: Pipeline, names: Sequence[str]) -> str | None:
    """Why the stages of these names cannot be joined; None where they can."""
    outputs = {s.name: s for s in pipeline.stages if s.name in pipeline.outputs}
    if len(names) < 2 or len(set(names)) < len(names):
        return "two stages or more are joined, each once"
    for name in names:
        if name not in outputs:
            return f"'{name}' is no output, or is in another joining"
    stages = [outputs[name] for name in names]
    first = stages[0]
    if sum(len(s.values) for s in stages) > MOST:
        return f"they have more than {MOST} values"
    for s in stages:
        if s.updates:
            return f"'{s.name}' has updates"
        if s.dims != first.dims or s.storage != first.storage:
            return f"the dims of '{s.name}' are others than those of '{first.name}', or lie otherwise in memory"
        if pipeline.estimate(s.name) != pipeline.estimate(first.name):
            return f"'{s.name}' is asked for on another region than '{first.name}'"
    too_large = large(pipeline, names)
    return f"with what it reads of the others put in, '{too_large[0]}' is too large" if too_large else None


def alike(pipeline: Pipeline) -> tuple[tuple[str, ...], ...]:
    """The outputs, those together that have the same dims, storage order and estimates, in the order of the document.
    Where a caller does not say otherwise these are computed on one region."""
    found: dict[Hashable, list[str]] = {}
    for name in pipeline.outputs:
        stage = pipeline.stage(name)
        found.setdefault((stage.dims, stage.storage, pipeline.estimate(name)), []).append(name)
    return tuple(map(tuple, found.values()))


def kept(pipeline: Pipeline, names: Collection[str]) -> frozenset[str]:
    """The stages of `names` that stay stages when these are joined: those that the others read elsewhere than at the
    point itself, and those that another stage reads, one that stays among them."""
    left = set(names)
    while found := {name for reader in pipeline.stages for name in _read_apart(reader, left)}:
        left -= found
    return frozenset(names) - left


def _read_apart(reader: Stage, names: Collection[str]) -> Iterator[str]:
    point = tuple(Var(d) for d in reader.dims)
    for e in (e for part in expressions(reader) for e in walk(part)):
        if isinstance(e, Access) and e.name in names and (reader.name not in names or e.indices != point):
            yield e.name


def large(pipeline: Pipeline, names: Collection[str]) -> list[str]:
    """The stages of `names` whose values grow too many parts as the others that they read are put in."""
    sizes: dict[str, int] = {}
    grown = frozenset(names) - kept(pipeline, names)
    for stage in (s for s in pipeline.stages if s.name in grown):  # producers first
        parts = [e for value in stage.values for e in walk(value)]
        sizes[stage.name] = len(parts) + sum(sizes.get(e.name, 0) for e in parts if isinstance(e, Access))
    return [name for name, size in sizes.items() if size > MOST_PARTS]


def apart(pipeline: Pipeline, regions: Mapping[str, Region]) -> tuple[str, ...]:
    """The first outputs alike that are asked for on different `regions`; none where there are no such."""
    return next((names for names in alike(pipeline) if len({regions[name] for name in names}) > 1), ())


def _with(pipeline: Pipeline, j: Joining) -> Pipeline:
    parts: dict[str, Stage] = {}
    stay = kept(pipeline, j.stages)
    for stage in pipeline.stages:  # producers first
        if stage.name in j.stages and stage.name not in stay:
            parts[stage.name] = reduce(put_in, parts.values(), stage)
    first = pipeline.stage(j.stages[0])
    values = tuple(v for n in j.stages for v in (parts[n].values if n in parts else _copied(pipeline.stage(n))))
    joint = Stage(j.joint, first.dims, values, (), None, first.storage)
    left = [n for n in pipeline.outputs if n not in j.stages or n == first.name]
    region = pipeline.estimate(first.name)
    known = tuple((n, r) for n, r in pipeline.estimates if n not in j.stages)
    return replace(
        pipeline,
        stages=(*(s for s in pipeline.stages if s.name not in parts), joint),
        outputs=tuple(j.joint if n == first.name else n for n in left),
        estimates=known if region is None else (*known, (j.joint, region)),
    )


def _copied(stage: Stage) -> tuple[Expr, ...]:
    """The values of a stage at a point."""
    point = tuple(Var(d) for d in stage.dims)
    return tuple(Access(stage.name, point, n, t) for n, t in enumerate(stage.types))
