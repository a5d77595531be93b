"""Allowed regions: the largest region of every output that the images passed can feed.

The converse of required regions. Each dim of an output is searched by itself: what an input's dim must cover
for one point of the output rises (or falls) with the point, so that the first and the last point that the
image covers are found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.analysis.bounds import Interval, Region, bound_symbol, param_symbol, required_boxes
from scheduler.analysis.index import sym
from scheduler.analysis.normalise import normalise
from scheduler.lang.pipeline import Pipeline, Stage

POINTS = range(-(1 << 30), 1 << 30)  # where the grid is searched


@dataclass(frozen=True, slots=True)
class _Need:
    """What one dim of an input must cover, and what of it there is, from `first` to `last`."""

    interval: Interval
    first: int
    last: int


def allowed_regions(
    pipeline: Pipeline, params: Mapping[str, int | float | bool], inputs: Mapping[str, Region]
) -> dict[str, Region]:
    """(min, extent) per dim of every output, the largest for which `inputs` ((min, extent) per dim of every
    input) have all that is read.

    A dim that no input bounds, since a boundary makes any region possible or the dim is of no input, gets the
    region of the first input with a dim of that name, otherwise its estimate. Where no region is possible, the
    result is one point, whose required region tells what is missing.
    """
    env = {param_symbol(p.name): int(params[p.name]) for p in pipeline.params if p.type.is_integer}
    for image in pipeline.inputs:
        for dim, (low, extent) in zip(image.dims, inputs[image.name], strict=True):
            env[bound_symbol(image.name, "min", dim)] = low
            env[bound_symbol(image.name, "extent", dim)] = extent
    normal = normalise(pipeline)
    return {name: _allowed(normal, normal.stage(name), env, inputs) for name in pipeline.outputs}


def _allowed(pipeline: Pipeline, stage: Stage, env: dict[str, int], inputs: Mapping[str, Region]) -> Region:
    ends = tuple((f"{stage.name}.first.{dim}", f"{stage.name}.last.{dim}") for dim in stage.dims)
    boxes = required_boxes(pipeline, {stage.name: tuple((sym(first), sym(last)) for first, last in ends)})
    needs = [
        _Need(interval, low, low + extent - 1)
        for image in pipeline.inputs
        for interval, (low, extent) in zip(boxes.get(image.name, ()), inputs[image.name], strict=False)
    ]
    otherwise = tuple(_unbounded(pipeline, stage, d, inputs) for d in range(len(stage.dims)))
    centre = {end: low + extent // 2 for pair, (low, extent) in zip(ends, otherwise, strict=True) for end in pair}
    region = []
    for pair, (low, extent) in zip(ends, otherwise, strict=True):
        first, last = _ends(pair, {**env, **centre}, needs)
        first = low if first == POINTS[0] else first
        last = low + extent - 1 if last == POINTS[-1] else last
        region.append((first, max(1, last - first + 1)))
    return tuple(region)


def _unbounded(pipeline: Pipeline, stage: Stage, d: int, inputs: Mapping[str, Region]) -> tuple[int, int]:
    """(min, extent) of a dim that no input bounds."""
    dim = stage.dims[d]
    for image in pipeline.inputs:
        if dim in image.dims:
            return inputs[image.name][image.dims.index(dim)]
    estimate = pipeline.estimate(stage.name)
    return (0, 1) if estimate is None else estimate[d]


def _ends(pair: tuple[str, str], env: Mapping[str, int], needs: list[_Need]) -> tuple[int, int]:
    """The first and last point of one dim, the others fixed by `env`, at which every need is covered."""
    covered = [(POINTS[0], POINTS[-1]), *(_covered(pair, env, need) for need in needs)]
    return max(first for first, _ in covered), min(last for _, last in covered)


def _covered(pair: tuple[str, str], env: Mapping[str, int], need: _Need) -> tuple[int, int]:
    """The first and last point at which one need is covered: all of POINTS where it does not move with the point."""

    def at(point: int, side: int) -> int:
        return need.interval[side].value({**env, pair[0]: point, pair[1]: point})

    rise = sum(at(POINTS[-1], side) - at(POINTS[0], side) for side in (0, 1))
    if not rise:
        return POINTS[0], POINTS[-1]
    if rise > 0:
        enough = bisect_left(POINTS, True, key=lambda p: at(p, 0) >= need.first)
        beyond = bisect_left(POINTS, True, key=lambda p: at(p, 1) > need.last)
    else:
        enough = bisect_left(POINTS, True, key=lambda p: at(p, 1) <= need.last)
        beyond = bisect_left(POINTS, True, key=lambda p: at(p, 0) < need.first)
    return POINTS[min(enough, len(POINTS) - 1)], POINTS[max(beyond - 1, 0)]
