"""Normalisation: boundaries become arithmetic, and updates that are no more than an expression become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from scheduler.analysis.memoize import once_per_pipeline
from scheduler.ir.pipeline.boundary_conditions import without_boundaries
from scheduler.ir.pipeline.pipeline import Pipeline, Stage
from scheduler.rewrites.fold_updates import folded
from scheduler.rewrites.hoist_parameters import with_derived
from scheduler.rewrites.propagate_boundaries import inherited
from scheduler.rewrites.reduction_order import fastest_dims, ordered
from scheduler.rewrites.specialize_scans import specialised
from scheduler.rewrites.symmetric_pairs import halved

Pass = Literal["boundaries", "folding", "order", "levels", "halves", "params", "edges"]
Note = Callable[[Pass, Pipeline, Pipeline], None]
"""An observer of the passes that change something: the pass, the pipeline before and after it."""


def normalise(pipeline: Pipeline, strict: bool = False, note: Note | None = None) -> Pipeline:
    """*Before*: a checked pipeline. *After*: no input and no stage has a boundary; every access to one that had
    indexes inside its domain by `clamp`, `min` and `%`, and selects the constant where the boundary is one. No stage's
    first update is one that could be part of its value (see `folding`), and the loops of long reductions run along
    memory (see `reduction_order`). Scans over a few levels are a stage a level (see `specialised`). Of what is the
    same from either end of an offset half is read from both (see `symmetry`). Integers that follow from params by way
    of floats are params (see `derived`). What is read far beyond an edge that a stage inherits is read there (see
    `edges`).

    Computes the same values; floats are added up in the same order if `strict`. Normalising again changes nothing,
    and a pipeline that is normal is returned itself. A boundary's index arithmetic is wrapped in a clamp to the
    domain even where the modulo implies it, so that interval arithmetic sees the bound.
    """
    for name, before, after in _rewrites(pipeline, strict):
        if note is not None:
            note(name, before, after)
        pipeline = after
    return pipeline


@once_per_pipeline
def _rewrites(pipeline: Pipeline, strict: bool) -> tuple[tuple[Pass, Pipeline, Pipeline], ...]:
    """The passes that change something, in order, each with the pipeline before and after it."""
    fastest = fastest_dims(pipeline)
    passes: tuple[tuple[Pass, Callable[[Pipeline], Pipeline]], ...] = (
        ("boundaries", without_boundaries),
        ("folding", lambda p: _by_stage(p, lambda s: folded(s, strict))),
        ("order", lambda p: _by_stage(p, lambda s: ordered(s, fastest, strict))),
        ("levels", lambda p: specialised(p, strict)),
        ("halves", lambda p: halved(p, strict)),
        ("params", with_derived),
        ("edges", inherited),
    )
    rewrites = []
    for name, rewrite in passes:
        before, pipeline = pipeline, rewrite(pipeline)
        if pipeline is not before:
            rewrites.append((name, before, pipeline))
    return tuple(rewrites)


def _by_stage(pipeline: Pipeline, rewrite: Callable[[Stage], Stage]) -> Pipeline:
    stages = tuple(map(rewrite, pipeline.stages))
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=stages)
